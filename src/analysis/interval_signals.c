/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals: numbers that messages have.
 */
#include "analysis/intervals_inside.h"
#include "base/array.h"
#include "base/runs.h"

#include <math.h>
#include <string.h>

#define MOST 1e140 /* of a number without its sign: so sums of squares are numbers too */

int krait_signals_row(struct krait_intervals *intervals, struct krait_map *rows,
                      const struct krait_interval_options *options, uint32_t rule, uint32_t key,
                      uint32_t *row)
{
    key = options->rules[rule].by_key ? key : KRAIT_NO_ID;
    uint64_t place = (uint64_t)rule << 32 | key, *known = krait_map_get(rows, place);
    *row = known ? (uint32_t)*known : intervals->signal_count;
    if (known)
        return 0;
    if (!KRAIT_GROW(intervals->signals, intervals->signal_cap, intervals->signal_count + 1) ||
        krait_map_put(rows, place, *row))
        return -ENOMEM;
    intervals->signals[intervals->signal_count++] = (struct krait_signal_row){ .rule = rule, .key = key };
    return 0;
}

int krait_signals_add(struct krait_intervals *intervals, struct krait_map *rows,
                      const struct krait_interval_options *options, uint32_t rule, bool needs_key,
                      struct krait_sample sample)
{
    bool has_key = !needs_key || sample.key != KRAIT_NO_ID, is_number = fabs(sample.value) <= MOST;
    int rc = krait_signals_row(intervals, rows, options, rule, sample.key, &sample.row);
    if (rc)
        return rc;
    struct krait_signal_row *row = &intervals->signals[sample.row];
    row->no_key += !has_key;
    row->no_number += has_key && !is_number;
    if (!has_key || !is_number)
        return 0;
    if (!KRAIT_GROW(intervals->samples, intervals->sample_cap, intervals->sample_count + 1))
        return -ENOMEM;
    intervals->samples[intervals->sample_count++] = sample;
    return 0;
}

/* -- sums -- */

#define SIGN (UINT64_C(1) << 63)

/* A whole number that is in the same order: IEEE 754's bits are, but for those of negative numbers, which go backward. */
static uint64_t ordered(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits & SIGN ? ~bits : bits | SIGN;
}

static double unordered(uint64_t bits)
{
    double value;
    bits = bits & SIGN ? bits ^ SIGN : ~bits;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static double median_of(uint64_t *items, size_t count)
{
    double upper = unordered(krait_intervals_rank(items, count, count / 2));
    return count % 2 ? upper : (upper + unordered(krait_intervals_rank(items, count, count / 2 - 1))) / 2;
}

/* The variance by Welford's method (Technometrics 4, 1962): without a loss of digits where numbers are near each other. */
static void sum_row(struct krait_signal_row *row, const struct krait_sample *samples, size_t count,
                    uint64_t *items)
{
    double squares = 0;
    for (size_t i = 0; i < count; i++) {
        double value = samples[i].value, from_mean = value - row->mean;
        row->mean += from_mean / (double)(i + 1);
        squares += from_mean * (value - row->mean);
        row->total += value;
        items[i] = ordered(value);
    }
    row->count = count;
    row->begin_ns = samples[0].t_ns;
    row->end_ns = samples[count - 1].t_ns;
    row->last = samples[count - 1].value;
    row->deviation = count > 1 ? sqrt(squares / (double)(count - 1)) : 0;
    row->per_s =
        row->end_ns > row->begin_ns ? (double)(count - 1) * 1e9 / (double)(row->end_ns - row->begin_ns) : 0;
    row->min = unordered(krait_intervals_rank(items, count, 0));
    row->max = unordered(krait_intervals_rank(items, count, count - 1));
    row->median = median_of(items, count);
    row->p90 = unordered(krait_interval_quantile(items, count, 0.9));
    row->p99 = unordered(krait_interval_quantile(items, count, 0.99));
}

static int by_row_and_time(const void *a, const void *b)
{
    const struct krait_sample *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

int krait_signals_sum(struct krait_intervals *intervals)
{
    size_t all = intervals->sample_count;
    struct krait_sample *samples = intervals->samples;
    KRAIT_AUTO_FREE uint64_t *items = malloc((all + 1) * sizeof(*items));
    int rc = items ? krait_runs_sort(samples, all, sizeof(*samples), by_row_and_time) : -ENOMEM;
    for (size_t i = 0, end; i < all && !rc; i = end) {
        for (end = i; end < all && samples[end].row == samples[i].row; end++)
            ;
        sum_row(&intervals->signals[samples[i].row], samples + i, end - i, items);
    }
    return rc;
}
