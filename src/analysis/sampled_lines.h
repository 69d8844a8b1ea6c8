/* SPDX-License-Identifier: Apache-2.0
 *
 * The lines that samples were taken in: how long each was the current line of the innermost Python function, with the C functions
 * that it called. Callers' lines are not recorded. Memory is that of the lines, not of the trace.
 */
#ifndef KRAIT_ANALYSIS_SAMPLED_LINES_H
#define KRAIT_ANALYSIS_SAMPLED_LINES_H

#include "trace/ranges.h"
#include "trace/sample_runs.h"

struct krait_sampled_line {
    uint32_t func; /* the function; of a thread without a Python function its innermost one */
    uint32_t line; /* 0: not known */
    uint64_t self_ns;
    uint64_t own_ns;                       /* of that, without C functions that it called */
    uint64_t error_ns;                     /* 19 of 20 times self_ns is off by less */
    uint64_t ns[KRAIT_SAMPLE_UNKNOWN + 1]; /* self_ns by enum krait_sample_is */
};

struct krait_sampled_lines {
    struct krait_sampled_line *items;
    uint32_t count, cap;
    uint64_t self_ns;       /* all lines together */
    struct krait_map index; /* function and line to item */
    char damage[1024];      /* the first damage met on the way, or empty */
};

struct krait_sampled_lines_options {
    struct krait_range range;
    const struct krait_ranges *ranges; /* of it these alone; NULL: all */
    /* Whether a thread is taken; NULL takes all. */
    bool (*take_thread)(void *ctx, const struct krait_trace *trace, uint32_t thread);
    void *ctx;
};

/* `lines` is zeroed. Threads that were not sampled have none. Returns 0 or -ENOMEM; krait_sampled_lines_done in any case. */
int krait_sampled_lines_make(struct krait_sampled_lines *lines, const struct krait_trace *trace,
                             const struct krait_sampled_lines_options *options);
void krait_sampled_lines_done(struct krait_sampled_lines *lines);

#endif
