/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/read/program.h"

#include "base/array.h"

#include <string.h>

struct compiler {
    struct krait_arena *arena;
    struct krait_op *ops;
    uint32_t count, cap;
    /* The run that is open: its instruction, or KRAIT_NO_ID; where the next field goes. */
    uint32_t run;
    uint64_t off;
    bool failed;
    struct krait_op nowhere; /* written to and never read, once memory was out */
};

static struct krait_op *add_op(struct compiler *c, enum krait_op_code code)
{
    if (!KRAIT_GROW(c->ops, c->cap, c->count + 1)) {
        c->failed = true;
        return &c->nowhere;
    }
    struct krait_op *op = &c->ops[c->count++];
    *op = (struct krait_op){ .code = (uint8_t)code, .slot = KRAIT_NO_SLOT };
    return op;
}

/* -- runs -- */

static void end_run(struct compiler *c)
{
    if (c->run == KRAIT_NO_ID)
        return;
    c->ops[c->run].size = c->off;
    c->ops[c->run].next = c->count;
    c->run = KRAIT_NO_ID;
}

/* The offset in the run for what is aligned so; opens another run where this one's begin is not aligned enough. */
static uint64_t run_place(struct compiler *c, uint32_t align)
{
    if (c->run != KRAIT_NO_ID && align <= c->ops[c->run].align) {
        c->off = (c->off + align - 1) & ~(uint64_t)(align - 1);
        return c->off;
    }
    end_run(c);
    struct krait_op *op = add_op(c, KRAIT_DO_RUN);
    op->align = align;
    c->run = c->failed ? KRAIT_NO_ID : c->count - 1;
    c->off = 0;
    return 0;
}

/* -- fields -- */

static void compile_fc(struct compiler *c, const struct krait_fc *fc);

static void mark_run_busy(struct compiler *c)
{
    if (c->run != KRAIT_NO_ID)
        c->ops[c->run].flags |= KRAIT_OPF_BUSY;
}

/* Whether the reader itself wants the value. */
static bool want_value(struct krait_op *op, const struct krait_fc *fc)
{
    op->slot = fc->slot;
    bool busy = fc->meanings || fc->clock || fc->slot != KRAIT_NO_SLOT;
    op->flags |= (uint8_t)((fc->clock && !fc->is_signed ? KRAIT_OPF_CLOCK : 0) | (busy ? KRAIT_OPF_BUSY : 0));
    return busy;
}

static void compile_leb(struct compiler *c, const struct krait_fc *fc)
{
    end_run(c);
    struct krait_op *op = add_op(c, KRAIT_DO_LEB);
    op->fc = fc;
    op->bits = fc->bits;
    op->flags = fc->is_signed ? KRAIT_OPF_SIGNED : 0;
    want_value(op, fc);
}

static void compile_scalar(struct compiler *c, const struct krait_fc *fc)
{
    if (fc->is_leb) {
        compile_leb(c, fc);
        return;
    }
    uint64_t off = run_place(c, fc->align);
    bool bytes = c->run != KRAIT_NO_ID && c->ops[c->run].align >= 8 && off % 8 == 0;
    enum krait_op_code code = fc->kind == KRAIT_FC_FLOAT                           ? KRAIT_DO_FLOAT
                              : bytes && krait_fc_is_whole(fc) && !fc->is_reversed ? KRAIT_DO_INT
                                                                                   : KRAIT_DO_BITS;
    struct krait_op *op = add_op(c, code);
    op->off = (uint32_t)off;
    op->bits = fc->bits;
    op->fc = fc;
    op->flags =
        (uint8_t)((fc->is_signed ? KRAIT_OPF_SIGNED : 0) | (krait_fc_is_swapped(fc) ? KRAIT_OPF_SWAP : 0) |
                  (fc->byte_order == KRAIT_BO_BE ? KRAIT_OPF_BE : 0) |
                  (fc->is_reversed ? KRAIT_OPF_REVERSED : 0));
    c->off = off + fc->bits;
    if (fc->order_counts)
        op->flags |= KRAIT_OPF_BUSY;
    if ((krait_fc_is_int(fc) && want_value(op, fc)) || fc->order_counts)
        mark_run_busy(c);
}

static void compile_string(struct compiler *c, const struct krait_fc *fc)
{
    end_run(c);
    add_op(c, KRAIT_DO_STRING)->fc = fc;
}

static void compile_struct(struct compiler *c, const struct krait_fc *fc)
{
    run_place(c, fc->align);
    for (uint32_t i = 0; i < fc->count; i++)
        compile_fc(c, fc->members[i].fc);
}

/* Code between an array's or a variant's instruction and END: it begins and ends with no run open. */
static void compile_block(struct compiler *c, const struct krait_fc *fc)
{
    if (fc)
        compile_fc(c, fc);
    end_run(c);
    add_op(c, KRAIT_DO_END);
}

static bool any_busy(const struct compiler *c, uint32_t from)
{
    for (uint32_t i = from; i < c->count; i++) {
        if (c->ops[i].flags & KRAIT_OPF_BUSY)
            return true;
    }
    return false;
}

/* Of as many elements as the class or a slot says. */
static void add_list_op(struct compiler *c, const struct krait_fc *fc, enum krait_op_code fixed,
                        enum krait_op_code sequence)
{
    bool is_fixed = fc->kind == KRAIT_FC_ARRAY;
    end_run(c);
    struct krait_op *op = add_op(c, is_fixed ? fixed : sequence);
    op->align = fc->align;
    op->size = is_fixed ? fc->length : 0;
    op->slot = fc->ref_slot;
    op->fc = fc;
}

static void compile_array(struct compiler *c, const struct krait_fc *fc)
{
    const struct krait_fc *elem = fc->elem;
    add_list_op(c, fc, KRAIT_DO_ARRAY, KRAIT_DO_SEQUENCE);
    uint32_t at = c->count - 1;
    compile_block(c, elem);
    if (c->failed)
        return;
    struct krait_op *op = &c->ops[at];
    op->next = c->count;
    bool scalar = (krait_fc_is_int(elem) && !elem->is_leb) || elem->kind == KRAIT_FC_FLOAT;
    if (any_busy(c, at + 1))
        op->flags |= KRAIT_OPF_BUSY;
    else if (scalar)
        op->stride = (elem->bits + elem->align - 1) & ~(uint64_t)(elem->align - 1);
}

/* What is not there is an option of its own, the second. */
static void compile_options(struct compiler *c, const struct krait_fc *fc)
{
    uint32_t count = fc->count + (fc->kind == KRAIT_FC_OPTIONAL);
    end_run(c);
    uint32_t *options = krait_arena_alloc(c->arena, KRAIT_MAX(count, 1u) * sizeof(*options));
    struct krait_op *op = add_op(c, KRAIT_DO_VARIANT);
    c->failed = c->failed || !options;
    if (c->failed)
        return;
    uint32_t at = c->count - 1;
    op->slot = fc->ref_slot;
    op->fc = fc;
    op->options = options;
    for (uint32_t i = 0; i < count; i++) {
        options[i] = c->count;
        compile_block(c, i < fc->count ? fc->members[i].fc : NULL);
    }
    if (!c->failed)
        c->ops[at].next = c->count;
}

static void compile_fc(struct compiler *c, const struct krait_fc *fc)
{
    if (c->failed)
        return;
    if (fc->kind == KRAIT_FC_STRUCT)
        compile_struct(c, fc);
    else if (fc->kind == KRAIT_FC_VARIANT || fc->kind == KRAIT_FC_OPTIONAL)
        compile_options(c, fc);
    else if (fc->kind == KRAIT_FC_STRING)
        compile_string(c, fc);
    else if (fc->kind == KRAIT_FC_ARRAY || fc->kind == KRAIT_FC_SEQUENCE)
        fc->is_text ? add_list_op(c, fc, KRAIT_DO_TEXT, KRAIT_DO_TEXT_SEQ) : compile_array(c, fc);
    else
        compile_scalar(c, fc);
}

/* One run, and nothing behind it. */
static void find_fixed(struct krait_program *program)
{
    const struct krait_op *run = program->ops;
    bool is_run = run->code == KRAIT_DO_RUN && !(run->flags & KRAIT_OPF_BUSY);
    program->fixed = program->ops[is_run ? run->next : 0].code == KRAIT_DO_END;
    program->align = is_run ? run->align : 1;
    program->size = is_run ? run->size : 0;
}

static int finish_program(struct compiler *c, struct krait_program *program)
{
    add_op(c, KRAIT_DO_END);
    struct krait_op *ops = c->failed ? NULL : krait_arena_alloc(c->arena, c->count * sizeof(*ops));
    if (!ops)
        return -ENOMEM;
    memcpy(ops, c->ops, c->count * sizeof(*ops));
    *program = (struct krait_program){ .ops = ops, .count = c->count };
    find_fixed(program);
    return 0;
}

int krait_program_new(struct krait_program *program, struct krait_arena *arena,
                      const struct krait_fc *const *scopes, size_t count)
{
    struct compiler c = { .arena = arena, .run = KRAIT_NO_ID };
    uint32_t first_scope = 0;
    for (size_t i = 0; i < count; i++) {
        if (scopes[i])
            compile_fc(&c, scopes[i]);
        end_run(&c); /* each scope is aligned for itself */
        first_scope = i == 0 && count > 1 ? c.count : first_scope;
    }
    int rc = finish_program(&c, program);
    program->first_scope = rc ? 0 : first_scope;
    free(c.ops);
    return rc;
}
