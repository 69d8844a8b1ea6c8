/* SPDX-License-Identifier: Apache-2.0 */
#include "view/scale.h"

#include "view/ticks.h"

#include <math.h>

/* The ratio from which on a logarithmic axis shows more. */
enum { FAR = 10 };

static const unsigned steps[] = { 1, 2, 5 };

/* The greatest 1, 2 or 5 times a power of ten that is not above. */
static double round_down(double ns)
{
    double power = pow(10, floor(log10(ns)));
    return ns >= 5 * power ? 5 * power : ns >= 2 * power ? 2 * power : power;
}

double krait_scale_round_up(double ns)
{
    double power = pow(10, floor(log10(ns)));
    return ns <= power ? power : ns <= 2 * power ? 2 * power : ns <= 5 * power ? 5 * power : 10 * power;
}

struct krait_scale krait_scale_of(uint64_t least_ns, uint64_t most_ns)
{
    double least = KRAIT_MAX((double)least_ns, 1), most = KRAIT_MAX((double)most_ns, 2);
    struct krait_scale scale = { .is_log = most > FAR * least, .is_time = true };
    if (scale.is_log) {
        scale.low = round_down(least);
        scale.high = krait_scale_round_up(most);
        return scale;
    }
    double step = (double)krait_tick_step(most / 5);
    scale.high = ceil(most / step) * step;
    return scale;
}

struct krait_scale krait_scale_values(double least, double most)
{
    double range = most - least, around = range > 0 ? range : KRAIT_MAX(fabs(most), 1);
    if (least >= 0 && least <= 2 * around)
        least = 0;
    if (most <= 0 && -most <= 2 * around)
        most = 0;
    double step = krait_scale_round_up(KRAIT_MAX(most - least, around) / 5);
    struct krait_scale scale = { .low = floor(least / step) * step, .high = ceil(most / step) * step };
    scale.high += scale.high > scale.low ? 0 : step;
    return scale;
}

struct krait_scale krait_scale_time(uint64_t from_ns, uint64_t to_ns)
{
    return (struct krait_scale){ .low = (double)from_ns,
                                 .high = KRAIT_MAX((double)to_ns, (double)from_ns + 1),
                                 .is_time = true };
}

double krait_scale_at(const struct krait_scale *scale, double ns)
{
    double at = scale->is_log ? log(KRAIT_MAX(ns, scale->low) / scale->low) / log(scale->high / scale->low)
                              : (ns - scale->low) / (scale->high - scale->low);
    return KRAIT_MIN(KRAIT_MAX(at, 0), 1);
}

double krait_scale_value(const struct krait_scale *scale, double at)
{
    return scale->is_log ? scale->low * pow(scale->high / scale->low, at)
                         : scale->low + at * (scale->high - scale->low);
}

/* What a logarithmic axis of time has instead of powers of ten: the n-th, from 1 ns on. logTicks in web/src/time.ts
 * does the same. */
static double power_of(unsigned n)
{
    static const double clock[] = { 60e9, 600e9, 3600e9, 36000e9 }; /* 1m, 10m, 1h, 10h; days follow */
    enum { SECONDS = 11 };                                          /* powers up to 10 s */
    if (n < SECONDS)
        return pow(10, n);
    n -= SECONDS;
    return n < KRAIT_ARRAY_LEN(clock) ? clock[n] : 86400e9 * pow(10, n - (double)KRAIT_ARRAY_LEN(clock));
}

/* 1, 2 and 5 times these, or only these, or each n-th of them, depending on what fits. */
static uint32_t log_ticks(const struct krait_scale *scale, uint32_t most, double ticks[KRAIT_SCALE_TICKS])
{
    double powers = log10(scale->high / scale->low), least = scale->low * 0.999, limit = scale->high * 1.001;
    bool has_room = 3 * powers + 1 <= most;
    unsigned every = (unsigned)ceil(KRAIT_MAX(powers, 1) / most), n = 0, first = 0;
    uint32_t count = 0;
    while (power_of(first + 1) <= scale->low * (1 + 1e-9))
        first++;
    for (n = first; power_of(n) <= limit; n++) {
        for (size_t i = 0; i < (has_room ? KRAIT_ARRAY_LEN(steps) : 1); i++) {
            double tick = power_of(n) * steps[i];
            if ((n - first) % every == 0 && tick >= least && tick <= limit && tick < power_of(n + 1) &&
                count < most)
                ticks[count++] = tick;
        }
    }
    return count;
}

uint32_t krait_scale_ticks(const struct krait_scale *scale, uint32_t most, double ticks[KRAIT_SCALE_TICKS])
{
    uint32_t count = 0;
    most = KRAIT_MIN(most, (uint32_t)KRAIT_SCALE_TICKS);
    if (scale->is_log)
        return log_ticks(scale, most, ticks);
    double least = (scale->high - scale->low) / KRAIT_MAX(most - 1, 1u);
    double step = scale->is_time ? (double)krait_tick_step(least) : krait_scale_round_up(least);
    double limit = scale->high + (scale->high - scale->low) * 1e-6; /* sums of steps are not exact */
    for (double tick = ceil(scale->low / step) * step; tick <= limit && count < most; tick += step)
        ticks[count++] = tick;
    return count;
}

void krait_scale_label(struct krait_buf *to, double ns, const char *micro)
{
    const struct {
        double ns;
        const char *name;
    } units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, micro }, { 1, "ns" } };
    size_t i = 0;
    if (ns >= 60e9) {
        krait_tick_clock(to, (uint64_t)ns);
        return;
    }
    while (i + 1 < KRAIT_ARRAY_LEN(units) && ns < units[i].ns * 0.999)
        i++;
    if (ns <= 0)
        krait_buf_char(to, '0');
    else
        krait_buf_fmt(to, "%.4g %s", ns / units[i].ns, units[i].name);
}
