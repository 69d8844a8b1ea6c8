/* SPDX-License-Identifier: Apache-2.0
 *
 * Tracks have whole numbers, programs any. So the values of a counter that has others are multiplied by a power of ten,
 * which its track's `parts` and unit say.
 */
#ifndef KRAIT_TRACE_PARTS_H
#define KRAIT_TRACE_PARTS_H

#include "base/base.h"

#define KRAIT_PARTS_MOST 9e15 /* below 2^53: a double has all whole numbers up to it */

struct krait_parts {  /* of some values; zeroed memory has none */
    double most;      /* of them without their signs */
    unsigned unwhole; /* bits of scales that leave a rest */
};

void krait_parts_take(struct krait_parts *scale, double value);

/* What the values are multiplied by: the first power of ten that makes them whole, or the last that they have room
 * for; and the unit that says so. */
uint32_t krait_parts_of(const struct krait_parts *scale, const char **unit);

#endif
