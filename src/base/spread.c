/* SPDX-License-Identifier: Apache-2.0 */
#include "base/spread.h"

int krait_spread_add(struct krait_spread *spread, uint64_t ns)
{
    spread->min = spread->count ? KRAIT_MIN(spread->min, ns) : ns;
    spread->max = KRAIT_MAX(spread->max, ns);
    spread->count++;
    spread->sum += ns;
    return krait_hist_add(&spread->hist, ns);
}

int krait_spread_merge(struct krait_spread *to, const struct krait_spread *from)
{
    if (!from->count)
        return 0;
    to->min = to->count ? KRAIT_MIN(to->min, from->min) : from->min;
    to->max = KRAIT_MAX(to->max, from->max);
    to->count += from->count;
    to->sum += from->sum;
    return krait_hist_merge(&to->hist, &from->hist);
}

uint64_t krait_spread_quantile(const struct krait_spread *spread, double q)
{
    return krait_hist_quantile_within(&spread->hist, q, spread->min, spread->max);
}

void krait_spread_done(struct krait_spread *spread)
{
    krait_hist_done(&spread->hist);
    *spread = (struct krait_spread){ 0 };
}
