/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/scalar/real.h"

#include "base/digits.h"

enum { MILLION = 1000000, MANTISSA_BITS = 52, EXPONENT_BIAS = 1075 /* of the mantissa's last bit */ };

/* What %g shows without an exponent, but for 0. The double 1e-4 is a little more than the number. */
static bool is_usual(double size)
{
    return size >= 1e-4 && size < 999999.5;
}

/* How many digits behind the point make six in all. Doubles of negative powers are a little more than these:
 * the double before is less. */
static unsigned digits_behind(double size)
{
    static const double powers[] = { 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5 };
    unsigned behind = KRAIT_ARRAY_LEN(powers);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(powers); i++)
        behind -= size >= powers[i];
    return behind;
}

static const uint32_t tens[] = { 1, 10, 100, 1000, 10000, 100000, MILLION, 10000000, 100000000, 1000000000 };

/* The number times 10^behind, as a whole one. */
static uint32_t scaled(double size, unsigned behind)
{
    uint64_t bits;
    memcpy(&bits, &size, sizeof(bits));
    unsigned shift = EXPONENT_BIAS - (unsigned)(bits >> MANTISSA_BITS); /* 33 to 66 */
    uint64_t mantissa = (bits & (((uint64_t)1 << MANTISSA_BITS) - 1)) | (uint64_t)1 << MANTISSA_BITS;
    unsigned __int128 product = (unsigned __int128)mantissa * tens[behind], one = 1;
    unsigned __int128 rest = product & ((one << shift) - 1), half = one << (shift - 1);
    uint32_t whole = (uint32_t)(product >> shift);
    return whole + (rest > half || (rest == half && whole % 2));
}

/* `count` digits of a number that has no more, without the zeros at their end: behind a point, if any is left. */
static char *put_fraction(char *to, uint32_t value, unsigned count)
{
    if (!value)
        return to;
    for (; value % 10 == 0; count--)
        value /= 10;
    *to++ = '.';
    for (; count > 8; count--)
        *to++ = '0'; /* it is of six digits */
    krait_put_word(to, (krait_eight_digits(value) + KRAIT_ZEROS) >> (8 - count) * 8);
    return to + count;
}

static char *put_usual(char *to, double size)
{
    unsigned behind = digits_behind(size);
    uint32_t digits = scaled(size, behind);
    to = krait_put_short(to, digits / tens[behind]);
    return put_fraction(to, digits % tens[behind], behind);
}

char *krait_put_real(char *to, double value)
{
    double size = __builtin_fabs(value);
    if (!is_usual(size))
        return to + snprintf(to, KRAIT_REAL_MOST, "%g", value);
    *to = '-';
    return put_usual(to + (value < 0), size);
}
