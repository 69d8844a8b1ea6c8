/* SPDX-License-Identifier: Apache-2.0
 *
 * The wall time of a profile's groups (profile.h: functions, modules, threads ...), split into what the
 * thread was doing: of each group's self time and of its total time, which they add up to.
 */
#ifndef KRAIT_ANALYSIS_WALL_SUMS_H
#define KRAIT_ANALYSIS_WALL_SUMS_H

#include "analysis/cost.h"
#include "analysis/wall.h"

/* Of one group. */
struct krait_wall_split {
    uint64_t self_ns[KRAIT_WALL_PARTS];
    uint64_t total_ns[KRAIT_WALL_PARTS]; /* recursion counts once */
};

struct krait_wall_sums; /* opaque */

/* Returns 0 or -ENOMEM. `wall` must outlive it. */
int krait_wall_sums_new(struct krait_wall_sums **out, const struct krait_wall *wall, uint32_t groups);
void krait_wall_sums_free(struct krait_wall_sums *sums);

/* A thread's calls come now, in batches. Their groups: group_of[func], or `group` where that is NULL. Return
 * 0 or -ENOMEM. `cost`: what recording took is taken off, and its times are set to those of the batch; NULL: it is not. */
int krait_wall_sums_thread(struct krait_wall_sums *sums, uint32_t thread);
int krait_wall_sums_add(struct krait_wall_sums *sums, const struct krait_call_batch *ops,
                        const uint32_t *group_of, uint32_t group, struct krait_cost_clock *cost);

/* No more calls come: krait_wall_gather for all groups. */
void krait_wall_sums_end(struct krait_wall_sums *sums);
/* Of a group, after krait_wall_sums_end. */
const struct krait_wall_split *krait_wall_sums_of(const struct krait_wall_sums *sums, uint32_t group);

#endif
