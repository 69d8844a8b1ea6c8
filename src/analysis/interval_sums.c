/* SPDX-License-Identifier: Apache-2.0
 *
 * What the intervals of a row are together. Quantiles are exact: from all durations, not from a histogram.
 */
#include "analysis/intervals_inside.h"
#include "base/array.h"
#include "base/runs.h"

#include <math.h>
#include <string.h>

int krait_intervals_row(struct krait_intervals *intervals, struct krait_map *rows,
                        const struct krait_interval_options *options, uint32_t rule, uint32_t key,
                        uint32_t *row)
{
    key = options->rules[rule].by_key || options->rules[rule].kind == KRAIT_RULE_STATES ? key : KRAIT_NO_ID;
    uint64_t place = (uint64_t)rule << 32 | key, *known = krait_map_get(rows, place);
    *row = known ? (uint32_t)*known : intervals->row_count;
    if (known)
        return 0;
    if (!KRAIT_GROW(intervals->rows, intervals->row_cap, intervals->row_count + 1) ||
        krait_map_put(rows, place, *row))
        return -ENOMEM;
    intervals->rows[intervals->row_count++] = (struct krait_interval_row){ .rule = rule, .key = key };
    return 0;
}

int krait_intervals_add(struct krait_intervals *intervals, struct krait_interval interval)
{
    if (!KRAIT_GROW(intervals->items, intervals->cap, intervals->count + 1))
        return -ENOMEM;
    intervals->items[intervals->count++] = interval;
    return 0;
}

/* Behind the key's text and its NUL are names and values by turns (interval_kernel.c). */
const char *krait_interval_field(const struct krait_intervals *intervals,
                                 const struct krait_interval *interval, const char *field)
{
    if (interval->key == KRAIT_NO_ID)
        return NULL;
    const char *at = intervals->keys.texts[interval->key], *end = at + intervals->keys.lens[interval->key];
    for (at += strlen(at) + 1; at < end;) {
        const char *value = at + strlen(at) + 1;
        if (strcmp(at, field) == 0)
            return value;
        at = value + strlen(value) + 1;
    }
    return NULL;
}

/* Puts the item that is `rank`-th of all in its place: Hoare's selection (Algorithm 65, CACM 4, 1961), with the middle
 * one of three as pivot. */
uint64_t krait_intervals_rank(uint64_t *ns, size_t count, size_t rank)
{
    ptrdiff_t low = 0, high = (ptrdiff_t)count - 1, wanted = (ptrdiff_t)rank;
    while (low < high) {
        uint64_t a = ns[low], b = ns[low + (high - low) / 2], c = ns[high];
        uint64_t pivot = KRAIT_MAX(KRAIT_MIN(a, b), KRAIT_MIN(KRAIT_MAX(a, b), c));
        ptrdiff_t i = low, j = high;
        do {
            while (ns[i] < pivot)
                i++;
            while (ns[j] > pivot)
                j--;
            if (i <= j) {
                uint64_t other = ns[i];
                ns[i++] = ns[j];
                ns[j--] = other;
            }
        } while (i <= j);
        low = j < wanted ? i : low;
        high = wanted < i ? j : high;
    }
    return ns[wanted];
}

uint64_t krait_interval_quantile(uint64_t *ns, size_t count, double share)
{
    size_t rank = (size_t)ceil(share * (double)count);
    return count ? krait_intervals_rank(ns, count, KRAIT_MIN(rank ? rank - 1 : 0, count - 1)) : 0;
}

/* Of an even number the mean of the two in the middle. */
static uint64_t median_of(uint64_t *ns, size_t count)
{
    uint64_t upper = krait_intervals_rank(ns, count, count / 2);
    uint64_t lower = count % 2 ? upper : krait_intervals_rank(ns, count, count / 2 - 1);
    return lower + (upper - lower) / 2;
}

static void sum_row(struct krait_interval_row *row, uint64_t *ns, size_t count)
{
    double squares = 0;
    row->count = count;
    if (!count)
        return;
    row->min_ns = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        row->total_ns += ns[i];
        row->min_ns = KRAIT_MIN(row->min_ns, ns[i]);
        row->max_ns = KRAIT_MAX(row->max_ns, ns[i]);
    }
    row->mean_ns = (double)row->total_ns / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += ((double)ns[i] - row->mean_ns) * ((double)ns[i] - row->mean_ns);
    row->deviation_ns = count > 1 ? sqrt(squares / (double)(count - 1)) : 0;
    row->median_ns = median_of(ns, count);
    row->p90_ns = krait_interval_quantile(ns, count, 0.9);
    row->p99_ns = krait_interval_quantile(ns, count, 0.99);
}

static int by_row_and_begin(const void *a, const void *b)
{
    const struct krait_interval *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

int krait_intervals_sum(struct krait_intervals *intervals)
{
    KRAIT_AUTO_FREE uint64_t *ns = malloc((intervals->count + 1) * sizeof(*ns));
    int rc =
        ns ? krait_runs_sort(intervals->items, intervals->count, sizeof(*intervals->items), by_row_and_begin)
           : -ENOMEM;
    for (size_t i = 0; i < intervals->count && !rc;) {
        size_t count = 0;
        uint32_t row = intervals->items[i].row;
        for (; i < intervals->count && intervals->items[i].row == row; i++)
            ns[count++] = intervals->items[i].end_ns - intervals->items[i].begin_ns;
        sum_row(&intervals->rows[row], ns, count);
    }
    return rc;
}

bool krait_intervals_has_found(const struct krait_intervals *intervals, uint32_t rule)
{
    for (uint32_t i = 0; i < intervals->row_count; i++) {
        const struct krait_interval_row *row = &intervals->rows[i];
        if (row->rule == rule && (row->starts || row->stops || row->no_key))
            return true;
    }
    for (uint32_t i = 0; i < intervals->signal_count; i++) {
        const struct krait_signal_row *row = &intervals->signals[i];
        if (row->rule == rule && (row->count || row->no_number || row->no_key))
            return true;
    }
    return false;
}
