/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes doubles exactly as printf's %g does in the C locale: six digits, rounded to the nearest, halves to even.
 * printf takes some 500 ns for it; here, ordinary numbers are computed with integers.
 *
 *   0.3125 = m / 2^s       m * 10^6 / 2^s = 312500      the six digits, and how many are behind the point
 *
 * m has 53 bits and 10^9, the largest factor needed, has 30: their product fits 128 bits.
 */
#ifndef KRAIT_CTF_SCALAR_REAL_H
#define KRAIT_CTF_SCALAR_REAL_H

#include "base/base.h"

enum { KRAIT_REAL_MOST = 16 }; /* "-1.23457e-308" and its NUL */

/* Writes the number to `to`, where 16 bytes more than KRAIT_REAL_MOST may be overwritten. Returns where it ends. */
char *krait_put_real(char *to, double value);

#endif
