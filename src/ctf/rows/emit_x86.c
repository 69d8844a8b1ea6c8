/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/rows/emit.h"

#if defined(__x86_64__) && defined(__LP64__)

#include "ctf/rows/x86.h"

#include <string.h>
#include <sys/mman.h>

/* What stays in registers. RAX, RCX, RDX are free within a step; XMM0 is 0, XMM1 free. */
enum {
    AT = RSI,    /* the base of steps: first, behind the event's header */
    EVENT = RDI, /* the event that is being read: what a stop goes back to */
    CELL = RBP,  /* cell_at */
    ROW = RBX,   /* the next row; of counting: the counts */
    CLOCK = R8,  /* behind the last event that is whole */
    END = R9,
    NEXT = R10,  /* code of the next event's class */
    TIME = R11,  /* of the event that is being read */
    TABLE = R12, /* code by id; before it by tag */
    CELLS = R13,
    ORIGIN = R14,
    BASE = R15,
};

enum { XMM0, XMM1 };

/* What lies on the stack, as long as the code runs. */
enum { STACK_RUN = 0, STACK_LIMIT = 8 /* of CELL */ };

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

/* What stands first in an event and leads to its class: LTTng's tag, or the id itself. */
struct tags {
    unsigned bits, at; /* 0 bits: there is none */
    unsigned header;   /* bytes of the header that it begins, unless it is extended */
    uint32_t count;    /* of the table's entries by tag */
    bool extend;       /* the highest of all tags: id and time follow in full */
};

/* Where the next event's class was looked up by its tag: what has to be done for tags that are not in the
 * table stands behind the jump, out of the way. */
struct glance {
    uint8_t *beyond;     /* the jump there */
    const uint8_t *back; /* where it goes on */
    int32_t off;         /* of the next event, from AT */
};

struct emitter {
    struct krait_x86 c;
    const struct krait_engine_plan *plan;
    struct tags tags;
    const uint8_t *stop;   /* the way out, to before EVENT */
    const uint8_t *string; /* goes on where 16 bytes of a string had no NUL */
    const uint8_t *text;   /* length of RCX bytes at RDX up to a NUL */
    struct glance glance;  /* of the class that is being emitted */
    uint32_t in_rax;       /* the cell whose value RAX still has, or KRAIT_NO_ID */
    bool has_sse41;
};

static struct krait_x86_mem cell(unsigned i)
{
    return X86_INDEX(CELLS, CELL, 3, i * 8);
}

static struct krait_x86_mem of_run(int reg, size_t offset)
{
    return X86_AT(reg, offset);
}

static void load64(struct krait_x86 *c, int reg, struct krait_x86_mem mem)
{
    krait_x86_rm(c, X86_LOAD, X86_64, reg, mem);
}

static void store64(struct krait_x86 *c, struct krait_x86_mem mem, int reg)
{
    krait_x86_rm(c, X86_STORE, X86_64, reg, mem);
}

static void move(struct krait_x86 *c, int to, int from)
{
    krait_x86_rr(c, X86_LOAD, X86_64, to, from);
}

static void stop_if(struct emitter *e, enum krait_x86_cond cond)
{
    krait_x86_jump(&e->c, cond, e->stop);
}

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

/* EBX = a bit for each NUL in the 16 bytes at [base + RAX]; jumps over what follows when there is none. */
static uint8_t *emit_find_nul(struct krait_x86 *c, int base)
{
    krait_x86_rm(c, X86_MOVDQU, X86_32, XMM1, X86_INDEX(base, RAX, 0, 0));
    krait_x86_rr(c, X86_PCMPEQB, X86_32, XMM1, XMM0);
    krait_x86_rr(c, X86_PMOVMSKB, X86_32, RBX, XMM1);
    krait_x86_rr(c, X86_TEST, X86_32, RBX, RBX);
    uint8_t *none = krait_x86_skip(c, X86_E);
    krait_x86_rr(c, X86_TZCNT, X86_32, RBX, RBX);
    krait_x86_rr(c, X86_ADD, X86_64, RAX, RBX);
    return none;
}

/* A string at RDX of 16 bytes or more: its length to RAX; what has no end in the packet is as long as the
 * packet or longer. */
static void emit_string(struct emitter *e)
{
    struct krait_x86 *c = &e->c;
    e->string = c->at;
    krait_x86_push(c, RBX);
    krait_x86_mov_imm(c, RAX, 16);
    const uint8_t *loop = c->at;
    krait_x86_rm(c, X86_LEA, X86_64, RCX, X86_INDEX(RDX, RAX, 0, 0));
    krait_x86_rr(c, X86_CMP, X86_64, RCX, END);
    uint8_t *outside = krait_x86_skip(c, X86_AE);
    uint8_t *none = emit_find_nul(c, RDX);
    krait_x86_here(c, outside);
    krait_x86_pop(c, RBX);
    krait_x86_ret(c);
    krait_x86_here(c, none);
    krait_x86_imm(c, X86_IMM_ADD, X86_64, RAX, 16);
    krait_x86_jump(c, X86_ALWAYS, loop);
}

/* RCX bytes at RDX: how many stand before a NUL, to RAX. */
static void emit_text(struct emitter *e)
{
    struct krait_x86 *c = &e->c;
    e->text = c->at;
    krait_x86_push(c, RBX);
    krait_x86_rr(c, X86_XOR, X86_32, RAX, RAX);
    const uint8_t *loop = c->at;
    krait_x86_rr(c, X86_CMP, X86_64, RAX, RCX);
    uint8_t *all = krait_x86_skip(c, X86_AE);
    uint8_t *none = emit_find_nul(c, RDX);
    krait_x86_here(c, all);
    krait_x86_rr(c, X86_CMP, X86_64, RAX, RCX);
    krait_x86_rr(c, X86_CMOVA, X86_64, RAX, RCX);
    krait_x86_pop(c, RBX);
    krait_x86_ret(c);
    krait_x86_here(c, none);
    krait_x86_imm(c, X86_IMM_ADD, X86_64, RAX, 16);
    krait_x86_jump(c, X86_ALWAYS, loop);
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

/* AT goes on to the next multiple of `align` bytes of the packet behind `off` bytes. */
static void emit_align_at(struct krait_x86 *c, uint32_t off, uint32_t align)
{
    load64(c, RCX, X86_AT(RSP, STACK_RUN));
    load64(c, RCX, of_run(RCX, offsetof(struct krait_emit_run, packet)));
    krait_x86_rr(c, X86_SUB, X86_64, AT, RCX);
    krait_x86_imm(c, X86_IMM_ADD, X86_64, AT, (int32_t)(off + align - 1));
    krait_x86_imm(c, X86_IMM_AND, X86_64, AT, -(int32_t)align);
    krait_x86_rr(c, X86_ADD, X86_64, AT, RCX);
}

static void emit_uint(struct krait_x86 *c, int reg, struct krait_x86_mem mem, unsigned bits)
{
    static const enum krait_x86_op ops[] = {
        [1] = X86_MOVZX8, [2] = X86_MOVZX16, [4] = X86_LOAD, [8] = X86_LOAD
    };
    krait_x86_rm(c, ops[bits / 8], bits == 64 ? X86_64 : X86_32, reg, mem);
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
        emit_uint(c, RCX, at, form->time_bits);
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
        emit_uint(c, RAX, X86_AT(AT, off + (int32_t)tags->at), (tags->bits + 7) / 8 * 8);
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
        emit_align_at(c, off, e->plan->header->align);
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

static void emit_room_of(struct emitter *e, uint32_t n)
{
    struct krait_x86 *c = &e->c;
    if (n)
        krait_x86_rm(c, X86_LEA, X86_64, RAX, X86_AT(AT, n));
    krait_x86_rr(c, X86_CMP, X86_64, n ? RAX : AT, END);
    stop_if(e, X86_A);
}

static void emit_room(struct emitter *e, const struct krait_row_step *step)
{
    if (step->n)
        emit_room_of(e, step->n);
}

static void emit_int(struct emitter *e, const struct krait_row_step *step)
{
    struct krait_x86 *c = &e->c;
    static const enum krait_x86_op sign_extending[] = {
        [1] = X86_MOVSX8, [2] = X86_MOVSX16, [4] = X86_MOVSXD, [8] = X86_LOAD
    };
    bool is_signed = step->flags & KRAIT_ROWF_SIGNED, swap = step->flags & KRAIT_ROWF_SWAP && step->bits > 8;
    struct krait_x86_mem at = X86_AT(AT, step->off);
    if (is_signed && !swap) {
        krait_x86_rm(c, sign_extending[step->bits / 8], X86_64, RAX, at);
    } else {
        emit_uint(c, RAX, at, step->bits);
    }
    if (swap) {
        krait_x86_bswap(c, X86_64, RAX);
        krait_x86_shift(c, is_signed ? X86_SAR : X86_SHR, X86_64, RAX, 64u - step->bits);
    }
    store64(c, cell(step->cell), RAX);
}

/* Eight bytes, of which those beyond the field are shifted out. */
static void emit_bits(struct emitter *e, const struct krait_row_step *step)
{
    struct krait_x86 *c = &e->c;
    unsigned shift = step->off % 8;
    bool be = step->flags & KRAIT_ROWF_BE;
    load64(c, RAX, X86_AT(AT, step->off / 8));
    if (be)
        krait_x86_bswap(c, X86_64, RAX);
    krait_x86_shift(c, X86_SHL, X86_64, RAX, be ? shift : 64 - shift - step->bits);
    krait_x86_shift(c, step->flags & KRAIT_ROWF_SIGNED ? X86_SAR : X86_SHR, X86_64, RAX, 64u - step->bits);
    store64(c, cell(step->cell), RAX);
}

static void emit_float(struct emitter *e, const struct krait_row_step *step)
{
    struct krait_x86 *c = &e->c;
    struct krait_x86_mem at = X86_AT(AT, step->off);
    if (step->flags & KRAIT_ROWF_SWAP) {
        krait_x86_rm(c, X86_LOAD, X86_32, RAX, at);
        krait_x86_bswap(c, X86_32, RAX);
        krait_x86_rr(c, X86_MOVD, X86_32, XMM1, RAX);
        krait_x86_rr(c, X86_CVTSS2SD, X86_32, XMM1, XMM1);
    } else {
        krait_x86_rm(c, X86_CVTSS2SD, X86_32, XMM1, at);
    }
    krait_x86_rm(c, X86_MOVQ_STORE, X86_32, XMM1, cell(step->cell));
}

/* `reg` = a bit for each NUL in the 16 bytes at RDX. */
static void emit_nul_mask(struct krait_x86 *c, int reg)
{
    krait_x86_rm(c, X86_MOVDQU, X86_32, XMM1, X86_AT(RDX, 0));
    krait_x86_rr(c, X86_PCMPEQB, X86_32, XMM1, XMM0);
    krait_x86_rr(c, X86_PMOVMSKB, X86_32, reg, XMM1);
}

/* How many bytes at RDX stand before a NUL, to RAX: found here when it is one of 16, else by `longer`. */
static void emit_length(struct emitter *e, const uint8_t *longer)
{
    struct krait_x86 *c = &e->c;
    emit_nul_mask(c, RAX);
    krait_x86_rr(c, X86_TEST, X86_32, RAX, RAX);
    uint8_t *shorter = krait_x86_skip(c, X86_NE);
    krait_x86_call(c, longer);
    uint8_t *known = krait_x86_skip(c, X86_ALWAYS);
    krait_x86_here(c, shorter);
    krait_x86_rr(c, X86_TZCNT, X86_32, RAX, RAX);
    krait_x86_here(c, known);
}

/* The same of a text of `n` bytes. A bit at its end bounds the search of up to 16; longer ones are mostly
 * room for a short name (LTTng's names of threads). */
static void emit_text_length(struct emitter *e, uint32_t n)
{
    struct krait_x86 *c = &e->c;
    if (n > 16) {
        krait_x86_mov_imm(c, RCX, n);
        emit_length(e, e->text);
        return;
    }
    emit_nul_mask(c, RAX);
    krait_x86_imm(c, X86_IMM_OR, X86_32, RAX, (int32_t)(1u << n));
    krait_x86_rr(c, X86_TZCNT, X86_32, RAX, RAX);
}

static void emit_fixed_text(struct emitter *e, const struct krait_row_step *step)
{
    struct krait_x86 *c = &e->c;
    krait_x86_rm(c, X86_LEA, X86_64, RDX, X86_AT(AT, step->off));
    emit_text_length(e, step->n);
    store64(c, cell(step->cell), RDX);
    store64(c, cell(step->cell + 1u), RAX);
}

static void emit_view(struct emitter *e, const struct krait_row_step *step)
{
    krait_x86_rm(&e->c, X86_LEA, X86_64, RDX, X86_AT(AT, step->off));
    store64(&e->c, cell(step->cell), RDX);
    krait_x86_store_imm(&e->c, X86_64, cell(step->cell + 1u), step->n);
}

static void emit_string_step(struct emitter *e, const struct krait_row_step *step)
{
    struct krait_x86 *c = &e->c;
    krait_x86_rm(c, X86_LEA, X86_64, RDX, X86_AT(AT, step->off));
    emit_length(e, e->string);
    krait_x86_rm(c, X86_LEA, X86_64, AT, X86_INDEX(RDX, RAX, 0, 1));
    emit_room_of(e, 0);
    if (step->cell == KRAIT_ROW_NOWHERE)
        return;
    store64(c, cell(step->cell), RDX);
    store64(c, cell(step->cell + 1u), RAX);
}

static void emit_sequence(struct emitter *e, const struct krait_row_step *step)
{
    struct krait_x86 *c = &e->c;
    uint8_t scale = (uint8_t)__builtin_ctz(step->bits / 8);
    if (e->in_rax != step->length)
        load64(c, RAX, cell(step->length));
    krait_x86_rm(c, X86_LEA, X86_64, RDX, X86_AT(AT, step->off));
    move(c, RCX, END);
    krait_x86_rr(c, X86_SUB, X86_64, RCX, RDX);
    krait_x86_shift(c, X86_SHR, X86_64, RCX, scale);
    krait_x86_rr(c, X86_CMP, X86_64, RAX, RCX);
    stop_if(e, X86_A);
    krait_x86_rm(c, X86_LEA, X86_64, AT, X86_INDEX(RDX, RAX, scale, 0));
    if (step->cell == KRAIT_ROW_NOWHERE)
        return;
    if (step->code == KRAIT_ROW_TEXT_SEQ) {
        move(c, RCX, RAX);
        krait_x86_call(c, e->text);
    }
    store64(c, cell(step->cell), RDX);
    store64(c, cell(step->cell + 1u), RAX);
}

static void emit_align(struct emitter *e, const struct krait_row_step *step)
{
    emit_align_at(&e->c, step->off, step->n);
    emit_room_of(e, 0);
}

/* Two integers side by side that become cells in the same way: one load, one store. */
static bool is_pair(const struct emitter *e, const struct krait_row_step *a)
{
    const struct krait_row_step *b = a + 1;
    bool swap = a->flags & KRAIT_ROWF_SWAP && a->bits > 8;
    return a->code == KRAIT_ROW_INT && b->code == KRAIT_ROW_INT && b->bits == a->bits &&
           b->flags == a->flags && b->off == a->off + a->bits / 8 && b->cell == a->cell + 1 && !swap &&
           (e->has_sse41 || a->bits == 64);
}

static void emit_pair(struct emitter *e, const struct krait_row_step *step)
{
    static const enum krait_x86_op ops[2][9] = {
        { [1] = X86_PMOVZXBQ, [2] = X86_PMOVZXWQ, [4] = X86_PMOVZXDQ, [8] = X86_MOVDQU },
        { [1] = X86_PMOVSXBQ, [2] = X86_PMOVSXWQ, [4] = X86_PMOVSXDQ, [8] = X86_MOVDQU },
    };
    enum krait_x86_op op = ops[step->flags & KRAIT_ROWF_SIGNED ? 1 : 0][step->bits / 8];
    krait_x86_rm(&e->c, op, X86_32, XMM1, X86_AT(AT, step->off));
    krait_x86_rm(&e->c, X86_MOVDQU_STORE, X86_32, XMM1, cell(step->cell));
}

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

/* One check for the header, behind which AT is, and for the first stretch of fields; returns how many steps
 * that was. */
static uint32_t emit_first_room(struct emitter *e, const struct krait_row_step *first)
{
    bool has_stretch = first->code == KRAIT_ROW_ROOM;
    emit_room_of(e, has_stretch ? first->n : 0);
    e->in_rax = KRAIT_NO_ID;
    return has_stretch;
}

/* Emits the step, or two; returns how many. */
static uint32_t emit_step(struct emitter *e, const struct krait_row_step *step)
{
    static void (*const emitters[])(struct emitter *, const struct krait_row_step *) = {
        [KRAIT_ROW_ROOM] = emit_room,          [KRAIT_ROW_INT] = emit_int,
        [KRAIT_ROW_BITS] = emit_bits,          [KRAIT_ROW_FLOAT] = emit_float,
        [KRAIT_ROW_TEXT] = emit_fixed_text,    [KRAIT_ROW_VIEW] = emit_view,
        [KRAIT_ROW_STRING] = emit_string_step, [KRAIT_ROW_TEXT_SEQ] = emit_sequence,
        [KRAIT_ROW_VIEW_SEQ] = emit_sequence,  [KRAIT_ROW_ALIGN] = emit_align,
    };
    bool pair = is_pair(e, step), number = step->code == KRAIT_ROW_INT || step->code == KRAIT_ROW_BITS;
    (pair ? emit_pair : emitters[step->code])(e, step);
    e->in_rax = number && !pair ? step->cell : KRAIT_NO_ID;
    return pair ? 2 : 1;
}

/* As soon as it is known where the event ends, the next one's class is looked up: it is there long before it
 * is gone to, and a processor that foretold another one learns it earlier. */
static void emit_steps(struct emitter *e, const struct krait_row_class *row)
{
    const struct krait_row_step *end = &row->steps[row->step_count - 1];
    uint32_t i = emit_first_room(e, row->steps), known = steps_to_end(row);
    while (i < known)
        i += emit_step(e, &row->steps[i]);
    if (looks_ahead_early(e))
        emit_look_ahead(e, (int32_t)end->off);
    while (&row->steps[i] < end)
        i += emit_step(e, &row->steps[i]);
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
    emit_string(e);
    emit_text(e);
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
