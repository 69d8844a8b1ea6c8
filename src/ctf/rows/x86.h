/* SPDX-License-Identifier: Apache-2.0
 *
 * A small assembler for x86-64: only the forms that emit_x86.c needs. Source: Intel 64 and IA-32
 * Architectures Software Developer's Manual, volume 2, 2.1 (instruction format) and the pages of each instruction.
 *
 *     [prefix] [REX] [0F [38]] opcode [ModRM [SIB] [disp]] [imm]
 *
 * An operation is given as one number made of its bytes: prefix, 0F and opcode, as the manual writes them without REX.
 */
#ifndef KRAIT_CTF_ROWS_X86_H
#define KRAIT_CTF_ROWS_X86_H

#include "base/base.h"

enum krait_x86_reg { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15, NO_REG };

enum krait_x86_op {
    X86_ADD = 0x03, /* reg, r/m */
    X86_OR = 0x0B,
    X86_SUB = 0x2B,
    X86_XOR = 0x33,
    X86_CMP = 0x3B,
    X86_MOVSXD = 0x63,
    X86_TEST = 0x85,
    X86_STORE = 0x89,
    X86_LOAD = 0x8B,
    X86_LEA = 0x8D,
    X86_CMOVE = 0x0F44,
    X86_CMOVNE = 0x0F45,
    X86_CMOVNA = 0x0F46,
    X86_CMOVA = 0x0F47,
    X86_PREFETCH = 0x0F18, /* reg: 1 for all caches */
    X86_MOVZX8 = 0x0FB6,
    X86_MOVZX16 = 0x0FB7,
    X86_MOVSX8 = 0x0FBE,
    X86_MOVSX16 = 0x0FBF,
    X86_PCMPEQB = 0x660F74,
    X86_MOVD = 0x660F6E, /* xmm from r32 */
    X86_PMOVMSKB = 0x660FD7,
    X86_MOVQ_STORE = 0x660FD6, /* m64 from xmm */
    X86_PXOR = 0x660FEF,
    X86_MOVDQU = 0xF30F6F,
    X86_MOVDQU_STORE = 0xF30F7F,
    X86_PMOVSXBQ = 0x660F3822, /* two, extended to 64 bits; SSE4.1, as those below */
    X86_PMOVSXWQ = 0x660F3824,
    X86_PMOVSXDQ = 0x660F3825,
    X86_PMOVZXBQ = 0x660F3832,
    X86_PMOVZXWQ = 0x660F3834,
    X86_PMOVZXDQ = 0x660F3835,
    X86_CVTSS2SD = 0xF30F5A,
    X86_TZCNT = 0xF30FBC, /* older processors run it as BSF, which is the same if a bit is set */
};

/* Operations of opcode groups, from the middle field of ModRM. */
enum krait_x86_ext { X86_IMM_ADD = 0, X86_IMM_OR = 1, X86_IMM_AND = 4, X86_IMM_SUB = 5, X86_IMM_CMP = 7 };
enum krait_x86_shift { X86_SHL = 4, X86_SHR = 5, X86_SAR = 7 };

enum krait_x86_cond { X86_AE = 3, X86_E = 4, X86_NE = 5, X86_A = 7, X86_GE = 13, X86_ALWAYS = 16 };

enum krait_x86_width { X86_32, X86_64 };

struct krait_x86 {
    uint8_t *at, *end;
    bool full; /* the room was not enough: the code is incomplete */
};

struct krait_x86_mem {
    uint8_t base, index; /* enum krait_x86_reg; index: NO_REG for none */
    uint8_t scale;       /* of the index: log2 */
    int32_t disp;
};

#define X86_AT(b, d) ((struct krait_x86_mem){ .base = (uint8_t)(b), .index = NO_REG, .disp = (int32_t)(d) })
#define X86_INDEX(b, i, s, d) \
    ((struct krait_x86_mem){  \
        .base = (uint8_t)(b), .index = (uint8_t)(i), .scale = (s), .disp = (int32_t)(d) })

/* reg with memory, reg with another (rm). */
void krait_x86_rm(struct krait_x86 *c, enum krait_x86_op op, enum krait_x86_width width, int reg,
                  struct krait_x86_mem mem);
void krait_x86_rr(struct krait_x86 *c, enum krait_x86_op op, enum krait_x86_width width, int reg, int rm);

void krait_x86_imm(struct krait_x86 *c, enum krait_x86_ext op, enum krait_x86_width width, int reg,
                   int32_t imm);
void krait_x86_shift(struct krait_x86 *c, enum krait_x86_shift op, enum krait_x86_width width, int reg,
                     unsigned by);
void krait_x86_bswap(struct krait_x86 *c, enum krait_x86_width width, int reg);
/* reg = imm, the upper half 0. */
void krait_x86_mov_imm(struct krait_x86 *c, int reg, uint32_t imm);
/* 32 bits, or 64 with the sign extended. */
void krait_x86_store_imm(struct krait_x86 *c, enum krait_x86_width width, struct krait_x86_mem mem,
                         uint32_t imm);
void krait_x86_inc(struct krait_x86 *c, struct krait_x86_mem mem); /* 64 bits */
void krait_x86_push(struct krait_x86 *c, int reg);
void krait_x86_pop(struct krait_x86 *c, int reg);
void krait_x86_ret(struct krait_x86 *c);

/* Jumps to a known address. */
void krait_x86_jump(struct krait_x86 *c, enum krait_x86_cond cond, const uint8_t *target);
void krait_x86_call(struct krait_x86 *c, const uint8_t *target);
void krait_x86_jump_reg(struct krait_x86 *c, int reg);
/* Jumps over at most 127 bytes that follow. Pass the result to krait_x86_here at the target. */
uint8_t *krait_x86_skip(struct krait_x86 *c, enum krait_x86_cond cond);
void krait_x86_here(struct krait_x86 *c, uint8_t *skip);
/* As the two above, over any number of bytes. */
uint8_t *krait_x86_leap(struct krait_x86 *c, enum krait_x86_cond cond);
void krait_x86_land(struct krait_x86 *c, uint8_t *leap);
void krait_x86_align(struct krait_x86 *c, unsigned to);

#endif
