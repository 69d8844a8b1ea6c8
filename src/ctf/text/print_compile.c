/* SPDX-License-Identifier: Apache-2.0
 *
 * Instructions to steps: print.h says what they are.
 */
#include "ctf/text/print.h"

#include "base/csv.h"
#include "base/json.h"
#include "base/shortest.h"
#include "ctf/scalar/real.h"

#include <string.h>

struct compiler {
    struct krait_arena *arena;
    struct krait_map *texts;
    const struct krait_program *program;
    const struct krait_words *words; /* of its instructions */
    struct krait_print *print;
    struct krait_step *steps;
    uint32_t count;
    uint32_t *step_of; /* by instruction */
    uint32_t *need;    /* by step: bytes that it and those behind it take before one asks */
    uint32_t *place;   /* by instruction of the stretch: bytes from its begin, of a field its run's */
    uint32_t end;      /* instructions before this one are of the stretch */
};

enum { ASKS = -1 };

static const struct {
    int most;
    bool is_block;
} rows[] = {
#define STEP(code, most, print)  [KRAIT_STEP_##code] = { most, false },
#define BLOCK(code, most, print) [KRAIT_STEP_##code] = { most, true },
#include "ctf/text/print_steps.def"
};

/* -- which step an instruction becomes -- */

/* Printed by nothing but its width, sign and base. */
static bool is_plain_int(const struct krait_op *op, bool is_data)
{
    const struct krait_fc *fc = op->fc;
    bool is_number = fc->form == KRAIT_INT_NUMBER || fc->form == KRAIT_INT_BITS ||
                     (is_data && fc->form == KRAIT_INT_FLAGS);
    return fc->kind == KRAIT_FC_INT && is_number && (is_data || fc->base == 10 || fc->base == 16) &&
           !(op->flags & (KRAIT_OPF_BUSY | (op->bits > 8 ? KRAIT_OPF_SWAP : 0)));
}

/* Labels whose texts are ready, before a decimal number; little-endian, as most are. */
static bool is_plain_enum(const struct krait_op *op, bool is_data)
{
    const struct krait_fc *fc = op->fc;
    return fc->kind == KRAIT_FC_ENUM && fc->form == KRAIT_INT_NUMBER &&
           (is_data || (fc->base == 10 && !fc->labels->is_deep)) &&
           !(op->flags & (KRAIT_OPF_BUSY | (op->bits > 8 ? KRAIT_OPF_BE : 0)));
}

static enum krait_step_code int_step(const struct krait_op *op, bool is_data)
{
    static const uint8_t codes[3][4] = {
        { KRAIT_STEP_U8, KRAIT_STEP_U16, KRAIT_STEP_U32, KRAIT_STEP_U64 },
        { KRAIT_STEP_I8, KRAIT_STEP_I16, KRAIT_STEP_I32, KRAIT_STEP_I64 },
        { KRAIT_STEP_X8, KRAIT_STEP_X16, KRAIT_STEP_X32, KRAIT_STEP_X64 },
    };
    if (is_plain_enum(op, is_data))
        return is_data ? KRAIT_STEP_DATA_ENUM : KRAIT_STEP_ENUM;
    if (!is_plain_int(op, is_data))
        return is_data ? KRAIT_STEP_DATA_INT : KRAIT_STEP_INT;
    int how = op->fc->base == 16 && !is_data ? 2 : op->flags & KRAIT_OPF_SIGNED ? 1 : 0;
    return codes[how][__builtin_ctz(op->bits / 8u)];
}

/* As programs read it. */
static enum krait_step_code data_step(const struct krait_op *op, enum krait_form form)
{
    static const uint8_t codes[] = {
        [KRAIT_DO_BITS] = KRAIT_STEP_DATA_BITS,  [KRAIT_DO_FLOAT] = KRAIT_STEP_DATA_FLOAT,
        [KRAIT_DO_LEB] = KRAIT_STEP_DATA_LEB,    [KRAIT_DO_STRING] = KRAIT_STEP_JSON_STRING,
        [KRAIT_DO_TEXT] = KRAIT_STEP_JSON_ARRAY, [KRAIT_DO_TEXT_SEQ] = KRAIT_STEP_JSON_SEQUENCE,
        [KRAIT_DO_ARRAY] = KRAIT_STEP_DATA_LIST, [KRAIT_DO_SEQUENCE] = KRAIT_STEP_DATA_LIST_SEQUENCE,
        [KRAIT_DO_VARIANT] = KRAIT_STEP_VARIANT, [KRAIT_DO_END] = KRAIT_STEP_END,
    };
    static const uint8_t cells[] = { [KRAIT_DO_STRING] = KRAIT_STEP_CELL_STRING,
                                     [KRAIT_DO_TEXT] = KRAIT_STEP_CELL_ARRAY,
                                     [KRAIT_DO_TEXT_SEQ] = KRAIT_STEP_CELL_SEQUENCE };
    static const uint8_t wide[] = { [KRAIT_DO_STRING] = KRAIT_STEP_DATA_WIDE_STRING,
                                    [KRAIT_DO_TEXT] = KRAIT_STEP_DATA_WIDE_ARRAY,
                                    [KRAIT_DO_TEXT_SEQ] = KRAIT_STEP_DATA_WIDE_SEQUENCE };
    bool is_text = op->code >= KRAIT_DO_STRING && op->code <= KRAIT_DO_TEXT_SEQ;
    if (is_text && op->fc->encoding)
        return wide[op->code];
    return is_text && form == KRAIT_FORM_CELL ? cells[op->code] : codes[op->code];
}

static enum krait_step_code step_code(const struct compiler *c, uint32_t i)
{
    const struct krait_op *op = &c->program->ops[i];
    const struct krait_words *words = &c->words[i];
    bool is_data = words->form != KRAIT_FORM_TEXT;
    static const struct {
        uint8_t usual, other; /* texts: of wider units; arrays: blobs */
    } codes[] = {
        [KRAIT_DO_BITS] = { KRAIT_STEP_BITS, KRAIT_STEP_BITS },
        [KRAIT_DO_FLOAT] = { KRAIT_STEP_FLOAT, KRAIT_STEP_FLOAT },
        [KRAIT_DO_LEB] = { KRAIT_STEP_LEB, KRAIT_STEP_LEB },
        [KRAIT_DO_STRING] = { KRAIT_STEP_STRING, KRAIT_STEP_WIDE_STRING },
        [KRAIT_DO_TEXT] = { KRAIT_STEP_TEXT_ARRAY, KRAIT_STEP_WIDE_ARRAY },
        [KRAIT_DO_TEXT_SEQ] = { KRAIT_STEP_TEXT_SEQUENCE, KRAIT_STEP_WIDE_SEQUENCE },
        [KRAIT_DO_ARRAY] = { KRAIT_STEP_ARRAY, KRAIT_STEP_BLOB_ARRAY },
        [KRAIT_DO_SEQUENCE] = { KRAIT_STEP_SEQUENCE, KRAIT_STEP_BLOB_SEQUENCE },
        [KRAIT_DO_VARIANT] = { KRAIT_STEP_VARIANT, KRAIT_STEP_VARIANT },
        [KRAIT_DO_END] = { KRAIT_STEP_END, KRAIT_STEP_END },
    };
    if (op->code == KRAIT_DO_RUN)
        return KRAIT_STEP_RUN;
    if (words->hidden)
        return op->next ? KRAIT_STEP_PASS_BLOCK : KRAIT_STEP_PASS;
    if (op->code == KRAIT_DO_INT)
        return int_step(op, is_data);
    if (is_data)
        return data_step(op, words->form);
    bool is_array = op->code == KRAIT_DO_ARRAY || op->code == KRAIT_DO_SEQUENCE;
    bool other = op->fc && (is_array ? op->fc->is_blob : op->fc->encoding);
    return other ? codes[op->code].other : codes[op->code].usual;
}

/* What always stands between the text and the value. */
static const char *text_end(enum krait_step_code code)
{
    if (code >= KRAIT_STEP_X8 && code <= KRAIT_STEP_X64)
        return "0x";
    return code >= KRAIT_STEP_STRING && code <= KRAIT_STEP_TEXT_SEQUENCE ? "\"" : "";
}

/* -- stretches: runs and texts of fixed size, behind each other -- */

static bool is_nothing(const struct compiler *c, uint32_t i)
{
    const struct krait_op *op = &c->program->ops[i];
    return op->code == KRAIT_DO_INT && c->words[i].hidden && !(op->flags & KRAIT_OPF_BUSY);
}

/* Whether it needs no more than its place. */
static bool is_placed_int(enum krait_step_code code)
{
    return code != KRAIT_STEP_INT && code != KRAIT_STEP_DATA_INT && code != KRAIT_STEP_PASS;
}

/* What a text of known length becomes within a stretch; KRAIT_STEP_END: it is none. */
static enum krait_step_code placed_text(enum krait_step_code code)
{
    return code == KRAIT_STEP_TEXT_ARRAY   ? KRAIT_STEP_PLACED_TEXT
           : code == KRAIT_STEP_JSON_ARRAY ? KRAIT_STEP_JSON_PLACED
           : code == KRAIT_STEP_CELL_ARRAY ? KRAIT_STEP_CELL_PLACED
                                           : KRAIT_STEP_END;
}

/* Whether all of its fields are integers that need no more than their place. */
static bool is_plain_run(const struct compiler *c, uint32_t run)
{
    const struct krait_op *ops = c->program->ops;
    bool plain = ops[run].align >= 8;
    for (uint32_t i = run + 1; plain && i < ops[run].next; i++)
        plain = is_nothing(c, i) || (ops[i].code == KRAIT_DO_INT && is_placed_int(step_code(c, i)));
    return plain;
}

/* Whether it can be a part, of `size` bits. */
static bool is_part(const struct compiler *c, uint32_t i, uint64_t *size)
{
    const struct krait_op *op = &c->program->ops[i];
    const uint64_t most = 1u << 24;
    *size = op->code == KRAIT_DO_TEXT ? op->size * 8 : op->size;
    if (op->size > most)
        return false;
    return op->code == KRAIT_DO_RUN ? is_plain_run(c, i) : placed_text(step_code(c, i)) != KRAIT_STEP_END;
}

/* Finds the stretch that begins with a run, and the place of all that is in it. Returns its size in bits, 0
 * if there is none. */
static uint64_t find_stretch(struct compiler *c, uint32_t first)
{
    const struct krait_op *ops = c->program->ops;
    uint64_t all = 0, size;
    uint32_t i = first;
    while ((i == first || i != c->program->first_scope) && is_part(c, i, &size) &&
           ops[i].align <= ops[first].align) {
        uint64_t at = (all + ops[i].align - 1) & ~(uint64_t)(ops[i].align - 1);
        uint32_t next = ops[i].code == KRAIT_DO_RUN ? ops[i].next : i + 1;
        if (at % 8 || at + size > UINT32_MAX)
            break;
        for (; i < next; i++)
            c->place[i] = (uint32_t)(at / 8);
        all = at + size;
    }
    c->end = i;
    return all;
}

/* -- steps -- */

static struct krait_step *add_step(struct compiler *c, enum krait_step_code code, uint32_t i)
{
    const struct krait_op *op = &c->program->ops[i];
    struct krait_step *step = &c->steps[c->count++];
    *step = (struct krait_step){ .code = (uint8_t)code,
                                 .form = c->words[i].form & 3,
                                 .is_named = c->words[i].named,
                                 .op = op,
                                 .size = op->size };
    return step;
}

/* Within a stretch, what is checked once for all of it is not checked again. */
static void place_step(const struct compiler *c, struct krait_step *step, uint32_t i)
{
    const struct krait_op *op = &c->program->ops[i];
    bool placed = i < c->end;
    if (op->code == KRAIT_DO_RUN)
        step->align = op->align;
    else if (op->code == KRAIT_DO_INT)
        step->at = (placed ? c->place[i] : 0) + op->off / 8;
    else if (placed)
        step->at = c->place[i];
    if (placed && placed_text(step->code) != KRAIT_STEP_END)
        step->code = (uint8_t)placed_text(step->code);
    if (step->code == KRAIT_STEP_ENUM || step->code == KRAIT_STEP_DATA_ENUM) {
        step->unused = (uint8_t)(64 - op->bits);
        step->is_signed = op->flags & KRAIT_OPF_SIGNED;
    }
    if (step->code == KRAIT_STEP_ENUM)
        step->labels = op->fc->labels;
}

/* -- labels as data -- */

/* {"value":5,"label":"A"}, or what is behind the value. */
static void add_json_label(struct krait_buf *text, const struct krait_fc *fc,
                           const struct krait_enum_range *piece)
{
    const char *quote = fc->bits > KRAIT_JSON_EXACT_BITS ? "\"" : "";
    if (piece->lo == piece->hi && fc->is_signed)
        krait_buf_fmt(text, KRAIT_JSON_FIRST("value") "%s%lld%s", quote, (long long)piece->lo, quote);
    else if (piece->lo == piece->hi)
        krait_buf_fmt(text, KRAIT_JSON_FIRST("value") "%s%llu%s", quote, (unsigned long long)piece->lo,
                      quote);
    krait_buf_str(text, KRAIT_JSON_NEXT("label"));
    krait_json_cstr(text, piece->label);
    krait_buf_char(text, '}');
}

static void add_label(struct krait_buf *text, const struct krait_fc *fc, const struct krait_enum_range *piece,
                      enum krait_form form)
{
    KRAIT_AUTO_BUF json = { 0 };
    if (form == KRAIT_FORM_CELL) {
        krait_csv_cstr(text, piece->label);
        return;
    }
    add_json_label(&json, fc, piece);
    for (size_t i = 0; i < json.len; i++) {
        krait_buf_char(text, json.data[i]);
        if (form == KRAIT_FORM_JSON_CELL && json.data[i] == '"')
            krait_buf_char(text, '"');
    }
    text->failed = text->failed || json.failed;
}

static struct krait_label_text *new_texts(struct compiler *c, const struct krait_fc *fc, enum krait_form form)
{
    KRAIT_AUTO_BUF text = { 0 };
    uint32_t count = fc->labels->piece_count;
    struct krait_label_text *texts = krait_arena_alloc(c->arena, KRAIT_MAX(count, 1u) * sizeof(*texts));
    for (uint32_t i = 0; texts && i < count; i++) {
        const struct krait_enum_range *piece = &fc->labels->pieces[i];
        krait_buf_clear(&text);
        add_label(&text, fc, piece, form);
        texts[i].len = (uint32_t)text.len;
        texts[i].is_whole = form == KRAIT_FORM_CELL || piece->lo == piece->hi;
        texts[i].text =
            text.failed ? NULL : krait_arena_strndup(c->arena, text.data ? text.data : "", text.len);
        if (!texts[i].text)
            return NULL;
    }
    return texts;
}

/* Of the enumeration's labels in that form, made at most once: numbers of more than 53 bits, and signed ones, have
 * others. */
static int add_texts(struct compiler *c, struct krait_step *step)
{
    const struct krait_fc *fc = step->op->fc;
    uint64_t key = (uintptr_t)fc->labels * 16 + step->form * 4u + fc->is_signed * 2u +
                   (fc->bits > KRAIT_JSON_EXACT_BITS);
    const uint64_t *known = krait_map_get(c->texts, key);
    if (known) {
        step->texts = (const struct krait_label_text *)(uintptr_t)*known;
        return 0;
    }
    step->texts = new_texts(c, fc, step->form);
    return step->texts ? krait_map_put(c->texts, key, (uintptr_t)step->texts) : -ENOMEM;
}

static bool has_texts(const struct krait_step *step)
{
    bool may = step->code >= KRAIT_STEP_DATA_ENUM && step->code <= KRAIT_STEP_DATA_LEB;
    return may && step->op->fc->kind == KRAIT_FC_ENUM;
}

/* The text before a value is in its step, or in a step of its own when it is long. */
static void add_op(struct compiler *c, uint32_t i)
{
    const struct krait_words *words = &c->words[i];
    enum krait_step_code code = step_code(c, i);
    const char *end = text_end(code);
    size_t end_len = strlen(end), len = words->len;
    if (len + end_len > KRAIT_STEP_TEXT_MAX) {
        struct krait_step *alone = add_step(c, KRAIT_STEP_LONG_TEXT, i);
        alone->long_text = words->text;
        alone->len = words->len;
        len = 0;
    }
    struct krait_step *step = add_step(c, code, i);
    if (len)
        memcpy(step->text, words->text, len);
    memcpy(step->text + len, end, end_len);
    step->text_len = (uint8_t)(len + end_len);
    place_step(c, step, i);
}

/* Where a run is the begin of a stretch, one step stands for all of its runs. */
static void add_run(struct compiler *c, uint32_t i)
{
    if (i < c->end)
        return;
    uint64_t size = find_stretch(c, i);
    if (c->end == i) {
        add_op(c, i);
        return;
    }
    struct krait_step *step = add_step(c, KRAIT_STEP_STRETCH, i);
    step->align = step->op->align;
    step->size = size;
    if (i == 0 && c->end == c->program->first_scope && size <= KRAIT_PRINT_CONTEXT_MAX * 8)
        c->print->context_size = (uint32_t)size / 8;
}

/* Behind a first scope that is one stretch: its text is a matter of its bytes alone. */
static void end_context(struct compiler *c, uint32_t i)
{
    if (i != c->program->first_scope || !c->print->context_size)
        return;
    add_step(c, KRAIT_STEP_CONTEXT_END, i);
    c->print->context_align = c->program->ops[0].align;
    c->print->behind_context = c->count;
}

static void add_steps(struct compiler *c)
{
    for (uint32_t i = 0; i < c->program->count; i++) {
        end_context(c, i);
        c->step_of[i] = c->count;
        if (c->program->ops[i].code == KRAIT_DO_RUN)
            add_run(c, i);
        else if (!is_nothing(c, i))
            add_op(c, i);
    }
}

/* Where blocks end, and their options begin. */
static int link_block(struct compiler *c, struct krait_step *step)
{
    const struct krait_op *op = step->op;
    uint32_t at = (uint32_t)(step - c->steps);
    step->behind = c->step_of[op->next] - at - 1;
    if (step->code != KRAIT_STEP_VARIANT)
        return 0;
    uint32_t count = op->fc->kind == KRAIT_FC_OPTIONAL ? 2 : op->fc->count;
    uint32_t *options = krait_arena_alloc(c->arena, KRAIT_MAX(count, 1u) * sizeof(*options));
    if (!options)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        options[i] = c->step_of[op->options[i]] - at;
    step->options = options;
    return 0;
}

/* Of all steps, what they point to. */
static int link_steps(struct compiler *c)
{
    int rc = 0;
    for (uint32_t i = 0; i < c->count && !rc; i++) {
        if (has_texts(&c->steps[i]))
            rc = add_texts(c, &c->steps[i]);
        else if (c->steps[i].code != KRAIT_STEP_END && rows[c->steps[i].code].is_block)
            rc = link_block(c, &c->steps[i]);
    }
    return rc;
}

/* -- room -- */

/* What any of a block's parts takes at its begin. */
static uint32_t need_inside(const struct compiler *c, uint32_t at)
{
    const struct krait_step *step = &c->steps[at];
    const struct krait_fc *fc = step->op->fc;
    uint32_t most = c->need[at + 1];
    if (step->code != KRAIT_STEP_VARIANT)
        return most;
    for (uint32_t i = 0; i < (fc->kind == KRAIT_FC_OPTIONAL ? 2 : fc->count); i++)
        most = KRAIT_MAX(most, c->need[at + step->options[i]]);
    return most;
}

/* From the last step to the first; behind END nothing comes. */
static void count_room(struct compiler *c)
{
    for (uint32_t i = c->count; i-- > 0;) {
        struct krait_step *step = &c->steps[i];
        c->need[i] = step->text_len;
        if (step->code == KRAIT_STEP_END)
            continue;
        bool is_block = rows[step->code].is_block;
        int most = rows[step->code].most;
        uint32_t behind = c->need[i + 1 + (is_block ? step->behind : 0)];
        step->room = behind;
        step->inside = is_block ? need_inside(c, i) : 0;
        c->need[i] += most == ASKS ? 0 : (uint32_t)most + behind;
    }
}

int krait_print_compile(struct krait_print *print, struct krait_arena *arena,
                        const struct krait_words_plan *plan, struct krait_map *texts)
{
    const struct krait_program *program = plan->program;
    uint32_t most = program->count * 2 + 1; /* each may have a step for its text; and CONTEXT_END */
    KRAIT_AUTO_FREE uint32_t *step_of = calloc(program->count, sizeof(*step_of));
    KRAIT_AUTO_FREE uint32_t *need = calloc(most, sizeof(*need));
    KRAIT_AUTO_FREE uint32_t *place = calloc(program->count, sizeof(*place));
    struct krait_step *steps = krait_arena_alloc(arena, most * sizeof(*steps));
    struct compiler c = { .arena = arena,
                          .texts = texts,
                          .program = program,
                          .words = krait_words_new(arena, plan),
                          .print = print,
                          .steps = steps,
                          .step_of = step_of,
                          .need = need,
                          .place = place };
    if (!step_of || !need || !place || !steps || !c.words)
        return -ENOMEM;
    *print = (struct krait_print){ .program = program, .steps = steps, .context_align = 1 };
    add_steps(&c);
    if (link_steps(&c))
        return -ENOMEM;
    count_room(&c);
    for (uint32_t i = 0; i < c.count; i++)
        print->has_text = print->has_text || steps[i].text_len || steps[i].code == KRAIT_STEP_LONG_TEXT;
    print->steps_room = KRAIT_MAX(need[0], need[print->behind_context]);
    return 0;
}
