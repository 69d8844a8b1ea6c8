/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/read/program.h"

#include <string.h>

struct compiler {
    struct krait_arena *arena;
    struct krait_op *ops;
    uint32_t count, cap;
    struct krait_buf text; /* to be printed before the next value */
    enum krait_scope kind;
    /* The run that is open: its instruction, or KRAIT_NO_ID; where the next field goes. */
    uint32_t run;
    uint64_t off;
    bool failed;
    struct krait_op nowhere; /* written to and never read, once memory was out */
};

static struct krait_op *add_op(struct compiler *c, enum krait_op_code code)
{
    if (c->count == c->cap) {
        uint32_t cap = c->cap ? c->cap * 2 : 16;
        struct krait_op *ops = realloc(c->ops, cap * sizeof(*ops));
        if (!ops) {
            c->failed = true;
            return &c->nowhere;
        }
        c->ops = ops;
        c->cap = cap;
    }
    struct krait_op *op = &c->ops[c->count++];
    *op = (struct krait_op){ .code = (uint8_t)code, .slot = KRAIT_NO_SLOT };
    return op;
}

/* Moves the text that waits to the instruction. */
static void take_text(struct compiler *c, struct krait_op *op)
{
    op->text = c->text.len ? krait_arena_strndup(c->arena, c->text.data, c->text.len) : "";
    op->text_len = (uint32_t)c->text.len;
    if (!op->text || c->text.failed)
        c->failed = true;
    krait_buf_clear(&c->text);
}

static void flush_text(struct compiler *c)
{
    if (c->text.len)
        take_text(c, add_op(c, KRAIT_DO_LITERAL));
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

/* The offset in the run for what is aligned so; opens another run where this one's begin is not aligned
 * enough. */
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

/* -- what is shown -- */

static bool is_shown(const struct krait_fc *fc);

static bool any_member_shown(const struct krait_fc *fc)
{
    for (uint32_t i = 0; i < fc->count; i++) {
        if (is_shown(fc->members[i].fc))
            return true;
    }
    return false;
}

/* As babeltrace2 has it: integers that are mapped to a clock or have a meaning are left out, unless a length
 * or a tag. */
static bool is_shown(const struct krait_fc *fc)
{
    switch ((enum krait_fc_kind)fc->kind) {
    case KRAIT_FC_INT:
    case KRAIT_FC_ENUM:
        return fc->slot != KRAIT_NO_SLOT || (!fc->clock && !fc->meanings);
    case KRAIT_FC_STRUCT:
        return fc->count == 0 || any_member_shown(fc);
    case KRAIT_FC_VARIANT:
    case KRAIT_FC_OPTIONAL:
        return any_member_shown(fc);
    case KRAIT_FC_ARRAY:
    case KRAIT_FC_SEQUENCE:
        return is_shown(fc->elem);
    default:
        return true;
    }
}

/* -- fields -- */

/* How a value stands in its surroundings. */
struct place {
    bool names; /* members' names are printed */
    bool hidden;
};

static void compile_fc(struct compiler *c, const struct krait_fc *fc, struct place place);

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

static void compile_leb(struct compiler *c, const struct krait_fc *fc, struct place place)
{
    end_run(c);
    struct krait_op *op = add_op(c, KRAIT_DO_LEB);
    op->fc = fc;
    op->bits = fc->bits;
    op->flags = (uint8_t)((fc->is_signed ? KRAIT_OPF_SIGNED : 0) | (place.hidden ? KRAIT_OPF_HIDDEN : 0));
    want_value(op, fc);
    if (!place.hidden)
        take_text(c, op);
}

static void compile_scalar(struct compiler *c, const struct krait_fc *fc, struct place place)
{
    if (fc->is_leb) {
        compile_leb(c, fc, place);
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
                  (fc->is_reversed ? KRAIT_OPF_REVERSED : 0) | (place.hidden ? KRAIT_OPF_HIDDEN : 0));
    c->off = off + fc->bits;
    if (fc->order_counts)
        op->flags |= KRAIT_OPF_BUSY;
    if ((krait_fc_is_int(fc) && want_value(op, fc)) || fc->order_counts)
        mark_run_busy(c);
    if (!place.hidden)
        take_text(c, op);
}

static void compile_string(struct compiler *c, const struct krait_fc *fc, struct place place)
{
    end_run(c);
    struct krait_op *op = add_op(c, KRAIT_DO_STRING);
    op->fc = fc;
    op->flags = place.hidden ? KRAIT_OPF_HIDDEN : 0;
    if (!place.hidden)
        take_text(c, op);
}

static void compile_struct(struct compiler *c, const struct krait_fc *fc, struct place place)
{
    bool any = false;
    run_place(c, fc->align);
    if (!place.hidden)
        krait_buf_char(&c->text, '{');
    for (uint32_t i = 0; i < fc->count; i++) {
        const struct krait_fc_member *member = &fc->members[i];
        bool hidden = place.hidden || !is_shown(member->fc);
        if (!hidden)
            krait_buf_str(&c->text, any ? ", " : " ");
        if (!hidden && place.names)
            krait_buf_fmt(&c->text, "%s = ", member->name);
        any = any || !hidden;
        compile_fc(c, member->fc, (struct place){ .names = place.names, .hidden = hidden });
    }
    if (!place.hidden)
        krait_buf_str(&c->text, " }");
}

/* Code between an array's or a variant's instruction and END: it begins and ends with no run open and no text
 * waiting. */
static void end_block(struct compiler *c)
{
    end_run(c);
    flush_text(c);
    add_op(c, KRAIT_DO_END);
}

static void compile_block(struct compiler *c, const struct krait_fc *fc, struct place place)
{
    compile_fc(c, fc, place);
    end_block(c);
}

static bool any_busy(const struct compiler *c, uint32_t from)
{
    for (uint32_t i = from; i < c->count; i++) {
        if (c->ops[i].flags & KRAIT_OPF_BUSY)
            return true;
    }
    return false;
}

static void compile_text_array(struct compiler *c, const struct krait_fc *fc, struct place place)
{
    bool fixed = fc->kind == KRAIT_FC_ARRAY;
    end_run(c);
    struct krait_op *op = add_op(c, fixed ? KRAIT_DO_TEXT : KRAIT_DO_TEXT_SEQ);
    op->align = fc->align;
    op->size = fixed ? fc->length : 0;
    op->slot = fc->ref_slot;
    op->fc = fc;
    op->flags = place.hidden ? KRAIT_OPF_HIDDEN : 0;
    if (!place.hidden)
        take_text(c, op);
}

static void compile_array(struct compiler *c, const struct krait_fc *fc, struct place place)
{
    const struct krait_fc *elem = fc->elem;
    bool fixed = fc->kind == KRAIT_FC_ARRAY;
    end_run(c);
    uint32_t at = c->count;
    struct krait_op *op = add_op(c, fixed ? KRAIT_DO_ARRAY : KRAIT_DO_SEQUENCE);
    op->align = fc->align;
    op->size = fixed ? fc->length : 0;
    op->slot = fc->ref_slot;
    op->fc = fc;
    op->flags = (uint8_t)((place.hidden ? KRAIT_OPF_HIDDEN : 0) | (place.names ? KRAIT_OPF_NAMED : 0));
    if (!place.hidden) {
        krait_buf_char(&c->text, fc->is_blob ? '{' : '[');
        take_text(c, op);
    }
    compile_block(c, elem, place);
    if (c->failed)
        return;
    op = &c->ops[at];
    op->next = c->count;
    bool scalar = (krait_fc_is_int(elem) && !elem->is_leb) || elem->kind == KRAIT_FC_FLOAT;
    if (any_busy(c, at + 1))
        op->flags |= KRAIT_OPF_BUSY;
    else if (scalar)
        op->stride = (elem->bits + elem->align - 1) & ~(uint64_t)(elem->align - 1);
    if (!place.hidden)
        krait_buf_str(&c->text, fc->is_blob ? " }" : " ]");
}

/* The instruction before the options, which `count` blocks have to follow. NULL when memory is out. */
static struct krait_op *begin_options(struct compiler *c, const struct krait_fc *fc, uint32_t count,
                                      struct place place)
{
    end_run(c);
    uint32_t *options = krait_arena_alloc(c->arena, KRAIT_MAX(count, 1u) * sizeof(*options));
    struct krait_op *op = add_op(c, KRAIT_DO_VARIANT);
    if (!options) {
        c->failed = true;
        return NULL;
    }
    op->slot = fc->ref_slot;
    op->fc = fc;
    op->options = options;
    op->flags = place.hidden ? KRAIT_OPF_HIDDEN : 0;
    return op;
}

static void compile_variant(struct compiler *c, const struct krait_fc *fc, struct place place)
{
    struct krait_op *op = begin_options(c, fc, fc->count, place);
    if (!op || c->failed)
        return;
    uint32_t at = (uint32_t)(op - c->ops), *options = (uint32_t *)op->options;
    if (!place.hidden) {
        krait_buf_str(&c->text, "{ ");
        take_text(c, op);
    }
    for (uint32_t i = 0; i < fc->count; i++) {
        options[i] = c->count;
        compile_block(c, fc->members[i].fc, place);
    }
    if (c->failed)
        return;
    c->ops[at].next = c->count;
    if (!place.hidden)
        krait_buf_str(&c->text, " }");
}

/* The braces are of the value: what is not there has none. */
static void compile_optional(struct compiler *c, const struct krait_fc *fc, struct place place)
{
    struct krait_op *op = begin_options(c, fc, 2, place);
    if (!op || c->failed)
        return;
    uint32_t at = (uint32_t)(op - c->ops), *options = (uint32_t *)op->options;
    if (!place.hidden)
        take_text(c, op);
    options[0] = c->count;
    krait_buf_str(&c->text, place.hidden ? "" : "{ ");
    compile_fc(c, fc->members[0].fc, place);
    krait_buf_str(&c->text, place.hidden ? "" : " }");
    end_block(c);
    options[1] = c->count;
    krait_buf_str(&c->text, place.hidden ? "" : "<none>");
    end_block(c);
    if (!c->failed)
        c->ops[at].next = c->count;
}

static void compile_fc(struct compiler *c, const struct krait_fc *fc, struct place place)
{
    if (c->failed)
        return;
    if (fc->kind == KRAIT_FC_STRUCT)
        compile_struct(c, fc, place);
    else if (fc->kind == KRAIT_FC_VARIANT)
        compile_variant(c, fc, place);
    else if (fc->kind == KRAIT_FC_OPTIONAL)
        compile_optional(c, fc, place);
    else if (fc->kind == KRAIT_FC_STRING)
        compile_string(c, fc, place);
    else if (fc->kind == KRAIT_FC_ARRAY || fc->kind == KRAIT_FC_SEQUENCE)
        fc->is_text ? compile_text_array(c, fc, place) : compile_array(c, fc, place);
    else
        compile_scalar(c, fc, place);
}

static void compile_scope(struct compiler *c, const struct krait_program_scope *scope, unsigned text,
                          bool *any)
{
    if (!scope->fc)
        return;
    bool hidden =
        c->kind == KRAIT_SCOPE_PACKET_HEADER || c->kind == KRAIT_SCOPE_EVENT_HEADER || !is_shown(scope->fc);
    if (!hidden && *any)
        krait_buf_str(&c->text, ", ");
    if (!hidden && (text & KRAIT_TEXT_SCOPE_NAMES))
        krait_buf_fmt(&c->text, "%s = ", scope->name);
    *any = *any || !hidden;
    compile_fc(c, scope->fc, (struct place){ .names = scope->names, .hidden = hidden });
}

/* One run, and behind it nothing but text. */
static void find_fixed(struct krait_program *program)
{
    const struct krait_op *run = program->ops;
    bool is_run = run->code == KRAIT_DO_RUN && !(run->flags & KRAIT_OPF_BUSY);
    uint32_t at = is_run ? run->next : 0;
    while (program->ops[at].code == KRAIT_DO_LITERAL)
        at++;
    program->fixed = program->ops[at].code == KRAIT_DO_END;
    program->align = is_run ? run->align : 1;
    program->size = is_run ? run->size : 0;
}

static int finish_program(struct compiler *c, struct krait_program *program)
{
    flush_text(c);
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
                      const struct krait_program_scope *scopes, size_t count, enum krait_scope kind,
                      unsigned text)
{
    struct compiler c = { .arena = arena, .kind = kind, .run = KRAIT_NO_ID };
    bool any = false;
    uint32_t first_scope = 0;
    for (size_t i = 0; i < count; i++) {
        compile_scope(&c, &scopes[i], text, &any);
        end_run(&c); /* each scope is aligned for itself */
        first_scope = i == 0 && count > 1 ? c.count : first_scope;
    }
    int rc = finish_program(&c, program);
    program->first_scope = rc ? 0 : first_scope;
    free(c.ops);
    krait_buf_done(&c.text);
    return rc;
}
