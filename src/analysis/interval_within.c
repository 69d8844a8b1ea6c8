/* SPDX-License-Identifier: Apache-2.0
 *
 * Intervals and values that count only inside an interval of another rule.
 */
#include "analysis/intervals_inside.h"
#include "base/array.h"
#include "base/runs.h"

/* An outer rule's intervals, by their begin: each with the latest end of those up to it. */
struct outer {
    struct span {
        uint64_t begin_ns, end_ns;
    } * spans;
    size_t count;
};

static int by_begin(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

static int find_outer(struct outer *outer, const struct krait_intervals *intervals, uint32_t rule)
{
    outer->spans = malloc((intervals->count + 1) * sizeof(*outer->spans));
    if (!outer->spans)
        return -ENOMEM;
    for (size_t i = 0; i < intervals->count; i++) {
        const struct krait_interval *item = &intervals->items[i];
        if (intervals->rows[item->row].rule == rule)
            outer->spans[outer->count++] = (struct span){ item->begin_ns, item->end_ns };
    }
    int rc = krait_runs_sort(outer->spans, outer->count, sizeof(*outer->spans), by_begin);
    for (size_t i = 1; i < outer->count && !rc; i++)
        outer->spans[i].end_ns = KRAIT_MAX(outer->spans[i].end_ns, outer->spans[i - 1].end_ns);
    return rc;
}

static bool is_inside(const struct outer *outer, uint64_t begin_ns, uint64_t end_ns)
{
    size_t behind = KRAIT_PARTITION_POINT(i, outer->count, outer->spans[i].begin_ns <= begin_ns);
    return behind && outer->spans[behind - 1].end_ns >= end_ns;
}

static int keep_inside(struct krait_intervals *intervals, uint32_t rule, uint32_t within)
{
    struct outer outer = { 0 };
    size_t kept = 0, samples = 0;
    int rc = find_outer(&outer, intervals, within);
    for (size_t i = 0; i < intervals->count && !rc; i++) {
        const struct krait_interval item = intervals->items[i];
        if (intervals->rows[item.row].rule != rule || is_inside(&outer, item.begin_ns, item.end_ns))
            intervals->items[kept++] = item;
    }
    for (size_t i = 0; i < intervals->sample_count && !rc; i++) {
        const struct krait_sample sample = intervals->samples[i];
        if (intervals->signals[sample.row].rule != rule || is_inside(&outer, sample.t_ns, sample.t_ns))
            intervals->samples[samples++] = sample;
    }
    free(outer.spans);
    if (!rc) {
        intervals->count = kept;
        intervals->sample_count = samples;
    }
    return rc;
}

/* How many rules a rule is within, one in the other. */
static uint32_t depth_of(const struct krait_interval_options *options, uint32_t rule)
{
    uint32_t depth = 0;
    for (uint32_t at = options->rules[rule].within; at; at = options->rules[at - 1].within)
        depth++;
    return depth;
}

int krait_intervals_within(struct krait_intervals *intervals, const struct krait_interval_options *options)
{
    uint32_t deepest = 0;
    int rc = 0;
    for (uint32_t i = 0; i < options->rule_count; i++)
        deepest = KRAIT_MAX(deepest, depth_of(options, i));
    for (uint32_t depth = 1; depth <= deepest; depth++) { /* the outer ones first */
        for (uint32_t i = 0; i < options->rule_count && !rc; i++) {
            if (depth_of(options, i) == depth)
                rc = keep_inside(intervals, i, options->rules[i].within - 1);
        }
    }
    return rc;
}

/* -- rules that are not shown -- */

/* New numbers for rows that stay, KRAIT_NO_ID for the others; NULL when memory is out. */
static uint32_t *renumber(const void *rows, uint32_t count, size_t size, size_t rule_at,
                          const struct krait_interval_options *options)
{
    uint32_t *numbers = malloc(((size_t)count + 1) * sizeof(*numbers)), next = 0;
    for (uint32_t i = 0; i < count && numbers; i++) {
        uint32_t rule = *(const uint32_t *)((const char *)rows + i * size + rule_at);
        numbers[i] = options->rules[rule].is_hidden ? KRAIT_NO_ID : next++;
    }
    return numbers;
}

static void hide_intervals(struct krait_intervals *intervals, const uint32_t *numbers,
                           const struct krait_interval_options *options)
{
    size_t kept = 0;
    uint32_t rows = 0, transitions = 0;
    for (size_t i = 0; i < intervals->count; i++) {
        struct krait_interval item = intervals->items[i];
        item.row = numbers[item.row];
        if (item.row != KRAIT_NO_ID)
            intervals->items[kept++] = item;
    }
    for (uint32_t i = 0; i < intervals->row_count; i++) {
        if (numbers[i] != KRAIT_NO_ID)
            intervals->rows[rows++] = intervals->rows[i];
    }
    for (uint32_t i = 0; i < intervals->transition_count; i++) {
        if (!options->rules[intervals->transitions[i].rule].is_hidden)
            intervals->transitions[transitions++] = intervals->transitions[i];
    }
    intervals->count = kept;
    intervals->row_count = rows;
    intervals->transition_count = transitions;
}

static void hide_signals(struct krait_intervals *intervals, const uint32_t *numbers)
{
    size_t kept = 0;
    uint32_t rows = 0;
    for (size_t i = 0; i < intervals->sample_count; i++) {
        struct krait_sample sample = intervals->samples[i];
        sample.row = numbers[sample.row];
        if (sample.row != KRAIT_NO_ID)
            intervals->samples[kept++] = sample;
    }
    for (uint32_t i = 0; i < intervals->signal_count; i++) {
        if (numbers[i] != KRAIT_NO_ID)
            intervals->signals[rows++] = intervals->signals[i];
    }
    intervals->sample_count = kept;
    intervals->signal_count = rows;
}

int krait_intervals_hide(struct krait_intervals *intervals, const struct krait_interval_options *options)
{
    KRAIT_AUTO_FREE uint32_t *rows = renumber(intervals->rows, intervals->row_count, sizeof(*intervals->rows),
                                              offsetof(struct krait_interval_row, rule), options);
    KRAIT_AUTO_FREE uint32_t *signals =
        renumber(intervals->signals, intervals->signal_count, sizeof(*intervals->signals),
                 offsetof(struct krait_signal_row, rule), options);
    if (!rows || !signals)
        return -ENOMEM;
    hide_intervals(intervals, rows, options);
    hide_signals(intervals, signals);
    return 0;
}
