/* SPDX-License-Identifier: Apache-2.0
 *
 * What rules find, as lanes (trace/lanes.h) for the timeline and for exports. A lane that a file declares has all that
 * it shows. Without such, each interval and each signal has a lane, and so has each thread or key of a state machine:
 *
 *   order            ├── 7 ──┤ ├─ 9 ─┤        intervals, named by their key; those that cross stand below each other
 *                         ├── 8 ──┤
 *   oven MainThread  ├ hot ┤ warm ├ hot ──    the last state lasts until the end
 *   waiting          ▄▄▄▃▃▃▂▂▂▁▁▁
 */
#ifndef KRAIT_ANALYSIS_RULE_LANES_H
#define KRAIT_ANALYSIS_RULE_LANES_H

#include "analysis/rules.h"
#include "trace/lanes.h"

/* Threads or keys of a rule that have a track at most. */
enum { KRAIT_RULE_LANES_MOST = 100 };

struct krait_rule_lanes_options {
    bool (*takes)(void *ctx, const struct krait_trace *trace, const struct krait_track *track);
    void *ctx;
};

/* The end of all that is known: a state that no other follows lasts until then. */
uint64_t krait_stays_end(const struct krait_intervals *found, const struct krait_trace *trace);

/* Finds what the rules look for in all of a trace, and its tracks if need be. What was found nothing of, or not drawn,
 * is told in rules->notes. `damage` (size bytes, may be NULL) keeps the first that is met. Returns 0 or a negative
 * errno with err set; krait_lanes_done in any case. */
int krait_rule_lanes_make(struct krait_lanes *lanes, struct krait_trace *trace, struct krait_rules *rules,
                          const struct krait_rule_lanes_options *options, char *damage, size_t size,
                          struct krait_err *err);

#endif
