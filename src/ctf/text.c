/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/text.h"

/* Two digits at a time. */
static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                            "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                            "8081828384858687888990919293949596979899";

/* Writes the digits to the end of `at`; returns where they begin. */
static char *digits_before(char *at, uint64_t value)
{
    while (value >= 100) {
        at -= 2;
        memcpy(at, &pairs[value % 100 * 2], 2);
        value /= 100;
    }
    if (value >= 10) {
        at -= 2;
        memcpy(at, &pairs[value * 2], 2);
    } else {
        *--at = (char)('0' + value);
    }
    return at;
}

void krait_text_u64(struct krait_buf *out, uint64_t value)
{
    char buf[20], *end = buf + sizeof(buf);
    char *from = digits_before(end, value);
    krait_text_add(out, from, (size_t)(end - from));
}

char *krait_text_put_u64(char *to, uint64_t value)
{
    char buf[20], *end = buf + sizeof(buf);
    char *from = digits_before(end, value);
    memcpy(to, from, (size_t)(end - from));
    return to + (end - from);
}

char *krait_text_put_nine(char *to, uint32_t value)
{
    uint32_t high = value / 10000, low = value % 10000; /* five digits and four */
    *to = (char)('0' + high / 10000);
    high %= 10000;
    memcpy(to + 1, &pairs[high / 100 * 2], 2);
    memcpy(to + 3, &pairs[high % 100 * 2], 2);
    memcpy(to + 5, &pairs[low / 100 * 2], 2);
    memcpy(to + 7, &pairs[low % 100 * 2], 2);
    return to + 9;
}

void krait_text_digits(struct krait_buf *out, uint64_t value, unsigned digits)
{
    char buf[40], *end = buf + sizeof(buf);
    char *from = digits_before(end, value);
    while (from > buf && end - from < (ptrdiff_t)digits)
        *--from = '0';
    krait_text_add(out, from, (size_t)(end - from));
}

static void add_signed(struct krait_buf *out, int64_t value)
{
    if (value < 0)
        krait_text_add(out, "-", 1);
    krait_text_u64(out, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

/* The bits of an integer rounded up to whole digits of `shift` bits; negative numbers show their two's
 * complement. */
static uint64_t masked(const struct krait_fc *fc, uint64_t value, unsigned shift)
{
    unsigned bits = (fc->bits + shift - 1) / shift * shift;
    return bits >= 64 ? value : value & (((uint64_t)1 << bits) - 1);
}

static void add_power(struct krait_buf *out, const char *prefix, uint64_t value, unsigned shift)
{
    char buf[24], *end = buf + sizeof(buf), *at = end;
    do {
        *--at = "0123456789ABCDEF"[value & ((1u << shift) - 1)];
        value >>= shift;
    } while (value);
    krait_text_add(out, prefix, strlen(prefix));
    krait_text_add(out, at, (size_t)(end - at));
}

static void add_binary(struct krait_buf *out, const struct krait_fc *fc, uint64_t value)
{
    krait_text_add(out, "0b", 2);
    for (unsigned bit = fc->bits; bit > 0; bit--)
        krait_text_add(out, value >> (bit - 1) & 1 ? "1" : "0", 1);
}

static void add_number(struct krait_buf *out, const struct krait_fc *fc, uint64_t value)
{
    if (fc->base == 10)
        fc->is_signed ? add_signed(out, (int64_t)value) : krait_text_u64(out, value);
    else if (fc->base == 16)
        add_power(out, "0x", masked(fc, value, 4), 4);
    else if (fc->base == 8)
        add_power(out, "0", fc->is_signed ? masked(fc, value, 3) : value, 3);
    else
        add_binary(out, fc, value);
}

/* -- enumerations -- */

/* All labels of which a range holds the value, in the order of their first appearance. */
static void add_labels(struct krait_buf *out, const struct krait_fc *fc, uint64_t value)
{
    uint32_t last = KRAIT_NO_ID, count = fc->labels->by_label ? fc->labels->count : 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct krait_enum_range *range = fc->labels->by_label[i];
        if (range->label_id == last || !krait_enum_holds(range, value, fc->is_signed))
            continue;
        if (last != KRAIT_NO_ID)
            krait_text_add(out, ", ", 2);
        krait_text_quoted(out, range->label, strlen(range->label));
        last = range->label_id;
    }
    if (last == KRAIT_NO_ID)
        krait_text_add(out, "<unknown>", 9);
}

static void add_enum(struct krait_buf *out, const struct krait_fc *fc, uint64_t value)
{
    const struct krait_enum_range *range =
        fc->labels->sorted ? krait_enum_range_of(fc->labels, value, fc->is_signed) : NULL;
    if (range) {
        krait_text_block(out, range->shown, range->shown_len);
    } else {
        krait_text_add(out, "( ", 2);
        add_labels(out, fc, value);
        krait_text_add(out, " : container = ", 15);
    }
    add_number(out, fc, value);
    krait_text_add(out, " )", 2);
}

/* babeltrace2 2.1: the flags of which a bit is set, none where there is none. */
static void add_flags(struct krait_buf *out, const struct krait_fc *fc, uint64_t value)
{
    uint32_t last = KRAIT_NO_ID;
    for (uint32_t i = 0; i < fc->labels->count; i++) {
        const struct krait_enum_range *range = &fc->labels->ranges[i];
        uint64_t bits = (~0ull >> (63 - (range->hi - range->lo))) << range->lo;
        if (range->label_id == last || !(value & bits))
            continue;
        krait_text_add(out, last == KRAIT_NO_ID ? " { " : ", ", last == KRAIT_NO_ID ? 3 : 2);
        krait_text_quoted(out, range->label, strlen(range->label));
        last = range->label_id;
    }
    if (last != KRAIT_NO_ID)
        krait_text_add(out, " }", 2);
}

void krait_text_int(struct krait_buf *out, const struct krait_fc *fc, uint64_t value)
{
    if (fc->form == KRAIT_INT_BOOL)
        krait_text_add(out, value ? "true" : "false", value ? 4 : 5);
    else if (fc->kind == KRAIT_FC_ENUM)
        add_enum(out, fc, value);
    else
        add_number(out, fc, value);
    if (fc->form == KRAIT_INT_FLAGS)
        add_flags(out, fc, value);
}

void krait_text_float(struct krait_buf *out, double value)
{
    char buf[64];
    int n = snprintf(buf, sizeof(buf), "%g", value);
    krait_text_add(out, buf, (size_t)n);
}

/* -- strings -- */

static void add_escaped(struct krait_buf *out, unsigned char c)
{
    static const char from[] = "\\'\"?\a\b\033\f\n\r\t\v";
    static const char to[] = "\\'\"?abefnrtv";
    char buf[8];
    const char *found = memchr(from, c, sizeof(from) - 1);
    if (found)
        snprintf(buf, sizeof(buf), "\\%c", to[found - from]);
    else
        snprintf(buf, sizeof(buf), "\\x%02x", c);
    krait_text_add(out, buf, strlen(buf));
}

static inline bool is_plain(unsigned char c)
{
    return c >= 0x20 && c != 0x7f && c != '\\' && c != '\'' && c != '"' && c != '?';
}

void krait_text_quoted(struct krait_buf *out, const char *s, size_t n)
{
    krait_text_add(out, "\"", 1);
    while (n) {
        size_t plain = 0;
        while (plain < n && is_plain((unsigned char)s[plain]))
            plain++;
        krait_text_add(out, s, plain);
        s += plain;
        n -= plain;
        if (n) {
            add_escaped(out, (unsigned char)*s++);
            n--;
        }
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

void krait_text_element(struct krait_buf *out, uint64_t index, bool named)
{
    krait_text_add(out, ", ", index ? 2 : 0);
    krait_text_add(out, " ", index ? 0 : 1);
    if (!named)
        return;
    krait_text_add(out, "[", 1);
    krait_text_u64(out, index);
    krait_text_add(out, "] = ", 4);
}
