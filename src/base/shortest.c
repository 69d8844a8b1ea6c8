/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shortest.h"

#include "base/digits.h"

enum { MANTISSA_BITS = 52, EXPONENT_BIAS = 1075 /* of the mantissa's last bit */, FIRST_POWER = -292 };

/* digits * 10^exponent */
struct decimal {
    uint64_t digits;
    int exponent;
};

static const struct power {
    uint64_t high, low;
} powers[] = {
#define POWER(high, low) { high, low },
#include "base/powers.def"
};

/* -- logarithms of powers, rounded down: exact for all exponents of doubles -- */

static int log2_of_ten(int power)
{
    return (power * 1741647) >> 19;
}

static int log10_of_two(int power)
{
    return (power * 1262611) >> 22;
}

/* Of 3/4 of it. */
static int log10_of_two_less(int power)
{
    return (power * 1262611 - 524031) >> 22;
}

/* -- digits -- */

/* The product's bits above 2^128; the last is set where anything is behind them. */
static uint64_t scaled(struct power power, uint64_t n)
{
    unsigned __int128 low = (unsigned __int128)power.low * n;
    unsigned __int128 all = (unsigned __int128)power.high * n + (uint64_t)(low >> 64);
    return (uint64_t)(all >> 64) | ((uint64_t)all > 1);
}

/* What reads back as the number, times 4 and a power of ten: from `low` to `high`, both included. */
struct bounds {
    uint64_t low, mid, high;
};

static struct bounds bounds_of(uint64_t c, int q, int k, bool is_power_of_two)
{
    unsigned shift = (unsigned)(q + log2_of_ten(-k) + 1);
    struct power power = powers[-k - FIRST_POWER];
    bool is_odd = c & 1; /* halves are rounded to even */
    return (struct bounds){ .low = scaled(power, (4 * c - 2 + is_power_of_two) << shift) + is_odd,
                            .mid = scaled(power, (4 * c) << shift),
                            .high = scaled(power, (4 * c + 2) << shift) - is_odd };
}

/* c * 2^q. Below a power of two doubles lie closer. */
static struct decimal shortest(uint64_t c, int q, bool is_power_of_two)
{
    int k = is_power_of_two ? log10_of_two_less(q) : log10_of_two(q);
    struct bounds in = bounds_of(c, q, k, is_power_of_two);
    uint64_t whole = in.mid / 4, tens = whole / 10;
    bool below = in.low <= 40 * tens, above = 40 * tens + 40 <= in.high;
    if (whole >= 10 && below != above)
        return (struct decimal){ tens + above, k + 1 };
    below = in.low <= 4 * whole;
    above = 4 * whole + 4 <= in.high;
    uint64_t half = 4 * whole + 2;
    bool up = below != above ? above : in.mid > half || (in.mid == half && whole & 1);
    return (struct decimal){ whole + up, k };
}

/* Without zeros at the end. */
static struct decimal trimmed(struct decimal d)
{
    while (d.digits >= KRAIT_TEN_8 && d.digits % KRAIT_TEN_8 == 0) {
        d.digits /= KRAIT_TEN_8;
        d.exponent += 8;
    }
    while (d.digits % 10 == 0) {
        d.digits /= 10;
        d.exponent++;
    }
    return d;
}

static struct decimal decimal_of(uint64_t bits)
{
    const uint64_t hidden = (uint64_t)1 << MANTISSA_BITS;
    uint64_t mantissa = bits & (hidden - 1);
    int exponent = (int)(bits >> MANTISSA_BITS) & 0x7ff;
    if (!exponent)
        return trimmed(shortest(mantissa, 1 - EXPONENT_BIAS, false));
    uint64_t c = mantissa | hidden;
    int q = exponent - EXPONENT_BIAS;
    if (q <= 0 && q >= -MANTISSA_BITS && !(c & (((uint64_t)1 << -q) - 1))) /* a whole number */
        return trimmed((struct decimal){ c >> -q, 0 });
    return trimmed(shortest(c, q, !mantissa && exponent > 1));
}

/* -- layout -- */

enum { BLOCK = 16 };

/* Digits, as many as a double may have, in room for blocks. */
struct text {
    char digits[KRAIT_DIGITS_ROOM + BLOCK];
    int count;
    int point; /* stands behind so many of them: before them where negative, behind zeros where more */
};

static char *put_zeros(char *to, int count)
{
    memset(to, '0', BLOCK);
    return to + count;
}

/* From one of them on: 17 at the most. */
static char *put_digits(char *to, const struct text *text, int from)
{
    memcpy(to, text->digits + from, BLOCK);
    to[BLOCK] = text->digits[from + BLOCK];
    return to + text->count - from;
}

static char *put_plain(char *to, const struct text *text)
{
    if (text->point <= 0) {
        memcpy(to, "0.", 2);
        return put_digits(put_zeros(to + 2, -text->point), text, 0);
    }
    char *behind = put_digits(to, text, 0);
    if (text->point >= text->count) {
        to = put_zeros(behind, text->point - text->count);
        memcpy(to, ".0", 2);
        return to + 2;
    }
    to += text->point;
    *to = '.';
    return put_digits(to + 1, text, text->point);
}

static char *put_with_exponent(char *to, const struct text *text)
{
    unsigned exponent = (unsigned)(text->point > 0 ? text->point - 1 : 1 - text->point);
    *to = text->digits[0];
    to[1] = '.';
    char *behind = put_digits(to + 2, text, 1);
    to = text->count > 1 ? behind : to + 1;
    *to++ = 'e';
    *to++ = text->point > 0 ? '+' : '-';
    *to = '0';
    return krait_put_short(to + (exponent < 10), exponent);
}

char *krait_put_shortest(char *to, double value)
{
    enum { MOST_BEFORE = 16, MOST_ZEROS = 3 }; /* as repr() has it: behind these there is an exponent */
    struct text text;
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    *to = '-';
    to += bits >> 63;
    bits = bits << 1 >> 1;
    if (!bits) {
        memcpy(to, "0.0", 3);
        return to + 3;
    }
    struct decimal d = decimal_of(bits);
    text.count = (int)(krait_put_u64(text.digits, d.digits) - text.digits);
    text.point = text.count + d.exponent;
    bool is_plain = text.point >= -MOST_ZEROS && text.point <= MOST_BEFORE;
    return is_plain ? put_plain(to, &text) : put_with_exponent(to, &text);
}
