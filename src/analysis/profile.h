/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the time went: a row per function (or module, file, thread, process, line of a call) with its calls, its times
 * and the distribution of its durations. It takes one pass, and memory for the rows only.
 *
 * What the numbers mean:
 *   self    time in which the function was innermost on its thread's stack
 *   total   time in which it was anywhere on the stack. Recursion counts once: only the outermost
 *           activation adds
 *   calls   calls that began in the range. A function that was open when the recording began is no call
 *   runs    activations, from a begin to the next end. For a plain function a run is a call. A generator
 *           or coroutine runs once for each step from a resume to the next yield; the time between steps
 *           does not count
 *   raised  runs that ended by an exception
 *   cut     runs whose begin or end was not recorded, or lies outside the range. Nobody knows how long they took: their
 *           recorded part counts in self and total, but not in min to p99. A switch of greenlets suspends a run as a yield does,
 *           and cuts none
 *   min, mean, max, p50, p99
 *           of the duration of runs that were not cut, callees included. Events do not distinguish two generators of one
 *           function, so krait measures their steps. Percentiles are within 0.8 %
 */
#ifndef KRAIT_ANALYSIS_PROFILE_H
#define KRAIT_ANALYSIS_PROFILE_H

#include "analysis/raised.h"
#include "analysis/wall_sums.h"
#include "base/buf.h"
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
    /* The qualified name; by module, file, thread or process: that; by line: the name of the line's function. */
    const char *name;
    const char *module; /* "" if it does not apply */
    const char *file;
    uint32_t line;
    enum krait_func_kind kind; /* C only if all functions of the row are */
    uint32_t func;             /* by function: its id; by line: the caller's; else KRAIT_NO_ID */
    uint32_t callee;           /* by line: the id of the called function; else KRAIT_NO_ID */
    uint32_t process;          /* by process: its index; else KRAIT_NO_ID */
    uint64_t calls, runs, cut_runs;
    uint64_t self_ns, total_ns;
    uint64_t self_error_ns; /* of samples: half the 95 % confidence interval of self_ns; else 0 */
    uint64_t min_ns, mean_ns, max_ns, p50_ns, p99_ns; /* 0 if all runs were cut */
    const uint64_t *durations;       /* 64 counts: whole runs of 2^i to 2^(i+1) ns; NULL: not asked for */
    uint64_t resumed;                /* runs of generators and coroutines that began after a yield */
    uint64_t raised;                 /* runs that ended by an exception */
    struct krait_raised *exceptions; /* by type, the most frequent first */
    uint32_t exception_count;
    /* The self time of one of its functions contains that of dropped ones: krait_trace_find_holders. */
    bool holds_dropped;
    const struct krait_wall_split *wall; /* self_ns and total_ns split by state; NULL: not asked for */
};

struct krait_profile {
    struct krait_profile_row *rows; /* all that ran; by self time, the greatest first */
    uint32_t count;
    uint64_t self_ns;                   /* of all rows together: the recorded time of the chosen threads */
    uint64_t wall_ns[KRAIT_WALL_PARTS]; /* self_ns split by state, with the parts of GIL */
    bool has_switches;                  /* greenlets were switched; calls go on behind */
    char damage[1024];                  /* the first damage found; may be empty */
    struct krait_arena arena;
    struct krait_wall_sums *sums; /* for the rows' `wall`; NULL: not asked for */
};

struct krait_profile_options {
    struct krait_range range;
    const struct krait_ranges *ranges; /* only these parts of it; NULL: all */
    enum krait_profile_by by;
    /* Chooses threads; NULL: all. */
    bool (*take_thread)(void *ctx, const struct krait_trace *trace, uint32_t thread);
    void *ctx;
    bool durations;                /* fill in the durations of rows */
    bool corrected;                /* subtract what recording took (cost.h); not from cycles */
    const struct krait_wall *wall; /* splits times by state; NULL: they are not split */
    /* Counts processor cycles: all fields that end in _ns are then cycles. NULL: time. */
    const struct krait_wall *clock;
};

/* Returns 0, or a negative errno with err set: -ENODATA by line, if the trace has no call sites. */
int krait_profile_new(struct krait_profile **out, const struct krait_trace *trace,
                      const struct krait_profile_options *options, struct krait_err *err);
void krait_profile_free(struct krait_profile *profile);

/* Of samples: half the 95 % confidence interval of a self time of self_ns, of all_ns in all; 0: nothing was sampled. */
uint64_t krait_profile_error(const struct krait_trace *trace, uint64_t self_ns, uint64_t all_ns);
/* Appends in words how exact the times of a recording of samples are, without a line end; of another recording nothing. */
void krait_profile_say_samples(struct krait_buf *to, const struct krait_trace *trace);

#endif
