/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <string.h>

/* Well-formed UTF-8, Unicode Standard table 3-7: lead bytes, how many bytes follow, the range of the first of these. */
static const struct lead {
    uint8_t first, last, follow, low, high;
} leads[] = {
    { 0xC2, 0xDF, 1, 0x80, 0xBF }, { 0xE0, 0xE0, 2, 0xA0, 0xBF }, { 0xE1, 0xEC, 2, 0x80, 0xBF },
    { 0xED, 0xED, 2, 0x80, 0x9F }, { 0xEE, 0xEF, 2, 0x80, 0xBF }, { 0xF0, 0xF0, 3, 0x90, 0xBF },
    { 0xF1, 0xF3, 3, 0x80, 0xBF }, { 0xF4, 0xF4, 3, 0x80, 0x8F },
};

static bool follows_well(const struct lead *lead, const uint8_t *p, size_t n)
{
    if (n <= lead->follow || p[1] < lead->low || p[1] > lead->high)
        return false;
    for (size_t i = 2; i <= lead->follow; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return false;
    }
    return true;
}

size_t krait_utf8_len(const char *s, size_t n)
{
    const uint8_t *p = (const uint8_t *)s;
    if (p[0] < 0x80)
        return 1;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(leads); i++) {
        if (p[0] >= leads[i].first && p[0] <= leads[i].last)
            return follows_well(&leads[i], p, n) ? leads[i].follow + 1u : 0;
    }
    return 0;
}

enum { REPLACEMENT = 0xFFFD }; /* U+FFFD REPLACEMENT CHARACTER, and in UTF-8: */
#define REPLACEMENT_TEXT "\xEF\xBF\xBD"

uint32_t krait_utf8_get(const char *s, size_t n, size_t *len)
{
    static const uint8_t lead_bits[] = { 0, 0x7F, 0x1F, 0x0F, 0x07 };
    size_t valid = krait_utf8_len(s, n);
    *len = valid ? valid : 1;
    if (!valid)
        return REPLACEMENT;
    uint32_t c = (uint8_t)s[0] & lead_bits[valid];
    for (size_t i = 1; i < valid; i++)
        c = c << 6 | ((uint8_t)s[i] & 0x3F);
    return c;
}

void krait_utf8_add(struct krait_buf *buf, uint32_t character)
{
    if (character > 0x10FFFF || (character >= 0xD800 && character <= 0xDFFF))
        character = REPLACEMENT;
    unsigned follow = character < 0x80 ? 0 : character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    static const uint8_t marks[] = { 0, 0xC0, 0xE0, 0xF0 };
    krait_buf_char(buf, (char)(marks[follow] | character >> 6 * follow));
    while (follow--)
        krait_buf_char(buf, (char)(0x80 | (character >> 6 * follow & 0x3F)));
}

size_t krait_utf8_whole(const char *s, size_t n, size_t most)
{
    if (n <= most)
        return n;
    while (most && ((unsigned char)s[most] & 0xC0) == 0x80)
        most--;
    return most;
}

void krait_utf8_clean(struct krait_buf *buf, const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t run = i, len;
        while (run < n && (len = krait_utf8_len(s + run, n - run)))
            run += len;
        krait_buf_add(buf, s + i, run - i);
        if (run < n)
            krait_buf_str(buf, REPLACEMENT_TEXT);
        i = run + 1;
    }
}

/* What stands in a string as it is. */
static const bool is_plain[256] = {
    [' ' ... '!'] = true,
    ['#' ... '['] = true,
    [']' ... '~'] = true,
};

static void add_escaped(struct krait_buf *buf, uint8_t c)
{
    static const char letters[128] = {
        ['"'] = '"', ['\\'] = '\\', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't', ['\b'] = 'b', ['\f'] = 'f'
    };
    if (letters[c]) {
        char text[2] = { '\\', letters[c] };
        krait_buf_add(buf, text, 2);
    } else {
        krait_buf_fmt(buf, "\\u%04x", c);
    }
}

/* One character at s that is not plain; returns the bytes it took. */
static size_t add_special(struct krait_buf *buf, const char *s, size_t n)
{
    uint8_t c = (uint8_t)s[0];
    if (c < 0x80) {
        add_escaped(buf, c);
        return 1;
    }
    size_t len = krait_utf8_len(s, n);
    krait_buf_add(buf, len ? s : REPLACEMENT_TEXT, len ? len : 3);
    return len ? len : 1;
}

#define EACH_BYTE(c) (~(uint64_t)0 / 255 * (uint8_t)(c))

/* Sets the top bit of bytes that is_plain does not have, and of others only if there is such a byte (Warren, Hacker's Delight,
 * 6-1). Other bits are anything. */
static inline uint64_t not_plain(uint64_t bytes)
{
    uint64_t quotes = bytes ^ EACH_BYTE('"'), backslashes = bytes ^ EACH_BYTE('\\');
    return bytes | (bytes - EACH_BYTE(' ')) | (quotes - EACH_BYTE(1)) | (backslashes - EACH_BYTE(1)) |
           (bytes + EACH_BYTE(1));
}

/* Copies n bytes, fewer than eight, and returns them, with spaces for those that are missing. */
static inline uint64_t copy_few(char *to, const char *s, size_t n)
{
    uint64_t bytes = EACH_BYTE(' ');
    if (n >= 4) {
        uint32_t first, last; /* they overlap */
        memcpy(&first, s, 4);
        memcpy(&last, s + n - 4, 4);
        memcpy(to, &first, 4);
        memcpy(to + n - 4, &last, 4);
        return first | (uint64_t)last << 32;
    }
    for (size_t i = 0; i < n; i++)
        bytes = bytes << 8 | (uint8_t)(to[i] = s[i]);
    return bytes;
}

static KRAIT_COLD unsigned find(const char *s, size_t n)
{
    unsigned found = 0;
    for (size_t i = 0; i < n; i++)
        found |= (uint8_t)s[i] >= 0x80 ? KRAIT_JSON_WIDE : is_plain[(uint8_t)s[i]] ? 0 : KRAIT_JSON_ESCAPES;
    return found;
}

unsigned krait_json_copy(char *to, const char *s, size_t n)
{
    uint64_t bytes, others = 0;
    if (n < sizeof(bytes)) {
        others = not_plain(copy_few(to, s, n));
    } else {
        for (size_t at = 0; at < n; at += sizeof(bytes)) {
            at = KRAIT_MIN(at, n - sizeof(bytes)); /* the last ones overlap */
            memcpy(&bytes, s + at, sizeof(bytes));
            memcpy(to + at, &bytes, sizeof(bytes));
            others |= not_plain(bytes);
        }
    }
    return KRAIT_LIKELY(!(others & EACH_BYTE(0x80))) ? 0 : find(s, n);
}

bool krait_json_plain(struct krait_buf *buf, const char *s, size_t n)
{
    char *to = krait_buf_room(buf, n + 2);
    if (!to)
        return false;
    bool is_plain_text = !krait_json_copy(to + 1, s, n);
    to[0] = is_plain_text ? '"' : '\0';
    to[n + 1] = '"';
    to[n + 2] = '\0';
    buf->len += is_plain_text ? n + 2 : 0;
    return is_plain_text;
}

void krait_json_str(struct krait_buf *buf, const char *s, size_t n)
{
    if (KRAIT_LIKELY(krait_json_plain(buf, s, n)))
        return;
    krait_buf_char(buf, '"');
    for (size_t i = 0; i < n;) {
        size_t run = i;
        while (run < n && is_plain[(uint8_t)s[run]])
            run++;
        krait_buf_add(buf, s + i, run - i);
        i = run < n ? run + add_special(buf, s + run, n - run) : run;
    }
    krait_buf_char(buf, '"');
}

void krait_json_cstr(struct krait_buf *buf, const char *s)
{
    krait_json_str(buf, s, strlen(s));
}

void krait_json_key(struct krait_buf *buf, const char *key)
{
    if (buf->len && buf->data[buf->len - 1] != '{')
        krait_buf_char(buf, ',');
    krait_json_cstr(buf, key);
    krait_buf_char(buf, ':');
}

char *krait_json_put_u64(char *to, uint64_t n)
{
    if (n < 10) {
        *to = (char)('0' + n);
        return to + 1;
    }
    char digits[KRAIT_JSON_U64_BYTES];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    while (at < sizeof(digits))
        *to++ = digits[at++];
    return to;
}

void krait_json_u64(struct krait_buf *buf, uint64_t n)
{
    char digits[KRAIT_JSON_U64_BYTES];
    krait_buf_add(buf, digits, (size_t)(krait_json_put_u64(digits, n) - digits));
}

void krait_json_real(struct krait_buf *buf, double n)
{
    enum { USUAL = 15, ALL = 17 }; /* digits of a double: C17 5.2.4.2.2, DBL_DIG and DBL_DECIMAL_DIG */
    char text[40];
    snprintf(text, sizeof(text), "%.*g", USUAL, n);
    if (strtod(text, NULL) != n)
        snprintf(text, sizeof(text), "%.*g", ALL, n);
    krait_buf_str(buf, text);
}

void krait_json_item(struct krait_buf *buf, const char *open)
{
    if (buf->len && buf->data[buf->len - 1] != '[')
        krait_buf_char(buf, ',');
    krait_buf_str(buf, open);
}

void krait_json_key_u64(struct krait_buf *buf, const char *key, uint64_t n)
{
    krait_json_key(buf, key);
    krait_json_u64(buf, n);
}

void krait_json_lost_events(struct krait_buf *buf, uint64_t n)
{
    krait_json_key_u64(buf, "lost_events", n);
}

void krait_json_key_u64_or_null(struct krait_buf *buf, const char *key, bool known, uint64_t n)
{
    if (known)
        krait_json_key_u64(buf, key, n);
    else
        krait_json_key_null(buf, key);
}

void krait_json_key_bool(struct krait_buf *buf, const char *key, bool value)
{
    krait_json_key(buf, key);
    krait_buf_str(buf, value ? "true" : "false");
}

void krait_json_key_null(struct krait_buf *buf, const char *key)
{
    krait_json_key(buf, key);
    krait_buf_str(buf, "null");
}

void krait_json_key_text(struct krait_buf *buf, const char *key, const char *text)
{
    krait_json_key(buf, key);
    krait_json_cstr(buf, text);
}

void krait_json_key_text_or_null(struct krait_buf *buf, const char *key, const char *text)
{
    if (text && *text)
        krait_json_key_text(buf, key, text);
    else
        krait_json_key_null(buf, key);
}

void krait_json_key_texts(struct krait_buf *buf, const char *key, const char *const *texts, size_t count)
{
    krait_json_key_open(buf, key, '[');
    for (size_t i = 0; i < count; i++) {
        krait_json_item(buf, "");
        krait_json_cstr(buf, texts[i]);
    }
    krait_buf_char(buf, ']');
}

void krait_json_key_open(struct krait_buf *buf, const char *key, char bracket)
{
    krait_json_key(buf, key);
    krait_buf_char(buf, bracket);
}
