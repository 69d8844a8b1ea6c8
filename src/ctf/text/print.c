/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/text/print.h"

#include "base/csv.h"
#include "base/digits.h"
#include "base/shortest.h"
#include "ctf/read/take.h"
#include "ctf/scalar/json_text.h"
#include "ctf/scalar/real.h"
#include "ctf/scalar/text.h"
#include "ctf/text/field_text.h"

/* An array of bits makes text of a hundred times its size: what one event may fill memory with. */
enum { MAX_TEXT = 256 << 20 };

enum { ELEMENT_MOST = KRAIT_DIGITS_MAX + 8 }; /* ", [N] = " */

static char *damaged(struct krait_decoder *d, const char *why)
{
    krait_damaged(d, why);
    return NULL;
}

/* -- room -- */

KRAIT_COLD char *krait_print_more_room(struct krait_decoder *d, size_t n)
{
    struct krait_buf *out = krait_printer_of(d)->out;
    if (!krait_buf_room(out, n + KRAIT_PRINT_SLACK))
        return damaged(d, "out of memory");
    krait_printer_of(d)->limit = out->data + out->cap - KRAIT_PRINT_SLACK;
    return out->data + out->len;
}

KRAIT_INLINE char *ask(struct krait_decoder *d, char *to, size_t n)
{
    const char *limit = krait_printer_of(d)->limit;
    if (KRAIT_LIKELY(to <= limit && (size_t)(limit - to) >= n))
        return to;
    return krait_print_room(d, (size_t)(to - krait_printer_of(d)->out->data), n);
}

/* What is printed through the buffer's own functions stands between these two. */
static struct krait_buf *by_buf(struct krait_decoder *d, char *to)
{
    struct krait_buf *out = krait_printer_of(d)->out;
    out->len = (size_t)(to - out->data);
    return out;
}

static char *go_on(struct krait_decoder *d, const struct krait_step *s)
{
    if (KRAIT_UNLIKELY(krait_printer_of(d)->out->failed))
        return damaged(d, "out of memory");
    return krait_print_room(d, krait_printer_of(d)->out->len, s->room);
}

/* -- values -- */

KRAIT_INLINE char *put_text(const struct krait_step *s, char *to)
{
    memcpy(to, s->text, KRAIT_STEP_TEXT_MAX);
    return to + s->text_len;
}

static char *put_long_text(struct krait_decoder *d, const struct krait_step *s, char *to)
{
    to = ask(d, to, s->len + s->room);
    if (!to)
        return NULL;
    krait_text_copy(to, s->long_text, s->len);
    return to + s->len;
}

KRAIT_INLINE char *put_run(struct krait_decoder *d, const struct krait_step *s, char *to, const uint8_t **run)
{
    if (KRAIT_UNLIKELY(krait_take_run(d, s->align, s->size)))
        return NULL;
    *run = d->bytes + d->run / 8;
    return to;
}

/* Where it does not fit, the decoder finds out what of it does not. */
KRAIT_INLINE char *put_stretch(struct krait_decoder *d, const struct krait_program *program,
                               const struct krait_step *s, char *to, const uint8_t **run)
{
    uint64_t at = (d->at + s->align - 1) & ~(uint64_t)(s->align - 1);
    if (KRAIT_UNLIKELY(at > d->end || s->size > d->end - at))
        return krait_decode_block(d, program, s->op) ? NULL
                                                     : damaged(d, "an event is longer than its packet");
    *run = d->bytes + at / 8;
    d->at = at + s->size;
    return to;
}

static char *put_value(struct krait_decoder *d, const struct krait_step *s, char *to, uint64_t value)
{
    krait_text_int(by_buf(d, to), s->op->fc, value);
    return go_on(d, s);
}

/* An enumeration in decimal and little-endian, at `at`, behind which 8 bytes may be read: behind a packet's file is a
 * page more (stream.h). */
KRAIT_INLINE uint64_t load_enum(const struct krait_step *s, const uint8_t *at)
{
    uint64_t top = krait_bytes_le(at, 8) << s->unused;
    return s->is_signed ? (uint64_t)((int64_t)top >> s->unused) : top >> s->unused;
}

static char *put_enum(struct krait_decoder *d, const struct krait_step *s, char *to, const uint8_t *at)
{
    uint64_t value = load_enum(s, at);
    const struct krait_enum_range *range = krait_enum_range_of(s->labels, value, s->is_signed);
    if (!range)
        return put_value(d, s, to, value);
    to = ask(d, to, range->shown_len + KRAIT_DIGITS_ROOM + s->room);
    if (KRAIT_UNLIKELY(!to))
        return NULL;
    size_t len = range->whole_len ? range->whole_len : range->shown_len;
    krait_text_copy(to, range->shown, len);
    to += len;
    if (KRAIT_LIKELY(range->whole_len))
        return to;
    to = s->is_signed ? krait_put_i64(to, (int64_t)value) : krait_put_u64(to, value);
    memcpy(to, " )", 2);
    return to + 2;
}

static char *put_bits(struct krait_decoder *d, const struct krait_step *s, char *to)
{
    uint64_t value;
    return krait_take_bits(d, s->op, &value) ? NULL : put_value(d, s, to, value);
}

static char *put_leb(struct krait_decoder *d, const struct krait_step *s, char *to)
{
    uint64_t value;
    return krait_take_leb(d, s->op, &value) ? NULL : put_value(d, s, to, value);
}

static int take_float(struct krait_decoder *d, const struct krait_step *s, double *number)
{
    uint64_t raw;
    if (krait_take_bits(d, s->op, &raw))
        return -EBADMSG;
    if (s->op->bits == 32) {
        uint32_t raw32 = (uint32_t)raw;
        float single;
        memcpy(&single, &raw32, sizeof(single));
        *number = single;
    } else {
        memcpy(number, &raw, sizeof(*number));
    }
    return 0;
}

static char *put_float(struct krait_decoder *d, const struct krait_step *s, char *to)
{
    double number;
    return take_float(d, s, &number) ? NULL : krait_put_real(to, number);
}

static char *pass(struct krait_decoder *d, const struct krait_program *program, const struct krait_step *s,
                  char *to)
{
    return krait_decode_op(d, program, s->op) ? NULL : to;
}

/* -- texts -- */

/* The characters from *from up to a NUL, or to `end`, and the closing quote; *from is then there. Behind
 * `end` a chunk may be read: behind a packet's file is a page more (reader.h). */
KRAIT_INLINE char *put_quoted(struct krait_decoder *d, const struct krait_step *s, char *to,
                              const uint8_t **from, const uint8_t *end)
{
    const uint8_t *p = *from;
    for (;;) {
        to = ask(d, to, KRAIT_TEXT_CHUNK + KRAIT_TEXT_ESCAPE + 1 + s->room);
        if (KRAIT_UNLIKELY(!to))
            return NULL;
        size_t n = KRAIT_MIN(krait_put_plain(to, (const char *)p), (size_t)(end - p));
        to += n;
        p += n;
        if (p == end || !*p)
            break;
        if (n < KRAIT_TEXT_CHUNK)
            to = krait_put_escaped(to, *p++);
    }
    *from = p;
    *to++ = '"';
    return to;
}

/* How characters are put: as put_quoted does it. */
typedef char *put_fn(struct krait_decoder *d, const struct krait_step *s, char *to, const uint8_t **from,
                     const uint8_t *end);

KRAIT_INLINE char *put_string_by(struct krait_decoder *d, const struct krait_step *s, char *to, put_fn *put)
{
    if (krait_string_begins(d))
        return NULL;
    const uint8_t *from = d->bytes + d->at / 8, *end = d->bytes + d->end / 8;
    to = put(d, s, to, &from, end);
    if (KRAIT_UNLIKELY(to && from == end)) {
        krait_string_without_end(d);
        return NULL;
    }
    d->at = (uint64_t)(from + 1 - d->bytes) * 8;
    return to;
}

KRAIT_INLINE char *put_chars_by(struct krait_decoder *d, const struct krait_step *s, char *to,
                                uint64_t length, put_fn *put)
{
    const uint8_t *from;
    if (KRAIT_UNLIKELY(krait_take_text(d, s->op, length, &from)))
        return NULL;
    return put(d, s, to, &from, from + length);
}

/* Of a stretch, which is there. */
KRAIT_INLINE char *put_placed_by(struct krait_decoder *d, const struct krait_step *s, char *to,
                                 const uint8_t *from, put_fn *put)
{
    return put(d, s, to, &from, from + s->size);
}

/* -- texts of wide characters -- */

typedef char *put_wide_fn(struct krait_decoder *d, const struct krait_step *s, char *to, const uint8_t *from,
                          size_t length);

static char *put_wide_text(struct krait_decoder *d, const struct krait_step *s, char *to, const uint8_t *from,
                           size_t length)
{
    krait_text_wide(by_buf(d, to), s->op->fc->encoding, from, length);
    return go_on(d, s);
}

static char *put_wide_string(struct krait_decoder *d, const struct krait_step *s, char *to, put_wide_fn *put)
{
    const uint8_t *from;
    size_t length;
    if (krait_string_begins(d) || krait_take_string(d, s->op, &from, &length))
        return NULL;
    return put(d, s, to, from, length);
}

static char *put_wide_chars(struct krait_decoder *d, const struct krait_step *s, char *to, uint64_t length,
                            put_wide_fn *put)
{
    const uint8_t *from;
    if (krait_take_text(d, s->op, length, &from))
        return NULL;
    return put(d, s, to, from, krait_wide_length(s->op->fc->encoding, from, length));
}

/* -- data -- */

static bool doubles_quotes(const struct krait_step *s)
{
    return s->form == KRAIT_FORM_JSON_CELL;
}

/* put_quoted as JSON has it, without its quotes. */
KRAIT_INLINE char *put_json(struct krait_decoder *d, const struct krait_step *s, char *to,
                            const uint8_t **from, const uint8_t *end)
{
    const uint8_t *p = *from;
    for (;;) {
        to = ask(d, to, KRAIT_TEXT_CHUNK + KRAIT_JSON_ESCAPE + s->room);
        if (KRAIT_UNLIKELY(!to))
            return NULL;
        size_t n = KRAIT_MIN(krait_put_json_plain(to, (const char *)p), (size_t)(end - p));
        to += n;
        p += n;
        if (p == end || !*p)
            break;
        if (n < KRAIT_TEXT_CHUNK)
            to = krait_put_json_escaped(to, &p, end, doubles_quotes(s));
    }
    *from = p;
    return to;
}

/* A cell that needs quotes, or a look at its characters: again from its begin. */
static KRAIT_COLD char *put_odd_cell(struct krait_decoder *d, const struct krait_step *s, char *to,
                                     const uint8_t **from, const uint8_t *end)
{
    size_t length = strnlen((const char *)*from, (size_t)(end - *from));
    krait_csv_str(by_buf(d, to), (const char *)*from, length);
    *from += length;
    return go_on(d, s);
}

/* A whole cell. */
KRAIT_INLINE char *put_cell(struct krait_decoder *d, const struct krait_step *s, char *to,
                            const uint8_t **from, const uint8_t *end)
{
    const uint8_t *p = *from;
    for (;;) {
        to = ask(d, to, KRAIT_TEXT_CHUNK + s->room);
        if (KRAIT_UNLIKELY(!to))
            return NULL;
        size_t n = KRAIT_MIN(krait_put_cell_plain(to, (const char *)p), (size_t)(end - p));
        to += n;
        p += n;
        if (p == end || !*p)
            break;
        if (n < KRAIT_TEXT_CHUNK)
            return put_odd_cell(d, s, to - (p - *from), from, end);
    }
    *from = p;
    return to;
}

static char *put_wide_data(struct krait_decoder *d, const struct krait_step *s, char *to, const uint8_t *from,
                           size_t length)
{
    KRAIT_AUTO_BUF utf8 = { 0 };
    krait_wide_utf8(&utf8, s->op->fc->encoding, from, length);
    if (!krait_buf_room(&utf8, KRAIT_TEXT_CHUNK))
        return damaged(d, "out of memory");
    const uint8_t *p = (const uint8_t *)utf8.data, *end = p + utf8.len;
    return s->form == KRAIT_FORM_CELL ? put_cell(d, s, to, &p, end) : put_json(d, s, to, &p, end);
}

static char *put_decimal(const struct krait_fc *fc, char *to, uint64_t value)
{
    return fc->is_signed ? krait_put_i64(to, (int64_t)value) : krait_put_u64(to, value);
}

static char *put_literal(char *to, const char *text)
{
    size_t n = strlen(text);
    memcpy(to, text, n);
    return to + n;
}

/* What is before the value of an enumeration in JSON, and behind one without a label; "\"" where numbers are strings. */
static char *put_json_enum(const struct krait_step *s, char *to, uint64_t value,
                           const struct krait_label_text *label)
{
    const char *quote = s->op->fc->bits <= KRAIT_JSON_EXACT_BITS ? "" : doubles_quotes(s) ? "\"\"" : "\"";
    to = put_literal(to, doubles_quotes(s) ? KRAIT_JSON_CELL_FIRST("value") : KRAIT_JSON_FIRST("value"));
    to = put_literal(put_decimal(s->op->fc, put_literal(to, quote), value), quote);
    if (!label)
        return put_literal(to, doubles_quotes(s) ? KRAIT_JSON_CELL_NEXT("label") "null}"
                                                 : KRAIT_JSON_NEXT("label") "null}");
    krait_text_copy(to, label->text, label->len);
    return to + label->len;
}

static char *put_data_enum(struct krait_decoder *d, const struct krait_step *s, char *to, uint64_t value)
{
    enum { MOST = 80 }; /* what is around the label */
    const struct krait_fc *fc = s->op->fc;
    const struct krait_enum_range *range = krait_enum_range_of(fc->labels, value, fc->is_signed);
    const struct krait_label_text *label = range ? &s->texts[range - fc->labels->pieces] : NULL;
    to = ask(d, to, MOST + (label ? label->len : 0) + s->room);
    if (KRAIT_UNLIKELY(!to))
        return NULL;
    if (KRAIT_LIKELY(label && label->is_whole)) {
        krait_text_copy(to, label->text, label->len);
        return to + label->len;
    }
    return s->form == KRAIT_FORM_CELL ? put_decimal(fc, to, value) : put_json_enum(s, to, value, label);
}

static char *put_data(struct krait_decoder *d, const struct krait_step *s, char *to, uint64_t value)
{
    const struct krait_fc *fc = s->op->fc;
    if (fc->kind == KRAIT_FC_ENUM && fc->form != KRAIT_INT_BOOL)
        return put_data_enum(d, s, to, value);
    to = ask(d, to, KRAIT_DIGITS_ROOM + s->room);
    if (KRAIT_UNLIKELY(!to))
        return NULL;
    return fc->form == KRAIT_INT_BOOL ? put_literal(to, value ? "true" : "false")
                                      : put_decimal(fc, to, value);
}

static char *put_data_bits(struct krait_decoder *d, const struct krait_step *s, char *to)
{
    uint64_t value;
    return krait_take_bits(d, s->op, &value) ? NULL : put_data(d, s, to, value);
}

static char *put_data_leb(struct krait_decoder *d, const struct krait_step *s, char *to)
{
    uint64_t value;
    return krait_take_leb(d, s->op, &value) ? NULL : put_data(d, s, to, value);
}

/* JSON has no numbers that are not finite. */
static char *put_data_float(struct krait_decoder *d, const struct krait_step *s, char *to)
{
    double number;
    if (take_float(d, s, &number))
        return NULL;
    return __builtin_isfinite(number) ? krait_put_shortest(to, number) : put_literal(to, "null");
}

/* -- what has parts -- */

static char *put_blob(struct krait_decoder *d, const struct krait_step *s, char *to, uint64_t length)
{
    if (krait_array_begins(d, s->op))
        return NULL;
    if (length > (d->end - d->at) / 8)
        return damaged(d, "a blob is longer than the rest of its packet");
    if (length > MAX_TEXT / 3)
        return damaged(d, "an event of more than 256 MiB of text");
    krait_text_blob(by_buf(d, to), d->bytes + d->at / 8, length);
    d->at += length * 8;
    return go_on(d, s);
}

/* What stands before an array's element. */
static char *put_separator(const struct krait_step *s, char *to, uint64_t i, bool named)
{
    if (s->form == KRAIT_FORM_TEXT)
        return krait_put_element(to, i, named);
    *to = ',';
    return to + (i > 0);
}

static char *put_elements(struct krait_decoder *d, const struct krait_program *program,
                          const struct krait_step *s, char *to, uint64_t length)
{
    bool named = s->is_named;
    if (krait_array_begins(d, s->op))
        return NULL;
    for (uint64_t i = 0; i < length; i++) {
        uint64_t before = d->at, empty = d->empty;
        to = ask(d, to, ELEMENT_MOST + s->inside);
        if (to)
            to = krait_print_steps(d, program, s + 1, put_separator(s, to, i, named));
        bool none = to && KRAIT_UNLIKELY(d->at == before);
        if (!to || (none && !krait_pass_empty(d, d->empty - empty, 0)))
            return NULL;
        if (to - krait_printer_of(d)->out->data > MAX_TEXT)
            return damaged(d, "an event of more than 256 MiB of text");
    }
    return ask(d, to, s->room);
}

static char *put_variant(struct krait_decoder *d, const struct krait_program *program,
                         const struct krait_step *s, char *to)
{
    uint32_t option;
    if (krait_take_option(d, s->op, &option))
        return NULL;
    to = ask(d, to, s->inside);
    if (to)
        to = krait_print_steps(d, program, s + s->options[option], to);
    return to ? ask(d, to, s->room) : NULL;
}

static inline char *end_context(struct krait_decoder *d, char *to)
{
    krait_printer_of(d)->context_end = (size_t)(to - krait_printer_of(d)->out->data);
    return to;
}

/* -- the walk -- */

/* Each step jumps to the next by itself: which step follows which is what processors learn. */
#define NEXT goto *codes[s->code]

char *krait_print_steps(struct krait_decoder *d, const struct krait_program *program,
                        const struct krait_step *s, char *to)
{
    static const void *const codes[] = {
#define STEP(code, most, print)  [KRAIT_STEP_##code] = &&do_##code,
#define BLOCK(code, most, print) [KRAIT_STEP_##code] = &&do_##code,
#include "ctf/text/print_steps.def"
        [KRAIT_STEP_END] = &&do_END,
    };
    const uint8_t *run = d->bytes;
    NEXT;
#define STEP(code, most, print) \
    do_##code : to = print;     \
    s++;                        \
    if (KRAIT_UNLIKELY(!to))    \
        return NULL;            \
    NEXT;
#define BLOCK(code, most, print) \
    do_##code : to = print;      \
    s += s->behind + 1;          \
    if (KRAIT_UNLIKELY(!to))     \
        return NULL;             \
    NEXT;
#include "ctf/text/print_steps.def"
do_END:
    return put_text(s, to);
}
