/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples a running Python program from outside and records what it sees. Each sample is proved (remote/still.h) or dropped.
 *
 *   krait_sampler_new      the folder, and the process's part of it
 *   krait_sampler_round    a sample of each thread, as often as wanted
 *   krait_sampler_finish   the rest of the events, how the process ended
 */
#ifndef KRAIT_SAMPLE_SAMPLE_H
#define KRAIT_SAMPLE_SAMPLE_H

#include "base/buf.h"
#include "base/err.h"
#include "event/event.h"

#include <sys/types.h>

struct krait_sampler;

struct krait_sampler_options {
    const char *dir; /* of the recording: made, or empty */
    bool joins;      /* the folder is there, with other processes in it */
    bool native;     /* native frames too: KRAIT_READ_NATIVE */
    bool no_tasks;   /* without the tasks of asyncio: KRAIT_READ_TASKS */
    bool alone;      /* no other sampler runs in this thread: KRAIT_READ_STAY */
    bool kernel;     /* the kernel's functions of waiting threads too: remote/kernel_stack.h */
    pid_t pid;
    int *spare_fds; /* how many more streams may stay open, over all samplers; outlives them */
    uint64_t rate;  /* rounds a second; what is said of the recording */
};

struct krait_sampler_summary {
    uint64_t begin_ns; /* CLOCK_MONOTONIC: of the first round */
    uint64_t duration_ns, samples, dropped, rounds, bytes;
    uint32_t threads;
};

/* Returns 0, or a negative errno with err set: those of krait_remote_open and krait_kernel_stack_check, and -EEXIST if the
 * folder is not empty. Nothing is left then. */
int krait_sampler_new(struct krait_sampler **out, const struct krait_sampler_options *options,
                      struct krait_err *err);
void krait_sampler_free(struct krait_sampler *sampler);

/* Returns 0, or a negative errno: -ESRCH if the process has ended; -ESTALE if it has executed another program, which a new sampler
 * may read; -EAGAIN if it cannot be read this time, as while it executes one. err is set but for -ESTALE. */
int krait_sampler_round(struct krait_sampler *sampler, struct krait_err *err);

/* Writes the rest. `how` and `status` as of process:exit; `limit`: the option that ended it, or NULL. Returns 0, or a negative
 * errno with err set. */
int krait_sampler_finish(struct krait_sampler *sampler, enum krait_event_enum_value how, int status,
                         const char *limit, struct krait_sampler_summary *summary, struct krait_err *err);

/* Appends the dotted name of a file's module, which no code object has: json.decoder of /usr/lib/python3.11/json/decoder.py. */
void krait_sample_add_module(struct krait_buf *out, const char *file);

#endif
