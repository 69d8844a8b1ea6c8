/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a function of the agent in another process.
 *
 *    krait                                 a thread of the process              the new thread
 *      │ finds libc's functions
 *      │ writes the stub where nothing is
 *      │ stops the thread ─────────────────→ │ (stopped)
 *      │ a safe place? writes its frame      │
 *      │ sets its registers, lets it go ───→ │ pthread_create ───────────────────→ │
 *      │                                     │ takes its registers back            │ dlopen(agent)
 *      │                                     │ goes on                             │ function(argument)
 *
 * The stub restores the thread by itself, so krait may be killed at any instant. The agent is loaded in the new thread,
 * which holds no lock and waits for the loader's, malloc's and Python's as any thread does.
 */
#ifndef KRAIT_ATTACH_ATTACH_H
#define KRAIT_ATTACH_ATTACH_H

#include "base/err.h"

#include <sys/types.h>

struct krait_attach_call {
    /* Its path. If the process cannot see that file, krait writes the library into a memfd of the process. */
    const char *library;
    const char *function; /* void function(const char *argument), in it */
    const char *argument;
    void (*step)(void *ctx, const char *text); /* is told what is done; may be NULL */
    void (*between)(void *ctx); /* is called between steps, some of which take seconds; may be NULL */
    void *ctx;
    uint64_t paused_ns; /* set: how long a thread of the process was stopped at most */
};

/* Starts the function and does not wait for its end. Returns 0, or a negative errno with the reason and what to do
 * in err; then nothing has changed in the process. */
int krait_attach(pid_t pid, struct krait_attach_call *call, struct krait_err *err);
/* Whether the process maps a file of that name. */
bool krait_attach_has_loaded(pid_t pid, const char *name);

#endif
