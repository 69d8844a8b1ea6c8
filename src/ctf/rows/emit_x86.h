/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two parts of the x86-64 emitter share: emit_x86.c makes headers, classes and the whole, emit_x86_fields.c the
 * fields of events. For these two alone: names are short. emit.h is what others see.
 */
#ifndef KRAIT_CTF_ROWS_EMIT_X86_H
#define KRAIT_CTF_ROWS_EMIT_X86_H

#include "ctf/rows/emit.h"
#include "ctf/rows/x86.h"

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

static inline struct krait_x86_mem cell(unsigned i)
{
    return X86_INDEX(CELLS, CELL, 3, i * 8);
}

static inline struct krait_x86_mem of_run(int reg, size_t offset)
{
    return X86_AT(reg, offset);
}

static inline void load64(struct krait_x86 *c, int reg, struct krait_x86_mem mem)
{
    krait_x86_rm(c, X86_LOAD, X86_64, reg, mem);
}

static inline void store64(struct krait_x86 *c, struct krait_x86_mem mem, int reg)
{
    krait_x86_rm(c, X86_STORE, X86_64, reg, mem);
}

static inline void move(struct krait_x86 *c, int to, int from)
{
    krait_x86_rr(c, X86_LOAD, X86_64, to, from);
}

static inline void stop_if(struct emitter *e, enum krait_x86_cond cond)
{
    krait_x86_jump(&e->c, cond, e->stop);
}

/* The two subroutines that fields call: e->string and e->text. */
void krait_emit_x86_finders(struct emitter *e);

/* AT goes on to the next multiple of `align` bytes of the packet behind `off` bytes. */
void krait_emit_x86_align_at(struct krait_x86 *c, uint32_t off, uint32_t align);

/* `reg` = the unsigned integer of 8 to 64 bits at `mem`, in the machine's byte order. */
void krait_emit_x86_uint(struct krait_x86 *c, int reg, struct krait_x86_mem mem, unsigned bits);

/* One check for the header, behind which AT is, and for the first stretch of fields; returns how many steps that was. */
uint32_t krait_emit_x86_first_room(struct emitter *e, const struct krait_row_step *first);

/* Emits the step, or two; returns how many. */
uint32_t krait_emit_x86_step(struct emitter *e, const struct krait_row_step *step);

#endif
