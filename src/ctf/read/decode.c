/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/read/decode.h"

#include "base/array.h"
#include "ctf/read/take.h"

static int skip_block(struct krait_decoder *d, const struct krait_program *program,
                      const struct krait_op *op);

/* Elements that need no walk: scalars of a fixed stride. */
static int skip_stride(struct krait_decoder *d, const struct krait_op *op, uint64_t length)
{
    uint64_t bits = op->fc->elem->bits, room = d->end - d->at;
    if (!length)
        return 0;
    if (bits > room || length - 1 > (room - bits) / op->stride)
        return krait_damaged(d, "an array is longer than the rest of its packet");
    d->at += (length - 1) * op->stride + bits;
    return 0;
}

static int skip_elements(struct krait_decoder *d, const struct krait_program *program,
                         const struct krait_op *op, uint64_t length)
{
    int rc = krait_array_begins(d, op);
    if (!rc && op->stride)
        return skip_stride(d, op, length);
    for (uint64_t i = 0, done; i < length && !rc; i += done) {
        uint64_t before = d->at, empty = d->empty;
        rc = skip_block(d, program, op + 1);
        done = KRAIT_LIKELY(d->at != before) ? 1 : krait_pass_empty(d, d->empty - empty, length - i - 1);
        rc = done ? rc : -EBADMSG;
    }
    return rc;
}

uint32_t krait_decode_option(const struct krait_fc *fc, uint64_t tag)
{
    uint64_t flip = fc->tag_signed ? (uint64_t)1 << 63 : 0; /* orders signed numbers as unsigned ones */
    size_t i = KRAIT_PARTITION_POINT(at, fc->choice_count, (fc->choices[at].hi ^ flip) < (tag ^ flip));
    if (i < fc->choice_count && krait_range_holds(fc->choices[i].lo, fc->choices[i].hi, tag, fc->tag_signed))
        return fc->choices[i].option;
    return fc->kind == KRAIT_FC_OPTIONAL ? 1 : KRAIT_NO_ID;
}

static int skip_variant(struct krait_decoder *d, const struct krait_program *program,
                        const struct krait_op *op)
{
    uint32_t option;
    int rc = krait_take_option(d, op, &option);
    return rc ? rc : skip_block(d, program, &program->ops[op->options[option]]);
}

static int skip_string(struct krait_decoder *d, const struct krait_op *op)
{
    const uint8_t *from;
    size_t length;
    int rc = krait_string_begins(d);
    return rc ? rc : krait_take_string(d, op, &from, &length);
}

/* One instruction; those in its block too. */
KRAIT_INLINE int skip_op(struct krait_decoder *d, const struct krait_program *program,
                         const struct krait_op *op)
{
    uint64_t value;
    const uint8_t *from;
    switch ((enum krait_op_code)op->code) {
    case KRAIT_DO_RUN:
        return krait_take_run(d, op->align, op->size);
    case KRAIT_DO_INT:
        krait_take_int(d, op);
        return 0;
    case KRAIT_DO_BITS:
    case KRAIT_DO_FLOAT:
        return krait_take_bits(d, op, &value);
    case KRAIT_DO_LEB:
        return krait_take_leb(d, op, &value);
    case KRAIT_DO_STRING:
        return skip_string(d, op);
    case KRAIT_DO_TEXT:
        return krait_take_text(d, op, op->size, &from);
    case KRAIT_DO_TEXT_SEQ:
        return krait_take_text(d, op, d->slots[op->slot], &from);
    case KRAIT_DO_ARRAY:
        return skip_elements(d, program, op, op->size);
    case KRAIT_DO_SEQUENCE:
        return skip_elements(d, program, op, d->slots[op->slot]);
    case KRAIT_DO_VARIANT:
        return skip_variant(d, program, op);
    case KRAIT_DO_END:
        break;
    }
    return 0;
}

/* Where the instruction behind is: blocks are jumped over, and a run's fields when nobody wants one. */
KRAIT_INLINE const struct krait_op *behind(const struct krait_program *program, const struct krait_op *op)
{
    bool jumps = op->next && (op->code != KRAIT_DO_RUN || !(op->flags & KRAIT_OPF_BUSY));
    return jumps ? &program->ops[op->next] : op + 1;
}

/* Up to the END of the block. */
static int skip_block(struct krait_decoder *d, const struct krait_program *program, const struct krait_op *op)
{
    for (; op->code != KRAIT_DO_END; op = behind(program, op)) {
        int rc = skip_op(d, program, op);
        if (KRAIT_UNLIKELY(rc))
            return rc;
    }
    return 0;
}

int krait_decode_block(struct krait_decoder *d, const struct krait_program *program,
                       const struct krait_op *op)
{
    return skip_block(d, program, op);
}

int krait_decode_op(struct krait_decoder *d, const struct krait_program *program, const struct krait_op *op)
{
    return skip_op(d, program, op);
}

int krait_decode_skip(struct krait_decoder *d, const struct krait_program *program)
{
    d->empty = 0;
    if (KRAIT_LIKELY(program->fixed)) {
        if (!krait_align_to(d, program->align) || program->size > d->end - d->at)
            return krait_damaged(d, "an event is longer than the rest of its packet");
        d->at += program->size;
        return 0;
    }
    return skip_block(d, program, program->ops);
}
