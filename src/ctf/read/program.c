/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/read/program.h"

#include "base/json.h"

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
    enum krait_form form;
};

static void compile_fc(struct compiler *c, const struct krait_fc *fc, struct place place);

/* -- what stands around values -- */

/* What begins or ends a value: as people read it, and as programs do. */
static void add_mark(struct compiler *c, struct place place, const char *text, const char *data)
{
    if (!place.hidden)
        krait_buf_str(&c->text, place.form == KRAIT_FORM_TEXT ? text : data);
}

/* A quote of JSON's. */
static void add_quote(struct compiler *c, struct place place)
{
    if (!place.hidden)
        krait_buf_str(&c->text, place.form == KRAIT_FORM_JSON_CELL ? "\"\"" : "\"");
}

/* "name": */
static void add_key(struct compiler *c, struct place place, const char *name)
{
    KRAIT_AUTO_BUF key = { 0 };
    krait_json_cstr(&key, name);
    for (size_t i = 0; i < key.len; i++)
        key.data[i] == '"' ? add_quote(c, place) : krait_buf_char(&c->text, key.data[i]);
    krait_buf_char(&c->text, ':');
    c->failed = c->failed || key.failed;
}

/* What stands before a struct's member. */
static void begin_member(struct compiler *c, struct place place, const char *name, bool first)
{
    if (place.hidden)
        return;
    if (place.form != KRAIT_FORM_TEXT) {
        krait_buf_str(&c->text, first ? "" : ",");
        add_key(c, place, name);
        return;
    }
    krait_buf_str(&c->text, first ? " " : ", ");
    if (place.names)
        krait_buf_fmt(&c->text, "%s = ", name);
}

static bool is_quoted(const struct krait_fc *fc, struct place place)
{
    return (place.form == KRAIT_FORM_JSON || place.form == KRAIT_FORM_JSON_CELL) &&
           fc->kind == KRAIT_FC_INT && fc->form != KRAIT_INT_BOOL && fc->bits > KRAIT_JSON_EXACT_BITS;
}

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

/* Of a number. */
static void take_value_text(struct compiler *c, struct krait_op *op, const struct krait_fc *fc,
                            struct place place)
{
    op->form = (uint8_t)place.form;
    if (place.hidden)
        return;
    if (is_quoted(fc, place))
        add_quote(c, place);
    take_text(c, op);
    if (is_quoted(fc, place))
        add_quote(c, place);
}

static void compile_leb(struct compiler *c, const struct krait_fc *fc, struct place place)
{
    end_run(c);
    struct krait_op *op = add_op(c, KRAIT_DO_LEB);
    op->fc = fc;
    op->bits = fc->bits;
    op->flags = (uint8_t)((fc->is_signed ? KRAIT_OPF_SIGNED : 0) | (place.hidden ? KRAIT_OPF_HIDDEN : 0));
    want_value(op, fc);
    take_value_text(c, op, fc, place);
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
    take_value_text(c, op, fc, place);
}

/* Of characters: the quotes that JSON has around them whatever they are. */
static void take_chars_text(struct compiler *c, struct krait_op *op, struct place place)
{
    bool quoted = place.form == KRAIT_FORM_JSON || place.form == KRAIT_FORM_JSON_CELL;
    op->form = (uint8_t)place.form;
    op->flags = place.hidden ? KRAIT_OPF_HIDDEN : 0;
    if (quoted)
        add_quote(c, place);
    if (!place.hidden)
        take_text(c, op);
    if (quoted)
        add_quote(c, place);
}

static void compile_string(struct compiler *c, const struct krait_fc *fc, struct place place)
{
    end_run(c);
    struct krait_op *op = add_op(c, KRAIT_DO_STRING);
    op->fc = fc;
    take_chars_text(c, op, place);
}

/* What a cell's value is that is no number and no text: JSON. Returns how its parts stand. */
static struct place enter_cell(struct compiler *c, struct place place)
{
    if (place.form != KRAIT_FORM_CELL)
        return place;
    add_mark(c, place, "", "\"");
    place.form = KRAIT_FORM_JSON_CELL;
    return place;
}

static void leave_cell(struct compiler *c, struct place outer)
{
    if (outer.form == KRAIT_FORM_CELL)
        add_mark(c, outer, "", "\"");
}

static void compile_struct(struct compiler *c, const struct krait_fc *fc, struct place outer)
{
    bool any = false;
    struct place place = enter_cell(c, outer);
    run_place(c, fc->align);
    add_mark(c, place, "{", "{");
    for (uint32_t i = 0; i < fc->count; i++) {
        const struct krait_fc_member *member = &fc->members[i];
        struct place inner = place;
        inner.hidden = place.hidden || (place.form == KRAIT_FORM_TEXT && !is_shown(member->fc));
        begin_member(c, inner, member->name, !any);
        any = any || !inner.hidden;
        compile_fc(c, member->fc, inner);
    }
    add_mark(c, place, " }", "}");
    leave_cell(c, outer);
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
    take_chars_text(c, op, place);
}

static void compile_array(struct compiler *c, const struct krait_fc *fc, struct place outer)
{
    const struct krait_fc *elem = fc->elem;
    bool fixed = fc->kind == KRAIT_FC_ARRAY;
    struct place place = enter_cell(c, outer);
    end_run(c);
    uint32_t at = c->count;
    struct krait_op *op = add_op(c, fixed ? KRAIT_DO_ARRAY : KRAIT_DO_SEQUENCE);
    op->align = fc->align;
    op->size = fixed ? fc->length : 0;
    op->slot = fc->ref_slot;
    op->fc = fc;
    op->flags = (uint8_t)((place.hidden ? KRAIT_OPF_HIDDEN : 0) | (place.names ? KRAIT_OPF_NAMED : 0));
    op->form = (uint8_t)place.form;
    add_mark(c, place, fc->is_blob ? "{" : "[", "[");
    if (!place.hidden)
        take_text(c, op);
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
    add_mark(c, place, fc->is_blob ? " }" : " ]", "]");
    leave_cell(c, outer);
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
    op->form = (uint8_t)place.form;
    op->flags = place.hidden ? KRAIT_OPF_HIDDEN : 0;
    return op;
}

static void compile_variant(struct compiler *c, const struct krait_fc *fc, struct place place)
{
    struct krait_op *op = begin_options(c, fc, fc->count, place);
    if (!op || c->failed)
        return;
    uint32_t at = (uint32_t)(op - c->ops), *options = (uint32_t *)op->options;
    add_mark(c, place, "{ ", "");
    if (!place.hidden)
        take_text(c, op);
    for (uint32_t i = 0; i < fc->count; i++) {
        options[i] = c->count;
        compile_block(c, fc->members[i].fc, place);
    }
    if (c->failed)
        return;
    c->ops[at].next = c->count;
    add_mark(c, place, " }", "");
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
    add_mark(c, place, "{ ", "");
    compile_fc(c, fc->members[0].fc, place);
    add_mark(c, place, " }", "");
    end_block(c);
    options[1] = c->count;
    add_mark(c, place, "<none>", "null");
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

static void compile_text_scope(struct compiler *c, const struct krait_program_scope *scope, unsigned text,
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

/* -- scopes for programs -- */

bool krait_data_shows(enum krait_scope kind, const struct krait_fc *member)
{
    return kind != KRAIT_SCOPE_PACKET_CONTEXT || !krait_fc_is_int(member) || !member->meanings;
}

/* A scope's members; `place` is of each. */
static void compile_members(struct compiler *c, const struct krait_fc *fc, struct place place)
{
    bool any = false;
    run_place(c, fc->align);
    for (uint32_t i = 0; i < fc->count; i++) {
        const struct krait_fc_member *member = &fc->members[i];
        struct place inner = place;
        inner.hidden = !krait_data_shows(c->kind, member->fc);
        if (place.form != KRAIT_FORM_CELL)
            begin_member(c, inner, member->name, !any);
        else
            add_mark(c, inner, "", ",");
        any = any || !inner.hidden;
        compile_fc(c, member->fc, inner);
    }
}

static void compile_data_scope(struct compiler *c, const struct krait_program_scope *scope,
                               enum krait_form form)
{
    struct place place = { .names = true, .form = form };
    if (form == KRAIT_FORM_JSON_CELL)
        krait_buf_str(&c->text, scope->fc ? ",\"" : ",");
    if (!scope->fc)
        return;
    if (form == KRAIT_FORM_JSON)
        krait_buf_fmt(&c->text, KRAIT_JSON_NEXT("%s"), scope->name);
    krait_buf_str(&c->text, form == KRAIT_FORM_CELL ? "" : "{");
    compile_members(c, scope->fc, place);
    krait_buf_str(&c->text, form == KRAIT_FORM_CELL ? "" : "}");
    krait_buf_str(&c->text, form == KRAIT_FORM_JSON_CELL ? "\"" : "");
}

static enum krait_form form_of(unsigned text)
{
    return text & KRAIT_TEXT_JSON         ? KRAIT_FORM_JSON
           : text & KRAIT_TEXT_CELLS      ? KRAIT_FORM_CELL
           : text & KRAIT_TEXT_JSON_CELLS ? KRAIT_FORM_JSON_CELL
                                          : KRAIT_FORM_TEXT;
}

static void compile_scope(struct compiler *c, const struct krait_program_scope *scope, unsigned text,
                          bool *any)
{
    enum krait_form form = form_of(text);
    form == KRAIT_FORM_TEXT ? compile_text_scope(c, scope, text, any) : compile_data_scope(c, scope, form);
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
