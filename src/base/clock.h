/* SPDX-License-Identifier: Apache-2.0
 *
 * The clock of a recording: the processor's time-stamp counter where it is invariant, else CLOCK_MONOTONIC in ns.
 */
#ifndef KRAIT_BASE_CLOCK_H
#define KRAIT_BASE_CLOCK_H

#include "base/base.h"

#include <time.h>

static inline uint64_t krait_clock_ns(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * KRAIT_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Its name for users. */
#if defined(__aarch64__)
#define KRAIT_CLOCK_COUNTER "generic timer"
#else
#define KRAIT_CLOCK_COUNTER "time-stamp counter"
#endif

/* The counter itself. Not serialising: rdtscp and fences cost as much again and order nothing that a Python
 * call would notice. aarch64: the generic timer's virtual count, which is always invariant. */
static inline uint64_t krait_clock_counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return krait_clock_ns(CLOCK_MONOTONIC);
#endif
}

/* Whether the counter ticks at a constant rate in all power states and on all CPUs, and the kernel has not rejected it as
 * a clock. Reads /sys/devices/system/clocksource and cpuid. */
bool krait_clock_counter_is_invariant(void);

/* One moment on three clocks, read together; the tightest of a few tries. */
struct krait_clock_sync {
    uint64_t ticks; /* counter, or CLOCK_MONOTONIC ns */
    uint64_t monotonic_ns;
    uint64_t realtime_ns;
};

struct krait_clock {
    bool counter; /* else CLOCK_MONOTONIC */
    struct krait_clock_sync first;
    uint64_t freq; /* ticks a second, as far as known */
};

/* Chooses the clock and takes the first sync point; a frequency that has to be measured takes 10 ms. */
void krait_clock_init(struct krait_clock *clock);
/* Measures the frequency again over the time since krait_clock_init: good to 1e-7 after a second. */
void krait_clock_refine(struct krait_clock *clock);
/* The tick of another clock at the moment of a tick of this one. Reads both clocks, so it is exact to some microseconds for
 * moments that are not long ago, however long the clocks have run. */
uint64_t krait_clock_convert(const struct krait_clock *clock, uint64_t tick, const struct krait_clock *to);
/* When tick 0 was, from the epoch: seconds, and the rest in ticks. */
void krait_clock_offset(const struct krait_clock *clock, uint64_t *seconds, uint64_t *ticks);

static inline uint64_t krait_clock_now(const struct krait_clock *clock)
{
    return clock->counter ? krait_clock_counter() : krait_clock_ns(CLOCK_MONOTONIC);
}

#endif
