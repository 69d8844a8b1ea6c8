/* SPDX-License-Identifier: Apache-2.0
 *
 * Why starts and stops that are both there made no interval, and which patterns would pair them.
 */
#ifndef KRAIT_CMD_UNPAIRED_H
#define KRAIT_CMD_UNPAIRED_H

#include "analysis/intervals.h"
#include "cmd/select.h"

/* Over all rows of a rule of pairs: events that match, those without the key, and intervals. */
struct krait_pair_counts {
    uint64_t starts, stops, no_key, intervals;
};
struct krait_pair_counts krait_pair_count(const struct krait_intervals *found, uint32_t rule);

struct krait_unpaired {
    const struct krait_trace *trace;
    const struct krait_select *select;
    struct krait_range range;
    const struct krait_interval_rule *rule; /* of pairs */
    const struct krait_intervals *found;    /* what was found of it, and maybe of others */
    uint32_t index;                         /* of the rule in these */
    bool is_within;    /* its patterns are those of --within, else of --start and --stop */
    const char *which; /* ... and what stands behind them, such as "slowest"; NULL: nothing */
};

/* Whether events began and ended it, and none of them belong together. Pairs within other intervals are not judged. */
bool krait_is_unpaired(const struct krait_unpaired *of);

/* Appends "6 messages match 'a' and 6 match 'b', but never in one thread; ..." to `to` (check to->failed): of patterns of --within,
 * or of the options --start and --stop. It searches the trace again for patterns that pair them. Returns 0 or -ENOMEM. */
int krait_unpaired_say(struct krait_buf *to, const struct krait_unpaired *of);

/* Appends a line for the end of a declared pair that no event is, if its other end was found; with a pattern that was meant, if one
 * is similar. Check to->failed. */
void krait_unpaired_say_end(struct krait_buf *to, const struct krait_unpaired *of);

#endif
