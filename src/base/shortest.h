/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes doubles with the fewest digits that read back as the same double; of several such texts, the nearest. The
 * format is that of Python's repr():
 *
 *   0.1   100.0   123456.789   1e+16   1.7976931348623157e+308   5e-324   -0.0
 *
 * The digits come from Raffaello Giulietti's algorithm ("The Schubfach way to render doubles", 2020). A double is c *
 * 2^q, and every number between the midpoints to its neighbours reads back as it:
 *
 *   (4c - 2) * 2^(q-2)  ...  4c * 2^(q-2)  ...  (4c + 2) * 2^(q-2)
 *
 * Take the power of ten 10^k for which this interval contains between 1 and 10 multiples of 10^k. At most one number
 * with one digit less is also in it, so one or two comparisons find the shortest. The three bounds times 10^-k take one
 * multiplication each, with powers of 128 bits (powers.def). One bit represents all further bits: comparisons only need
 * to know whether there is a rest.
 */
#ifndef KRAIT_BASE_SHORTEST_H
#define KRAIT_BASE_SHORTEST_H

#include "base/base.h"

enum { KRAIT_SHORTEST_MOST = 40 }; /* "-1.7976931348623157e-308", and the bytes overwritten after it */

/* Writes a finite number to `to`, which has room for KRAIT_SHORTEST_MOST bytes. Returns where it ends. */
char *krait_put_shortest(char *to, double value);

#endif
