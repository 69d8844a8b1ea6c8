/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait record --pid`: records a process that runs already; with --children also its descendants, those that exist and
 * those that come.
 */
#ifndef KRAIT_CMD_RECORD_PID_H
#define KRAIT_CMD_RECORD_PID_H

#include "cmd/attached.h"
#include "cmd/recording.h"
#include "kernel/kernel.h"

struct krait_record_pid {
    const struct krait_recording_values *values;
    pid_t pid;
    struct krait_attached_list attached; /* its how.over: whether the user wants an end */
    struct krait_attaching longest;      /* of those that have been left: who was paused for longest */
    struct krait_other *others;          /* descendants that cannot be attached to yet, or run no Python */
    uint32_t other_count, other_cap;
    uint64_t inode; /* of the recording's memory */
    uint64_t looked_ns;
    bool is_refused; /* the only process has told why it cannot be recorded */
    /* Called after each round of the collector while it records; not NULL. */
    void (*each_round)(struct krait_collector *collector);
};

void krait_record_pid_done(struct krait_record_pid *record);
/* -EINVAL where options do not go together, with err set; sets the pid. */
int krait_record_pid_check(struct krait_record_pid *record, int argc, struct krait_err *err);
/* Finds the agent, and whether there is a process to record. */
int krait_record_pid_prepare(struct krait_record_pid *record, struct krait_err *err);
/* Attaches, collects until the processes have ended, a limit or the user's wish, and detaches. `kernel` may be NULL. */
int krait_record_pid_run(struct krait_record_pid *record, struct krait_collector *collector,
                         struct krait_kernel *kernel, struct krait_err *err);
void krait_record_pid_print(const struct krait_record_pid *record);

#endif
