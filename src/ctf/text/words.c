/* SPDX-License-Identifier: Apache-2.0
 *
 * The walk over field classes is that of the program's compiler (ctf/read/program.c): each value has one instruction
 * there, in the same order, and each block an END. What it has besides are runs.
 */
#include "ctf/text/words.h"

#include "base/json.h"

#include <string.h>

struct writer {
    struct krait_arena *arena;
    const struct krait_op *ops;
    struct krait_words *words; /* of them */
    uint32_t at;               /* the next one */
    struct krait_buf text;     /* that waits for it */
    bool failed;
};

/* How a value stands in its surroundings. */
struct place {
    bool names; /* members' names are printed */
    bool hidden;
    enum krait_form form;
};

static struct krait_words *next_words(struct writer *w, struct place place)
{
    while (w->ops[w->at].code == KRAIT_DO_RUN)
        w->at++;
    struct krait_words *words = &w->words[w->at++];
    *words = (struct krait_words){ .text = "", .form = (uint8_t)place.form, .hidden = place.hidden };
    return words;
}

/* Moves the text that waits to the instruction. */
static void take_text(struct writer *w, struct krait_words *words)
{
    if (words->hidden || !w->text.len)
        return;
    words->text = krait_arena_strndup(w->arena, w->text.data, w->text.len);
    words->len = (uint32_t)w->text.len;
    if (!words->text || w->text.failed)
        w->failed = true;
    krait_buf_clear(&w->text);
}

/* Of a block, or of all: it has what still waits. */
static void take_end(struct writer *w, struct place place)
{
    take_text(w, next_words(w, place));
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

/* -- what stands around values -- */

/* What begins or ends a value: as people read it, and as programs do. */
static void add_mark(struct writer *w, struct place place, const char *text, const char *data)
{
    if (!place.hidden)
        krait_buf_str(&w->text, place.form == KRAIT_FORM_TEXT ? text : data);
}

/* A quote of JSON's. */
static void add_quote(struct writer *w, struct place place)
{
    if (!place.hidden)
        krait_buf_str(&w->text, place.form == KRAIT_FORM_JSON_CELL ? "\"\"" : "\"");
}

/* "name": */
static void add_key(struct writer *w, struct place place, const char *name)
{
    KRAIT_AUTO_BUF key = { 0 };
    krait_json_cstr(&key, name);
    for (size_t i = 0; i < key.len; i++)
        key.data[i] == '"' ? add_quote(w, place) : krait_buf_char(&w->text, key.data[i]);
    krait_buf_char(&w->text, ':');
    w->failed = w->failed || key.failed;
}

/* What stands before a struct's member. */
static void begin_member(struct writer *w, struct place place, const char *name, bool first)
{
    if (place.hidden)
        return;
    if (place.form != KRAIT_FORM_TEXT) {
        krait_buf_str(&w->text, first ? "" : ",");
        add_key(w, place, name);
        return;
    }
    krait_buf_str(&w->text, first ? " " : ", ");
    if (place.names)
        krait_buf_fmt(&w->text, "%s = ", name);
}

static bool is_quoted(const struct krait_fc *fc, struct place place)
{
    return (place.form == KRAIT_FORM_JSON || place.form == KRAIT_FORM_JSON_CELL) &&
           fc->kind == KRAIT_FC_INT && fc->form != KRAIT_INT_BOOL && fc->bits > KRAIT_JSON_EXACT_BITS;
}

/* -- values -- */

static void write_fc(struct writer *w, const struct krait_fc *fc, struct place place);

static void write_scalar(struct writer *w, const struct krait_fc *fc, struct place place)
{
    struct krait_words *words = next_words(w, place);
    bool quoted = is_quoted(fc, place);
    if (quoted)
        add_quote(w, place);
    take_text(w, words);
    if (quoted)
        add_quote(w, place);
}

/* Of characters: the quotes that JSON has around them whatever they are. */
static void write_chars(struct writer *w, struct place place)
{
    struct krait_words *words = next_words(w, place);
    bool quoted = place.form == KRAIT_FORM_JSON || place.form == KRAIT_FORM_JSON_CELL;
    if (quoted)
        add_quote(w, place);
    take_text(w, words);
    if (quoted)
        add_quote(w, place);
}

/* What a cell's value is that is no number and no text: JSON. Returns how its parts stand. */
static struct place enter_cell(struct writer *w, struct place place)
{
    if (place.form != KRAIT_FORM_CELL)
        return place;
    add_mark(w, place, "", "\"");
    place.form = KRAIT_FORM_JSON_CELL;
    return place;
}

static void leave_cell(struct writer *w, struct place outer)
{
    if (outer.form == KRAIT_FORM_CELL)
        add_mark(w, outer, "", "\"");
}

static void write_struct(struct writer *w, const struct krait_fc *fc, struct place outer)
{
    bool any = false;
    struct place place = enter_cell(w, outer);
    add_mark(w, place, "{", "{");
    for (uint32_t i = 0; i < fc->count; i++) {
        const struct krait_fc_member *member = &fc->members[i];
        struct place inner = place;
        inner.hidden = place.hidden || (place.form == KRAIT_FORM_TEXT && !is_shown(member->fc));
        begin_member(w, inner, member->name, !any);
        any = any || !inner.hidden;
        write_fc(w, member->fc, inner);
    }
    add_mark(w, place, " }", "}");
    leave_cell(w, outer);
}

static void write_block(struct writer *w, const struct krait_fc *fc, struct place place)
{
    write_fc(w, fc, place);
    take_end(w, place);
}

static void write_array(struct writer *w, const struct krait_fc *fc, struct place outer)
{
    struct place place = enter_cell(w, outer);
    struct krait_words *words = next_words(w, place);
    words->named = place.names;
    add_mark(w, place, fc->is_blob ? "{" : "[", "[");
    take_text(w, words);
    write_block(w, fc->elem, place);
    add_mark(w, place, fc->is_blob ? " }" : " ]", "]");
    leave_cell(w, outer);
}

static void write_variant(struct writer *w, const struct krait_fc *fc, struct place place)
{
    struct krait_words *words = next_words(w, place);
    add_mark(w, place, "{ ", "");
    take_text(w, words);
    for (uint32_t i = 0; i < fc->count; i++)
        write_block(w, fc->members[i].fc, place);
    add_mark(w, place, " }", "");
}

/* The braces are of the value: what is not there has none. */
static void write_optional(struct writer *w, const struct krait_fc *fc, struct place place)
{
    take_text(w, next_words(w, place));
    add_mark(w, place, "{ ", "");
    write_fc(w, fc->members[0].fc, place);
    add_mark(w, place, " }", "");
    take_end(w, place);
    add_mark(w, place, "<none>", "null");
    take_end(w, place);
}

static void write_fc(struct writer *w, const struct krait_fc *fc, struct place place)
{
    bool is_list = fc->kind == KRAIT_FC_ARRAY || fc->kind == KRAIT_FC_SEQUENCE;
    if (fc->kind == KRAIT_FC_STRUCT)
        write_struct(w, fc, place);
    else if (fc->kind == KRAIT_FC_VARIANT)
        write_variant(w, fc, place);
    else if (fc->kind == KRAIT_FC_OPTIONAL)
        write_optional(w, fc, place);
    else if (fc->kind == KRAIT_FC_STRING || (is_list && fc->is_text))
        write_chars(w, place);
    else if (is_list)
        write_array(w, fc, place);
    else
        write_scalar(w, fc, place);
}

/* -- scopes -- */

const struct krait_fc *krait_scope_of(const struct krait_event_class *event, enum krait_scope scope)
{
    const struct krait_fc *const of[] = { event->stream->packet_context, event->stream->event_context,
                                          event->context, event->fields };
    return of[scope];
}

static void write_text_scope(struct writer *w, const struct krait_fc *fc, const char *name, bool names,
                             const struct krait_words_plan *plan, bool *any)
{
    bool hidden = !is_shown(fc);
    if (!hidden && *any)
        krait_buf_str(&w->text, ", ");
    if (!hidden && (plan->flags & KRAIT_TEXT_SCOPE_NAMES))
        krait_buf_fmt(&w->text, "%s = ", name);
    *any = *any || !hidden;
    write_fc(w, fc, (struct place){ .names = names, .hidden = hidden });
}

bool krait_data_shows(enum krait_scope scope, const struct krait_fc *member)
{
    return scope != KRAIT_SCOPE_PACKET_CONTEXT || !krait_fc_is_int(member) || !member->meanings;
}

/* A scope's members; `place` is of each. */
static void write_members(struct writer *w, const struct krait_fc *fc, enum krait_scope scope,
                          struct place place)
{
    bool any = false;
    for (uint32_t i = 0; i < fc->count; i++) {
        const struct krait_fc_member *member = &fc->members[i];
        struct place inner = place;
        inner.hidden = !krait_data_shows(scope, member->fc);
        if (place.form != KRAIT_FORM_CELL)
            begin_member(w, inner, member->name, !any);
        else
            add_mark(w, inner, "", ",");
        any = any || !inner.hidden;
        write_fc(w, member->fc, inner);
    }
}

static void write_data_scope(struct writer *w, const struct krait_fc *fc, enum krait_scope scope,
                             const char *name, enum krait_form form)
{
    if (form == KRAIT_FORM_JSON_CELL)
        krait_buf_str(&w->text, fc ? ",\"" : ",");
    if (!fc)
        return;
    if (form == KRAIT_FORM_JSON)
        krait_buf_fmt(&w->text, KRAIT_JSON_NEXT("%s"), name);
    krait_buf_str(&w->text, form == KRAIT_FORM_CELL ? "" : "{");
    write_members(w, fc, scope, (struct place){ .names = true, .form = form });
    krait_buf_str(&w->text, form == KRAIT_FORM_CELL ? "" : "}");
    krait_buf_str(&w->text, form == KRAIT_FORM_JSON_CELL ? "\"" : "");
}

static enum krait_form form_of(unsigned flags)
{
    return flags & KRAIT_TEXT_JSON         ? KRAIT_FORM_JSON
           : flags & KRAIT_TEXT_CELLS      ? KRAIT_FORM_CELL
           : flags & KRAIT_TEXT_JSON_CELLS ? KRAIT_FORM_JSON_CELL
                                           : KRAIT_FORM_TEXT;
}

static void write_scope(struct writer *w, const struct krait_words_plan *plan, enum krait_scope scope,
                        bool *any)
{
    const struct krait_fc *fc = krait_scope_of(plan->event, scope);
    const char *name = plan->scope_names[scope];
    enum krait_form form = form_of(plan->flags);
    bool names =
        plan->flags & (scope == KRAIT_SCOPE_PAYLOAD ? KRAIT_TEXT_FIELD_NAMES : KRAIT_TEXT_CONTEXT_NAMES);
    if (form != KRAIT_FORM_TEXT)
        write_data_scope(w, fc, scope, name, form);
    else if (fc)
        write_text_scope(w, fc, name, names, plan, any);
}

const struct krait_words *krait_words_new(struct krait_arena *arena, const struct krait_words_plan *plan)
{
    const struct krait_program *program = plan->program;
    struct writer w = { .arena = arena, .ops = program->ops };
    bool any = false;
    w.words = krait_arena_alloc(arena, program->count * sizeof(*w.words));
    if (!w.words)
        return NULL;
    memset(w.words, 0, program->count * sizeof(*w.words));
    for (enum krait_scope scope = plan->first; scope <= plan->last; scope++)
        write_scope(&w, plan, scope, &any);
    take_end(&w, (struct place){ 0 });
    krait_buf_done(&w.text);
    return w.failed ? NULL : w.words;
}
