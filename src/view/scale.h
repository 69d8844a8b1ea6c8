/* SPDX-License-Identifier: Apache-2.0
 *
 * An axis of durations or other numbers: linear from 0, or logarithmic if the maximum is much more than the minimum.
 */
#ifndef KRAIT_VIEW_SCALE_H
#define KRAIT_VIEW_SCALE_H

#include "base/buf.h"

enum { KRAIT_SCALE_TICKS = 16 };

struct krait_scale {
    double low, high; /* ns: round numbers, the limits of the axis */
    bool is_log;
    bool is_time; /* ticks divide it as clocks do (ticks.h) */
};

/* The least 1, 2 or 5 times a power of ten that is not below; x > 0. */
double krait_scale_round_up(double x);

/* Makes an axis for durations between these. */
struct krait_scale krait_scale_of(uint64_t least_ns, uint64_t most_ns);
/* Makes a linear axis for any numbers between these; it contains 0 if 0 is near. */
struct krait_scale krait_scale_values(double least, double most);
/* Makes a linear axis of time between exactly these. */
struct krait_scale krait_scale_time(uint64_t from_ns, uint64_t to_ns);

/* The place of a duration on the axis, from 0 to 1; and the duration at a place. */
double krait_scale_at(const struct krait_scale *scale, double ns);
double krait_scale_value(const struct krait_scale *scale, double at);

/* Finds at most `most` round durations along the axis, in ns; returns their number. */
uint32_t krait_scale_ticks(const struct krait_scale *scale, uint32_t most, double ticks[KRAIT_SCALE_TICKS]);

/* "20 us", "1.5 s", from a minute on "2h 46m"; 0 is "0". `micro`: "us", or the same with the micro sign if the output
 * can show it. */
void krait_scale_label(struct krait_buf *to, double ns, const char *micro);

#endif
