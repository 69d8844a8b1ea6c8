/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/scalar/wide.h"

#include "base/json.h"
#include "ctf/scalar/text.h"

static uint32_t unit_at(enum krait_encoding encoding, const uint8_t *p)
{
    switch (encoding) {
    case KRAIT_ENCODING_UTF16_LE:
        return p[0] | (uint32_t)p[1] << 8;
    case KRAIT_ENCODING_UTF16_BE:
        return p[1] | (uint32_t)p[0] << 8;
    case KRAIT_ENCODING_UTF32_LE:
        return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    case KRAIT_ENCODING_UTF32_BE:
        return p[3] | (uint32_t)p[2] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[0] << 24;
    default:
        return *p;
    }
}

size_t krait_wide_length(enum krait_encoding encoding, const uint8_t *from, size_t size)
{
    size_t unit = krait_encoding_unit(encoding), at = 0;
    while (size - at >= unit && unit_at(encoding, from + at))
        at += unit;
    return at;
}

/* A pair of surrogates is one character (RFC 2781, 2.2). */
static uint32_t next_character(enum krait_encoding encoding, const uint8_t *from, size_t size, size_t *at)
{
    size_t unit = krait_encoding_unit(encoding);
    uint32_t high = unit_at(encoding, from + *at);
    *at += unit;
    if (unit != 2 || high < 0xD800 || high > 0xDBFF || size - *at < unit)
        return high;
    uint32_t low = unit_at(encoding, from + *at);
    if (low < 0xDC00 || low > 0xDFFF)
        return high;
    *at += unit;
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

bool krait_wide_is_text(enum krait_encoding encoding, const uint8_t *from, size_t size)
{
    for (size_t at = 0; size - at >= krait_encoding_unit(encoding);) {
        uint32_t c = next_character(encoding, from, size, &at);
        if ((c >= 0xD800 && c <= 0xDFFF) || c > 0x10FFFF)
            return false;
    }
    return true;
}

void krait_wide_utf8(struct krait_buf *out, enum krait_encoding encoding, const uint8_t *from, size_t size)
{
    for (size_t at = 0; size - at >= krait_encoding_unit(encoding);)
        krait_utf8_add(out, next_character(encoding, from, size, &at));
}

void krait_text_wide(struct krait_buf *out, enum krait_encoding encoding, const uint8_t *from, size_t size)
{
    KRAIT_AUTO_BUF text = { 0 };
    krait_wide_utf8(&text, encoding, from, size);
    if (text.failed)
        out->failed = true;
    else
        krait_text_quoted(out, text.data ? text.data : "", text.len);
}
