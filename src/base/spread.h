/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of durations: their number, sum, extremes, and quantiles within 0.8 %. Zeroed memory is an empty set.
 */
#ifndef KRAIT_BASE_SPREAD_H
#define KRAIT_BASE_SPREAD_H

#include "base/hist.h"

struct krait_spread {
    uint64_t count, sum, min, max; /* ns */
    struct krait_hist hist;
};

/* Return 0 or -ENOMEM. _merge adds all durations of another set. */
int krait_spread_add(struct krait_spread *spread, uint64_t ns);
int krait_spread_merge(struct krait_spread *to, const struct krait_spread *from);
/* The q-quantile (q from 0 to 1), between min and max; 0 of an empty set. */
uint64_t krait_spread_quantile(const struct krait_spread *spread, double q);
/* Frees, and leaves an empty set. */
void krait_spread_done(struct krait_spread *spread);

#endif
