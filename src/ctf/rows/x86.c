/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/rows/x86.h"

#include <string.h>

static void byte(struct krait_x86 *c, unsigned b)
{
    if (c->at == c->end)
        c->full = true;
    else
        *c->at++ = (uint8_t)b;
}

static void word(struct krait_x86 *c, uint32_t w)
{
    for (int i = 0; i < 4; i++)
        byte(c, w >> (8 * i) & 0xff);
}

/* Everything before ModRM. `reg`, `index` and `base` are the registers whose fourth bits REX holds. */
static void opcode(struct krait_x86 *c, uint32_t op, enum krait_x86_width width, int reg, int index, int base)
{
    unsigned rex =
        (width == X86_64 ? 8u : 0u) | (reg & 8 ? 4u : 0u) | (index & 8 ? 2u : 0u) | (base & 8 ? 1u : 0u);
    int last = op >> 24 ? 24 : op >> 16 ? 16 : op >> 8 ? 8 : 0;
    if (last >= 16) {
        byte(c, op >> last);
        last -= 8;
    }
    if (rex)
        byte(c, 0x40 | rex);
    for (; last >= 0; last -= 8)
        byte(c, op >> last & 0xff);
}

static void modrm(struct krait_x86 *c, unsigned mod, int reg, int rm)
{
    byte(c, mod << 6 | (unsigned)(reg & 7) << 3 | (unsigned)(rm & 7));
}

/* Displacement 0 needs no byte, but for the bases whose code without one means something else. */
static void memory(struct krait_x86 *c, int reg, struct krait_x86_mem m)
{
    bool has_index = m.index != NO_REG, small = m.disp >= -128 && m.disp < 128;
    unsigned mod = !m.disp && (m.base & 7) != RBP ? 0 : small ? 1 : 2;
    if (has_index || (m.base & 7) == RSP) {
        modrm(c, mod, reg, RSP);
        byte(c, (unsigned)m.scale << 6 | (unsigned)((has_index ? m.index : RSP) & 7) << 3 |
                    (unsigned)(m.base & 7));
    } else {
        modrm(c, mod, reg, m.base);
    }
    if (mod == 1)
        byte(c, (uint8_t)m.disp);
    if (mod == 2)
        word(c, (uint32_t)m.disp);
}

static int index_of(struct krait_x86_mem m)
{
    return m.index == NO_REG ? 0 : (int)m.index;
}

void krait_x86_rm(struct krait_x86 *c, enum krait_x86_op op, enum krait_x86_width width, int reg,
                  struct krait_x86_mem mem)
{
    opcode(c, op, width, reg, index_of(mem), mem.base);
    memory(c, reg, mem);
}

void krait_x86_rr(struct krait_x86 *c, enum krait_x86_op op, enum krait_x86_width width, int reg, int rm)
{
    opcode(c, op, width, reg, 0, rm);
    modrm(c, 3, reg, rm);
}

void krait_x86_imm(struct krait_x86 *c, enum krait_x86_ext op, enum krait_x86_width width, int reg,
                   int32_t imm)
{
    bool small = imm >= -128 && imm < 128;
    opcode(c, small ? 0x83 : 0x81, width, 0, 0, reg);
    modrm(c, 3, op, reg);
    if (small)
        byte(c, (uint8_t)imm);
    else
        word(c, (uint32_t)imm);
}

void krait_x86_shift(struct krait_x86 *c, enum krait_x86_shift op, enum krait_x86_width width, int reg,
                     unsigned by)
{
    if (!by)
        return;
    opcode(c, 0xC1, width, 0, 0, reg);
    modrm(c, 3, op, reg);
    byte(c, by);
}

void krait_x86_bswap(struct krait_x86 *c, enum krait_x86_width width, int reg)
{
    opcode(c, 0x0FC8 + ((unsigned)reg & 7), width, 0, 0, reg);
}

void krait_x86_mov_imm(struct krait_x86 *c, int reg, uint32_t imm)
{
    opcode(c, 0xB8 + ((unsigned)reg & 7), X86_32, 0, 0, reg);
    word(c, imm);
}

void krait_x86_store_imm(struct krait_x86 *c, enum krait_x86_width width, struct krait_x86_mem mem,
                         uint32_t imm)
{
    opcode(c, 0xC7, width, 0, index_of(mem), mem.base);
    memory(c, 0, mem);
    word(c, imm);
}

void krait_x86_inc(struct krait_x86 *c, struct krait_x86_mem mem)
{
    opcode(c, 0xFF, X86_64, 0, index_of(mem), mem.base);
    memory(c, 0, mem);
}

void krait_x86_push(struct krait_x86 *c, int reg)
{
    opcode(c, 0x50 + ((unsigned)reg & 7), X86_32, 0, 0, reg);
}

void krait_x86_pop(struct krait_x86 *c, int reg)
{
    opcode(c, 0x58 + ((unsigned)reg & 7), X86_32, 0, 0, reg);
}

void krait_x86_ret(struct krait_x86 *c)
{
    byte(c, 0xC3);
}

/* -- jumps: relative to what follows them -- */

void krait_x86_jump(struct krait_x86 *c, enum krait_x86_cond cond, const uint8_t *target)
{
    if (cond == X86_ALWAYS) {
        byte(c, 0xE9);
    } else {
        byte(c, 0x0F);
        byte(c, 0x80 + cond);
    }
    word(c, (uint32_t)(target - (c->at + 4)));
}

void krait_x86_call(struct krait_x86 *c, const uint8_t *target)
{
    byte(c, 0xE8);
    word(c, (uint32_t)(target - (c->at + 4)));
}

void krait_x86_jump_reg(struct krait_x86 *c, int reg)
{
    opcode(c, 0xFF, X86_32, 0, 0, reg);
    modrm(c, 3, 4, reg);
}

uint8_t *krait_x86_skip(struct krait_x86 *c, enum krait_x86_cond cond)
{
    byte(c, cond == X86_ALWAYS ? 0xEB : 0x70 + cond);
    byte(c, 0);
    return c->at;
}

void krait_x86_here(struct krait_x86 *c, uint8_t *skip)
{
    if (!c->full)
        skip[-1] = (uint8_t)(c->at - skip);
}

uint8_t *krait_x86_leap(struct krait_x86 *c, enum krait_x86_cond cond)
{
    krait_x86_jump(c, cond, c->at);
    return c->at;
}

void krait_x86_land(struct krait_x86 *c, uint8_t *leap)
{
    uint32_t distance = (uint32_t)(c->at - leap);
    if (!c->full)
        memcpy(leap - sizeof(distance), &distance, sizeof(distance));
}

void krait_x86_align(struct krait_x86 *c, unsigned to)
{
    while ((uintptr_t)c->at % to && !c->full)
        byte(c, 0xCC); /* never reached */
}
