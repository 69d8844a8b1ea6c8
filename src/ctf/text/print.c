/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/text/print.h"

#include "ctf/read/take.h"
#include "ctf/scalar/digits.h"
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
    struct krait_buf *out = d->out;
    if (!krait_buf_room(out, n + KRAIT_PRINT_SLACK))
        return damaged(d, "out of memory");
    d->limit = out->data + out->cap - KRAIT_PRINT_SLACK;
    return out->data + out->len;
}

KRAIT_INLINE char *ask(struct krait_decoder *d, char *to, size_t n)
{
    if (KRAIT_LIKELY(to <= d->limit && (size_t)(d->limit - to) >= n))
        return to;
    return krait_print_room(d, (size_t)(to - d->out->data), n);
}

/* What is printed through the buffer's own functions stands between these two. */
static struct krait_buf *by_buf(struct krait_decoder *d, char *to)
{
    d->out->len = (size_t)(to - d->out->data);
    return d->out;
}

static char *go_on(struct krait_decoder *d, const struct krait_step *s)
{
    if (KRAIT_UNLIKELY(d->out->failed))
        return damaged(d, "out of memory");
    return krait_print_room(d, d->out->len, s->room);
}

/* -- values -- */

KRAIT_INLINE char *put_text(const struct krait_step *s, char *to)
{
    memcpy(to, s->text, KRAIT_STEP_TEXT_MAX);
    return to + s->text_len;
}

static char *put_long_text(struct krait_decoder *d, const struct krait_step *s, char *to)
{
    to = ask(d, to, s->op->text_len + s->room);
    if (!to)
        return NULL;
    krait_text_copy(to, s->op->text, s->op->text_len);
    return to + s->op->text_len;
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

/* An enumeration in decimal and little-endian, whose ranges do not overlap, at `at`, behind which 8 bytes may
 * be read: behind a packet's file is a page more (stream.h). */
static char *put_enum(struct krait_decoder *d, const struct krait_step *s, char *to, const uint8_t *at)
{
    uint64_t top = krait_bytes_le(at, 8) << s->unused;
    uint64_t value = s->is_signed ? (uint64_t)((int64_t)top >> s->unused) : top >> s->unused;
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

static char *put_float(struct krait_decoder *d, const struct krait_step *s, char *to)
{
    uint64_t raw;
    double number;
    if (krait_take_bits(d, s->op, &raw))
        return NULL;
    if (s->op->bits == 32) {
        uint32_t raw32 = (uint32_t)raw;
        float single;
        memcpy(&single, &raw32, sizeof(single));
        number = single;
    } else {
        memcpy(&number, &raw, sizeof(number));
    }
    return krait_put_real(to, number);
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

KRAIT_INLINE char *put_string(struct krait_decoder *d, const struct krait_step *s, char *to)
{
    if (krait_string_begins(d))
        return NULL;
    const uint8_t *from = d->bytes + d->at / 8, *end = d->bytes + d->end / 8;
    to = put_quoted(d, s, to, &from, end);
    if (KRAIT_UNLIKELY(to && from == end)) {
        krait_string_without_end(d);
        return NULL;
    }
    d->at = (uint64_t)(from + 1 - d->bytes) * 8;
    return to;
}

KRAIT_INLINE char *put_chars(struct krait_decoder *d, const struct krait_step *s, char *to, uint64_t length)
{
    const uint8_t *from;
    if (KRAIT_UNLIKELY(krait_take_text(d, s->op, length, &from)))
        return NULL;
    return put_quoted(d, s, to, &from, from + length);
}

/* Of a stretch, which is there. */
KRAIT_INLINE char *put_placed(struct krait_decoder *d, const struct krait_step *s, char *to,
                              const uint8_t *from)
{
    return put_quoted(d, s, to, &from, from + s->size);
}

static char *put_wide_string(struct krait_decoder *d, const struct krait_step *s, char *to)
{
    const uint8_t *from;
    size_t length;
    if (krait_string_begins(d) || krait_take_string(d, s->op, &from, &length))
        return NULL;
    krait_text_wide(by_buf(d, to), s->op->fc->encoding, from, length);
    return go_on(d, s);
}

static char *put_wide_chars(struct krait_decoder *d, const struct krait_step *s, char *to, uint64_t length)
{
    const uint8_t *from;
    enum krait_encoding encoding = s->op->fc->encoding;
    if (krait_take_text(d, s->op, length, &from))
        return NULL;
    krait_text_wide(by_buf(d, to), encoding, from, krait_wide_length(encoding, from, length));
    return go_on(d, s);
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

static char *put_elements(struct krait_decoder *d, const struct krait_program *program,
                          const struct krait_step *s, char *to, uint64_t length)
{
    bool named = s->op->flags & KRAIT_OPF_NAMED;
    if (krait_array_begins(d, s->op))
        return NULL;
    for (uint64_t i = 0; i < length; i++) {
        uint64_t before = d->at, empty = d->empty;
        to = ask(d, to, ELEMENT_MOST + s->inside);
        if (to)
            to = krait_print_steps(d, program, s + 1, krait_put_element(to, i, named));
        bool none = to && KRAIT_UNLIKELY(d->at == before);
        if (!to || (none && !krait_pass_empty(d, d->empty - empty, 0)))
            return NULL;
        if (to - d->out->data > MAX_TEXT)
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
    d->context_end = (size_t)(to - d->out->data);
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
