/* SPDX-License-Identifier: Apache-2.0
 *
 * Integers at any bit. CTF 1.8.3, 4.1.5: little-endian fields fill bytes from the least significant bit,
 * big-endian ones from the most significant; an array of bits continues in the next byte.
 */
#ifndef KRAIT_CTF_SCALAR_BITS_H
#define KRAIT_CTF_SCALAR_BITS_H

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

/* `bits` (1 to 64) bits from bit `at` of the bytes on; reads only the bytes that contain them. */
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

/* An integer in groups of seven bits, the least significant first (LEB128: CTF2-SPEC-2.0, variable-length
 * integers; DWARF 4, 7.6), at the beginning of `size` bytes; *bits becomes seven times its number of bytes. Returns
 * NULL, or why it cannot be read.
 */
const char *krait_leb_read(const uint8_t *p, uint64_t size, bool is_signed, uint64_t *value, unsigned *bits);

/* The first of `bits` bits becomes the last. */
static inline uint64_t krait_bits_reversed(uint64_t v, unsigned bits)
{
    uint64_t turned = 0;
    for (unsigned i = 0; i < bits; i++)
        turned |= (v >> i & 1) << (bits - 1 - i);
    return turned;
}

static inline uint64_t krait_sign_extend(uint64_t v, unsigned bits)
{
    return (uint64_t)((int64_t)(v << (64 - bits)) >> (64 - bits));
}

#endif
