/* SPDX-License-Identifier: Apache-2.0
 *
 * What `record` and `collect` share: the options of a recording.
 */
#ifndef KRAIT_CMD_RECORDING_H
#define KRAIT_CMD_RECORDING_H

#include "cmd/cmd.h"
#include "record/collector.h"

struct krait_recording_values {
    const char *output;
    struct krait_opt_list include, exclude, log, audit, args, snapshot_on;
    bool no_c_calls, no_children, no_gil, no_tasks, call_sites, lossless, gc, imports, quiet, verbose, wait,
        view, idle;
    double max_overhead;
    uint64_t ring_size, buffer_size, max_threads, duration, max_size;
    struct krait_opt_last last;
    const char *toggle_signal, *snapshot_signal;          /* SIGUSR1 or SIGUSR2 */
    const char *keep;                                     /* first or newest; NULL: first */
    struct krait_opt_list sample;                         /* rates; none: every call is recorded */
    const char *pid;                                      /* of a process that runs already */
    bool outside, children, native_stacks, kernel_stacks; /* with --sample */
    const char *kernel;           /* groups of events; NULL: the kernel is not recorded */
    const char *kernel_functions; /* a pattern */
    uint64_t kernel_ring_size;
    struct krait_opt_list usdt; /* [FILE:]PROVIDER:NAME[(NAME, ...)] */
};

/* A row of recording.def, in a table of options. */
#define KRAIT_RECORDING_OPT(name, letter, kind, argument, field, help)                                 \
    {                                                                                                  \
        name, letter, KRAIT_OPT_##kind, argument, offsetof(struct krait_recording_values, field), help \
    }

/* -EINVAL, with err saying how, where the values are wrong usage. Makes nothing. */
int krait_recording_check(const struct krait_recording_values *values, struct krait_err *err);

/* With --idle, and without --quiet: prints that the recording is off, and what switches it on. `pid` is for krait ctl. */
void krait_recording_say_idle(const struct krait_recording_values *values, pid_t pid);

/* The folder of --output, or a new one in the current folder, named after the command. */
void krait_recording_dir(const struct krait_recording_values *values, const char *command, char *dir,
                         size_t size);

/* Frees what options have allocated. */
void krait_recording_done(struct krait_recording_values *values);

/* Makes the collector, of values that krait_recording_check has found right. `dir` is a buffer for the
 * default folder's name, made from `command`. */
int krait_recording_open(struct krait_collector **out, struct krait_recording_values *values,
                         const char *command, char *dir, size_t size, struct krait_err *err);

#endif
