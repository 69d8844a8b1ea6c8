/* SPDX-License-Identifier: Apache-2.0
 *
 * Characters and numbers as text, as babeltrace2's sink.text.pretty prints them.
 */
#ifndef KRAIT_CTF_SCALAR_TEXT_H
#define KRAIT_CTF_SCALAR_TEXT_H

#include "base/buf.h"

#include <string.h>

static inline void krait_text_add(struct krait_buf *out, const char *text, size_t n)
{
    if (KRAIT_UNLIKELY(out->cap - out->len <= n) && !krait_buf_room(out, n))
        return;
    memcpy(out->data + out->len, text, n);
    out->len += n;
}

enum { KRAIT_TEXT_BLOCK = 16 };

/* Copies n bytes in whole blocks: up to KRAIT_TEXT_BLOCK - 1 more bytes are read and written. */
static inline void krait_text_copy(char *to, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i += KRAIT_TEXT_BLOCK)
        memcpy(to + i, text + i, KRAIT_TEXT_BLOCK);
}

/* Appends a text of an arena, which may be read in blocks of 16 bytes, up to the block of its last byte. */
static inline void krait_text_block(struct krait_buf *out, const char *text, size_t n)
{
    if (KRAIT_UNLIKELY(out->cap - out->len <= n + KRAIT_TEXT_BLOCK) &&
        !krait_buf_room(out, n + KRAIT_TEXT_BLOCK))
        return;
    krait_text_copy(out->data + out->len, text, n);
    out->len += n;
}

/* For texts whose lengths a processor cannot predict and are mostly at most KRAIT_TEXT_LINE bytes: these need no
 * branch. Whole multiples of that are read and written. */
enum { KRAIT_TEXT_LINE = 64 };

static inline void krait_text_copy_lines(char *to, const char *text, size_t n)
{
    memcpy(to, text, KRAIT_TEXT_LINE);
    for (size_t i = KRAIT_TEXT_LINE; KRAIT_UNLIKELY(i < n); i += KRAIT_TEXT_LINE)
        memcpy(to + i, text + i, KRAIT_TEXT_LINE);
}

/* Decimal. */
void krait_text_u64(struct krait_buf *out, uint64_t value);
/* Decimal, with leading zeros up to `digits` digits. */
void krait_text_digits(struct krait_buf *out, uint64_t value, unsigned digits);
/* The bytes of a blob as babeltrace2 2.1 prints them, a blank before each: " 01 ff". */
void krait_text_blob(struct krait_buf *out, const uint8_t *bytes, size_t n);

/* "text" with its escapes. */
void krait_text_quoted(struct krait_buf *out, const char *s, size_t n);

/* -- at a place that has room -- */

enum { KRAIT_TEXT_CHUNK = 16, KRAIT_TEXT_ESCAPE = 4 }; /* bytes */

typedef uint8_t krait_chunk __attribute__((vector_size(KRAIT_TEXT_CHUNK)));

/* The first of 16 lanes that is all ones; 16 if all are zero. */
static inline unsigned krait_first_lane(krait_chunk lanes)
{
#if defined(__SSE2__)
    typedef char chars __attribute__((vector_size(KRAIT_TEXT_CHUNK)));
    return (unsigned)__builtin_ctz((unsigned)__builtin_ia32_pmovmskb128((chars)lanes) |
                                   1u << KRAIT_TEXT_CHUNK);
#else
    uint64_t half[2];
    memcpy(half, &lanes, sizeof(half));
    bool low = half[0] != 0;
    uint64_t bits = low ? half[0] : half[1];
    if (!bits)
        return KRAIT_TEXT_CHUNK;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bits = __builtin_bswap64(bits);
#endif
    return (unsigned)__builtin_ctzll(bits) / 8 + (low ? 0 : 8);
#endif
}

/* Copies 16 bytes; returns how many of them come before the first that has to be escaped, or is NUL. */
static inline size_t krait_put_plain(char *to, const char *from)
{
    krait_chunk c;
    memcpy(&c, from, sizeof(c));
    memcpy(to, &c, sizeof(c));
    return krait_first_lane(
        (krait_chunk)((c < 0x20) | (c == 0x7f) | (c == '\\') | (c == '\'') | (c == '"') | (c == '?')));
}

/* One special character: at most KRAIT_TEXT_ESCAPE bytes. */
char *krait_put_escaped(char *to, unsigned char c);
/* The text before an element of an array: at most KRAIT_DIGITS_MAX + 8 bytes. */
char *krait_put_element(char *to, uint64_t index, bool named);

#endif
