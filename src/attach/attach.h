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
    /* Its path. Where the process does not see that file, it is brought along by a memfd. */
    const char *library;
    const char *function; /* void function(const char *argument), in it */
    const char *argument;
    void (*step)(void *ctx, const char *text); /* is told what is done; may be NULL */
    void *ctx;
    uint64_t paused_ns; /* set: how long a thread of the process was stopped at most */
};

/* Starts it and does not wait for its end. Returns 0, or a negative errno with err saying why not, and what to do; then
 * nothing has changed in the process. */
int krait_attach(pid_t pid, struct krait_attach_call *call, struct krait_err *err);
/* Whether the process maps a file of that name. */
bool krait_attach_has_loaded(pid_t pid, const char *name);

#endif
