/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts times of a perf event's clock to the recording's clock.
 *
 * The kernel does not always say how its trace clock follows from the counter (cap_user_time_zero is 0 in many
 * virtual machines). CLOCK_MONOTONIC_RAW is never adjusted, so it is a linear function of the counter, and two points
 * determine it. The first is taken at the start, the second before each reading of the rings, so that converted times
 * are never far from it.
 */
#ifndef KRAIT_KERNEL_PERF_CLOCK_H
#define KRAIT_KERNEL_PERF_CLOCK_H

#include "base/clock.h"

struct krait_perf_moment {
    uint64_t ticks; /* the recording's */
    uint64_t ns;    /* the events' */
};

struct krait_perf_clock {
    const struct krait_clock *clock;
    struct krait_perf_moment first, last;
};

/* The clock to ask of the events (attr.clockid): where the recording's is no counter, its own. */
clockid_t krait_perf_clock_id(const struct krait_clock *clock);
/* Begins. `clock` is kept. */
void krait_perf_clock_init(struct krait_perf_clock *perf, const struct krait_clock *clock);
/* Looks at both clocks. */
void krait_perf_clock_sync(struct krait_perf_clock *perf);
/* When an event was, in ticks. Good to some 50 ns. */
uint64_t krait_perf_clock_ticks(const struct krait_perf_clock *perf, uint64_t ns);

#endif
