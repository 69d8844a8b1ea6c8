/* SPDX-License-Identifier: Apache-2.0
 *
 * Durations: their number, sum, extremes, and quantiles within 0.8 %. Zeroed memory has none.
 */
#ifndef KRAIT_BASE_SPREAD_H
#define KRAIT_BASE_SPREAD_H

#include "base/hist.h"

struct krait_spread {
    uint64_t count, sum, min, max; /* ns */
    struct krait_hist hist;
};

/* Return 0 or -ENOMEM. Merging adds up durations of which others are part. */
int krait_spread_add(struct krait_spread *spread, uint64_t ns);
int krait_spread_merge(struct krait_spread *to, const struct krait_spread *from);
/* Leaves none. */
void krait_spread_done(struct krait_spread *spread);

#endif
