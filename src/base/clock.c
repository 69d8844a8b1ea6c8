/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include "base/buf.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/available_clocksource"

/* The processor says that the counter is invariant (Intel SDM 18.17.1), and the kernel still lists it: it removes a
 * counter that it finds unstable. */
bool krait_clock_counter_is_invariant(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & (1u << 8)))
        return false;
    KRAIT_AUTO_BUF text = { 0 };
    if (krait_buf_read_file(&text, CLOCKSOURCE) || !text.data)
        return false;
    char *rest;
    for (char *word = strtok_r(text.data, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
        if (strcmp(word, "tsc") == 0)
            return true;
    }
    return false;
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

static struct krait_clock_sync sync_now(bool counter)
{
    struct krait_clock_sync best = { 0 };
    uint64_t best_width = UINT64_MAX;
    for (int i = 0; i < 20; i++) {
        uint64_t before = counter ? krait_clock_counter() : krait_clock_ns(CLOCK_MONOTONIC);
        uint64_t monotonic = krait_clock_ns(CLOCK_MONOTONIC);
        uint64_t realtime = krait_clock_ns(CLOCK_REALTIME);
        uint64_t after = counter ? krait_clock_counter() : krait_clock_ns(CLOCK_MONOTONIC);
        if (after - before >= best_width)
            continue;
        best_width = after - before;
        best.ticks = counter ? before + best_width / 2 : monotonic;
        best.monotonic_ns = monotonic;
        best.realtime_ns = realtime;
    }
    return best;
}

static uint64_t freq_between(const struct krait_clock_sync *a, const struct krait_clock_sync *b)
{
    uint64_t ns = b->monotonic_ns - a->monotonic_ns;
    return ns ? (uint64_t)((unsigned __int128)(b->ticks - a->ticks) * KRAIT_NS_PER_S / ns) : 0;
}

void krait_clock_init(struct krait_clock *clock)
{
    *clock = (struct krait_clock){ .counter = krait_clock_counter_is_invariant(), .freq = KRAIT_NS_PER_S };
    clock->first = sync_now(clock->counter);
    if (!clock->counter)
        return;
#if defined(__aarch64__)
    __asm__("mrs %0, cntfrq_el0" : "=r"(clock->freq));
#else
    nanosleep(&(struct timespec){ .tv_nsec = 10 * KRAIT_NS_PER_MS }, NULL);
    krait_clock_refine(clock);
#endif
}

void krait_clock_refine(struct krait_clock *clock)
{
    if (!clock->counter)
        return;
    struct krait_clock_sync now = sync_now(true);
    uint64_t freq = freq_between(&clock->first, &now);
    if (freq)
        clock->freq = freq;
}

uint64_t krait_clock_convert(const struct krait_clock *clock, uint64_t tick, const struct krait_clock *to)
{
    if (clock->counter == to->counter)
        return tick;
    struct krait_clock_sync now = sync_now(true);
    uint64_t now_here = clock->counter ? now.ticks : now.monotonic_ns;
    uint64_t now_there = to->counter ? now.ticks : now.monotonic_ns;
    __int128 ago = ((__int128)now_here - tick) * (__int128)to->freq / (__int128)clock->freq;
    return ago > (__int128)now_there ? 0 : (uint64_t)((__int128)now_there - ago);
}

void krait_clock_offset(const struct krait_clock *clock, uint64_t *seconds, uint64_t *ticks)
{
    const struct krait_clock_sync *at = &clock->first;
    uint64_t s = at->ticks / clock->freq;
    uint64_t rest = at->ticks % clock->freq;
    uint64_t zero_ns = at->realtime_ns - s * KRAIT_NS_PER_S -
                       (uint64_t)((unsigned __int128)rest * KRAIT_NS_PER_S / clock->freq);
    *seconds = zero_ns / KRAIT_NS_PER_S;
    *ticks = (uint64_t)((unsigned __int128)(zero_ns % KRAIT_NS_PER_S) * clock->freq / KRAIT_NS_PER_S);
}
