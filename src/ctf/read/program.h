/* SPDX-License-Identifier: Apache-2.0
 *
 * A scope's field class, compiled: a flat array of instructions that the decoder walks once per event. Fields
 * whose places are fixed to each other are fused into a run: one alignment, one bounds check, then plain
 * loads.
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
 * Each instruction carries the text that stands before its value in a printed event (", b = "), so that
 * printing is one walk too.
 */
#ifndef KRAIT_CTF_READ_PROGRAM_H
#define KRAIT_CTF_READ_PROGRAM_H

#include "base/buf.h"
#include "ctf/meta/metadata.h"

enum krait_op_code {
    KRAIT_DO_RUN,      /* align, then `size` bits are there; `next` is behind its fields */
    KRAIT_DO_INT,      /* whole bytes at a byte */
    KRAIT_DO_BITS,     /* an integer at any bit */
    KRAIT_DO_FLOAT,    /* at any bit */
    KRAIT_DO_LEB,      /* an integer of as many bytes as it needs */
    KRAIT_DO_STRING,   /* up to a NUL */
    KRAIT_DO_TEXT,     /* `size` bytes, shown up to a NUL */
    KRAIT_DO_TEXT_SEQ, /* the same of a slot's length */
    KRAIT_DO_ARRAY,    /* `size` elements: the code up to END, which is at `next` - 1 */
    KRAIT_DO_SEQUENCE, /* the same of a slot's length */
    KRAIT_DO_VARIANT,  /* one of the options, each code up to an END; behind them all is `next`. OPTIONAL: the
                          second option is that it is not there */
    KRAIT_DO_LITERAL,  /* nothing but its text */
    KRAIT_DO_END,
};

enum krait_op_flags {
    KRAIT_OPF_SIGNED = 1,
    KRAIT_OPF_SWAP = 2,       /* bytes are not in the machine's order */
    KRAIT_OPF_BE = 4,         /* BITS, FLOAT: the most significant bit first */
    KRAIT_OPF_HIDDEN = 8,     /* not printed: times and sizes that other readers do not show either */
    KRAIT_OPF_CLOCK = 16,     /* moves the clock */
    KRAIT_OPF_BUSY = 32,      /* has a meaning, a slot, a clock or an order that counts; RUN, ARRAY,
                                 SEQUENCE: something in it has */
    KRAIT_OPF_NAMED = 64,     /* ARRAY, SEQUENCE: elements are printed with their index */
    KRAIT_OPF_REVERSED = 128, /* BITS, FLOAT: the bits are then turned around */
};

/* What an event's text is for. */
enum krait_form {
    KRAIT_FORM_TEXT,      /* people: as babeltrace2 prints it */
    KRAIT_FORM_JSON,      /* programs: JSON */
    KRAIT_FORM_CELL,      /* programs: a cell of CSV a field */
    KRAIT_FORM_JSON_CELL, /* JSON in a cell of CSV: each quote is two */
};

struct krait_op {
    uint8_t code;
    uint8_t bits;
    uint8_t flags;
    uint8_t form;   /* enum krait_form */
    uint32_t align; /* bits; RUN, ARRAY, SEQUENCE */
    uint32_t off;   /* of a run's fields: bits from the run's begin */
    uint32_t next;
    uint32_t slot;     /* an integer's own, or of a length or tag; KRAIT_NO_SLOT */
    uint32_t text_len; /* before the value */
    const char *text;
    uint64_t size;
    uint64_t stride; /* ARRAY, SEQUENCE: bits of an element that is fixed and needs no walk; else 0 */
    const struct krait_fc *fc; /* of the value */
    const uint32_t *options;   /* VARIANT: where each option's code begins */
};

struct krait_step;

struct krait_program {
    struct krait_op *ops;
    uint32_t count;
    uint32_t first_scope; /* of several scopes: how many instructions the first has */
    /* For printing (print.h): */
    const struct krait_step *steps; /* NULL until somebody prints */
    uint32_t steps_room;            /* bytes that they can take before one asks for more */
    uint32_t behind_context;        /* the step behind the first scope's; 0: its text cannot be kept */
    uint32_t context_align;         /* of the first scope, bits */
    uint32_t context_size;          /* bytes */
    bool prints;                    /* any step makes text */
    bool fixed;     /* it is one run that nobody wants a value of: to go past it is one addition */
    uint32_t align; /* of the run, bits */
    uint64_t size;
};

enum krait_scope {
    KRAIT_SCOPE_PACKET_HEADER,
    KRAIT_SCOPE_PACKET_CONTEXT,
    KRAIT_SCOPE_EVENT_HEADER,
    KRAIT_SCOPE_EVENT, /* contexts and fields */
};

enum krait_text_flags {
    KRAIT_TEXT_FIELD_NAMES = 1,   /* of the payload */
    KRAIT_TEXT_CONTEXT_NAMES = 2, /* of the contexts */
    KRAIT_TEXT_SCOPE_NAMES = 4,   /* "stream.event.context = " before each scope */
    /* Other forms, which need no other flags: */
    KRAIT_TEXT_JSON = 8,        /* each scope as ,"NAME":{...} */
    KRAIT_TEXT_CELLS = 16,      /* a cell for each member of a scope, a comma before each */
    KRAIT_TEXT_JSON_CELLS = 32, /* a cell a scope, which may be empty, with an object in it */
};

/* JSON's readers keep numbers as doubles: integers of wider fields are strings there (RFC 8259, 6). */
enum { KRAIT_JSON_EXACT_BITS = 53 };

/* One scope of the program: what stands before it is part of the printed text. */
struct krait_program_scope {
    const struct krait_fc *fc; /* NULL: left out */
    const char *name;          /* event.fields */
    bool names;                /* of its members are printed */
};

/* Compiles the scopes behind each other, as an event has them. All memory is the arena's. `text` says how it
 * is printed. Returns 0 or -ENOMEM. */
int krait_program_new(struct krait_program *program, struct krait_arena *arena,
                      const struct krait_program_scope *scopes, size_t count, enum krait_scope kind,
                      unsigned text);

/* Whether programs are told of a scope's member: not of those of a packet's context that are the reader's own,
 * which say nothing of the event. */
bool krait_data_shows(enum krait_scope kind, const struct krait_fc *member);

#endif
