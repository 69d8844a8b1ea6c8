/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of wide characters: UTF-16 and UTF-32 (CTF2-SPEC-2.0, string field classes).
 */
#ifndef KRAIT_CTF_SCALAR_WIDE_H
#define KRAIT_CTF_SCALAR_WIDE_H

#include "base/buf.h"

enum krait_encoding {
    KRAIT_ENCODING_UTF8, /* or ASCII: bytes are passed on as they are */
    KRAIT_ENCODING_UTF16_LE,
    KRAIT_ENCODING_UTF16_BE,
    KRAIT_ENCODING_UTF32_LE,
    KRAIT_ENCODING_UTF32_BE,
};

/* Bytes of a code unit: 1, 2 or 4. */
static inline size_t krait_encoding_unit(enum krait_encoding encoding)
{
    return encoding == KRAIT_ENCODING_UTF8 ? 1 : encoding <= KRAIT_ENCODING_UTF16_BE ? 2 : 4;
}

/* Bytes before the first code unit 0, or of all whole units if none is 0. */
size_t krait_wide_length(enum krait_encoding encoding, const uint8_t *from, size_t size);

/* Whether all of it is valid: no half of a surrogate pair, nothing above U+10FFFF. */
bool krait_wide_is_text(enum krait_encoding encoding, const uint8_t *from, size_t size);

/* Appends the text in UTF-8. Invalid code units become U+FFFD. */
void krait_wide_utf8(struct krait_buf *out, enum krait_encoding encoding, const uint8_t *from, size_t size);

/* The same in quotes, with escapes. */
void krait_text_wide(struct krait_buf *out, enum krait_encoding encoding, const uint8_t *from, size_t size);

#endif
