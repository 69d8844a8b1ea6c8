/* SPDX-License-Identifier: Apache-2.0
 *
 * Values as text, as babeltrace2's sink.text.pretty prints them.
 */
#ifndef KRAIT_CTF_TEXT_H
#define KRAIT_CTF_TEXT_H

#include "base/buf.h"
#include "ctf/field.h"

#include <string.h>

static inline void krait_text_add(struct krait_buf *out, const char *text, size_t n)
{
    if (KRAIT_UNLIKELY(out->cap - out->len <= n) && !krait_buf_room(out, n))
        return;
    memcpy(out->data + out->len, text, n);
    out->len += n;
}

/* The same for texts of an arena: those may be read in blocks of 16 bytes, up to the block that their last
 * byte is in. */
static inline void krait_text_block(struct krait_buf *out, const char *text, size_t n)
{
    if (KRAIT_UNLIKELY(out->cap - out->len <= n + 16) && !krait_buf_room(out, n + 16))
        return;
    char *to = out->data + out->len;
    for (size_t i = 0; i < n; i += 16)
        memcpy(to + i, text + i, 16);
    out->len += n;
}

/* Decimal. */
void krait_text_u64(struct krait_buf *out, uint64_t value);
/* Decimal with leading zeros up to `digits`. */
void krait_text_digits(struct krait_buf *out, uint64_t value, unsigned digits);
/* A blob's bytes as babeltrace2 2.1 has them, a blank before each: " 01 ff". */
void krait_text_blob(struct krait_buf *out, const uint8_t *bytes, size_t n);

/* An integer or enumeration (sign-extended already) in its base. */
void krait_text_int(struct krait_buf *out, const struct krait_fc *fc, uint64_t value);
void krait_text_float(struct krait_buf *out, double value);
/* "text" with its escapes. */
void krait_text_quoted(struct krait_buf *out, const char *s, size_t n);
/* The same digits at `to`, which has to have 20 bytes; returns behind them. */
char *krait_text_put_u64(char *to, uint64_t value);
/* Nine digits of a value below 10^9. */
char *krait_text_put_nine(char *to, uint32_t value);
/* What stands before an array's element. */
void krait_text_element(struct krait_buf *out, uint64_t index, bool named);

#endif
