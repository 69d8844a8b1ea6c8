/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of one stream, one after the other.
 */
#ifndef KRAIT_CTF_READ_CURSOR_H
#define KRAIT_CTF_READ_CURSOR_H

#include "ctf/read/file.h"

/* Compiles all event classes, which otherwise happens as they are met: after it the reader is not changed any
 * more, and cursors of several threads may use it. Returns 0 or -ENOMEM. */
int krait_ctf_compile(struct krait_ctf_reader *reader);

/* Events of one stream. */
struct krait_ctf_cursor {
    struct krait_ctf_reader *reader;
    const struct krait_ctf_stream *stream;
    const struct krait_ctf_trace *trace;   /* of the packet */
    const struct krait_stream_class *cls;  /* of the packet: as its trace has it */
    struct krait_ctf_code *code;           /* of cls */
    const struct krait_ctf_packet *packet; /* NULL before the first */
    const struct krait_ctf_file *file;     /* the packet's */
    const struct krait_event_class *event; /* the current one */
    struct krait_decoder d;
    /* bit in the packet, at most d.end: before an event there or behind, krait_ctf_next lets go of pages */
    uint64_t pause;
    uint32_t next_packet;
    uint64_t context_at; /* bit in the packet where its context begins */
    uint8_t context_be;  /* the decoder's bits_be there */
    uint64_t event_at;   /* where the event begins */
    uint64_t fields_at;  /* where its header ends */
    uint8_t fields_be;
    uint64_t ticks;    /* of the event */
    int64_t ns;        /* of the event, since the clock's origin; 0 without a clock */
    bool by_turn;      /* krait_ctf_merge_by_turn */
    uint64_t first_at; /* bit in the packet where its first event begins */
    int64_t turn_ns;   /* with `by_turn`: krait_ctf_packet_turn of the packets since the event before, and of
                          this one; else INT64_MIN */
    bool ranged;
    int64_t from_ns, to_ns;   /* with `ranged`: packets outside are passed over */
    struct krait_ctf_way way; /* up to the event */
    struct krait_err err;
};

/* Returns 0 or -ENOMEM. */
int krait_ctf_cursor_init(struct krait_ctf_cursor *cursor, struct krait_ctf_reader *reader,
                          const struct krait_ctf_stream *stream);
void krait_ctf_cursor_done(struct krait_ctf_cursor *cursor);

/* From the next packet on, only packets are read that may have events from from_ns to to_ns, both included: a
 * packet lies outside when it says so in whole times that its neighbours do not contradict. What is in one
 * that lies outside, damage too, is not met. */
void krait_ctf_cursor_range(struct krait_ctf_cursor *cursor, int64_t from_ns, int64_t to_ns);

/* Goes to the next event: reads its header. Before it is called again, the event's fields must have been
 * passed, with krait_ctf_event_skip or by who prints them (text/pretty.h). Returns 1, 0 at the end, or a
 * negative errno with cursor->err set. */
int krait_ctf_next(struct krait_ctf_cursor *cursor);

/* The time by which the current event goes among other streams': its own; with `by_turn`, a packet's first
 * event goes by what packets say of their times where that is later. Hot path. */
static inline int64_t krait_ctf_turn(const struct krait_ctf_cursor *cursor)
{
    bool first = cursor->event_at == cursor->first_at;
    return KRAIT_UNLIKELY(first) ? KRAIT_MAX(cursor->ns, cursor->turn_ns) : cursor->ns;
}

/* Goes to an event of a packet of the cursor's reader, of which bit and time are known: it is then the
 * current one, its fields not passed. Its count of ticks is exact where the clock counts nanoseconds, else as
 * good as a double. Returns 0 or a negative errno with cursor->err set. */
int krait_ctf_seek(struct krait_ctf_cursor *cursor, const struct krait_ctf_stream *stream, uint32_t packet,
                   uint64_t bit, int64_t ns);

/* Goes past the fields. Returns 0 or a negative errno with cursor->err set. */
int krait_ctf_event_skip(struct krait_ctf_cursor *cursor);

/* Goes back to where the fields begin, so that they can be printed after they were passed. */
void krait_ctf_event_rewind(struct krait_ctf_cursor *cursor);

/* The code of the current event's class, made when it is first met. Returns NULL with cursor->err set. */
struct krait_program *krait_ctf_event_program(struct krait_ctf_cursor *cursor);

/* krait_ctf_event_passed where something is wrong. */
int krait_ctf_event_damaged(struct krait_ctf_cursor *cursor, bool well);

/* For who passes the fields by cursor->d: whether that went well. Returns 0, or a negative errno with
 * cursor->err set, of what cursor->d.why says or of an event of no bits. Hot path. */
static inline int krait_ctf_event_passed(struct krait_ctf_cursor *cursor, bool well)
{
    bool moved = cursor->d.at != cursor->event_at;
    return KRAIT_LIKELY(well && moved) ? 0 : krait_ctf_event_damaged(cursor, well);
}

#endif
