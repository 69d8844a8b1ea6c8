/* SPDX-License-Identifier: Apache-2.0
 *
 * An axis of durations or other numbers: from 0, or, where the greatest is far more than the least, by powers of ten.
 */
#ifndef KRAIT_VIEW_SCALE_H
#define KRAIT_VIEW_SCALE_H

#include "base/buf.h"

enum { KRAIT_SCALE_TICKS = 16 };

struct krait_scale {
    double low, high; /* ns: round numbers that hold what is shown */
    bool is_log;
};

/* For durations between these. */
struct krait_scale krait_scale_of(uint64_t least_ns, uint64_t most_ns);
/* For any numbers between these, never by powers of ten; with 0 where that is near. */
struct krait_scale krait_scale_values(double least, double most);
/* An axis of time between just these, never by powers of ten. */
struct krait_scale krait_scale_time(uint64_t from_ns, uint64_t to_ns);

/* Where a duration is, from 0 to 1; and what is there. */
double krait_scale_at(const struct krait_scale *scale, double ns);
double krait_scale_value(const struct krait_scale *scale, double at);

/* Round durations along the axis, `most` at most, in ns; returns how many. */
uint32_t krait_scale_ticks(const struct krait_scale *scale, uint32_t most, double ticks[KRAIT_SCALE_TICKS]);

/* "20 us", "1.5 s"; 0 is "0". `micro`: "us", or with the micro sign where that can be shown. */
void krait_scale_label(struct krait_buf *to, double ns, const char *micro);

#endif
