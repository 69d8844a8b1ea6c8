/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait record --sample`: looks at a program now and then, from outside.
 */
#ifndef KRAIT_CMD_RECORD_SAMPLE_H
#define KRAIT_CMD_RECORD_SAMPLE_H

#include "cmd/recording.h"

#include "remote/executed.h"
#include "sample/sample.h"

#include <limits.h>

#include <sys/types.h>

struct krait_record_sample {
    const struct krait_recording_values *values;
    uint64_t rate;      /* a second */
    pid_t pid;          /* whom to sample: of --pid, or 0 until the command has been started */
    char dir[PATH_MAX]; /* where the recording goes */
    bool made_dir;
    bool (*over)(void *ctx); /* whether the command has ended, or the user wants an end */
    void *ctx;
    bool ended;                          /* the process has */
    bool is_cut_short;                   /* the recording ended before its time */
    struct krait_sampler *sampler;       /* of the program that it runs; NULL: of none */
    uint32_t programs;                   /* that it ran and krait sampled */
    struct krait_executed unread;        /* the program, if it cannot be read; */
    uint64_t unread_ns, next_ns;         /* since when, 0: it can; when krait looks next; */
    struct krait_err why;                /* why not */
    struct krait_record_child *children; /* of --children */
    uint32_t child_count, child_cap, started;
    uint64_t looked_ns; /* when they were looked for */
    struct krait_sampler_summary sums;
    int spare_fds; /* how many more streams may stay open */
};

/* -EINVAL where options do not go together, with err set; sets rate and pid. */
int krait_record_sample_check(struct krait_record_sample *sample, const struct krait_recording_values *values,
                              int argc, struct krait_err *err);
/* Makes the folder. Returns 0 or a negative errno with err set. */
int krait_record_sample_prepare(struct krait_record_sample *sample, const char *command,
                                struct krait_err *err);
/* Samples until it is over, the process has ended, or --for. `status`: the command's wait status once it is over, or NULL.
 * Returns 0, or a negative errno with err set: nothing was recorded, or the end of it could not be written. An end before its time
 * is told on stderr. */
int krait_record_sample_run(struct krait_record_sample *sample, const int *status, struct krait_err *err);

#endif
