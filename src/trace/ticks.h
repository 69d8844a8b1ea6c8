/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts ticks of a trace's clock to nanoseconds since the epoch without loss: floor((offset + ticks) * 10^9 /
 * freq) is exact if freq is below 2^32. Whole seconds are divided once and kept; within a second, a multiplication by
 * a 64.64 fixed-point ratio is enough.
 */
#ifndef KRAIT_TRACE_TICKS_H
#define KRAIT_TRACE_TICKS_H

#include "base/base.h"

struct krait_ticks {
    uint64_t freq;      /* ticks a second, above 0 */
    uint64_t offset;    /* ticks added to each time */
    uint64_t offset_ns; /* of offset + 0 ticks from the epoch; wraps as the sum does */
    /* 10^9 / freq: the whole part, and the rest in 2^-64, rounded up so that products of whole results do not fall
     * below them */
    uint64_t ratio, fraction;
    uint64_t base, base_ns; /* the start of the second that was asked for last, in ticks and in nanoseconds */
};

static inline void krait_ticks_rebase(struct krait_ticks *scale, uint64_t ticks)
{
    unsigned __int128 sum = (unsigned __int128)scale->offset + ticks;
    uint64_t seconds = (uint64_t)(sum / scale->freq);
    scale->base = ticks - (uint64_t)(sum % scale->freq);
    scale->base_ns = scale->offset_ns + seconds * KRAIT_NS_PER_S;
}

/* offset_s may be negative, as two's complement. */
static inline void krait_ticks_init(struct krait_ticks *scale, uint64_t freq, uint64_t offset_s,
                                    uint64_t offset)
{
    unsigned __int128 rest = (unsigned __int128)(KRAIT_NS_PER_S % freq) << 64;
    *scale = (struct krait_ticks){
        .freq = freq,
        .offset = offset,
        .offset_ns = offset_s * KRAIT_NS_PER_S,
        .ratio = KRAIT_NS_PER_S / freq,
        .fraction = (uint64_t)((rest + freq - 1) / freq),
    };
    krait_ticks_rebase(scale, 0);
}

/* Of ticks since the base, which are less than a second. hot path */
static inline uint64_t krait_ticks_ns_in_second(const struct krait_ticks *scale, uint64_t ticks)
{
    return scale->base_ns + ticks * scale->ratio +
           (uint64_t)(((unsigned __int128)ticks * scale->fraction) >> 64);
}

/* hot path */
static inline uint64_t krait_ticks_ns(struct krait_ticks *scale, uint64_t ticks)
{
    if (KRAIT_UNLIKELY(ticks - scale->base >= scale->freq))
        krait_ticks_rebase(scale, ticks);
    return krait_ticks_ns_in_second(scale, ticks - scale->base);
}

#endif
