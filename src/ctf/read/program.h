/* SPDX-License-Identifier: Apache-2.0
 *
 * The compiled field class of a scope: a flat array of instructions that the decoder walks once for each event. Fields
 * at fixed offsets from each other are fused into a run: one alignment, one bounds check, then plain loads.
 *
 *   struct { u32 a; u16 b; string s; u8 n; u8 data[n]; }     RUN align 8, 48 bits
 *                                                              INT 32 at 0
 *                                                              INT 16 at 32
 *                                                            STRING
 *                                                            RUN align 8, 8 bits
 *                                                              INT 8 at 0, to slot 0
 *                                                            SEQUENCE of slot 0, fixed stride 8
 *                                                              RUN, INT 8, END
 *                                                            END
 *
 * Printers walk the same instructions, with a text for each (ctf/text/words.h).
 */
#ifndef KRAIT_CTF_READ_PROGRAM_H
#define KRAIT_CTF_READ_PROGRAM_H

#include "ctf/meta/metadata.h"

enum krait_op_code {
    KRAIT_DO_RUN,      /* align, then check that `size` bits are there; `next` is after its fields */
    KRAIT_DO_INT,      /* whole bytes at a byte */
    KRAIT_DO_BITS,     /* an integer at any bit */
    KRAIT_DO_FLOAT,    /* at any bit */
    KRAIT_DO_LEB,      /* an integer of variable length */
    KRAIT_DO_STRING,   /* up to a NUL */
    KRAIT_DO_TEXT,     /* `size` bytes, printed up to a NUL */
    KRAIT_DO_TEXT_SEQ, /* the same with the length from a slot */
    KRAIT_DO_ARRAY,    /* `size` elements: the code up to END, which is at `next` - 1 */
    KRAIT_DO_SEQUENCE, /* the same with the length from a slot */
    KRAIT_DO_VARIANT,  /* one of the options, each with its code up to an END; `next` is after all of them.
                          OPTIONAL: the second option means that it is absent */
    KRAIT_DO_END,
};

enum krait_op_flags {
    KRAIT_OPF_SIGNED = 1,
    KRAIT_OPF_SWAP = 2,      /* bytes are not in the machine's order */
    KRAIT_OPF_BE = 4,        /* BITS, FLOAT: the most significant bit first */
    KRAIT_OPF_CLOCK = 8,     /* moves the clock */
    KRAIT_OPF_BUSY = 16,     /* has a meaning, a slot, a clock or order_counts; RUN, ARRAY,
                                SEQUENCE: something inside has */
    KRAIT_OPF_REVERSED = 32, /* BITS, FLOAT: the bits are in reverse order */
};

struct krait_op {
    uint8_t code;
    uint8_t bits;
    uint8_t flags;
    uint32_t align; /* bits; RUN, ARRAY, SEQUENCE */
    uint32_t off;   /* of a run's field: bits from the beginning of the run */
    uint32_t next;
    uint32_t slot; /* an integer's own, or of a length or tag; KRAIT_NO_SLOT */
    uint64_t size;
    uint64_t stride; /* ARRAY, SEQUENCE: bits of an element of fixed size that needs no walk; else 0 */
    const struct krait_fc *fc; /* of the value */
    const uint32_t *options;   /* VARIANT: where each option's code begins */
};

struct krait_program {
    struct krait_op *ops;
    uint32_t count;
    uint32_t first_scope; /* of several scopes: how many instructions the first has */
    bool fixed;           /* a single run without any wanted value: one addition skips it */
    uint32_t align;       /* of the run, bits */
    uint64_t size;
};

/* Compiles the scopes of an event, one after the other; NULL: a scope that the event does not have. All memory comes
 * from the arena. Returns 0 or -ENOMEM. */
int krait_program_new(struct krait_program *program, struct krait_arena *arena,
                      const struct krait_fc *const *scopes, size_t count);

#endif
