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
 * With the power of ten that leaves between 1 and 10 whole numbers in there, a number of one digit less may be in
 * there too, but not two; so that one or two comparisons find the shortest. Times 10^-k the three are made by one
 * multiplication each, with powers of 128 bits (powers.def): the bits behind are kept as one, "there is some rest",
 * which is all that comparisons ask.
 */
#ifndef KRAIT_CTF_SCALAR_SHORTEST_H
#define KRAIT_CTF_SCALAR_SHORTEST_H

#include "base/base.h"

enum { KRAIT_SHORTEST_MOST = 40 }; /* "-1.7976931348623157e-308", and what is overwritten behind it */

/* Writes a finite number to `to`, which has room for KRAIT_SHORTEST_MOST bytes. Returns where it ends. */
char *krait_put_shortest(char *to, double value);

#endif
