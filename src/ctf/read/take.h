/* SPDX-License-Identifier: Apache-2.0
 *
 * What skipping a field (decode.c) and printing it (print.c) have in common: finding it, checking that all of it is
 * there, and noting what the reader needs from it. Each function moves d->at behind the field; those that return an int
 * return 0, or -EBADMSG with d->why set.
 */
#ifndef KRAIT_CTF_READ_TAKE_H
#define KRAIT_CTF_READ_TAKE_H

#include "ctf/read/decode.h"
#include "ctf/scalar/bits.h"
#include "ctf/scalar/wide.h"

/* Elements without bits never reach the end of the packet: more than this many in a scope are damage. */
enum { KRAIT_MAX_EMPTY = 1 << 16 };

#define KRAIT_INLINE static inline __attribute__((always_inline))

KRAIT_INLINE int krait_damaged(struct krait_decoder *d, const char *why)
{
    d->why = why;
    return -EBADMSG;
}

KRAIT_INLINE bool krait_align_to(struct krait_decoder *d, uint64_t align)
{
    d->at = (d->at + align - 1) & ~(align - 1);
    return d->at <= d->end;
}

/* Begins a run: its fields follow from d->run on. */
KRAIT_INLINE int krait_take_run(struct krait_decoder *d, uint64_t align, uint64_t size)
{
    if (!krait_align_to(d, align) || size > d->end - d->at)
        return krait_damaged(d, "an event is longer than the rest of its packet");
    d->run = d->at;
    d->at += size;
    return 0;
}

/* Notes what the reader needs from an integer. */
static inline void krait_take_value(struct krait_decoder *d, const struct krait_op *op, uint64_t value,
                                    unsigned bits)
{
    d->meanings_set |= op->fc->meanings;
    for (uint32_t left = op->fc->meanings; left; left &= left - 1)
        d->meanings[__builtin_ctz(left)] = value;
    if (op->flags & KRAIT_OPF_CLOCK)
        d->clock = krait_clock_update(d->clock, value, bits);
    if (op->slot != KRAIT_NO_SLOT)
        d->slots[op->slot] = value;
}

/* -- integers of whole bytes -- */

KRAIT_INLINE uint16_t krait_load_u16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

KRAIT_INLINE uint32_t krait_load_u32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

KRAIT_INLINE uint64_t krait_load_u64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

KRAIT_INLINE uint64_t krait_load_int(const uint8_t *p, const struct krait_op *op)
{
    bool swap = op->flags & KRAIT_OPF_SWAP;
    switch (op->bits) {
    case 8:
        return *p;
    case 16:
        return swap ? __builtin_bswap16(krait_load_u16(p)) : krait_load_u16(p);
    case 32:
        return swap ? __builtin_bswap32(krait_load_u32(p)) : krait_load_u32(p);
    default:
        return swap ? __builtin_bswap64(krait_load_u64(p)) : krait_load_u64(p);
    }
}

/* INT: in the current run, sign-extended. */
KRAIT_INLINE uint64_t krait_take_int(struct krait_decoder *d, const struct krait_op *op)
{
    uint64_t value = krait_load_int(d->bytes + (d->run + op->off) / 8, op);
    if (op->flags & KRAIT_OPF_SIGNED)
        value = krait_sign_extend(value, op->bits);
    if (op->flags & KRAIT_OPF_BUSY)
        krait_take_value(d, op, value, op->bits);
    return value;
}

/* -- at any bit, of any length -- */

/* BITS, FLOAT: in the current run. The byte order cannot change inside a byte, because bits would overlap
 * (CTF 1.8.3, 4.1.5). */
static inline int krait_take_bits(struct krait_decoder *d, const struct krait_op *op, uint64_t *value)
{
    bool be = op->flags & KRAIT_OPF_BE;
    uint64_t at = d->run + op->off;
    if (at % 8 && op->fc->order_counts && d->bits_be == !be)
        return krait_damaged(d, "the byte order changes within a byte");
    d->bits_be = be;
    *value = be ? krait_bits_be(d->bytes, at, op->bits) : krait_bits_le(d->bytes, at, op->bits);
    if (KRAIT_UNLIKELY(op->flags & KRAIT_OPF_REVERSED))
        *value = krait_bits_reversed(*value, op->bits);
    if (op->flags & KRAIT_OPF_SIGNED)
        *value = krait_sign_extend(*value, op->bits);
    if (op->flags & KRAIT_OPF_BUSY)
        krait_take_value(d, op, *value, op->bits);
    return 0;
}

static inline int krait_take_leb(struct krait_decoder *d, const struct krait_op *op, uint64_t *value)
{
    unsigned bits;
    if (!krait_align_to(d, 8))
        return krait_damaged(d, "an integer begins behind the packet's content");
    const char *why = krait_leb_read(d->bytes + d->at / 8, (d->end - d->at) / 8, op->flags & KRAIT_OPF_SIGNED,
                                     value, &bits);
    if (why)
        return krait_damaged(d, why);
    d->at += bits / 7 * 8;
    if (op->flags & KRAIT_OPF_BUSY)
        krait_take_value(d, op, *value, bits);
    return 0;
}

/* -- texts -- */

KRAIT_INLINE int krait_string_begins(struct krait_decoder *d)
{
    return krait_align_to(d, 8) ? 0 : krait_damaged(d, "a string begins behind the packet's content");
}

static inline int krait_string_without_end(struct krait_decoder *d)
{
    return krait_damaged(d, "a string has no end in its packet");
}

/* UTF-16 and UTF-32 must be valid, because they are converted to UTF-8 for printing; UTF-8 is passed on unchecked. */
static KRAIT_COLD int krait_check_wide(struct krait_decoder *d, enum krait_encoding encoding,
                                       const uint8_t *from, size_t length)
{
    return krait_wide_is_text(encoding, from, length)
               ? 0
               : krait_damaged(d, "a string has what is no character of its encoding");
}

/* The bytes of a string from d->at up to its NUL, in units of one, two or four bytes. */
static inline int krait_take_string(struct krait_decoder *d, const struct krait_op *op, const uint8_t **from,
                                    size_t *length)
{
    size_t room = (d->end - d->at) / 8, unit = krait_encoding_unit(op->fc->encoding);
    *from = d->bytes + d->at / 8;
    *length = op->fc->encoding ? krait_wide_length(op->fc->encoding, *from, room)
                               : strnlen((const char *)*from, room);
    if (room - *length < unit)
        return krait_string_without_end(d);
    if (KRAIT_UNLIKELY(op->fc->encoding) && krait_check_wide(d, op->fc->encoding, *from, *length))
        return -EBADMSG;
    d->at += (*length + unit) * 8;
    return 0;
}

static KRAIT_COLD int krait_check_wide_text(struct krait_decoder *d, enum krait_encoding encoding,
                                            const uint8_t *from, uint64_t length)
{
    if (length % krait_encoding_unit(encoding))
        return krait_damaged(d, "a text ends within a character");
    return krait_check_wide(d, encoding, from, krait_wide_length(encoding, from, length));
}

/* TEXT, TEXT_SEQ: `length` bytes. */
KRAIT_INLINE int krait_take_text(struct krait_decoder *d, const struct krait_op *op, uint64_t length,
                                 const uint8_t **from)
{
    if (!krait_align_to(d, op->align) || length > (d->end - d->at) / 8)
        return krait_damaged(d, "a text is longer than the rest of its packet");
    *from = d->bytes + d->at / 8;
    if (KRAIT_UNLIKELY(op->fc->encoding) && krait_check_wide_text(d, op->fc->encoding, *from, length))
        return -EBADMSG;
    d->at += length * 8;
    return 0;
}

/* -- compound fields -- */

KRAIT_INLINE int krait_array_begins(struct krait_decoder *d, const struct krait_op *op)
{
    return krait_align_to(d, op->align) ? 0 : krait_damaged(d, "an array begins behind the packet's content");
}

/* An element took no bits and changed nothing. The elements after it are the same, with `within` empty elements inside
 * each, and need no walk. Returns how many elements are done; 0 with `why` set. */
static KRAIT_COLD uint64_t krait_pass_empty(struct krait_decoder *d, uint64_t within, uint64_t others)
{
    uint64_t all;
    if (__builtin_mul_overflow(others, within + 1, &all) || __builtin_add_overflow(all, d->empty + 1, &all) ||
        all > KRAIT_MAX_EMPTY) {
        krait_damaged(d, "an array of many elements that have no bits");
        return 0;
    }
    d->empty = all;
    return others + 1;
}

/* The option that the variant's or optional's tag chooses. */
static inline int krait_take_option(struct krait_decoder *d, const struct krait_op *op, uint32_t *option)
{
    *option = krait_decode_option(op->fc, d->slots[op->slot]);
    return *option == KRAIT_NO_ID ? krait_damaged(d, "a variant's tag stands for none of its options") : 0;
}

#endif
