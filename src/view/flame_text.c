/* SPDX-License-Identifier: Apache-2.0 */
#include "view/flame_text.h"

#include "base/json.h"
#include "view/width.h"

#include <math.h>
#include <string.h>

#define NARROW_SPACE "\u202f"
#define ELLIPSIS     "\u2026"

enum { REPLACEMENT = 0xFFFD, CONTROL_PICTURES = 0x2400, PICTURE_OF_DEL = 0x2421 };
enum { LINE_BREAK = 0x21B5 }; /* few fonts have the picture of a line feed */

/* C1 controls, soft hyphen, bidirectional and invisible formatting, line separators, noncharacters. */
static const struct {
    uint32_t from, to;
} unprintable[] = {
    { 0x7F, 0x9F },     { 0xAD, 0xAD },     { 0x61C, 0x61C },   { 0x200B, 0x200F }, { 0x2028, 0x202E },
    { 0x2060, 0x206F }, { 0xFDD0, 0xFDEF }, { 0xFEFF, 0xFEFF }, { 0xFFF9, 0xFFFB }, { 0xE0000, 0xE0FFF },
};

static bool is_unprintable(uint32_t c)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(unprintable); i++) {
        if (c >= unprintable[i].from && c <= unprintable[i].to)
            return true;
    }
    return (c & 0xFFFE) == 0xFFFE;
}

static uint32_t printable(uint32_t c)
{
    if (c == '\n')
        return LINE_BREAK;
    if (c == '\t')
        return ' ';
    if (c < 0x20)
        return CONTROL_PICTURES + c;
    if (c == 0x7F)
        return PICTURE_OF_DEL;
    return is_unprintable(c) ? REPLACEMENT : c;
}

void krait_text_clean(struct krait_buf *to, const char *s)
{
    size_t n = strlen(s), begin = to->len;
    for (size_t i = 0, len; i < n; i += len) {
        size_t before = to->len;
        krait_utf8_add(to, printable(krait_utf8_get(s + i, n - i, &len)));
        if (to->len - begin > KRAIT_TEXT_MAX) {
            to->len = before;
            krait_buf_str(to, ELLIPSIS);
            return;
        }
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
