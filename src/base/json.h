/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing JSON (RFC 8259) from untrusted text: what comes out is valid JSON and valid UTF-8 whatever went in.
 */
#ifndef KRAIT_BASE_JSON_H
#define KRAIT_BASE_JSON_H

#include "base/buf.h"

/* A string in quotes. Quotes, backslashes and control characters are escaped; each byte that is not part of
 * valid UTF-8 (such as overlong forms, surrogates and values above U+10FFFF) becomes U+FFFD. */
void krait_json_str(struct krait_buf *buf, const char *s, size_t n);
void krait_json_cstr(struct krait_buf *buf, const char *s);
/* The same of a text that needs no escape; of another one it appends nothing, and returns false. hot path */
bool krait_json_plain(struct krait_buf *buf, const char *s, size_t n);

/* What is in a text. */
enum krait_json_found {
    KRAIT_JSON_ESCAPES = 1 << 0, /* ASCII that krait_json_str escapes */
    KRAIT_JSON_WIDE = 1 << 1,    /* bytes that are no ASCII */
};
/* Copies n bytes as they are, without quotes and NUL, and returns what they have of these. A text of valid UTF-8 without
 * KRAIT_JSON_ESCAPES is JSON as it is. hot path */
unsigned krait_json_copy(char *to, const char *s, size_t n);

/* "key": preceded by a comma, except right after a '{'. */
void krait_json_key(struct krait_buf *buf, const char *key);

void krait_json_u64(struct krait_buf *buf, uint64_t n);
/* The same in place, at most so many bytes, without a NUL. Returns their end. hot path */
enum { KRAIT_JSON_U64_BYTES = 20 };
char *krait_json_put_u64(char *to, uint64_t n);
/* A finite number, with as many digits as it needs to be read as the same. */
void krait_json_real(struct krait_buf *buf, double n);

/* Begins an item of an array with `open`: "{" or "\n{", or "" if the caller writes it. A comma comes first, except right
 * after a '['. */
void krait_json_item(struct krait_buf *buf, const char *open);

/* A key with its value. */
void krait_json_key_u64(struct krait_buf *buf, const char *key, uint64_t n);
void krait_json_key_u64_or_null(struct krait_buf *buf, const char *key, bool known, uint64_t n);
void krait_json_key_bool(struct krait_buf *buf, const char *key, bool value);
void krait_json_key_null(struct krait_buf *buf, const char *key);
void krait_json_key_text(struct krait_buf *buf, const char *key, const char *text);
/* null for NULL and for an empty text. */
void krait_json_key_text_or_null(struct krait_buf *buf, const char *key, const char *text);
/* How many events are missing: "lost_events", the same in all that krait prints; "lost" beside it may have their reasons. */
void krait_json_lost_events(struct krait_buf *buf, uint64_t n);
/* A key whose value is an object or an array ('{' or '[' in `bracket`), which the caller writes and closes. */
void krait_json_key_open(struct krait_buf *buf, const char *key, char bracket);

/* A key whose value is an array of texts. */
void krait_json_key_texts(struct krait_buf *buf, const char *key, const char *const *texts, size_t count);

/* Keys as string literals, for code in which every instruction counts: the first key of an object, with its '{', and
 * the others. */
#define KRAIT_JSON_FIRST(key) "{\"" key "\":"
#define KRAIT_JSON_NEXT(key)  ",\"" key "\":"

/* Length of the valid UTF-8 sequence at s (1 to 4), or 0 if its first n bytes do not begin with one (n > 0). */
size_t krait_utf8_len(const char *s, size_t n);
/* The character at s, and its number of bytes. Bytes that are not valid UTF-8 are U+FFFD, each of them one. n > 0. */
uint32_t krait_utf8_get(const char *s, size_t n, size_t *len);
/* Appends a character; U+FFFD for a surrogate or a value above U+10FFFF. */
void krait_utf8_add(struct krait_buf *buf, uint32_t character);
/* How many bytes of a text of n remain if at most `most` may: n, or less, so that no character is cut in two. */
size_t krait_utf8_whole(const char *s, size_t n, size_t most);
/* Appends the text, with U+FFFD for each byte that is not part of valid UTF-8. */
void krait_utf8_clean(struct krait_buf *buf, const char *s, size_t n);

#endif
