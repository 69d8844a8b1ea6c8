/* SPDX-License-Identifier: Apache-2.0 */
#include "view/ticks.h"

#include "base/clock.h"

#include <math.h>

#define S      KRAIT_NS_PER_S
#define MINUTE (60 * S)
#define HOUR   (3600 * S)
#define DAY    (86400 * S)

/* 1, 2 or 5 times a power of ten. */
static double round_up(double least)
{
    double power = pow(10, floor(log10(fmax(least, 1)))), digit = least / power;
    return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

uint64_t krait_tick_step(double least_ns)
{
    static const uint64_t steps[] = { S,      2 * S,      5 * S,      10 * S,      20 * S,      30 * S,
                                      MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 20 * MINUTE, 30 * MINUTE,
                                      HOUR,   2 * HOUR,   3 * HOUR,   6 * HOUR,    12 * HOUR };
    if (least_ns <= (double)S)
        return (uint64_t)round_up(least_ns);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(steps); i++) {
        if ((double)steps[i] >= least_ns)
            return steps[i];
    }
    return DAY * (uint64_t)round_up(least_ns / (double)DAY);
}

/* From the greatest unit of a clock down to the one that divides the step. */
static void clock_label(struct krait_buf *to, uint64_t ns, uint64_t step_ns)
{
    static const struct {
        uint64_t ns;
        const char *unit;
    } units[] = { { DAY, "d" }, { HOUR, "h" }, { MINUTE, "m" }, { S, "s" } };
    uint64_t rest = ns;
    bool has_begun = false;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(units); i++) {
        uint64_t value = rest / units[i].ns;
        rest %= units[i].ns;
        if (!has_begun && !value)
            continue;
        krait_buf_fmt(to, has_begun ? " %02llu" : "%llu", (unsigned long long)value);
        has_begun = true;
        int digits =
            units[i].ns == S && step_ns < S ? (int)ceil(log10((double)S / (double)step_ns) - 1e-9) : 0;
        if (digits)
            krait_buf_fmt(to, ".%0*llu", digits, (unsigned long long)(rest / (uint64_t)pow(10, 9 - digits)));
        krait_buf_str(to, units[i].unit);
        if (step_ns % units[i].ns == 0)
            return;
    }
}

void krait_tick_clock(struct krait_buf *to, uint64_t ns)
{
    static const uint64_t units[] = { DAY, HOUR, MINUTE, S };
    size_t i = 0;
    ns -= ns % S;
    while (ns % units[i])
        i++;
    clock_label(to, ns, units[i]);
}

void krait_tick_label(struct krait_buf *to, uint64_t ns, uint64_t step_ns)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } units[] = { { S, "s" }, { 1000000, "ms" }, { 1000, "\u00b5s" }, { 1, "ns" } };
    size_t unit = 0;
    if (ns >= MINUTE) {
        clock_label(to, ns, step_ns);
        return;
    }
    while (units[unit].ns > KRAIT_MAX(step_ns * 10, (uint64_t)1) && units[unit].ns > 1)
        unit++;
    uint64_t size = units[unit].ns;
    int digits = step_ns >= size ? 0 : (int)ceil(log10((double)size / (double)step_ns) - 1e-9);
    krait_buf_fmt(to, "%.*f\u202f%s", digits, (double)ns / (double)size, units[unit].text);
}
