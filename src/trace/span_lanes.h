/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes of spans. The spans of one lane nest; those of a thread or of a task need not: two generators have spans that
 * cross.
 *
 *   begins 1   A ├────────────┤        lane 0: A, and C within it
 *          2   B    ├──────────────┤   lane 1: B, which A crosses
 *          3   C      ├───┤
 *
 * Spans are put into lanes in the order in which they end, the first lane that they cross nothing in: so the same
 * spans come into the same lanes whenever they are read from the beginning. Memory is that of the spans which a later
 * one may still cross.
 */
#ifndef KRAIT_TRACE_SPAN_LANES_H
#define KRAIT_TRACE_SPAN_LANES_H

#include "base/base.h"

enum { KRAIT_SPAN_LANES = 16 }; /* at most: the last one takes what is left, crossing or not */

/* Of one kind in one thread, or of one task. Zeroed memory is empty. */
struct krait_span_lanes {
    uint32_t count, cap; /* lanes that have any */
    struct krait_span_lane {
        struct krait_span_known {
            uint64_t begin_ns, end_ns;
        } * known; /* the outermost ones, by time */
        uint32_t n, cap;
    } * lanes;
};

/* The lane of a span that ends now, after all that were put before. No span that ends later begins before oldest_ns.
 * Returns -ENOMEM when memory is out. */
int krait_span_lanes_put(struct krait_span_lanes *lanes, uint64_t begin_ns, uint64_t end_ns,
                         uint64_t oldest_ns);
void krait_span_lanes_done(struct krait_span_lanes *lanes);

#endif
