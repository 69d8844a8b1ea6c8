/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the time went: a row per function (or module, file, thread, process, line of a call) with its calls,
 * times and the spread of its calls' durations. One pass; memory is that of the rows, not of the trace.
 *
 * What the numbers mean:
 *   self    time in which the function was innermost on its thread's stack
 *   total   time in which it was anywhere on the stack. Recursion counts once: only the outermost
 *           activation adds
 *   calls   calls that began in the range. A function that was live when the recording began is no call
 *   runs    activations, from a begin to the next end. For a plain function a run is a call. A generator
 *           or coroutine runs once for each step from a resume to the next yield; the time it waits in
 *           between is nobody's
 *   raised  runs that ended by an exception
 *   min, mean, max, p50, p99
 *           of a run's duration, callees included. The events do not tell two generators of one function
 *           apart, so krait measures their steps. Percentiles are within 0.8 %
 *
 * A run whose begin or end was not recorded counts as far as it was seen.
 */
#ifndef KRAIT_ANALYSIS_PROFILE_H
#define KRAIT_ANALYSIS_PROFILE_H

#include "analysis/raised.h"
#include "analysis/wall_sums.h"
#include "trace/trace.h"

enum krait_profile_by {
    KRAIT_BY_FUNCTION = 0,
    KRAIT_BY_MODULE = 1,
    KRAIT_BY_FILE = 2,
    KRAIT_BY_THREAD = 3,
    KRAIT_BY_PROCESS = 4,
    KRAIT_BY_LINE = 5, /* a line and what it calls; needs a trace with call sites */
};

struct krait_profile_row {
    /* qualified name; of other groups the module, file, thread or process; of a line its function */
    const char *name;
    const char *module; /* "" where it does not apply */
    const char *file;
    uint32_t line;
    enum krait_func_kind kind; /* C only where all of the row is */
    uint32_t func;             /* by function: the func id; by line: that of the caller; else KRAIT_NO_ID */
    uint32_t callee;           /* by line: the func id of what is called from there; else KRAIT_NO_ID */
    uint32_t process;          /* by process: its index; else KRAIT_NO_ID */
    uint64_t calls, runs;
    uint64_t self_ns, total_ns;
    uint64_t self_error_ns; /* of samples: 19 of 20 times self_ns is off by less; else 0 */
    uint64_t min_ns, mean_ns, max_ns, p50_ns, p99_ns;
    const uint64_t *durations; /* 64 counts: runs of 2^i ns and less than twice that; NULL: not asked for */
    uint64_t resumed;          /* runs of generators and coroutines that began after a yield */
    uint64_t raised;           /* runs that ended by an exception */
    struct krait_raised *exceptions; /* by type, the most frequent first */
    uint32_t exception_count;
    /* a function of it ran that holds the time of dropped ones: krait_trace_find_holders */
    bool holds_dropped;
    const struct krait_wall_split *wall; /* self_ns and total_ns split; NULL: not asked for */
};

struct krait_profile {
    struct krait_profile_row *rows; /* of all groups that ran; by self time, the greatest first */
    uint32_t count;
    uint64_t self_ns; /* of all rows together: the recorded time of the threads that were taken */
    uint64_t wall_ns[KRAIT_WALL_COUNT]; /* and split */
    char damage[1024];                  /* the first damage met on the way, or empty */
    struct krait_arena arena;
    struct krait_wall_sums *sums; /* the rows' splits; NULL: not asked for */
};

struct krait_profile_options {
    struct krait_range range;
    const struct krait_ranges *ranges; /* of it these alone; NULL: all */
    enum krait_profile_by by;
    /* Whether a thread is taken; NULL takes all. */
    bool (*take_thread)(void *ctx, const struct krait_trace *trace, uint32_t thread);
    void *ctx;
    bool durations;                /* rows tell them */
    bool corrected;                /* what recording took is taken off (cost.h); not of cycles */
    const struct krait_wall *wall; /* to split times by what threads did; NULL: they are not split */
    /* to count processor cycles: all that is called ns is cycles; NULL: time */
    const struct krait_wall *clock;
};

/* Returns 0 or a negative errno with err set: -ENODATA by line, of a trace without call sites. */
int krait_profile_new(struct krait_profile **out, const struct krait_trace *trace,
                      const struct krait_profile_options *options, struct krait_err *err);
void krait_profile_free(struct krait_profile *profile);

/* Of samples: in 19 of 20 recordings a self time of self_ns, of all_ns in all, is off by less; 0 where nothing was sampled. */
uint64_t krait_profile_error(const struct krait_trace *trace, uint64_t self_ns, uint64_t all_ns);

#endif
