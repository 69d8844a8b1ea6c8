/* SPDX-License-Identifier: Apache-2.0
 *
 * Several ranges of time, such as those of all runs of a function. What happened in any of them counts.
 */
#ifndef KRAIT_TRACE_RANGES_H
#define KRAIT_TRACE_RANGES_H

#include "trace/trace.h"

/* Ordered by time; none is empty, and no two touch. A count of 0 means no restriction. */
struct krait_ranges {
    struct krait_range *items;
    uint32_t count;
};

/* Sorts them, and joins those that touch. */
void krait_ranges_join(struct krait_ranges *ranges);
/* The sum of their lengths. */
uint64_t krait_ranges_sum(const struct krait_ranges *ranges);
/* Whether t_ns is in one of them, or there are none. */
bool krait_ranges_have(const struct krait_ranges *ranges, uint64_t t_ns);
/* The part of [begin_ns, end_ns) that is in them; all of it if there are none. *some: whether it touches one. */
uint64_t krait_ranges_overlap(const struct krait_ranges *ranges, uint64_t begin_ns, uint64_t end_ns,
                              bool *some);

/* Like krait_trace_walk over `range`. If there are ranges, it walks all of them in one pass: it cuts open calls at the end of
 * each, and begins them at the next as KRAIT_OP_LIVE. `range` must then go from the begin of the first to the end of the
 * last. */
int krait_ranges_walk(const struct krait_trace *trace, uint32_t thread, struct krait_range range,
                      const struct krait_ranges *ranges, krait_call_batch_fn *fn, void *ctx, char *damage,
                      size_t size);

#endif
