/* SPDX-License-Identifier: Apache-2.0
 *
 * Events as rows of numbers, for decoding many events at a time.
 *
 * A row is a run of 64-bit cells. The first two are the same for all classes. Then comes each field that fits a fixed
 * number of cells, in the order of the trace: common context, the class's own context, payload.
 *
 *   struct { u32 fd; string path; u8 n; u16 ports[n]; }
 *
 *      0           1          2      3          4         5      6           7
 *     +-----------+----------+------+----------+---------+------+-----------+----------+
 *     | stream,   | event's  | fd   | path:    | path:   | n    | ports:    | ports:   |
 *     | packet    | address  |      | address  | bytes   |      | address   | elements |
 *     +-----------+----------+------+----------+---------+------+-----------+----------+
 *
 * A list of steps, compiled once for each class, turns bytes into cells. Steps address bytes relative to a base, which
 * moves only after a field of variable size. Before each stretch of fixed size, one step checks that all of it is
 * there:
 *
 *   ROOM 4 / INT 32 at 0 to cell 2 / STRING at 4 to cell 3 / ROOM 1 / INT 8 at 0 to cell 5 /
 *   VIEW_SEQ of cell 5 at 1 to cell 6 / END at 0
 *
 * A reader that wants only some fields gets rows of these fields. Steps for other fields are left out, but a length
 * that another field needs keeps a cell, and a field of variable size is still skipped:
 *
 *   ports alone:  ROOM 4 / STRING at 4 to nowhere / ROOM 1 / INT 8 at 0 to cell 2 /
 *                 VIEW_SEQ of cell 2 at 1 to cell 3 / END at 0
 *
 * Two things read the steps: krait_row_walk, on any machine, and emit_x86.c, which turns them into machine code. A
 * class with something that no step can express (variants, optional fields, arrays of structs, integers of variable
 * length, clocks in the payload, fields that span nine bytes) is irregular: it has no steps, the decoder skips its
 * events, and locators find its cells.
 */
#ifndef KRAIT_CTF_ROWS_ROW_H
#define KRAIT_CTF_ROWS_ROW_H

#include "ctf/read/value.h"

enum {
    KRAIT_ROW_ORIGIN,  /* cell of the stream's index (low 32 bits) and the packet's number in it (high) */
    KRAIT_ROW_ADDRESS, /* cell of the address of the event's first byte, and above it the bit in that byte */
    KRAIT_ROW_HEAD,    /* where the fields begin */
    /* Cell of the clock's count; only with KRAIT_EMIT_ROWS_CYCLES, whose fields begin after it. */
    KRAIT_ROW_CYCLES = KRAIT_ROW_HEAD,
    KRAIT_ROW_NOWHERE = KRAIT_ROW_ORIGIN, /* cell of a step whose value nobody wants */
    KRAIT_ROW_ADDRESS_BITS = 61,
    KRAIT_ROW_MAX_CELLS = 4096, /* fields beyond these have no cell */
    /* of an irregular class, whose locators each contain the code to skip all fields before */
    KRAIT_ROW_MAX_LOCATED = 256,
    KRAIT_ROW_BEYOND = 32, /* cells after the last of a chunk that may be read */
};

enum krait_row_code {
    KRAIT_ROW_ROOM,   /* check that `n` bytes from the base on are in the packet */
    KRAIT_ROW_INT,    /* an integer of whole bytes at byte `off` */
    KRAIT_ROW_BITS,   /* an integer at bit `off`, within eight bytes */
    KRAIT_ROW_FLOAT,  /* a 32-bit float at byte `off`, converted to 64 bits (64-bit floats are INT) */
    KRAIT_ROW_TEXT,   /* `n` bytes at byte `off`, printed up to a NUL: address and bytes */
    KRAIT_ROW_VIEW,   /* `n` elements at byte `off`: address and n */
    KRAIT_ROW_STRING, /* from byte `off` up to a NUL: address and bytes. The base moves after the NUL */
    KRAIT_ROW_TEXT_SEQ, /* as TEXT and VIEW, with the length from the cell `length`; the base moves after them */
    KRAIT_ROW_VIEW_SEQ,
    KRAIT_ROW_ALIGN, /* the base moves to the next multiple of `n` bytes of the packet from byte `off` on */
    KRAIT_ROW_END,   /* the event ends at byte `off` */
};

enum krait_row_flags {
    KRAIT_ROWF_SIGNED = 1,
    KRAIT_ROWF_SWAP = 2,   /* bytes are not in the machine's order */
    KRAIT_ROWF_BE = 4,     /* BITS: the most significant bit first */
    KRAIT_ROWF_LENGTH = 8, /* INT, BITS: a later step reads its length from the cell */
};

struct krait_row_step {
    uint8_t code;
    uint8_t bits; /* of the value; VIEW, VIEW_SEQ: of an element */
    uint8_t flags;
    uint16_t cell;
    uint16_t length;
    uint32_t off;
    uint32_t n;
};

/* A field that has cells. */
struct krait_row_field {
    const char *path; /* as a locator takes it */
    enum krait_field_scope scope;
    uint16_t cell, count;                /* first cell, number of cells: 1, or 2 for address and size */
    const struct krait_fc *fc;           /* of the field: number, text, or array of numbers */
    const struct krait_locator *locator; /* of irregular classes only */
};

struct krait_row_class {
    const struct krait_event_class *event;
    uint32_t index; /* among all classes of the reader */
    uint16_t cells; /* of a row */
    uint32_t field_count;
    const struct krait_row_field *fields;
    const struct krait_row_step *steps; /* NULL: irregular */
    uint32_t step_count;
};

/* What rows have. */
struct krait_row_plan {
    uint32_t head;                  /* cells before the fields': KRAIT_ROW_HEAD or more */
    const struct krait_map *wanted; /* keys: the struct krait_fc * of fields that get cells; NULL: all do */
};

/* One for each event class, compiled. All memory is the arena's. Returns 0 or -ENOMEM. */
int krait_row_class_new(struct krait_row_class *row, struct krait_arena *arena,
                        const struct krait_ctf_trace *trace, const struct krait_event_class *event,
                        const struct krait_row_plan *plan, uint32_t index);

/* Fills the cells of an event of a regular class. `fields` is the first byte of its fields; `packet` and `end` delimit
 * the packet's content. Returns where the event ends, or NULL if it does not fit (the decoder says why). No GIL. hot
 * path */
const uint8_t *krait_row_walk(const struct krait_row_class *row, const uint8_t *fields, const uint8_t *packet,
                              const uint8_t *end, uint64_t *cells);

/* The same for an irregular class, from the cursor's event, which must have been skipped. A field that the event does
 * not have is 0. */
void krait_row_locate(const struct krait_row_class *row, struct krait_ctf_cursor *cursor, uint64_t *cells);

#endif
