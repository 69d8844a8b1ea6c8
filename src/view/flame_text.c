/* SPDX-License-Identifier: Apache-2.0 */
#include "view/flame_text.h"

#include "base/json.h"
#include "view/width.h"

#include <math.h>
#include <string.h>

#define NARROW_SPACE "\u202f"
#define ELLIPSIS     "\u2026"

enum { REPLACEMENT = 0xFFFD, CONTROL_PICTURES = 0x2400, PICTURE_OF_DEL = 0x2421 };

/* Decodes one character and sets *len to its number of bytes. An invalid byte decodes to REPLACEMENT, *len 1. */
static uint32_t decode(const char *s, size_t n, size_t *len)
{
    static const unsigned char lead_bits[] = { 0, 0x7F, 0x1F, 0x0F, 0x07 };
    size_t valid = krait_utf8_len(s, n);
    *len = valid ? valid : 1;
    if (!valid)
        return REPLACEMENT;
    uint32_t c = (unsigned char)s[0] & lead_bits[valid];
    for (size_t i = 1; i < valid; i++)
        c = c << 6 | ((unsigned char)s[i] & 0x3F);
    return c;
}

struct char_range {
    uint32_t from, to;
};

static bool in_ranges(const struct char_range *ranges, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n; i++) {
        if (c >= ranges[i].from && c <= ranges[i].to)
            return true;
    }
    return false;
}

/* C1 controls, soft hyphen, bidirectional and invisible formatting, line separators, noncharacters. */
static const struct char_range unprintable[] = {
    { 0x7F, 0x9F },     { 0xAD, 0xAD },     { 0x61C, 0x61C },   { 0x200B, 0x200F }, { 0x2028, 0x202E },
    { 0x2060, 0x206F }, { 0xFDD0, 0xFDEF }, { 0xFEFF, 0xFEFF }, { 0xFFF9, 0xFFFB }, { 0xE0000, 0xE0FFF },
};

static uint32_t printable(uint32_t c)
{
    if (c < 0x20)
        return CONTROL_PICTURES + c;
    if (c == 0x7F)
        return PICTURE_OF_DEL;
    if ((c & 0xFFFE) == 0xFFFE || in_ranges(unprintable, KRAIT_ARRAY_LEN(unprintable), c))
        return REPLACEMENT;
    return c;
}

static size_t encode(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xC0 | c >> 6);
        to[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char)(0xE0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 0x3F));
        to[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    to[0] = (char)(0xF0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 0x3F));
    to[2] = (char)(0x80 | (c >> 6 & 0x3F));
    to[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

void krait_text_clean(struct krait_buf *to, const char *s)
{
    size_t n = strlen(s), kept = 0;
    for (size_t i = 0, len; i < n; i += len) {
        char bytes[4];
        size_t size = encode(bytes, printable(decode(s + i, n - i, &len)));
        kept += size;
        if (kept > KRAIT_TEXT_MAX) {
            krait_buf_str(to, ELLIPSIS);
            return;
        }
        krait_buf_add(to, bytes, size);
    }
}

void krait_text_xml(struct krait_buf *to, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        switch (s[i]) {
        case '&':
            krait_buf_str(to, "&amp;");
            break;
        case '<':
            krait_buf_str(to, "&lt;");
            break;
        case '>':
            krait_buf_str(to, "&gt;");
            break;
        case '"':
            krait_buf_str(to, "&quot;");
            break;
        default:
            krait_buf_char(to, s[i]);
        }
    }
}

void krait_text_json(struct krait_buf *to, const char *s)
{
    krait_buf_char(to, '"');
    for (; *s; s++) {
        if (strchr("\"\\<>&", *s))
            krait_buf_fmt(to, "\\u%04x", (unsigned)(unsigned char)*s);
        else
            krait_buf_char(to, *s);
    }
    krait_buf_char(to, '"');
}

/* Three significant digits. */
static void scaled(struct krait_buf *to, double x, const char *unit)
{
    int digits = x < 9.995 ? 2 : x < 99.95 ? 1 : 0;
    krait_buf_fmt(to, "%.*f" NARROW_SPACE "%s", digits, x, unit);
}

void krait_text_duration(struct krait_buf *to, uint64_t ns)
{
    static const struct {
        double below, size;
        const char *unit;
    } units[] = { { 999.5e3, 1e3, "\u00b5s" }, { 999.5e6, 1e6, "ms" },    { 600e9, 1e9, "s" },
                  { 5400e9, 60e9, "min" },     { 360000e9, 3600e9, "h" }, { INFINITY, 86400e9, "d" } };
    size_t i = 0;
    if (ns < 1000) {
        krait_buf_fmt(to, "%u" NARROW_SPACE "ns", (unsigned)ns);
        return;
    }
    while ((double)ns >= units[i].below)
        i++;
    scaled(to, (double)ns / units[i].size, units[i].unit);
}

void krait_text_count(struct krait_buf *to, uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            krait_buf_char(to, ',');
        krait_buf_char(to, digits[i]);
    }
}

void krait_text_percent(struct krait_buf *to, double share)
{
    double x = share * 100;
    krait_buf_fmt(to, x && x < 0.995 ? "%.2f" NARROW_SPACE "%%" : "%.1f" NARROW_SPACE "%%", x);
}

void krait_text_xml_raw(struct krait_buf *to, const char *s)
{
    KRAIT_AUTO_BUF clean = { 0 };
    krait_text_clean(&clean, s);
    krait_text_xml(to, clean.len ? clean.data : "", clean.len);
    to->failed |= clean.failed;
}

void krait_text_xml_cut(struct krait_buf *to, const char *s, size_t columns)
{
    size_t n = strlen(s), fits = krait_width_fit(s, n, columns);
    if (fits < n)
        fits = krait_width_fit(s, n, columns - 1);
    krait_text_xml(to, s, fits);
    if (fits < n)
        krait_buf_str(to, "\u2026");
}

void krait_text_xml_name(struct krait_buf *to, const char *s, size_t columns)
{
    KRAIT_AUTO_BUF shown = { 0 };
    krait_width_shorten(&shown, s, (uint32_t)columns, true);
    krait_text_xml(to, shown.len ? shown.data : "", shown.len);
    to->failed |= shown.failed;
    if (shown.failed || strcmp(shown.len ? shown.data : "", s) == 0)
        return;
    krait_buf_str(to, "<title>");
    krait_text_xml(to, s, strlen(s));
    krait_buf_str(to, "</title>");
}
