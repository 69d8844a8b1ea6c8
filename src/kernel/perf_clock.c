/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/perf_clock.h"

clockid_t krait_perf_clock_id(const struct krait_clock *clock)
{
    return clock->counter ? CLOCK_MONOTONIC_RAW : CLOCK_MONOTONIC;
}

/* The tightest of a few tries. */
static struct krait_perf_moment now(const struct krait_perf_clock *perf)
{
    struct krait_perf_moment best = { 0 };
    uint64_t best_width = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        uint64_t before = krait_clock_now(perf->clock);
        uint64_t ns = krait_clock_ns(krait_perf_clock_id(perf->clock));
        uint64_t width = krait_clock_now(perf->clock) - before;
        if (width >= best_width)
            continue;
        best_width = width;
        best = (struct krait_perf_moment){ before + width / 2, ns };
    }
    return best;
}

void krait_perf_clock_init(struct krait_perf_clock *perf, const struct krait_clock *clock)
{
    *perf = (struct krait_perf_clock){ .clock = clock };
    perf->first = perf->last = now(perf);
}

void krait_perf_clock_sync(struct krait_perf_clock *perf)
{
    perf->last = now(perf);
}

uint64_t krait_perf_clock_ticks(const struct krait_perf_clock *perf, uint64_t ns)
{
    if (!perf->clock->counter)
        return ns;
    __int128 ticks = (__int128)(perf->last.ticks - perf->first.ticks);
    __int128 over = (__int128)(perf->last.ns - perf->first.ns);
    int64_t after = (int64_t)(ns - perf->last.ns);
    return perf->last.ticks + (uint64_t)(over ? after * ticks / over : 0);
}
