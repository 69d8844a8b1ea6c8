/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/decode.h"

#include "ctf/bits.h"
#include "ctf/text.h"
#include "ctf/wide.h"

/* Elements of no bits do not come to an end by themselves: more than this many in a scope are damage. */
enum { MAX_EMPTY = 1 << 16 };

/* An array of bits makes text of a hundred times its size: what one event may fill memory with. */
enum { MAX_TEXT = 256 << 20 };

enum mode { SKIP, TEXT };

#define INLINE static inline __attribute__((always_inline))

static int run_skip(struct krait_decoder *d, const struct krait_program *program, const struct krait_op *op);
static int run_text(struct krait_decoder *d, const struct krait_program *program, const struct krait_op *op);

static KRAIT_COLD int damaged(struct krait_decoder *d, const char *why)
{
    d->why = why;
    return -EBADMSG;
}

INLINE bool shown(const struct krait_op *op, enum mode mode)
{
    return mode == TEXT && !(op->flags & KRAIT_OPF_HIDDEN);
}

INLINE bool align_to(struct krait_decoder *d, uint64_t align)
{
    d->at = (d->at + align - 1) & ~(align - 1);
    return d->at <= d->end;
}

/* What the reader itself wants of an integer. */
static void take_value(struct krait_decoder *d, const struct krait_op *op, uint64_t value, unsigned bits)
{
    if (op->meaning) {
        d->meanings[op->meaning] = value;
        d->meanings_set |= 1u << op->meaning;
    }
    if (op->flags & KRAIT_OPF_CLOCK)
        d->clock = krait_clock_update(d->clock, value, bits);
    if (op->slot != KRAIT_NO_SLOT)
        d->slots[op->slot] = value;
}

INLINE uint64_t load_int(const uint8_t *p, const struct krait_op *op)
{
    uint64_t v;
    switch (op->bits) {
    case 8:
        v = *p;
        break;
    case 16: {
        uint16_t v16;
        memcpy(&v16, p, 2);
        v = op->flags & KRAIT_OPF_SWAP ? __builtin_bswap16(v16) : v16;
        break;
    }
    case 32: {
        uint32_t v32;
        memcpy(&v32, p, 4);
        v = op->flags & KRAIT_OPF_SWAP ? __builtin_bswap32(v32) : v32;
        break;
    }
    default:
        memcpy(&v, p, 8);
        v = op->flags & KRAIT_OPF_SWAP ? __builtin_bswap64(v) : v;
        break;
    }
    return v;
}

INLINE void take_int(struct krait_decoder *d, const struct krait_op *op, uint64_t value, enum mode mode)
{
    if (op->flags & KRAIT_OPF_SIGNED)
        value = krait_sign_extend(value, op->bits);
    if (op->flags & KRAIT_OPF_BUSY)
        take_value(d, op, value, op->bits);
    if (shown(op, mode)) {
        krait_text_block(d->out, op->text, op->text_len);
        krait_text_int(d->out, op->fc, value);
    }
}

/* Within a byte the byte order cannot change: the bits would overlap (CTF 1.8.3, 4.1.5). */
static bool load_bits(struct krait_decoder *d, const struct krait_op *op, uint64_t at, uint64_t *value)
{
    bool be = op->flags & KRAIT_OPF_BE;
    if (at % 8 && d->bits_be == !be)
        return false;
    d->bits_be = be;
    *value = be ? krait_bits_be(d->bytes, at, op->bits) : krait_bits_le(d->bytes, at, op->bits);
    if (KRAIT_UNLIKELY(op->flags & KRAIT_OPF_REVERSED))
        *value = krait_bits_reversed(*value, op->bits);
    return true;
}

static int do_leb(struct krait_decoder *d, const struct krait_op *op, enum mode mode)
{
    uint64_t value;
    unsigned bits;
    if (!align_to(d, 8))
        return damaged(d, "an integer begins behind the packet's content");
    const char *why = krait_leb_read(d->bytes + d->at / 8, (d->end - d->at) / 8, op->flags & KRAIT_OPF_SIGNED,
                                     &value, &bits);
    if (why)
        return damaged(d, why);
    d->at += bits / 7 * 8;
    if (op->flags & KRAIT_OPF_BUSY)
        take_value(d, op, value, bits);
    if (shown(op, mode)) {
        krait_text_block(d->out, op->text, op->text_len);
        krait_text_int(d->out, op->fc, value);
    }
    return 0;
}

static void print_float(struct krait_decoder *d, const struct krait_op *op, uint64_t raw)
{
    double number;
    if (op->bits == 32) {
        uint32_t raw32 = (uint32_t)raw;
        float single;
        memcpy(&single, &raw32, sizeof(single));
        number = single;
    } else {
        memcpy(&number, &raw, sizeof(number));
    }
    krait_text_block(d->out, op->text, op->text_len);
    krait_text_float(d->out, number);
}

/* Of two or four bytes a unit. */
static KRAIT_COLD int do_wide_string(struct krait_decoder *d, const struct krait_op *op, const uint8_t *from,
                                     enum mode mode)
{
    size_t room = (d->end - d->at) / 8, unit = krait_encoding_unit(op->fc->encoding);
    size_t length = krait_wide_length(op->fc->encoding, from, room);
    if (room - length < unit)
        return damaged(d, "a string has no end in its packet");
    d->at += (length + unit) * 8;
    if (shown(op, mode)) {
        krait_text_block(d->out, op->text, op->text_len);
        krait_text_wide(d->out, op->fc->encoding, from, length);
    }
    return 0;
}

INLINE int do_string(struct krait_decoder *d, const struct krait_op *op, enum mode mode)
{
    if (!align_to(d, 8))
        return damaged(d, "a string begins behind the packet's content");
    const uint8_t *from = d->bytes + d->at / 8;
    if (KRAIT_UNLIKELY(op->fc->encoding))
        return do_wide_string(d, op, from, mode);
    const uint8_t *nul = memchr(from, 0, (d->end - d->at) / 8);
    if (!nul)
        return damaged(d, "a string has no end in its packet");
    d->at += (uint64_t)(nul - from + 1) * 8;
    if (shown(op, mode)) {
        krait_text_block(d->out, op->text, op->text_len);
        krait_text_quoted(d->out, (const char *)from, (size_t)(nul - from));
    }
    return 0;
}

INLINE int do_text(struct krait_decoder *d, const struct krait_op *op, uint64_t length, enum mode mode)
{
    if (!align_to(d, op->align) || length > (d->end - d->at) / 8)
        return damaged(d, "a text is longer than the rest of its packet");
    const char *from = (const char *)d->bytes + d->at / 8;
    if (KRAIT_UNLIKELY(op->fc->encoding) && length % krait_encoding_unit(op->fc->encoding))
        return damaged(d, "a text ends within a character");
    d->at += length * 8;
    if (!shown(op, mode))
        return 0;
    krait_text_block(d->out, op->text, op->text_len);
    if (KRAIT_UNLIKELY(op->fc->encoding))
        krait_text_wide(d->out, op->fc->encoding, (const uint8_t *)from,
                        krait_wide_length(op->fc->encoding, (const uint8_t *)from, length));
    else
        krait_text_quoted(d->out, from, strnlen(from, length));
    return 0;
}

/* Elements that need no walk: scalars of a fixed stride. */
static int skip_stride(struct krait_decoder *d, const struct krait_op *op, uint64_t length)
{
    uint64_t bits = op->fc->elem->bits, room = d->end - d->at;
    if (!length)
        return 0;
    if (bits > room || length - 1 > (room - bits) / op->stride)
        return damaged(d, "an array is longer than the rest of its packet");
    d->at += (length - 1) * op->stride + bits;
    return 0;
}

static KRAIT_COLD int print_blob(struct krait_decoder *d, uint64_t length)
{
    if (length > (d->end - d->at) / 8)
        return damaged(d, "a blob is longer than the rest of its packet");
    if (length > MAX_TEXT / 3)
        return damaged(d, "an event of more than 256 MiB of text");
    krait_text_blob(d->out, d->bytes + d->at / 8, length);
    d->at += length * 8;
    return 0;
}

/* Element i took no bits, nor did anything change: those behind it are as it was, with as many empty elements
 * within each. Who shows nothing does not walk them. Returns how many elements are done with, 0: damage. */
static KRAIT_COLD uint64_t pass_empty(struct krait_decoder *d, uint64_t within, uint64_t left, bool walks)
{
    uint64_t others = walks ? 0 : left - 1, all;
    if (__builtin_mul_overflow(others, within + 1, &all) || __builtin_add_overflow(all, d->empty + 1, &all) ||
        all > MAX_EMPTY)
        return 0;
    d->empty = all;
    return others + 1;
}

INLINE int do_elements(struct krait_decoder *d, const struct krait_program *program,
                       const struct krait_op *op, uint64_t length, enum mode mode)
{
    if (!align_to(d, op->align))
        return damaged(d, "an array begins behind the packet's content");
    if (shown(op, mode))
        krait_text_block(d->out, op->text, op->text_len);
    else if (op->stride)
        return skip_stride(d, op, length);
    if (shown(op, mode) && op->fc->is_blob)
        return print_blob(d, length);
    for (uint64_t i = 0; i < length;) {
        uint64_t before = d->at, empty = d->empty, done = 1;
        if (shown(op, mode))
            krait_text_element(d->out, i, op->flags & KRAIT_OPF_NAMED);
        int rc = mode == TEXT ? run_text(d, program, op + 1) : run_skip(d, program, op + 1);
        if (rc)
            return rc;
        if (KRAIT_UNLIKELY(d->at == before))
            done = pass_empty(d, d->empty - empty, length - i, shown(op, mode));
        if (!done)
            return damaged(d, "an array of many elements that have no bits");
        i += done;
        if (mode == TEXT && (d->out->failed || d->out->len > MAX_TEXT))
            return damaged(d, d->out->failed ? "out of memory" : "an event of more than 256 MiB of text");
    }
    return 0;
}

uint32_t krait_decode_option(const struct krait_fc *fc, uint64_t tag)
{
    for (uint32_t i = 0; i < fc->choice_count; i++) {
        const struct krait_fc_choice *choice = &fc->choices[i];
        if (krait_range_holds(choice->lo, choice->hi, tag, fc->tag_signed))
            return choice->option;
    }
    return fc->kind == KRAIT_FC_OPTIONAL ? 1 : KRAIT_NO_ID;
}

INLINE int do_variant(struct krait_decoder *d, const struct krait_program *program, const struct krait_op *op,
                      enum mode mode)
{
    uint32_t option = krait_decode_option(op->fc, d->slots[op->slot]);
    if (option == KRAIT_NO_ID)
        return damaged(d, "a variant's tag stands for none of its options");
    if (shown(op, mode))
        krait_text_block(d->out, op->text, op->text_len);
    const struct krait_op *code = &program->ops[op->options[option]];
    return mode == TEXT ? run_text(d, program, code) : run_skip(d, program, code);
}

/* Where the instruction behind is: structured code is jumped over. */
INLINE const struct krait_op *behind(const struct krait_program *program, const struct krait_op *op)
{
    return op->next ? &program->ops[op->next] : op + 1;
}

INLINE int run_any(struct krait_decoder *d, const struct krait_program *program, const struct krait_op *op,
                   enum mode mode)
{
    uint64_t base = 0, value;
    int rc = 0;
    for (;; op++) {
        switch ((enum krait_op_code)op->code) {
        case KRAIT_DO_RUN:
            if (!align_to(d, op->align) || op->size > d->end - d->at)
                return damaged(d, "an event is longer than the rest of its packet");
            base = d->at;
            d->at += op->size;
            if (mode == SKIP && !(op->flags & KRAIT_OPF_BUSY))
                op = &program->ops[op->next] - 1;
            break;
        case KRAIT_DO_INT:
            take_int(d, op, load_int(d->bytes + (base + op->off) / 8, op), mode);
            break;
        case KRAIT_DO_BITS:
            if (!load_bits(d, op, base + op->off, &value))
                return damaged(d, "the byte order changes within a byte");
            take_int(d, op, value, mode);
            break;
        case KRAIT_DO_FLOAT:
            if (!load_bits(d, op, base + op->off, &value))
                return damaged(d, "the byte order changes within a byte");
            if (shown(op, mode))
                print_float(d, op, value);
            break;
        case KRAIT_DO_LEB:
            rc = do_leb(d, op, mode);
            break;
        case KRAIT_DO_STRING:
            rc = do_string(d, op, mode);
            break;
        case KRAIT_DO_TEXT:
            rc = do_text(d, op, op->size, mode);
            break;
        case KRAIT_DO_TEXT_SEQ:
            rc = do_text(d, op, d->slots[op->slot], mode);
            break;
        case KRAIT_DO_ARRAY:
            rc = do_elements(d, program, op, op->size, mode);
            op = behind(program, op) - 1;
            break;
        case KRAIT_DO_SEQUENCE:
            rc = do_elements(d, program, op, d->slots[op->slot], mode);
            op = behind(program, op) - 1;
            break;
        case KRAIT_DO_VARIANT:
            rc = do_variant(d, program, op, mode);
            op = behind(program, op) - 1;
            break;
        case KRAIT_DO_LITERAL:
            if (mode == TEXT)
                krait_text_block(d->out, op->text, op->text_len);
            break;
        case KRAIT_DO_END:
            return 0;
        }
        if (KRAIT_UNLIKELY(rc))
            return rc;
    }
}

static int run_skip(struct krait_decoder *d, const struct krait_program *program, const struct krait_op *op)
{
    return run_any(d, program, op, SKIP);
}

static int run_text(struct krait_decoder *d, const struct krait_program *program, const struct krait_op *op)
{
    return run_any(d, program, op, TEXT);
}

int krait_decode_skip(struct krait_decoder *d, const struct krait_program *program)
{
    d->empty = 0;
    if (KRAIT_LIKELY(program->fixed)) {
        if (!align_to(d, program->align) || program->size > d->end - d->at)
            return damaged(d, "an event is longer than the rest of its packet");
        d->at += program->size;
        return 0;
    }
    return run_skip(d, program, program->ops);
}

int krait_decode_text(struct krait_decoder *d, const struct krait_program *program)
{
    d->empty = 0;
    int rc = run_text(d, program, program->ops);
    return !rc && d->out->failed ? damaged(d, "out of memory") : rc;
}
