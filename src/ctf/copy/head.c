/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/copy/head.h"

#include "ctf/scalar/bits.h"

#include <string.h>

static void note(struct krait_head_fields *fields, const struct krait_op *op, uint64_t at)
{
    for (uint32_t left = op->fc->meanings; left; left &= left - 1)
        fields->of[__builtin_ctz(left)] = (struct krait_head_field){ op, at };
}

static bool is_number(const struct krait_op *op)
{
    return op->code == KRAIT_DO_INT || op->code == KRAIT_DO_BITS || op->code == KRAIT_DO_LEB;
}

/* Fields of runs are visited one by one; what lies within arrays and variants cannot be told apart, and says
 * nothing of a packet. */
static int find_in(struct krait_head_fields *fields, struct krait_decoder *d,
                   const struct krait_program *program)
{
    const struct krait_op *op = program->ops;
    int rc = 0;
    d->empty = 0;
    while (!rc && op->code != KRAIT_DO_END) {
        uint64_t before = d->at;
        rc = krait_decode_op(d, program, op);
        if (!rc && is_number(op))
            note(fields, op, op->code == KRAIT_DO_LEB ? before : d->run + op->off);
        op = op->next && op->code != KRAIT_DO_RUN ? &program->ops[op->next] : op + 1;
    }
    return rc;
}

int krait_head_find(struct krait_head_fields *fields, const struct krait_ctf_cursor *cursor)
{
    struct krait_decoder d = cursor->d; /* its slots are shared: they get the values that they have */
    *fields = (struct krait_head_fields){ 0 };
    d.at = 0;
    int rc = find_in(fields, &d, &cursor->trace->packet_header);
    rc = rc ? rc : find_in(fields, &d, &cursor->code->packet_context);
    fields->end = d.at;
    return rc;
}

/* One bit after the other: heads are few. */
static void put_bits(uint8_t *bytes, uint64_t at, unsigned bits, bool be, uint64_t value)
{
    for (unsigned i = 0; i < bits; i++) {
        uint64_t place = at + i;
        unsigned in_byte = be ? 7 - place % 8 : place % 8;
        unsigned bit = value >> (be ? bits - 1 - i : i) & 1;
        bytes[place / 8] = (uint8_t)((bytes[place / 8] & ~(1u << in_byte)) | bit << in_byte);
    }
}

bool krait_head_put(uint8_t *bytes, const struct krait_head_fields *fields, enum krait_meaning meaning,
                    uint64_t value)
{
    const struct krait_head_field *field = &fields->of[meaning];
    if (!field->op)
        return true;
    unsigned bits = field->op->bits;
    if (field->op->code == KRAIT_DO_LEB || (bits < 64 && value >> bits))
        return false;
    value = field->op->flags & KRAIT_OPF_REVERSED ? krait_bits_reversed(value, bits) : value;
    put_bits(bytes, field->at, bits, field->op->fc->byte_order == KRAIT_BO_BE, value);
    return true;
}
