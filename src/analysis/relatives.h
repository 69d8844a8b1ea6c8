/* SPDX-License-Identifier: Apache-2.0
 *
 * Who calls a function, and what it calls, from the call tree.
 */
#ifndef KRAIT_ANALYSIS_RELATIVES_H
#define KRAIT_ANALYSIS_RELATIVES_H

#include "analysis/calltree.h"
#include "analysis/wall_sums.h"

enum krait_relatives_kind {
    KRAIT_CALLERS = 0, /* rows are callers; times are the function's own, when called from there */
    KRAIT_CALLEES = 1, /* rows are what it calls; times are theirs, when called from it */
};

struct krait_relative {
    uint32_t func; /* KRAIT_NO_ID: called by no one, it is the thread's outermost */
    uint64_t calls;
    uint64_t self_ns, total_ns;          /* recursion through the same pair counts once */
    const struct krait_wall_split *wall; /* both split; NULL: the tree is not */
};

struct krait_relatives {
    struct krait_relative *rows; /* by total time, the greatest first */
    uint32_t count;
    struct krait_relative of; /* the function itself, all that match together; func is the first of them */
    uint32_t matched;         /* how many functions match and were called */
    bool holds_dropped;       /* one of these holds the time of functions that were dropped */
    struct krait_wall_split *splits; /* owned */
};

/* `wanted` says of each func id whether it is meant. Returns 0 or -ENOMEM. */
int krait_relatives_new(struct krait_relatives **out, const struct krait_calltree *tree,
                        const struct krait_trace *trace, const bool *wanted, enum krait_relatives_kind kind);
void krait_relatives_free(struct krait_relatives *relatives);

#endif
