/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/resample.h"

#include "analysis/compare.h"

#include <math.h>

enum { DRAWS = 4000, BLOCKS = 1000 };

/* A set as it is drawn from: durations, or means of blocks of them. */
struct set {
    double values[BLOCKS];
    uint32_t count;
    double mean;
};

static void fill_set(struct set *set, const uint64_t *ns, size_t count)
{
    double sum = 0;
    set->count = (uint32_t)KRAIT_MIN(count, (size_t)BLOCKS);
    for (uint32_t i = 0; i < set->count; i++) {
        size_t from = count * i / set->count, to = count * (i + 1) / set->count;
        double block = 0;
        for (size_t k = from; k < to; k++)
            block += (double)ns[k];
        set->values[i] = block / (double)(to - from);
        sum += block;
    }
    set->mean = count ? sum / (double)count : 0;
}

/* SplitMix64 (G. Steele and others, OOPSLA 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static double draw_mean(const struct set *set, uint64_t *state)
{
    double sum = 0;
    for (uint32_t i = 0; i < set->count; i++)
        sum += set->values[(next_random(state) >> 32) * set->count >> 32];
    return sum / set->count;
}

static int by_number(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The share of the draws that is left out on each side. */
static double tail_of(uint32_t count)
{
    double n = count;
    double wide = sqrt(n / (n - 1)) * krait_student_t(1 - KRAIT_COMPARE_CONFIDENCE, n - 1);
    return erfc(wide / M_SQRT2) / 2;
}

static void bounds(double *draws, double tail, double *low, double *high)
{
    qsort(draws, DRAWS, sizeof(*draws), by_number);
    uint32_t out = (uint32_t)(tail * DRAWS);
    *low = draws[out];
    *high = draws[DRAWS - 1 - out];
}

int krait_resample(struct krait_resampled *out, const uint64_t *first, size_t first_count,
                   const uint64_t *second, size_t second_count)
{
    KRAIT_AUTO_FREE struct set *sets = malloc(2 * sizeof(*sets));
    KRAIT_AUTO_FREE double *ratios = malloc(2 * DRAWS * sizeof(*ratios));
    uint64_t state = 0;
    if (!sets || !ratios)
        return -ENOMEM;
    double *differences = ratios + DRAWS;
    fill_set(&sets[0], first, first_count);
    fill_set(&sets[1], second, second_count);
    *out = (struct krait_resampled){ .difference = sets[1].mean - sets[0].mean,
                                     .ratio = sets[0].mean > 0 ? sets[1].mean / sets[0].mean : 0 };
    uint32_t fewer = KRAIT_MIN(sets[0].count, sets[1].count);
    out->is_known = fewer >= KRAIT_RESAMPLE_LEAST && sets[0].mean > 0 && sets[1].mean > 0;
    if (!out->is_known)
        return 0;
    for (uint32_t i = 0; i < DRAWS; i++) {
        double a = draw_mean(&sets[0], &state), b = draw_mean(&sets[1], &state);
        ratios[i] = a > 0 ? b / a : INFINITY;
        differences[i] = b - a;
    }
    bounds(ratios, tail_of(fewer), &out->ratio_low, &out->ratio_high);
    bounds(differences, tail_of(fewer), &out->difference_low, &out->difference_high);
    return 0;
}
