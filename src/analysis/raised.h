/* SPDX-License-Identifier: Apache-2.0
 *
 * Which exceptions left which functions, and how often. The caller chooses the groups: functions, or nodes of a tree.
 */
#ifndef KRAIT_ANALYSIS_RAISED_H
#define KRAIT_ANALYSIS_RAISED_H

#include "trace/trace.h"

struct krait_raised {
    const char *type; /* "ValueError", "json.decoder.JSONDecodeError"; "?" if not known: before 3.12 */
    uint64_t count;
};

/* Of one group. */
struct krait_raises {
    uint32_t group;
    struct krait_raised raised;
};

/* Counts in a map, which begins empty. `exception` as in struct krait_call_batch. Returns 0 or -ENOMEM. */
int krait_raised_add(struct krait_map *counts, uint32_t group, uint32_t exception, uint64_t count);

/* The counts by group, of each the most frequent first: *count of them, the caller's to free. NULL: out of memory. */
struct krait_raises *krait_raised_sorted(const struct krait_map *counts, const struct krait_trace *trace,
                                         size_t *count);

#endif
