/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/parts.h"

#include <math.h>

static const struct {
    uint32_t parts;
    const char *unit;
} scales[] = { { 1, "" }, { 1000, "× 10⁻³" }, { 1000000, "× 10⁻⁶" }, { 1000000000, "× 10⁻⁹" } };

void krait_parts_take(struct krait_parts *scale, double value)
{
    scale->most = KRAIT_MAX(scale->most, fabs(value));
    for (unsigned i = 0; i < KRAIT_ARRAY_LEN(scales); i++) {
        double scaled = value * scales[i].parts;
        scale->unwhole |= (scaled != rint(scaled)) << i;
    }
}

uint32_t krait_parts_of(const struct krait_parts *scale, const char **unit)
{
    unsigned i = 0;
    while (i + 1 < KRAIT_ARRAY_LEN(scales) && scale->unwhole >> i & 1 &&
           scale->most * scales[i + 1].parts <= KRAIT_PARTS_MOST)
        i++;
    *unit = scales[i].unit;
    return scales[i].parts;
}
