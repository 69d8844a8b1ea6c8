/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrows between tracks, so few that a picture of them can be read. The range is divided into columns. Of the arrows
 * that lead from the same track and column to the same track and column, the first one stays. While there are too many,
 * columns become twice as wide, so memory does not grow with the number of arrows. From 32 columns on, 2, 4, 8 ... tracks count
 * as one instead: otherwise the arrows of many tracks would all be at the begin of the range.
 *
 *   columns       0       1       2       3
 *   a       ──x─x─────────x──────────────────
 *              \ \         \                       3 arrows from a to b: 2 stay
 *   b       ────x─x─────────────x────────────
 */
#ifndef KRAIT_VIEW_ARROWS_H
#define KRAIT_VIEW_ARROWS_H

#include "base/map.h"

enum { KRAIT_ARROW_COLUMNS_MAX = 1 << 12 };

struct krait_arrow {
    uint64_t t_ns, end_ns;
    uint32_t from, to;    /* tracks */
    const char *function; /* what work calls; NULL: not known, or no work */
};

struct krait_arrows {
    uint64_t from_ns, ns,
        column_ns; /* column_ns 0: none is like another one; those that come after `most` go */
    uint32_t most;
    uint32_t joined; /* 1 << joined tracks count as one */
    struct krait_arrow *items;
    uint32_t count, cap;
    uint64_t more;       /* those that went */
    struct krait_map at; /* to the place in items, by track and column of both ends */
};

/* Zeroed memory with from_ns, ns (the range's length), column_ns and most is ready for use. Returns 0 or -ENOMEM. */
int krait_arrows_add(struct krait_arrows *arrows, struct krait_arrow arrow);
void krait_arrows_done(struct krait_arrows *arrows);

/* The width of one of so many columns of a range; never 0. */
uint64_t krait_arrows_column(uint64_t ns, uint64_t columns);

#endif
