/* SPDX-License-Identifier: Apache-2.0
 *
 * Integers at any bit. CTF 1.8.3, 4.1.5: little-endian fields fill bytes from the least significant bit,
 * big-endian ones from the most significant; an array of bits goes on in the next byte.
 */
#ifndef KRAIT_CTF_BITS_H
#define KRAIT_CTF_BITS_H

#include "base/base.h"

#include <string.h>

/* Up to 8 bytes, the first the least significant. */
static inline uint64_t krait_bytes_le(const uint8_t *p, unsigned n)
{
    uint64_t v = 0;
    memcpy(&v, p, n);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

/* `bits` (1 to 64) at bit `at` of the bytes; reads only the bytes that hold them. */
static inline uint64_t krait_bits_le(const uint8_t *bytes, uint64_t at, unsigned bits)
{
    const uint8_t *p = bytes + at / 8;
    unsigned shift = at % 8, total = shift + bits;
    uint64_t v = krait_bytes_le(p, total > 64 ? 8 : (total + 7) / 8) >> shift;
    if (total > 64)
        v |= (uint64_t)p[8] << (64 - shift);
    return bits == 64 ? v : v & (((uint64_t)1 << bits) - 1);
}

static inline uint64_t krait_bits_be(const uint8_t *bytes, uint64_t at, unsigned bits)
{
    const uint8_t *p = bytes + at / 8;
    unsigned shift = at % 8, total = shift + bits;
    uint64_t v = __builtin_bswap64(krait_bytes_le(p, total > 64 ? 8 : (total + 7) / 8));
    v <<= shift; /* the field's first bit is now the most significant */
    if (total > 64)
        v |= p[8] >> (8 - shift);
    return v >> (64 - bits);
}

static inline uint64_t krait_sign_extend(uint64_t v, unsigned bits)
{
    return (uint64_t)((int64_t)(v << (64 - bits)) >> (64 - bits));
}

#endif
