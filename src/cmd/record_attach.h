/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait record --pid`: records a process that runs already.
 */
#ifndef KRAIT_CMD_RECORD_ATTACH_H
#define KRAIT_CMD_RECORD_ATTACH_H

#include "cmd/recording.h"

#include <limits.h>
#include <sys/types.h>

struct krait_record_attach {
    const struct krait_recording_values *values;
    bool (*over)(void *ctx); /* whether the user wants an end */
    pid_t pid;
    char library[PATH_MAX]; /* the agent's */
    uint64_t paused_ns;
    bool stayed; /* it could not be told that the recording has ended */
};

/* -EINVAL where options do not go together, with err set; sets pid. */
int krait_record_attach_check(struct krait_record_attach *attach, int argc, struct krait_err *err);
/* Finds the agent, and whether the process is one to record. */
int krait_record_attach_library(struct krait_record_attach *attach, struct krait_err *err);
/* Attaches, collects until the process has ended, a limit or the user's wish, and detaches. */
int krait_record_attach_run(struct krait_record_attach *attach, struct krait_collector *collector,
                            struct krait_err *err);
void krait_record_attach_print(const struct krait_record_attach *attach);

#endif
