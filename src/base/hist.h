/* SPDX-License-Identifier: Apache-2.0
 *
 * A histogram of durations: exact below 128, then 64 classes to each doubling, so that a quantile is at most
 * 0.8 % off. Memory is 256 bytes for each doubling between the least and the greatest value, however many
 * values there are. The idea is that of HdrHistogram (Gil Tene): linear classes within powers of two.
 */
#ifndef KRAIT_BASE_HIST_H
#define KRAIT_BASE_HIST_H

#include "base/base.h"

enum {
    KRAIT_HIST_BITS = 6, /* 64 classes a doubling */
    KRAIT_HIST_CLASSES = 1 << KRAIT_HIST_BITS,
};

/* Zeroed memory is an empty histogram. 16 bytes, so that it fits beside other counts in a cache line. */
struct krait_hist {
    uint32_t *counts; /* of the octaves from `first` on; counts saturate */
    uint8_t first;
    uint8_t octaves;
    uint16_t pad;
    uint32_t owners; /* for the owner's use */
};

_Static_assert(sizeof(void *) != 8 || sizeof(struct krait_hist) == 16, "fits beside other counts");

void krait_hist_done(struct krait_hist *hist);
/* Makes room for another octave. Returns 0 or -ENOMEM. */
int krait_hist_open(struct krait_hist *hist, uint32_t octave);
/* Adds the values of another. Returns 0 or -ENOMEM. */
int krait_hist_merge(struct krait_hist *to, const struct krait_hist *from);
/* How many values were added. */
uint64_t krait_hist_count(const struct krait_hist *hist);
/* counts[i]: how many values are in [2^i, 2^(i+1)); 0 counts as 1. */
void krait_hist_doublings(const struct krait_hist *hist, uint64_t counts[64]);
/* The q-quantile (q from 0 to 1), with the precision of the histogram; 0 if it is empty. */
uint64_t krait_hist_quantile(const struct krait_hist *hist, double q);
/* The same, at least `min` and at most `max`, the extremes of the values: the middle of a class may lie outside of them. */
uint64_t krait_hist_quantile_within(const struct krait_hist *hist, double q, uint64_t min, uint64_t max);

/* Returns 0 or -ENOMEM. hot path */
static inline int krait_hist_add(struct krait_hist *hist, uint64_t value)
{
    uint32_t bits = 63 - (uint32_t)__builtin_clzll(value | (KRAIT_HIST_CLASSES - 1)); /* 5 and more */
    uint32_t octave = bits - (KRAIT_HIST_BITS - 1);
    uint32_t shift = octave ? octave - 1 : 0;
    if (KRAIT_UNLIKELY(octave - hist->first >= hist->octaves) && krait_hist_open(hist, octave))
        return -ENOMEM;
    uint32_t *count = &hist->counts[(octave - hist->first) * KRAIT_HIST_CLASSES +
                                    ((value >> shift) & (KRAIT_HIST_CLASSES - 1))];
    *count += KRAIT_LIKELY(*count != UINT32_MAX);
    return 0;
}

#endif
