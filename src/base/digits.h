/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes numbers as digits to reserved memory. All functions write whole words: up to 8 bytes after the last digit are
 * overwritten; hexadecimal numbers overwrite 16 bytes from the first digit.
 *
 * Eight digits are computed at once, in the bytes of one word, and one shift removes the leading zeros: no loop, and a
 * branch only if a number has more than eight digits. The number is halved three times, with both halves in lanes of
 * the same word, so eight digits take three multiplications:
 *
 *   12345678     -> 1234 | 5678           two lanes of 32 bits
 *                -> 12 | 34 | 56 | 78     four of 16: n / 100 is n * 10486 >> 20 below 43699
 *                -> 1|2|3|4|5|6|7|8       eight of 8: n / 10 is n * 103 >> 10 below 179
 *
 * A lane n that is split by d into q = n / d and n % d becomes q + (n % d << s), which is (n << s) - q * ((d
 * << s) - 1): one multiplication for all lanes.
 *
 * The idea is Paul Khuong's ("How to print integers really fast", pvk.ca, 2017).
 */
#ifndef KRAIT_BASE_DIGITS_H
#define KRAIT_BASE_DIGITS_H

#include "base/base.h"

#include <string.h>

enum { KRAIT_DIGITS_MAX = 20, KRAIT_DIGITS_ROOM = 32 }; /* of 64 bits with a sign; with what is overwritten */

#define KRAIT_TEN_8 100000000u

/* The eight digits of a number below 10^8, as bytes from 0 to 9, the first digit in the least significant byte. */
static inline uint64_t krait_eight_digits(uint32_t value)
{
    uint64_t high = value / 10000;
    uint64_t fours = ((uint64_t)value << 32) - high * ((10000ull << 32) - 1);
    uint64_t hundreds = fours * 10486 >> 20 & 0x0000007f0000007full;
    uint64_t pairs = (fours << 16) - hundreds * ((100 << 16) - 1);
    uint64_t tens = pairs * 103 >> 10 & 0x000f000f000f000full;
    return (pairs << 8) - tens * ((10 << 8) - 1);
}

static inline void krait_put_word(char *to, uint64_t bytes)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bytes = __builtin_bswap64(bytes);
#endif
    memcpy(to, &bytes, 8);
}

#define KRAIT_ZEROS 0x3030303030303030ull /* "00000000" */

static inline char *krait_put_eight(char *to, uint32_t value)
{
    krait_put_word(to, krait_eight_digits(value) + KRAIT_ZEROS);
    return to + 8;
}

/* For numbers below 100, as most in traces are. */
static inline char *krait_put_tiny(char *to, uint32_t value)
{
    static const char digits[] = "0 1 2 3 4 5 6 7 8 9 "
                                 "1011121314151617181920212223242526272829"
                                 "3031323334353637383940414243444546474849"
                                 "5051525354555657585960616263646566676869"
                                 "7071727374757677787980818283848586878889"
                                 "90919293949596979899";
    memcpy(to, &digits[value * 2], 2);
    return to + 1 + (value >= 10);
}

/* Without leading zeros, below 10^8. */
static inline char *krait_put_short(char *to, uint32_t value)
{
    if (value < 100)
        return krait_put_tiny(to, value);
    uint64_t digits = krait_eight_digits(value);
    unsigned zeros = (unsigned)__builtin_ctzll(digits | 1ull << 56) & 56; /* bits; the last digit stays */
    krait_put_word(to, (digits + KRAIT_ZEROS) >> zeros);
    return to + 8 - zeros / 8;
}

static inline char *krait_put_u32(char *to, uint32_t value)
{
    if (KRAIT_LIKELY(value < KRAIT_TEN_8))
        return krait_put_short(to, value);
    to = krait_put_short(to, value / KRAIT_TEN_8);
    return krait_put_eight(to, value % KRAIT_TEN_8);
}

static inline char *krait_put_u64(char *to, uint64_t value)
{
    if (KRAIT_LIKELY(value < KRAIT_TEN_8))
        return krait_put_short(to, (uint32_t)value);
    uint64_t high = value / KRAIT_TEN_8;
    if (high < KRAIT_TEN_8) {
        to = krait_put_short(to, (uint32_t)high);
    } else {
        to = krait_put_short(to, (uint32_t)(high / KRAIT_TEN_8));
        to = krait_put_eight(to, (uint32_t)(high % KRAIT_TEN_8));
    }
    return krait_put_eight(to, (uint32_t)(value % KRAIT_TEN_8));
}

/* Writes the sign without a branch: the digits overwrite it if the number is not negative. */
static inline char *krait_put_i32(char *to, int32_t value)
{
    *to = '-';
    to += value < 0;
    return krait_put_u32(to, value < 0 ? -(uint32_t)value : (uint32_t)value);
}

static inline char *krait_put_i64(char *to, int64_t value)
{
    *to = '-';
    to += value < 0;
    return krait_put_u64(to, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

typedef uint8_t krait_hex_bytes __attribute__((vector_size(8)));
typedef uint16_t krait_hex_pairs __attribute__((vector_size(16)));
typedef int8_t krait_hex_digits __attribute__((vector_size(16)));

/* Upper case, without a prefix and leading zeros: these are shifted out first, then all sixteen digits are computed at
 * once, two for each byte. */
static inline char *krait_put_hex(char *to, uint64_t value)
{
    unsigned zeros = (unsigned)__builtin_clzll(value | 1) / 4; /* of 16 digits */
    krait_hex_bytes bytes;
    value <<= zeros * 4;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    memcpy(&bytes, &value, sizeof(bytes));
    krait_hex_pairs pairs = __builtin_convertvector(bytes, krait_hex_pairs);
    pairs = (pairs << 4 | pairs) & 0x0f0f;
#else
    value = __builtin_bswap64(value);
    memcpy(&bytes, &value, sizeof(bytes));
    krait_hex_pairs pairs = __builtin_convertvector(bytes, krait_hex_pairs);
    pairs = (pairs << 8 | pairs >> 4) & 0x0f0f;
#endif
    krait_hex_digits digits = (krait_hex_digits)pairs;
    digits += ((digits > 9) & ('A' - '9' - 1)) + '0';
    memcpy(to, &digits, sizeof(digits));
    return to + 16 - zeros;
}

#endif
