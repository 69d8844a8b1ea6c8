/* SPDX-License-Identifier: Apache-2.0
 *
 * How far the mean of one set of durations is from that of another, and how sure that is, by the bootstrap: both sets
 * are drawn again from themselves many times, and the middle 95 % of what comes out is the interval (B. Efron, Annals of
 * Statistics 7, 1979). It assumes no distribution; small sets get a wider interval, as Student's t would give (T.
 * Hesterberg, The American Statistician 69, 2015, "expanded percentile"). Sets of more than some thousand are drawn in
 * blocks of durations that follow each other, so that what changes slowly does not look more certain than it is.
 *
 * The draws are the same each time: equal sets give equal intervals.
 */
#ifndef KRAIT_ANALYSIS_RESAMPLE_H
#define KRAIT_ANALYSIS_RESAMPLE_H

#include "base/base.h"

enum { KRAIT_RESAMPLE_LEAST = 3 }; /* fewer say nothing about chance */

struct krait_resampled {
    double ratio, ratio_low, ratio_high;                /* of the second mean to the first */
    double difference, difference_low, difference_high; /* of the second mean less the first, ns */
    /* Both sets have KRAIT_RESAMPLE_LEAST values and a mean above 0. Otherwise only ratio and difference are set. */
    bool is_known;
};

/* Durations in ns, in their order of time. Returns 0 or -ENOMEM. */
int krait_resample(struct krait_resampled *out, const uint64_t *first, size_t first_count,
                   const uint64_t *second, size_t second_count);

#endif
