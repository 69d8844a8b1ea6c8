/* SPDX-License-Identifier: Apache-2.0
 *
 * Machine code that decodes the events of one stream class: a loop that is spread over the classes.
 *
 * Each event class has code of its own, made from its steps (row.h): every offset, size and cell is a constant in an
 * instruction. As soon as the end of the event is known, the code looks up the next event's class by its tag or id. The
 * jump to that class stands behind the fields. This has three effects. Each class has its own jump, which the processor
 * learns to predict. On the predicted way, the next event's address comes from additions of constants, not from memory.
 * And a wrong prediction shows early, while the fields are still being moved.
 *
 *     by tag ->  time from the header  -.
 *     by id  ->  whole time            -+->  room -> next class? -> fields -> row -> jump
 *     (extended headers: id and time in full)
 *
 * It judges nothing. At whatever is not plain - an unknown id, a header or a field that does not fit, a string
 * without its end, time going backward or far ahead, a class that is irregular - it stops before that event, as if it
 * had not looked at it. The careful reader (cursor.h, decode.h) takes that one event, or says what is wrong with it.
 *
 * Reads up to KRAIT_EMIT_BEYOND bytes behind `end`, of which nothing is used: they must be mapped.
 */
#ifndef KRAIT_CTF_ROWS_EMIT_H
#define KRAIT_CTF_ROWS_EMIT_H

#include "ctf/meta/shape.h"
#include "ctf/rows/row.h"

enum {
    KRAIT_EMIT_BEYOND = 64,
    KRAIT_EMIT_STEP_BITS = 48, /* of ticks from one event to the next: no run of less than 1 << 16 events goes
                                  all the way round */
};

/* One event. */
struct krait_row {
    int64_t ns;
    uint32_t cls;   /* krait_row_class.index */
    uint32_t cells; /* where its row begins in the cells */
};

/* What the code works on; what it changes is said. */
struct krait_emit_run {
    const uint8_t *at;      /* the next event; moved */
    const uint8_t *end;     /* of the packet's content */
    const uint8_t *packet;  /* the packet's first byte: alignment counts from it */
    uint64_t clock;         /* ticks; moved */
    uint64_t base;          /* added to ticks: ns where the clock counts them */
    uint64_t origin;        /* KRAIT_ROW_ORIGIN of each row */
    uint64_t *cells;        /* rows go behind `cell_at`; of counting: KRAIT_ROW_MAX_CELLS of scratch */
    uint64_t cell_at;       /* moved */
    uint64_t cell_limit;    /* no row begins there or behind */
    struct krait_row *rows; /* the next one to write; moved. Of counting: unused */
    uint64_t *counts;       /* of counting: by the class's index in its stream class */
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

/* Errors: -ENOTSUP no code can be made for this machine or this header, or the system has no memory that may
 * be executed; -ENOMEM. The engine is not changed any more: threads may share it. */
int krait_engine_new(struct krait_engine **out, const struct krait_engine_plan *plan);
void krait_engine_free(struct krait_engine *engine);

/* Decodes up to `end`, to `cell_limit`, or to before an event that is not plain. hot path, no GIL */
void krait_engine_run(const struct krait_engine *engine, struct krait_emit_run *run);

#endif
