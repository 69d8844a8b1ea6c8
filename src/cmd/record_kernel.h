/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's part of `krait record --kernel`. If the kernel cannot be recorded, krait says so, and records the
 * program with the kernel events that its user may have, or without any.
 */
#ifndef KRAIT_CMD_RECORD_KERNEL_H
#define KRAIT_CMD_RECORD_KERNEL_H

#include "cmd/recording.h"
#include "kernel/kernel.h"

/* NULL when it is not asked for, or cannot be: said on stderr. `command` is the program; `dir` is the recording's folder. From
 * here on it is switched off and on with the recording. */
struct krait_kernel *krait_record_kernel_open(const struct krait_recording_values *values,
                                              const char *command, const char *dir,
                                              struct krait_collector *collector);
/* The same beside a process that runs already: the whole machine, or nothing. */
struct krait_kernel *krait_record_kernel_open_beside(const struct krait_recording_values *values, pid_t pid,
                                                     const char *dir, struct krait_collector *collector);
/* Prints a guess where the command that cannot be run is the name of a group: --kernel sched. */
void krait_record_kernel_guess(const struct krait_recording_values *values, const char *command);

/* Takes what is there, and says what went wrong. NULL is fine. */
void krait_record_kernel_round(struct krait_kernel *kernel, struct krait_collector *collector);
/* Keeps to the limits of the recording, with the kernel's part of it. Returns whether it is over by them. NULL is fine. */
bool krait_record_kernel_limit(struct krait_kernel *kernel, struct krait_collector *collector);

/* Ends the kernel's events, and keeps to the limits with those that its rings still had. Before krait_collector_finish. NULL is
 * fine. */
void krait_record_kernel_stop(struct krait_kernel *kernel, struct krait_collector *collector);

/* The end; after krait_collector_finish, which has measured the clock, and whose summary has kept_from: the kernel's part then
 * begins there too. NULL is fine. Returns whether there is a recording: one that was never switched on is removed, with the
 * kernel. */
bool krait_record_kernel_finish(struct krait_kernel **kernel, struct krait_collector *collector,
                                uint64_t kept_from, struct krait_kernel_summary *summary);
/* The summary's lines. `groups`: of --kernel. */
void krait_record_kernel_print(const struct krait_kernel_summary *summary, const char *groups);

/* Says on stderr what went wrong, unless it is NULL. */
void krait_record_trouble(const char *text);

/* A line of the summary on stderr: what is said behind a label, in the colour `code` or, where that is "", in
 * none. */
void krait_record_line(const char *code, const char *label, const char *fmt, ...) KRAIT_PRINTF(3, 4);

#endif
