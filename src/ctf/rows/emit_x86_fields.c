/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/rows/emit_x86.h"

#if defined(__x86_64__) && defined(__LP64__)

/* -- what fields call -- */

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

void krait_emit_x86_finders(struct emitter *e)
{
    emit_string(e);
    emit_text(e);
}

/* -- single fields -- */

void krait_emit_x86_align_at(struct krait_x86 *c, uint32_t off, uint32_t align)
{
    load64(c, RCX, X86_AT(RSP, STACK_RUN));
    load64(c, RCX, of_run(RCX, offsetof(struct krait_emit_run, packet)));
    krait_x86_rr(c, X86_SUB, X86_64, AT, RCX);
    krait_x86_imm(c, X86_IMM_ADD, X86_64, AT, (int32_t)(off + align - 1));
    krait_x86_imm(c, X86_IMM_AND, X86_64, AT, -(int32_t)align);
    krait_x86_rr(c, X86_ADD, X86_64, AT, RCX);
}

void krait_emit_x86_uint(struct krait_x86 *c, int reg, struct krait_x86_mem mem, unsigned bits)
{
    static const enum krait_x86_op ops[] = {
        [1] = X86_MOVZX8, [2] = X86_MOVZX16, [4] = X86_LOAD, [8] = X86_LOAD
    };
    krait_x86_rm(c, ops[bits / 8], bits == 64 ? X86_64 : X86_32, reg, mem);
}

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
        krait_emit_x86_uint(c, RAX, at, step->bits);
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
    krait_emit_x86_align_at(&e->c, step->off, step->n);
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

uint32_t krait_emit_x86_first_room(struct emitter *e, const struct krait_row_step *first)
{
    bool has_stretch = first->code == KRAIT_ROW_ROOM;
    emit_room_of(e, has_stretch ? first->n : 0);
    e->in_rax = KRAIT_NO_ID;
    return has_stretch;
}

uint32_t krait_emit_x86_step(struct emitter *e, const struct krait_row_step *step)
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

#endif
