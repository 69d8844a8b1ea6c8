/* SPDX-License-Identifier: Apache-2.0
 *
 * Doubles as text with the fewest digits that read back as the same double, the nearest to it of several; laid out as
 * Python's repr() has them:
 *
 *   0.1   100.0   123456.789   1e+16   1.7976931348623157e+308   5e-324   -0.0
 *
 * The digits are those of Raffaello Giulietti's algorithm ("The Schubfach way to render doubles", 2020). A double is
 * c * 2^q, and all between its neighbours' halves reads back as it:
 *
 *   (4c - 2) * 2^(q-2)  ...  4c * 2^(q-2)  ...  (4c + 2) * 2^(q-2)
 *
 * Take the power of ten that leaves between 1 and 10 whole numbers in this interval. At most one number with a digit
 * less is in it too, so one or two comparisons find the shortest. The three bounds times 10^-k take one multiplication
 * each, with powers of 128 bits (powers.def). One bit stands for all the bits behind them: comparisons only need to know
 * whether there is a rest.
 */
#ifndef KRAIT_CTF_SCALAR_SHORTEST_H
#define KRAIT_CTF_SCALAR_SHORTEST_H

#include "base/base.h"

enum { KRAIT_SHORTEST_MOST = 40 }; /* "-1.7976931348623157e-308", and what is overwritten behind it */

/* Writes a finite number to `to`, which has room for KRAIT_SHORTEST_MOST bytes. Returns where it ends. */
char *krait_put_shortest(char *to, double value);

#endif
