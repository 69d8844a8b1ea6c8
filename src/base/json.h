/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing JSON (RFC 8259) from untrusted text: what comes out is valid JSON and valid UTF-8 whatever went in.
 */
#ifndef KRAIT_BASE_JSON_H
#define KRAIT_BASE_JSON_H

#include "base/buf.h"

/* A string with its quotes. Quotes, backslashes and control characters are escaped; each byte that is no part
 * of valid UTF-8 (overlong forms, surrogates and values above U+10FFFF included) becomes U+FFFD. */
void krait_json_str(struct krait_buf *buf, const char *s, size_t n);
void krait_json_cstr(struct krait_buf *buf, const char *s);

/* "key": with the comma that the object needs before it: none right after a '{'. */
void krait_json_key(struct krait_buf *buf, const char *key);

void krait_json_u64(struct krait_buf *buf, uint64_t n);

/* Length of the valid UTF-8 sequence at s (1 to 4), or 0 when there is none in its first n bytes (n > 0). */
size_t krait_utf8_len(const char *s, size_t n);
/* Appends a character; U+FFFD for a surrogate or what lies above U+10FFFF. */
void krait_utf8_add(struct krait_buf *buf, uint32_t character);
/* The text with U+FFFD for each byte that is no part of valid UTF-8. */
void krait_utf8_clean(struct krait_buf *buf, const char *s, size_t n);

#endif
