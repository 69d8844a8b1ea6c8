/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a function took as long as it did: its slowest calls, and for each of them what the thread did
 * meanwhile, its system calls, and what it waited for, by whose doing.
 */
#ifndef KRAIT_ANALYSIS_WHY_H
#define KRAIT_ANALYSIS_WHY_H

#include "analysis/wall.h"
#include "trace/ranges.h"

/* System calls of one name, or waits of one kind. */
struct krait_why_row {
    uint8_t state;  /* of waits: enum krait_wall_state */
    uint8_t part;   /* of waits: krait_wall_interval.part */
    bool preempted; /* of RUNNABLE: it had a CPU and lost it; else it was woken */
    uint32_t call;  /* id of the system call, or of the one that waits; or KRAIT_NO_ID */
    /* Of waits: the thread that woke it, had its CPU or had the GIL, for krait_wall_cause; 0: an interrupt, or not known. Of
     * the part GIL_FREE: the thread of the call if it took the GIL next, else 0. Of RUNNABLE 0: its CPU was idle,
     * KRAIT_RUN_UNKNOWN: not known. */
    uint32_t by;
    uint64_t count, ns, longest_ns;
};

struct krait_why_rows {
    struct krait_why_row *items; /* by time, the greatest first */
    uint32_t count, cap;
};

/* From a begin to the next end, as a run of a profile's (profile.h); of recursion the outermost. */
struct krait_why_call {
    uint32_t thread, func;
    uint64_t begin_ns, end_ns;
    uint64_t is_cut; /* 1: it took longer (krait_op_is_cut); else 0 */
    uint64_t wall_ns[KRAIT_WALL_PARTS];
    struct krait_why_rows calls, waits;
};

struct krait_why {
    struct krait_why_call *slowest; /* the slowest first */
    uint32_t count, cap;
    uint64_t runs, total_ns;            /* of all of them */
    bool resumed;                       /* some are steps of generators and coroutines, after the first */
    uint64_t wall_ns[KRAIT_WALL_PARTS]; /* and split */
    char damage[1024];                  /* the first damage met on the way, or empty */
};

struct krait_why_options {
    struct krait_range range;
    const struct krait_ranges *ranges; /* NULL or empty: all of the range; else its part inside of these */
    const bool *meant;                 /* by func: whether it is asked for */
    uint32_t limit;                    /* calls; 0: all */
    bool (*take_thread)(void *ctx, const struct krait_trace *trace, uint32_t thread);
    void *ctx;
    const struct krait_wall *wall; /* NULL: nothing but times is known */
};

/* Returns 0 or -ENOMEM. */
int krait_why_new(struct krait_why **out, const struct krait_trace *trace,
                  const struct krait_why_options *options);
void krait_why_free(struct krait_why *why);

#endif
