/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fmt.h"

#include "base/json.h"

#include <math.h>
#include <string.h>

/* Four digits of x, which is below 10000. */
static void four_digits(char *buf, double x, const char *unit)
{
    int decimals = x < 9.9995 ? 3 : x < 99.995 ? 2 : x < 999.95 ? 1 : 0;
    snprintf(buf, KRAIT_FMT_SIZE, "%.*f %s", decimals, x, unit);
}

char *krait_fmt_ns(char *buf, uint64_t ns)
{
    static const struct {
        uint64_t below; /* so that rounding does not make 1000.0 of the smaller unit */
        double unit;
        const char *name;
    } steps[] = {
        { 999950ull, 1e3, "us" },
        { 999950000ull, 1e6, "ms" },
        { 600 * KRAIT_NS_PER_S, 1e9, "s" },
        { 5400 * KRAIT_NS_PER_S, 60e9, "min" },
    };
    if (ns < 1000) {
        snprintf(buf, KRAIT_FMT_SIZE, "%u ns", (unsigned)ns);
        return buf;
    }
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(steps); i++) {
        if (ns < steps[i].below) {
            four_digits(buf, (double)ns / steps[i].unit, steps[i].name);
            return buf;
        }
    }
    bool is_days = ns >= 360000 * KRAIT_NS_PER_S;
    snprintf(buf, KRAIT_FMT_SIZE, "%.2f %s", (double)ns / (is_days ? 86400e9 : 3600e9), is_days ? "d" : "h");
    return buf;
}

char *krait_fmt_count(char *buf, uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
    char *to = buf;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return buf;
}

char *krait_fmt_counted(char *buf, uint64_t n, const char *noun)
{
    size_t len = strlen(noun);
    bool hisses = len && (noun[len - 1] == 's' || noun[len - 1] == 'h');
    size_t at = strlen(krait_fmt_count(buf, n));
    snprintf(buf + at, KRAIT_FMT_SIZE - at, " %s%s", noun, n == 1 ? "" : hisses ? "es" : "s");
    return buf;
}

char *krait_fmt_bytes(char *buf, uint64_t bytes)
{
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    if (bytes < 1024) {
        snprintf(buf, KRAIT_FMT_SIZE, "%u B", (unsigned)bytes);
        return buf;
    }
    double x = (double)bytes / 1024;
    size_t unit = 0;
    for (; x >= 1023.95 && unit + 1 < KRAIT_ARRAY_LEN(units); unit++)
        x /= 1024;
    snprintf(buf, KRAIT_FMT_SIZE, "%.1f %s", x, units[unit]);
    return buf;
}

char *krait_fmt_share(char *buf, uint64_t part, uint64_t whole)
{
    double percent = whole ? 100.0 * (double)part / (double)whole : 0;
    if (part && percent < 0.05)
        snprintf(buf, KRAIT_FMT_SIZE, "<0.1%%");
    else
        snprintf(buf, KRAIT_FMT_SIZE, "%.1f%%", percent);
    return buf;
}

/* Characters that a terminal interprets, or that change the order of the text after them: C1 controls (c2 80 to c2 9f)
 * and the bidirectional controls U+200E, U+200F, U+202A to U+202E and U+2066 to U+2069, in UTF-8. */
static bool is_control(const unsigned char *p, size_t len)
{
    if (len == 1)
        return *p < 0x20 || *p == 0x7f;
    if (len == 2)
        return p[0] == 0xc2 && p[1] < 0xa0;
    if (len != 3 || p[0] != 0xe2)
        return false;
    return (p[1] == 0x80 && (p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xaa && p[2] <= 0xae))) ||
           (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9);
}

void krait_fmt_safe(struct krait_buf *out, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    for (size_t left = strlen(text); left;) {
        size_t len = krait_utf8_len((const char *)p, left);
        if (len && !is_control(p, len)) {
            krait_buf_add(out, p, len);
        } else if (*p == '\n' || *p == '\t') {
            krait_buf_str(out, *p == '\n' ? "\\n" : "\\t");
        } else {
            len = KRAIT_MAX(len, (size_t)1);
            for (size_t i = 0; i < len; i++)
                krait_buf_fmt(out, "\\x%02x", p[i]);
        }
        len = KRAIT_MAX(len, (size_t)1);
        p += len;
        left -= len;
    }
}

const char *krait_fmt_command(const char *command)
{
    const char *program = command;
    for (const char *p = command; *p && *p != ' '; p++) {
        if (*p == '/' && p[1] && p[1] != ' ')
            program = p + 1;
    }
    return program;
}

int krait_parse_ns(const char *text, uint64_t *ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = { { "", 1e9 }, { "s", 1e9 },    { "ms", 1e6 },  { "us", 1e3 },
                  { "ns", 1 }, { "min", 60e9 }, { "h", 3600e9 } };
    char *unit;
    double x = strtod(text, &unit);
    if (unit == text || !(x >= 0) || isinf(x))
        return -EINVAL;
    unit += *unit == ' ';
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(units); i++) {
        if (strcmp(unit, units[i].name) == 0) {
            double exact = x * units[i].ns;
            *ns = exact < 9e18 ? (uint64_t)(exact + 0.5) : UINT64_MAX / 2;
            return 0;
        }
    }
    return -EINVAL;
}
