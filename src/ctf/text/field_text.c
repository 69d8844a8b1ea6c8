/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/text/field_text.h"

#include "base/digits.h"
#include "ctf/scalar/text.h"

/* -- integers -- */

static void add_signed(struct krait_buf *out, int64_t value)
{
    char *to = krait_buf_room(out, KRAIT_DIGITS_ROOM);
    if (to)
        out->len += (size_t)(krait_put_i64(to, value) - to);
}

/* The bits of an integer rounded up to whole digits of `shift` bits; negative numbers show their two's complement. */
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

/* A value that is no piece's text has many labels; one without any has none. */
static bool begin_labels(struct krait_buf *out, const struct krait_fc *fc, uint64_t value)
{
    bool in_braces = fc->labels->in_braces && krait_enum_label(fc, value);
    krait_text_add(out, "{ ", in_braces ? 2 : 0);
    return in_braces;
}

/* All labels of which a range holds the value, in the order of their first appearance: where they are too many for a
 * piece's text. */
static void add_labels(struct krait_buf *out, const struct krait_fc *fc, uint64_t value)
{
    uint32_t last = KRAIT_NO_ID, count = fc->labels->is_deep ? fc->labels->count : 0;
    bool in_braces = false;
    for (uint32_t i = 0; i < count; i++) {
        const struct krait_enum_range *range = fc->labels->by_label[i];
        if (range->label_id == last || !krait_enum_holds(range, value, fc->is_signed))
            continue;
        if (last == KRAIT_NO_ID)
            in_braces = begin_labels(out, fc, value);
        else
            krait_text_add(out, ", ", 2);
        krait_text_quoted(out, range->label, strlen(range->label));
        last = range->label_id;
    }
    if (last == KRAIT_NO_ID)
        krait_text_add(out, "<unknown>", 9);
    if (in_braces)
        krait_text_add(out, " }", 2);
}

static void add_enum(struct krait_buf *out, const struct krait_fc *fc, uint64_t value)
{
    const struct krait_enum_range *piece = krait_enum_range_of(fc->labels, value, fc->is_signed);
    if (piece && piece->shown) {
        krait_text_block(out, piece->shown, piece->shown_len);
    } else {
        krait_text_add(out, "( ", 2);
        add_labels(out, fc, value);
        krait_text_add(out, " : container = ", 15);
    }
    add_number(out, fc, value);
    krait_text_add(out, " )", 2);
}

/* babeltrace2 2.1: the flags of which a bit is set, none if there is none. */
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
