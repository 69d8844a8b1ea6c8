/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of one stream, a chunk at a time. Two readers take turns: machine code as far as it gets, and the careful reader
 * for the first event of each packet and for every event at which the machine code stops.
 */
#ifndef KRAIT_CTF_ROWS_ROW_SOURCE_H
#define KRAIT_CTF_ROWS_ROW_SOURCE_H

#include "ctf/rows/row_set.h"

/* Where rows go: events to `rows`, their cells from `cell_at` on. The caller owns the memory. */
struct krait_row_chunk {
    /* has room for (cell_limit - cell_at) / KRAIT_ROW_HEAD + 1 more, which is less than 1 << 16 */
    struct krait_row *rows;
    uint32_t count;
    uint64_t *cells;
    uint64_t cell_at;
    uint64_t cell_limit; /* no row begins at or after it; it is followed by room for one more row */
};

struct krait_row_source {
    struct krait_ctf_cursor cursor;
    const struct krait_row_set *set;
    const struct krait_row_stream *stream; /* of the packet's class */
    bool held; /* the careful reader is at an event that it has not handed out yet */
    bool ended;
};

int krait_row_source_init(struct krait_row_source *source, const struct krait_row_set *set,
                          const struct krait_ctf_stream *stream);
void krait_row_source_done(struct krait_row_source *source);

/* Adds events to the chunk until it is full, the stream ends (`ended`), or the next event is earlier than the last one:
 * within a chunk, times never go backward. If there is an event and the chunk is empty, it adds at least one. Damage
 * ends the stream: cursor.err has it. hot path, no GIL */
void krait_row_fill(struct krait_row_source *source, struct krait_row_chunk *chunk);

/* Makes the event of a row, at its time, the current one of a cursor of the same reader. `cells` are those of the row.
 * Returns as krait_ctf_seek. */
int krait_row_find(struct krait_ctf_cursor *cursor, int64_t ns, const uint64_t *cells);
/* The same, and skips its fields. */
int krait_row_seek(struct krait_ctf_cursor *cursor, const struct krait_row *row, const uint64_t *cells);

/* What krait_row_count adds up. */
struct krait_row_tally {
    uint64_t *counts; /* of events, by krait_row_class.index */
    bool has_times;
    int64_t begin_ns, end_ns; /* earliest and latest event */
    bool ranged;              /* only events of a clock from from_ns on, and before to_ns, count */
    int64_t from_ns, to_ns;
    uint64_t scratch[KRAIT_ROW_MAX_CELLS];
};

/* Counts the events of the rest of the stream, with a set of KRAIT_EMIT_COUNT. Damage ends it: cursor.err has it. */
void krait_row_count(struct krait_row_source *source, struct krait_row_tally *tally);

#endif
