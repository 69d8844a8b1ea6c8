/* SPDX-License-Identifier: Apache-2.0
 *
 * Several ranges of time at once, as those of all runs of a function: what happened in any of them.
 */
#ifndef KRAIT_TRACE_RANGES_H
#define KRAIT_TRACE_RANGES_H

#include "trace/trace.h"

/* In the order of time, none empty, and no two of them touch. A count of 0 says that one range alone was asked for. */
struct krait_ranges {
    struct krait_range *items;
    uint32_t count;
};

/* Orders them, and joins those that touch. */
void krait_ranges_join(struct krait_ranges *ranges);
/* How long they are together. */
uint64_t krait_ranges_sum(const struct krait_ranges *ranges);
/* Whether t_ns lies in one of them. Without any it does. */
bool krait_ranges_have(const struct krait_ranges *ranges, uint64_t t_ns);
/* How much of [begin_ns, end_ns) lies in them; all of it without any. *some: whether it touches one. */
uint64_t krait_ranges_overlap(const struct krait_ranges *ranges, uint64_t begin_ns, uint64_t end_ns,
                              bool *some);

/* As krait_trace_walk of `range`, and where there are ranges, of them in one walk: at the end of each the calls that are
 * open are cut, and at the begin of the next they begin as KRAIT_OP_LIVE. `range` goes from the first one's begin to the
 * last one's end. */
int krait_ranges_walk(const struct krait_trace *trace, uint32_t thread, struct krait_range range,
                      const struct krait_ranges *ranges, krait_call_batch_fn *fn, void *ctx, char *damage,
                      size_t size);

#endif
