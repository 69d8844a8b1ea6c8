/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of intervals.h share: intervals.c reads starts and stops (interval_search.h), interval_pairs.c pairs them,
 * interval_sums.c sums up, interval_signals.c has the numbers of signals.
 */
#ifndef KRAIT_ANALYSIS_INTERVALS_INSIDE_H
#define KRAIT_ANALYSIS_INTERVALS_INSIDE_H

#include "analysis/intervals.h"

#define KRAIT_PLACE_KEY "key " /* what stands before a key among the places */

/* An event that matches; of one that matches both, the stop comes first. */
struct krait_edge {
    uint64_t t_ns;
    uint32_t lane; /* what belongs together without a key. Of states: with it; then key is the state */
    uint32_t key, track;
    uint32_t label; /* what its row is named by; KRAIT_NO_ID: by its key */
    uint16_t rule;
    bool stops, is_both, updates; /* updates: the state was so since it began */
};

/* The row of a rule and key, new where there was none. Returns 0 or -ENOMEM. */
int krait_intervals_row(struct krait_intervals *intervals, struct krait_map *rows,
                        const struct krait_interval_options *options, uint32_t rule, uint32_t key,
                        uint32_t *row);

/* One more. Returns 0 or -ENOMEM. */
int krait_intervals_add(struct krait_intervals *intervals, struct krait_interval interval);

/* A number of a signal; not finite: the message has none. Returns 0 or -ENOMEM. */
int krait_signals_add(struct krait_intervals *intervals, struct krait_map *rows,
                      const struct krait_interval_options *options, uint32_t rule, bool needs_key,
                      struct krait_sample sample);

/* The row of a rule and key, new where there was none. Returns 0 or -ENOMEM. */
int krait_signals_row(struct krait_intervals *intervals, struct krait_map *rows,
                      const struct krait_interval_options *options, uint32_t rule, uint32_t key,
                      uint32_t *row);

/* Puts the numbers in order, and fills the rows. Returns 0 or -ENOMEM. */
int krait_signals_sum(struct krait_intervals *intervals);

/* The item that is `rank`-th of all; `items` is put in another order. */
uint64_t krait_intervals_rank(uint64_t *items, size_t count, size_t rank);

/* Makes intervals of edges, which are in order of time within each lane and key. Returns 0 or -ENOMEM. */
int krait_intervals_pair(struct krait_intervals *intervals, struct krait_map *rows,
                         const struct krait_interval_options *options, const struct krait_edge *edges,
                         size_t count);

/* Leaves out those of rules that are within others where they are not. Returns 0 or -ENOMEM. */
int krait_intervals_within(struct krait_intervals *intervals, const struct krait_interval_options *options);

/* Leaves out those of rules that are hidden. Returns 0 or -ENOMEM. */
int krait_intervals_hide(struct krait_intervals *intervals, const struct krait_interval_options *options);

/* Puts the intervals in order, and fills the rows' times. Returns 0 or -ENOMEM. */
int krait_intervals_sum(struct krait_intervals *intervals);

#endif
