/* SPDX-License-Identifier: Apache-2.0
 *
 * Machine code that decodes the events of one stream class: a loop whose body is spread over the event classes.
 *
 * Each event class has its own code, made from its steps (row.h): every offset, size and cell is a constant in an
 * instruction. As soon as the end of the event is known, the code looks up the class of the next event by its tag or
 * id. The jump to that class comes after the fields. This has three effects. Each class has its own jump, which the
 * processor learns to predict. On the predicted path, the address of the next event comes from additions of constants,
 * not from memory. And a misprediction is noticed early, while the fields are still being moved.
 *
 *     by tag ->  time from the header  -.
 *     by id  ->  whole time            -+->  room -> next class? -> fields -> row -> jump
 *     (extended headers: id and time in full)
 *
 * The code handles only the ordinary case. At anything else (an unknown id, a header or field that does not fit, a
 * string without its NUL, time going backward or far ahead, an irregular class) it stops before the event, without any
 * effect. The careful reader (cursor.h, decode.h) then reads that event, or says what is wrong with it.
 *
 * The code reads up to KRAIT_EMIT_BEYOND bytes after `end` and does not use them: they must be mapped.
 */
#ifndef KRAIT_CTF_ROWS_EMIT_H
#define KRAIT_CTF_ROWS_EMIT_H

#include "ctf/meta/shape.h"
#include "ctf/rows/row.h"

enum {
    KRAIT_EMIT_BEYOND = 64,
    /* of ticks from one event to the next: less than 1 << 16 events cannot wrap the clock around */
    KRAIT_EMIT_STEP_BITS = 48,
};

/* One event. */
struct krait_row {
    int64_t ns;
    uint32_t cls;   /* krait_row_class.index */
    uint32_t cells; /* where its row begins in the cells */
};

/* What the code works on. Comments say what it changes. */
struct krait_emit_run {
    const uint8_t *at;      /* the next event; changes */
    const uint8_t *end;     /* of the packet's content */
    const uint8_t *packet;  /* the packet's first byte: alignment counts from it */
    uint64_t clock;         /* ticks; changes */
    uint64_t base;          /* added to ticks: gives ns if the clock counts nanoseconds */
    uint64_t origin;        /* KRAIT_ROW_ORIGIN of each row */
    uint64_t *cells;        /* rows go to `cell_at`; for counting: KRAIT_ROW_MAX_CELLS cells of scratch */
    uint64_t cell_at;       /* changes */
    uint64_t cell_limit;    /* no row begins at or after it */
    struct krait_row *rows; /* the next one to write; changes. For counting: unused */
    uint64_t *counts;       /* for counting: by the class's index in its stream class */
};

enum krait_emit_mode {
    KRAIT_EMIT_ROWS,
    KRAIT_EMIT_ROWS_CYCLES, /* with KRAIT_ROW_CYCLES in each row */
    KRAIT_EMIT_COUNT,
};

struct krait_engine_plan {
    const struct krait_header_form *header;
    const struct krait_row_class *const *by_id; /* NULL where there is no class */
    uint32_t id_count;
    enum krait_emit_mode mode;
};

struct krait_engine;

/* Errors: -ENOTSUP no code can be made for this machine or this header, or the system does not allow executable memory;
 * -ENOMEM. The engine does not change afterwards: threads may share it. */
int krait_engine_new(struct krait_engine **out, const struct krait_engine_plan *plan);
void krait_engine_free(struct krait_engine *engine);

/* Decodes up to `end`, to `cell_limit`, or to the next event that is not ordinary. hot path, no GIL */
void krait_engine_run(const struct krait_engine *engine, struct krait_emit_run *run);

#endif
