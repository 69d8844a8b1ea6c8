/* SPDX-License-Identifier: Apache-2.0
 *
 * All event classes of a reader, compiled to rows: their steps and, where possible, machine code.
 */
#ifndef KRAIT_CTF_ROWS_ROW_SET_H
#define KRAIT_CTF_ROWS_ROW_SET_H

#include "ctf/rows/emit.h"

/* Of one stream class of one trace. */
struct krait_row_stream {
    const struct krait_stream_class *cls;
    struct krait_row_class *classes; /* by the event class's index */
    struct krait_engine *engine;     /* NULL: the careful reader takes each event */
    bool in_ns;                      /* its clock counts nanoseconds: `base` added to ticks is the time */
    uint64_t base;
    /* ticks: from there on the careful reader takes over, which checks the end of time; a run of machine code that
     * began before may go further */
    uint64_t code_until;
};

struct krait_row_set {
    struct krait_ctf_reader *reader;
    struct krait_arena arena;
    struct krait_row_class *classes; /* by index: ordered by trace, stream class, event class */
    uint32_t class_count;
    struct krait_row_stream *streams;
    uint32_t stream_count;
    struct krait_map by_class; /* struct krait_stream_class * to the index in `streams` */
    uint32_t most_cells;       /* of a class */
    enum krait_emit_mode mode;
    struct krait_row_plan plan; /* while the set is compiled */
};

/* Compiles everything, the reader's own code too (krait_ctf_compile). `wanted` is as in struct krait_row_plan; for
 * counting, no field is wanted. The set does not change afterwards: threads may share it as long as the reader lives.
 * No machine code is made if the environment variable KRAIT_READ_INTERPRET is set to anything but an empty text or 0.
 * Returns 0 or -ENOMEM. */
int krait_row_set_new(struct krait_row_set **out, struct krait_ctf_reader *reader, enum krait_emit_mode mode,
                      const struct krait_map *wanted);
void krait_row_set_free(struct krait_row_set *set);

const struct krait_row_stream *krait_row_stream_of(const struct krait_row_set *set,
                                                   const struct krait_stream_class *cls);

#endif
