/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/rows/emit_x86.h"

#if defined(__x86_64__) && defined(__LP64__)

#include <string.h>
#include <sys/mman.h>

/* Bytes of code: more than any step, and any class besides its steps, takes. */
enum { STEP_ROOM = 96, CLASS_ROOM = 448, SHARED_ROOM = 1024 };

/* A header may be read that begins behind the end, at the next multiple of 8 bytes. */
enum { MOST_HEADER = KRAIT_EMIT_BEYOND - 7 };

/* How many bytes ahead memory is asked for: processors do not look beyond the page by themselves. */
enum { PREFETCH = 4096 };

struct krait_engine {
    uint8_t *code;
    size_t size;
    const uint8_t **table;
    const uint8_t **by_id; /* the second part of the table */
    void (*run)(struct krait_emit_run *, const uint8_t *const *by_id);
};

/* -- what all classes share -- */

static const int saved[] = { RBX, RBP, R12, R13, R14, R15 };

/* Where a register is in struct krait_emit_run. */
struct home {
    int reg;
    size_t offset;
};

#define HOME(r, member)                            \
    {                                              \
        r, offsetof(struct krait_emit_run, member) \
    }

static const struct home homes[] = {
    HOME(AT, at),         HOME(END, end),     HOME(CLOCK, clock),  HOME(BASE, base),
    HOME(ORIGIN, origin), HOME(CELLS, cells), HOME(CELL, cell_at), HOME(ROW, rows),
};
static const struct home moved[] = { HOME(AT, at), HOME(CLOCK, clock), HOME(CELL, cell_at), HOME(ROW, rows) };

/* What moved goes back to the run. Nothing of counting moves the row. */
static void emit_stop(struct emitter *e)
{
    struct krait_x86 *c = &e->c;
    e->stop = c->at;
    bool counting = e->plan->mode == KRAIT_EMIT_COUNT;
    move(c, AT, EVENT);
    krait_x86_pop(c, RDX);
    krait_x86_pop(c, RCX);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(moved) - counting; i++)
        store64(c, of_run(RDX, moved[i].offset), moved[i].reg);
    for (size_t i = KRAIT_ARRAY_LEN(saved); i-- > 0;)
        krait_x86_pop(c, saved[i]);
    krait_x86_ret(c);
}

/* -- event headers -- */

/* TIME from the `bits` low bits of it in RCX: the clock wraps at most once between two events. */
static void emit_partial_time(struct krait_x86 *c, unsigned bits)
{
    krait_x86_rr(c, X86_SUB, X86_32, RCX, CLOCK);
    if (bits < 32)
        krait_x86_imm(c, X86_IMM_AND, X86_32, RCX, (int32_t)((1u << bits) - 1));
    krait_x86_rm(c, X86_LEA, X86_64, TIME, X86_INDEX(CLOCK, RCX, 0, 0));
}

/* TIME was read whole: the careful reader takes what goes backward, and steps so long that those of one run
 * could come round. */
static void emit_whole_time(struct emitter *e)
{
    move(&e->c, RCX, TIME);
    krait_x86_rr(&e->c, X86_SUB, X86_64, RCX, CLOCK);
    krait_x86_shift(&e->c, X86_SHR, X86_64, RCX, KRAIT_EMIT_STEP_BITS);
    stop_if(e, X86_NE);
}

/* TIME of the event whose header ends at AT. */
static void emit_time(struct emitter *e)
{
    const struct krait_header_form *form = e->plan->header;
    struct krait_x86 *c = &e->c;
    struct krait_x86_mem at = X86_AT(AT, (int32_t)form->time_at - (int32_t)form->size);
    if (e->tags.extend) { /* the time is what the tag leaves of the last 32 bits */
        unsigned bits = form->shape == KRAIT_SHAPE_COMPACT ? 27 : 32;
        krait_x86_rm(c, X86_LOAD, X86_32, RCX, X86_AT(AT, -4));
        krait_x86_shift(c, X86_SHR, X86_32, RCX, 32 - bits);
        emit_partial_time(c, bits);
    } else if (!form->time_bits) {
        move(c, TIME, CLOCK);
    } else if (form->time_bits == 64) {
        load64(c, TIME, at);
        emit_whole_time(e);
    } else {
        krait_emit_x86_uint(c, RCX, at, form->time_bits);
        emit_partial_time(c, form->time_bits);
    }
}

/* Where an extended header at AT + off has its id, a u32. */
static struct krait_x86_mem extended_id(const struct emitter *e, int32_t off)
{
    return X86_AT(AT, off + (int32_t)(e->tags.bits + 7) / 8);
}

/* Whether many classes have ids that no tag can say (LTTng's of the kernel): extended headers are usual then. */
static bool extends_often(const struct emitter *e)
{
    return e->tags.extend && e->plan->id_count > e->tags.count;
}

/* NEXT from the tag of the event at AT + off, or from its id without a jump, where that is usual: tags are
 * then numbers below 0, so that what says that there is an id makes the tag's number too. The event may lie
 * behind the packet's end: any bytes lead somewhere, where its header's room is checked. */
static void emit_look_ahead(struct emitter *e, int32_t off)
{
    struct krait_x86 *c = &e->c;
    const struct tags *tags = &e->tags;
    int32_t below = 0;
    if (tags->bits)
        krait_emit_x86_uint(c, RAX, X86_AT(AT, off + (int32_t)tags->at), (tags->bits + 7) / 8 * 8);
    else
        krait_x86_mov_imm(c, RAX, (uint32_t)e->plan->header->only_id);
    if (tags->bits % 8)
        krait_x86_imm(c, X86_IMM_AND, X86_32, RAX, (int32_t)(1u << tags->bits) - 1);
    if (extends_often(e)) {
        krait_x86_rm(c, X86_LOAD, X86_32, RCX, extended_id(e, off));
        krait_x86_imm(c, X86_IMM_SUB, X86_64, RAX, (int32_t)tags->count);
        krait_x86_rr(c, X86_CMOVE, X86_64, RAX, RCX);
        krait_x86_imm(c, X86_IMM_CMP, X86_64, RAX, (int32_t)e->plan->id_count);
        e->glance.beyond = krait_x86_leap(c, X86_GE);
    } else {
        below = (int32_t)(tags->count * sizeof(const uint8_t *));
        krait_x86_imm(c, X86_IMM_CMP, X86_64, RAX, (int32_t)tags->count);
        e->glance.beyond = krait_x86_leap(c, X86_AE);
    }
    load64(c, NEXT, X86_INDEX(TABLE, RAX, 3, -below));
    e->glance.back = c->at;
    e->glance.off = off;
}

/* What is in RAX is not in the table: NEXT by the id behind the tag, if it says that there is one. */
static void emit_beyond(struct emitter *e)
{
    struct krait_x86 *c = &e->c;
    krait_x86_land(c, e->glance.beyond);
    krait_x86_mov_imm(c, RCX, e->plan->id_count);
    if (e->tags.extend && !extends_often(e)) {
        krait_x86_imm(c, X86_IMM_CMP, X86_32, RAX, (1 << e->tags.bits) - 1);
        krait_x86_rm(c, X86_LOAD, X86_32, RAX, extended_id(e, e->glance.off));
        krait_x86_rr(c, X86_CMOVNE, X86_32, RAX, RCX);
        krait_x86_rr(c, X86_CMP, X86_64, RAX, RCX);
        krait_x86_rr(c, X86_CMOVNA, X86_64, RCX, RAX);
    }
    load64(c, NEXT, X86_INDEX(TABLE, RCX, 3, 0));
    krait_x86_jump(c, X86_ALWAYS, e->glance.back);
}

/* Whether the next event's class can be looked up as soon as it is known where this one ends: nothing has to
 * be aligned first. */
static bool looks_ahead_early(const struct emitter *e)
{
    return e->plan->header->align <= 1;
}

/* Goes to the next event, which begins at AT + off, with AT at its header where that has to be aligned. */
static void emit_next(struct emitter *e, uint32_t off)
{
    struct krait_x86 *c = &e->c;
    krait_x86_rm(c, X86_LEA, X86_64, EVENT, X86_AT(AT, off));
    if (e->plan->mode != KRAIT_EMIT_COUNT) {
        krait_x86_rm(c, X86_CMP, X86_64, CELL, X86_AT(RSP, STACK_LIMIT));
        stop_if(e, X86_AE);
    }
    krait_x86_rm(c, X86_PREFETCH, X86_32, 1, X86_AT(EVENT, PREFETCH));
    if (!looks_ahead_early(e)) {
        krait_emit_x86_align_at(c, off, e->plan->header->align);
        emit_look_ahead(e, 0);
    }
    krait_x86_jump_reg(c, NEXT);
    emit_beyond(e);
}

/* AT = behind a header of `size` bytes. */
static void emit_pass_header(struct emitter *e, unsigned size)
{
    krait_x86_rm(&e->c, X86_LEA, X86_64, AT, X86_AT(looks_ahead_early(e) ? EVENT : AT, size));
}

static const uint8_t *emit_entry(struct emitter *e)
{
    struct krait_x86 *c = &e->c;
    krait_x86_align(c, 16);
    const uint8_t *entry = c->at;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(saved); i++)
        krait_x86_push(c, saved[i]);
    load64(c, RAX, of_run(RDI, offsetof(struct krait_emit_run, cell_limit)));
    krait_x86_push(c, RAX);
    krait_x86_push(c, RDI);
    move(c, RAX, RDI);
    move(c, TABLE, RSI);
    krait_x86_rr(c, X86_PXOR, X86_32, XMM0, XMM0);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(homes); i++)
        load64(c, homes[i].reg, of_run(RAX, homes[i].offset));
    if (e->plan->mode == KRAIT_EMIT_COUNT)
        load64(c, ROW, of_run(RAX, offsetof(struct krait_emit_run, counts)));
    if (looks_ahead_early(e))
        emit_look_ahead(e, 0);
    emit_next(e, 0);
    return entry;
}

/* -- steps -- */

/* How many steps there are up to the last one that decides where the event ends, or that it is there. */
static uint32_t steps_to_end(const struct krait_row_class *row)
{
    static const bool decides[] = {
        [KRAIT_ROW_ROOM] = true,     [KRAIT_ROW_STRING] = true, [KRAIT_ROW_TEXT_SEQ] = true,
        [KRAIT_ROW_VIEW_SEQ] = true, [KRAIT_ROW_ALIGN] = true,  [KRAIT_ROW_END] = false,
    };
    uint32_t n = row->step_count;
    while (n > 0 && !decides[row->steps[n - 1].code])
        n--;
    return n;
}

/* As soon as it is known where the event ends, the next one's class is looked up: it is there long before it
 * is gone to, and a processor that foretold another one learns it earlier. */
static void emit_steps(struct emitter *e, const struct krait_row_class *row)
{
    const struct krait_row_step *end = &row->steps[row->step_count - 1];
    uint32_t i = krait_emit_x86_first_room(e, row->steps), known = steps_to_end(row);
    while (i < known)
        i += krait_emit_x86_step(e, &row->steps[i]);
    if (looks_ahead_early(e))
        emit_look_ahead(e, (int32_t)end->off);
    while (&row->steps[i] < end)
        i += krait_emit_x86_step(e, &row->steps[i]);
}

/* -- classes -- */

/* The event is whole: its row counts. */
static void emit_commit_row(struct emitter *e, const struct krait_row_class *row)
{
    struct krait_x86 *c = &e->c;
    store64(c, cell(KRAIT_ROW_ORIGIN), ORIGIN);
    store64(c, cell(KRAIT_ROW_ADDRESS), EVENT);
    if (e->plan->mode == KRAIT_EMIT_ROWS_CYCLES)
        store64(c, cell(KRAIT_ROW_CYCLES), TIME);
    krait_x86_rm(c, X86_LEA, X86_64, RAX, X86_INDEX(TIME, BASE, 0, 0));
    store64(c, X86_AT(ROW, offsetof(struct krait_row, ns)), RAX);
    krait_x86_store_imm(c, X86_32, X86_AT(ROW, offsetof(struct krait_row, cls)), row->index);
    krait_x86_rm(c, X86_STORE, X86_32, CELL, X86_AT(ROW, offsetof(struct krait_row, cells)));
    krait_x86_imm(c, X86_IMM_ADD, X86_64, ROW, sizeof(struct krait_row));
    krait_x86_imm(c, X86_IMM_ADD, X86_64, CELL, row->cells);
}

static void emit_commit_count(struct emitter *e, const struct krait_row_class *row)
{
    krait_x86_inc(&e->c, X86_AT(ROW, row->event->index * sizeof(uint64_t)));
}

/* The ways into a class, with AT behind the header and TIME at their end: by its tag, if it has one, and by
 * its id, which with the time in full stands behind the tag. Neither has looked whether there is room. */
static void emit_ways_in(struct emitter *e, uint32_t id, const uint8_t **by_tag, const uint8_t **by_id)
{
    struct krait_x86 *c = &e->c;
    bool has_tag = id < e->tags.count;
    uint8_t *timed = NULL;
    if (e->tags.extend) {
        by_id[id] = c->at;
        emit_pass_header(e, (e->tags.bits + 7) / 8 + sizeof(uint32_t) + sizeof(uint64_t));
        load64(c, TIME, X86_AT(AT, -8));
        emit_whole_time(e);
        timed = has_tag ? krait_x86_leap(c, X86_ALWAYS) : NULL;
    }
    if (has_tag) {
        krait_x86_align(c, 16);
        by_tag[id] = c->at;
        emit_pass_header(e, e->tags.header);
        emit_time(e);
    }
    if (timed)
        krait_x86_land(c, timed);
}

static void emit_class(struct emitter *e, const struct krait_row_class *row)
{
    emit_steps(e, row);
    (e->plan->mode == KRAIT_EMIT_COUNT ? emit_commit_count : emit_commit_row)(e, row);
    move(&e->c, CLOCK, TIME);
    emit_next(e, row->steps[row->step_count - 1].off);
}

/* -- the whole -- */

static size_t room_needed(const struct krait_engine_plan *plan)
{
    size_t room = SHARED_ROOM;
    for (uint32_t i = 0; i < plan->id_count; i++) {
        if (plan->by_id[i] && plan->by_id[i]->steps)
            room += CLASS_ROOM + (size_t)plan->by_id[i]->step_count * STEP_ROOM;
    }
    return room;
}

/* The table: code by tag, behind it by id, for extended headers; the last is of all that has no class. */
static void emit_classes(struct emitter *e, const uint8_t **by_tag)
{
    const struct krait_engine_plan *plan = e->plan;
    const uint8_t **by_id = by_tag + e->tags.count;
    for (uint32_t i = 0; i < e->tags.count + plan->id_count + 1; i++)
        by_tag[i] = e->stop;
    for (uint32_t id = 0; id < plan->id_count; id++) {
        const struct krait_row_class *row = plan->by_id[id];
        if (!row || !row->steps)
            continue;
        krait_x86_align(&e->c, 16);
        emit_ways_in(e, id, by_tag, by_id);
        emit_class(e, row);
    }
}

static void emit_all(struct emitter *e, struct krait_engine *engine)
{
    emit_stop(e);
    krait_emit_x86_finders(e);
    const uint8_t *entry = emit_entry(e);
    memcpy(&engine->run, &entry, sizeof(engine->run)); /* ISO C has no cast from data to code */
    engine->by_id = engine->table + e->tags.count;
    emit_classes(e, engine->table);
}

static struct tags tags_of(const struct krait_engine_plan *plan)
{
    const struct krait_header_form *form = plan->header;
    if (form->shape == KRAIT_SHAPE_COMPACT)
        return (struct tags){ .bits = 5, .header = 4, .count = 31, .extend = true };
    if (form->shape == KRAIT_SHAPE_LARGE)
        return (struct tags){
            .bits = 16, .header = 6, .count = KRAIT_MIN(plan->id_count, UINT16_MAX), .extend = true
        };
    return (struct tags){
        .bits = form->id_bits, .at = form->id_at, .header = form->size, .count = plan->id_count
    };
}

static int make_code(struct krait_engine *engine, const struct krait_engine_plan *plan)
{
    engine->size = room_needed(plan);
    if (engine->size > INT32_MAX) /* jumps reach no further */
        return -ENOTSUP;
    void *code = mmap(NULL, engine->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        return -ENOTSUP;
    engine->code = code;
    struct emitter e = { .c = { .at = code, .end = engine->code + engine->size },
                         .plan = plan,
                         .tags = tags_of(plan),
                         .has_sse41 = __builtin_cpu_supports("sse4.1") };
    emit_all(&e, engine);
    if (e.c.full || mprotect(code, engine->size, PROT_READ | PROT_EXEC))
        return -ENOTSUP;
    return 0;
}

int krait_engine_new(struct krait_engine **out, const struct krait_engine_plan *plan)
{
    if (plan->header->shape == KRAIT_SHAPE_OTHER || plan->header->size > MOST_HEADER || !plan->id_count)
        return -ENOTSUP;
    struct krait_engine *engine = calloc(1, sizeof(*engine));
    if (engine)
        engine->table = calloc((size_t)tags_of(plan).count + plan->id_count + 1, sizeof(*engine->table));
    int rc = engine && engine->table ? make_code(engine, plan) : -ENOMEM;
    if (rc)
        krait_engine_free(engine);
    else
        *out = engine;
    return rc;
}

void krait_engine_free(struct krait_engine *engine)
{
    if (!engine)
        return;
    if (engine->code)
        munmap(engine->code, engine->size);
    free(engine->table);
    free(engine);
}

void krait_engine_run(const struct krait_engine *engine, struct krait_emit_run *run)
{
    engine->run(run, engine->by_id);
}

#else

int krait_engine_new(struct krait_engine **out, const struct krait_engine_plan *plan)
{
    (void)out;
    (void)plan;
    return -ENOTSUP;
}

void krait_engine_free(struct krait_engine *engine)
{
    (void)engine;
}

void krait_engine_run(const struct krait_engine *engine, struct krait_emit_run *run)
{
    (void)engine;
    (void)run;
}

#endif
