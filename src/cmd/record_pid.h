/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait record --pid`: records a process that runs already.
 */
#ifndef KRAIT_CMD_RECORD_PID_H
#define KRAIT_CMD_RECORD_PID_H

#include "cmd/attaching.h"
#include "cmd/recording.h"

struct krait_record_pid {
    const struct krait_recording_values *values;
    struct krait_attaching attaching; /* `over`: whether the user wants an end */
    char library[PATH_MAX];
};

/* -EINVAL where options do not go together, with err set; sets the pid. */
int krait_record_pid_check(struct krait_record_pid *record, int argc, struct krait_err *err);
/* Finds the agent, and whether the process is one to record. */
int krait_record_pid_prepare(struct krait_record_pid *record, struct krait_err *err);
/* Attaches, collects until the process has ended, a limit or the user's wish, and detaches. */
int krait_record_pid_run(struct krait_record_pid *record, struct krait_collector *collector,
                         struct krait_err *err);
void krait_record_pid_print(const struct krait_record_pid *record);

#endif
