/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/rows/row.h"

#include "base/array.h"
#include "ctf/read/path.h"

#include <string.h>

struct row_compiler {
    struct krait_arena *arena;
    const struct krait_ctf_trace *trace;
    const struct krait_row_plan *plan;
    struct krait_row_class *row;
    struct krait_row_step *steps;
    uint32_t step_count, step_cap;
    struct krait_row_field *fields;
    uint32_t field_count, field_cap;
    struct krait_buf path;
    enum krait_field_scope scope;
    uint64_t off;   /* bits from the base */
    uint32_t align; /* of the base, bits */
    uint32_t room;  /* the step of the stretch that is open, or KRAIT_NO_ID */
    uint32_t cells;
    bool regular, failed;
};

/* A stretch of more is read by the decoder. */
enum { MAX_STRETCH = 1 << 24 };

static void irregular(struct row_compiler *c)
{
    c->regular = false;
}

/* -- steps -- */

static struct krait_row_step *add_step(struct row_compiler *c, enum krait_row_code code)
{
    static struct krait_row_step nowhere; /* written to and never read, once memory was out */
    if (!KRAIT_GROW(c->steps, c->step_cap, c->step_count + 1)) {
        c->failed = true;
        return &nowhere;
    }
    struct krait_row_step *step = &c->steps[c->step_count++];
    *step = (struct krait_row_step){ .code = (uint8_t)code, .off = (uint32_t)(c->off / 8) };
    return step;
}

/* The stretch up to here is of whole bytes: its check is known. */
static void close_stretch(struct row_compiler *c)
{
    if (c->room != KRAIT_NO_ID)
        c->steps[c->room].n = (uint32_t)((c->off + 7) / 8);
    c->room = KRAIT_NO_ID;
}

/* Opens a stretch where none is: steps of fixed size follow. */
static void open_stretch(struct row_compiler *c)
{
    if (c->room != KRAIT_NO_ID)
        return;
    add_step(c, KRAIT_ROW_ROOM);
    c->room = c->failed ? KRAIT_NO_ID : c->step_count - 1;
}

/* The base moves: what follows is counted from it, and known to be at a whole byte. */
static void move_base(struct row_compiler *c, uint32_t align)
{
    c->off = 0;
    c->align = align;
}

/* Goes to the next multiple of `align` bits. */
static void align_to(struct row_compiler *c, uint32_t align)
{
    if (align <= c->align) {
        c->off = (c->off + align - 1) & ~(uint64_t)(align - 1);
        return;
    }
    c->off = (c->off + 7) & ~(uint64_t)7;
    close_stretch(c);
    add_step(c, KRAIT_ROW_ALIGN)->n = align / 8;
    move_base(c, align);
}

/* The step of `bits` bits of fixed size here. */
static struct krait_row_step *add_fixed(struct row_compiler *c, enum krait_row_code code, uint64_t bits)
{
    open_stretch(c);
    struct krait_row_step *step = add_step(c, code);
    c->off += bits;
    if (c->off > (uint64_t)MAX_STRETCH * 8)
        irregular(c);
    return step;
}

/* -- fields -- */

/* Gives the field its cells; returns the first. */
static uint16_t add_field(struct row_compiler *c, const struct krait_fc *fc, unsigned count)
{
    uint32_t cell = c->cells;
    if (!KRAIT_GROW(c->fields, c->field_cap, c->field_count + 1) || c->path.failed) {
        c->failed = true;
        return 0;
    }
    if (cell + count > KRAIT_ROW_MAX_CELLS) {
        irregular(c);
        return 0;
    }
    char *path = krait_arena_strndup(c->arena, c->path.data, c->path.len);
    c->fields[c->field_count++] = (struct krait_row_field){
        .path = path, .scope = c->scope, .cell = (uint16_t)cell, .count = (uint16_t)count, .fc = fc
    };
    c->cells += count;
    c->failed = c->failed || !path;
    return (uint16_t)cell;
}

static void compile_number(struct row_compiler *c, const struct krait_fc *fc)
{
    uint16_t cell = add_field(c, fc, 1);
    bool is_float = fc->kind == KRAIT_FC_FLOAT;
    align_to(c, fc->align);
    bool bytes = c->off % 8 == 0 && krait_fc_is_whole(fc);
    if (fc->order_counts || fc->is_leb || fc->is_reversed || (!is_float && fc->clock) ||
        c->off % 8 + fc->bits > 64 || (is_float && !bytes))
        irregular(c);
    if (!c->regular)
        return;
    uint32_t off = (uint32_t)c->off;
    enum krait_row_code code = is_float && fc->bits == 32 ? KRAIT_ROW_FLOAT
                               : bytes                    ? KRAIT_ROW_INT
                                                          : KRAIT_ROW_BITS;
    struct krait_row_step *step = add_fixed(c, code, fc->bits);
    step->bits = fc->bits;
    step->cell = cell;
    step->off = bytes ? off / 8 : off;
    step->flags = (uint8_t)((!is_float && fc->is_signed ? KRAIT_ROWF_SIGNED : 0) |
                            (krait_fc_is_swapped(fc) ? KRAIT_ROWF_SWAP : 0) |
                            (fc->byte_order == KRAIT_BO_BE ? KRAIT_ROWF_BE : 0));
}

/* The cell that the length in a slot is in, whose step is told of it; false where it is not of this event. */
static bool length_cell(struct row_compiler *c, uint32_t slot, uint16_t *cell)
{
    for (uint32_t i = c->field_count; i-- > 0;) {
        const struct krait_row_field *field = &c->fields[i];
        if (!krait_fc_is_int(field->fc) || field->fc->slot != slot)
            continue;
        *cell = field->cell;
        for (uint32_t k = c->step_count; k-- > 0;) {
            if (c->steps[k].cell == *cell)
                c->steps[k].flags |= KRAIT_ROWF_LENGTH;
        }
        return true;
    }
    return false;
}

/* Texts and arrays of numbers: `fixed` and `dynamic` are their steps. */
static void compile_elements(struct row_compiler *c, const struct krait_fc *fc, unsigned bits,
                             enum krait_row_code fixed, enum krait_row_code dynamic)
{
    uint16_t cell = add_field(c, fc, 2), length = 0;
    bool is_array = fc->kind == KRAIT_FC_ARRAY;
    align_to(c, fc->align);
    if (c->off % 8 || (is_array && fc->length > MAX_STRETCH) ||
        (!is_array && !length_cell(c, fc->ref_slot, &length)))
        irregular(c);
    if (!c->regular)
        return;
    if (!is_array)
        close_stretch(c);
    struct krait_row_step *step = is_array ? add_fixed(c, fixed, fc->length * bits) : add_step(c, dynamic);
    step->bits = (uint8_t)bits;
    step->cell = cell;
    step->length = length;
    step->n = is_array ? (uint32_t)fc->length : 0;
    if (!is_array)
        move_base(c, 8);
}

static void compile_string(struct row_compiler *c, const struct krait_fc *fc)
{
    if (fc->encoding) { /* what its bytes are, a cell cannot say */
        irregular(c);
        return;
    }
    uint16_t cell = add_field(c, fc, 2);
    align_to(c, 8);
    close_stretch(c);
    add_step(c, KRAIT_ROW_STRING)->cell = cell;
    move_base(c, 8);
}

/* Whether elements stand side by side in whole bytes and nobody wants a single one's value. */
static bool is_plain(const struct krait_fc *elem)
{
    bool is_int = krait_fc_is_int(elem);
    if (!is_int && elem->kind != KRAIT_FC_FLOAT)
        return false;
    return krait_fc_is_whole(elem) && elem->align >= 8 && elem->align <= elem->bits && !elem->is_leb &&
           !elem->is_reversed && !(is_int && (elem->clock || elem->slot != KRAIT_NO_SLOT));
}

static void compile_fc(struct row_compiler *c, const struct krait_fc *fc);

static void compile_struct(struct row_compiler *c, const struct krait_fc *fc)
{
    align_to(c, fc->align);
    for (uint32_t i = 0; i < fc->count && !c->failed; i++) {
        size_t before = c->path.len;
        krait_buf_str(&c->path, before ? "." : "");
        krait_path_add(&c->path, fc, i);
        compile_fc(c, fc->members[i].fc);
        c->path.len = before;
    }
}

static void compile_array(struct row_compiler *c, const struct krait_fc *fc)
{
    if (fc->is_text && !fc->encoding)
        compile_elements(c, fc, 8, KRAIT_ROW_TEXT, KRAIT_ROW_TEXT_SEQ);
    else if (!fc->is_text && is_plain(fc->elem))
        compile_elements(c, fc, fc->elem->bits, KRAIT_ROW_VIEW, KRAIT_ROW_VIEW_SEQ);
    else
        irregular(c);
}

static void compile_fc(struct row_compiler *c, const struct krait_fc *fc)
{
    switch ((enum krait_fc_kind)fc->kind) {
    case KRAIT_FC_INT:
    case KRAIT_FC_ENUM:
    case KRAIT_FC_FLOAT:
        compile_number(c, fc);
        break;
    case KRAIT_FC_STRING:
        compile_string(c, fc);
        break;
    case KRAIT_FC_STRUCT:
        compile_struct(c, fc);
        break;
    case KRAIT_FC_ARRAY:
    case KRAIT_FC_SEQUENCE:
        compile_array(c, fc);
        break;
    case KRAIT_FC_VARIANT:
    case KRAIT_FC_OPTIONAL:
        irregular(c);
        break;
    }
}

/* -- what is wanted -- */

/* Whether a step only makes a value, which nobody misses when it is not wanted. */
static bool is_value(const struct krait_row_step *step)
{
    static const bool only_values[] = {
        [KRAIT_ROW_INT] = true,  [KRAIT_ROW_BITS] = true, [KRAIT_ROW_FLOAT] = true,
        [KRAIT_ROW_TEXT] = true, [KRAIT_ROW_VIEW] = true, [KRAIT_ROW_END] = false,
    };
    return only_values[step->code];
}

/* `to`: the new cell of each old one. */
static void keep_steps(struct row_compiler *c, const uint16_t *to)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->step_count; i++) {
        struct krait_row_step step = c->steps[i];
        step.cell = to[step.cell];
        step.length = to[step.length];
        if (!is_value(&step) || step.cell != KRAIT_ROW_NOWHERE)
            c->steps[kept++] = step;
    }
    c->step_count = kept;
}

/* Cells anew: for the fields that are wanted, and for lengths. Returns 0 or -ENOMEM. */
static int keep_wanted(struct row_compiler *c)
{
    KRAIT_AUTO_FREE uint16_t *to = calloc(c->cells, sizeof(*to)); /* KRAIT_ROW_NOWHERE */
    uint32_t kept = 0, cells = c->plan->head;
    if (!to)
        return -ENOMEM;
    for (uint32_t i = 0; i < c->step_count; i++)
        to[c->steps[i].cell] |= c->steps[i].flags & KRAIT_ROWF_LENGTH;
    for (uint32_t i = 0; i < c->field_count; i++) {
        struct krait_row_field *field = &c->fields[i];
        bool wanted = krait_map_get(c->plan->wanted, (uintptr_t)field->fc);
        if (!wanted && !to[field->cell])
            continue;
        to[field->cell] = (uint16_t)cells;
        field->cell = (uint16_t)cells;
        cells += field->count;
        if (wanted)
            c->fields[kept++] = *field;
    }
    keep_steps(c, to);
    c->field_count = kept;
    c->cells = cells;
    return 0;
}

/* -- classes -- */

/* Irregular: each field by its path; those that no path leads to have no cells, nor has what is behind so many. */
static int find_locators(struct row_compiler *c, const struct krait_event_class *event)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->field_count && kept < KRAIT_ROW_MAX_LOCATED; i++) {
        struct krait_row_field field = c->fields[i];
        struct krait_err err;
        int rc = krait_locator_new(&field.locator, c->arena, c->trace, event, field.scope, field.path, &err);
        if (rc == -ENOMEM)
            return rc;
        if (!rc && krait_locator_node(field.locator)->fc == field.fc)
            c->fields[kept++] = field;
    }
    c->field_count = kept;
    c->cells = kept ? c->fields[kept - 1].cell + c->fields[kept - 1].count : c->plan->head;
    return 0;
}

static void *keep(struct row_compiler *c, const void *list, size_t n)
{
    void *kept = krait_arena_alloc(c->arena, KRAIT_MAX(n, (size_t)1));
    if (!kept)
        c->failed = true;
    else if (n)
        memcpy(kept, list, n);
    return kept;
}

static int finish(struct row_compiler *c, const struct krait_event_class *event)
{
    struct krait_row_class *row = c->row;
    bool whole = c->off % 8 == 0;
    close_stretch(c);
    add_step(c, KRAIT_ROW_END);
    if (c->failed || (c->plan->wanted && keep_wanted(c)) ||
        ((!c->regular || !whole) && find_locators(c, event)))
        return -ENOMEM;
    row->fields = keep(c, c->fields, c->field_count * sizeof(*c->fields));
    row->field_count = c->field_count;
    row->cells = (uint16_t)c->cells;
    if (c->regular && whole) {
        row->steps = keep(c, c->steps, c->step_count * sizeof(*c->steps));
        row->step_count = c->step_count;
    }
    return c->failed ? -ENOMEM : 0;
}

int krait_row_class_new(struct krait_row_class *row, struct krait_arena *arena,
                        const struct krait_ctf_trace *trace, const struct krait_event_class *event,
                        const struct krait_row_plan *plan, uint32_t index)
{
    *row = (struct krait_row_class){ .event = event, .index = index };
    struct row_compiler c = { .arena = arena,
                              .trace = trace,
                              .plan = plan,
                              .row = row,
                              .align = 8,
                              .room = KRAIT_NO_ID,
                              .cells = plan->head,
                              .regular = true };
    const struct {
        enum krait_field_scope scope;
        const struct krait_fc *fc;
    } scopes[] = {
        { KRAIT_FIELD_COMMON_CONTEXT, event->stream->event_context },
        { KRAIT_FIELD_EVENT_CONTEXT, event->context },
        { KRAIT_FIELD_PAYLOAD, event->fields },
    };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(scopes); i++) {
        c.scope = scopes[i].scope;
        if (scopes[i].fc && scopes[i].fc->align < 8 && scopes[i].fc->count)
            irregular(&c); /* a header may end within a byte */
        if (scopes[i].fc)
            compile_fc(&c, scopes[i].fc);
    }
    int rc = finish(&c, event);
    free(c.steps);
    free(c.fields);
    krait_buf_done(&c.path);
    return rc;
}
