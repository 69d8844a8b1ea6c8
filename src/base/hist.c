/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hist.h"

#include <math.h>
#include <string.h>

void krait_hist_done(struct krait_hist *hist)
{
    free(hist->counts);
}

int krait_hist_open(struct krait_hist *hist, uint32_t octave)
{
    uint32_t end = hist->octaves ? hist->first + hist->octaves : octave + 1u;
    uint32_t first = hist->octaves ? KRAIT_MIN(hist->first, octave) : octave;
    uint32_t octaves = KRAIT_MAX(end, octave + 1) - first;
    uint32_t *counts = calloc((size_t)octaves * KRAIT_HIST_CLASSES, sizeof(*counts));
    if (!counts)
        return -ENOMEM;
    if (hist->octaves)
        memcpy(counts + (size_t)(hist->first - first) * KRAIT_HIST_CLASSES, hist->counts,
               (size_t)hist->octaves * KRAIT_HIST_CLASSES * sizeof(*counts));
    free(hist->counts);
    hist->counts = counts;
    hist->first = (uint8_t)first;
    hist->octaves = (uint8_t)octaves;
    return 0;
}

int krait_hist_merge(struct krait_hist *to, const struct krait_hist *from)
{
    for (uint32_t o = 0; o < from->octaves; o++) {
        uint32_t octave = from->first + o;
        if (octave - to->first >= to->octaves && krait_hist_open(to, octave))
            return -ENOMEM;
        uint32_t *sum = &to->counts[(octave - to->first) * KRAIT_HIST_CLASSES];
        const uint32_t *more = &from->counts[o * KRAIT_HIST_CLASSES];
        for (uint32_t i = 0; i < KRAIT_HIST_CLASSES; i++)
            sum[i] = more[i] > UINT32_MAX - sum[i] ? UINT32_MAX : sum[i] + more[i];
    }
    return 0;
}

/* The middle of a class; of classes of one value, that value. */
static uint64_t class_value(uint32_t octave, uint32_t class)
{
    if (octave <= 1)
        return class + (uint64_t)octave * KRAIT_HIST_CLASSES;
    uint64_t low = (uint64_t)(class + KRAIT_HIST_CLASSES) << (octave - 1);
    return low + (1ull << (octave - 2));
}

uint64_t krait_hist_count(const struct krait_hist *hist)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < (uint32_t)hist->octaves * KRAIT_HIST_CLASSES; i++)
        count += hist->counts[i];
    return count;
}

uint64_t krait_hist_quantile(const struct krait_hist *hist, double q)
{
    uint64_t rank = KRAIT_MAX((uint64_t)ceil(q * (double)krait_hist_count(hist)), 1ull);
    uint64_t below = 0;
    for (uint32_t i = 0; i < (uint32_t)hist->octaves * KRAIT_HIST_CLASSES; i++) {
        below += hist->counts[i];
        if (below >= rank)
            return class_value(hist->first + i / KRAIT_HIST_CLASSES, i % KRAIT_HIST_CLASSES);
    }
    return 0;
}

uint64_t krait_hist_quantile_within(const struct krait_hist *hist, double q, uint64_t min, uint64_t max)
{
    return KRAIT_MIN(KRAIT_MAX(krait_hist_quantile(hist, q), min), max);
}

/* The first octave has values below KRAIT_HIST_CLASSES, each other one a doubling. */
static unsigned doubling_of(uint32_t octave, uint32_t class)
{
    return octave ? KRAIT_HIST_BITS + octave - 1 : 31 - (unsigned)__builtin_clz(class | 1);
}

void krait_hist_doublings(const struct krait_hist *hist, uint64_t counts[64])
{
    memset(counts, 0, 64 * sizeof(*counts));
    for (uint32_t i = 0; i < (uint32_t)hist->octaves * KRAIT_HIST_CLASSES; i++)
        counts[doubling_of(hist->first + i / KRAIT_HIST_CLASSES, i % KRAIT_HIST_CLASSES)] += hist->counts[i];
}
