/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/scalar/text.h"

#include "base/digits.h"

void krait_text_u64(struct krait_buf *out, uint64_t value)
{
    char *to = krait_buf_room(out, KRAIT_DIGITS_ROOM);
    if (to)
        out->len += (size_t)(krait_put_u64(to, value) - to);
}

void krait_text_digits(struct krait_buf *out, uint64_t value, unsigned digits)
{
    char buf[KRAIT_DIGITS_ROOM];
    size_t n = (size_t)(krait_put_u64(buf, value) - buf);
    for (size_t i = n; i < digits; i++)
        krait_text_add(out, "0", 1);
    krait_text_add(out, buf, n);
}

char *krait_put_escaped(char *to, unsigned char c)
{
    static const char from[] = "\\'\"?\a\b\033\f\n\r\t\v";
    static const char letters[] = "\\'\"?abefnrtv";
    const char *found = memchr(from, c, sizeof(from) - 1);
    *to++ = '\\';
    *to++ = found ? letters[found - from] : 'x';
    if (found)
        return to;
    *to++ = "0123456789abcdef"[c >> 4];
    *to++ = "0123456789abcdef"[c & 15];
    return to;
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c != 0x7f && c != '\\' && c != '\'' && c != '"' && c != '?';
}

/* krait_put_plain where fewer bytes than a chunk can be read. */
static size_t put_plain_slowly(char *to, const char *from, size_t size)
{
    size_t n = 0;
    for (; n < size && is_plain((unsigned char)from[n]); n++)
        to[n] = from[n];
    return n;
}

/* A chunk, and one character that is not plain, as long as there are any. */
static char *put_part(char *to, const char **from, const char *end)
{
    size_t size = (size_t)(end - *from);
    size_t n = size >= KRAIT_TEXT_CHUNK ? krait_put_plain(to, *from) : put_plain_slowly(to, *from, size);
    *from += n;
    to += n;
    return n < KRAIT_TEXT_CHUNK && *from < end ? krait_put_escaped(to, (unsigned char)*(*from)++) : to;
}

void krait_text_quoted(struct krait_buf *out, const char *s, size_t n)
{
    const char *end = s + n;
    krait_text_add(out, "\"", 1);
    while (s < end) {
        char *to = krait_buf_room(out, KRAIT_TEXT_CHUNK + KRAIT_TEXT_ESCAPE);
        if (!to)
            return;
        out->len += (size_t)(put_part(to, &s, end) - to);
    }
    krait_text_add(out, "\"", 1);
}

void krait_text_blob(struct krait_buf *out, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[3] = { ' ', "0123456789abcdef"[bytes[i] >> 4], "0123456789abcdef"[bytes[i] & 15] };
        krait_text_add(out, text, sizeof(text));
    }
}

char *krait_put_element(char *to, uint64_t index, bool named)
{
    *to = ',';
    to += index > 0;
    *to++ = ' ';
    if (!named)
        return to;
    *to++ = '[';
    to = krait_put_u64(to, index);
    memcpy(to, "] = ", 4);
    return to + 4;
}
