/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of one stream, one after the other.
 */
#ifndef KRAIT_CTF_READ_CURSOR_H
#define KRAIT_CTF_READ_CURSOR_H

#include "ctf/read/file.h"

/* Compiles all event classes, which otherwise happens when each is first met. Afterwards the reader does not change any
 * more, and cursors of several threads may use it. Returns 0 or -ENOMEM. */
int krait_ctf_compile(struct krait_ctf_reader *reader);

/* Events of one stream. */
struct krait_ctf_cursor {
    struct krait_ctf_reader *reader;
    const struct krait_ctf_stream *stream;
    const struct krait_ctf_trace *trace;   /* of the packet */
    const struct krait_stream_class *cls;  /* of the packet, in its own trace */
    struct krait_ctf_code *code;           /* of cls */
    const struct krait_ctf_packet *packet; /* NULL before the first */
    const struct krait_ctf_file *file;     /* the packet's */
    const struct krait_event_class *event; /* the current one */
    struct krait_decoder d;
    /* bit in the packet, at most d.end: krait_ctf_next releases pages before the next event at or after it */
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
    int64_t turn_ns;   /* with `by_turn`: krait_ctf_packet_turn of the packets since the previous event, and
                          of this one; else INT64_MIN */
    bool ranged;
    int64_t from_ns, to_ns;   /* with `ranged`: packets outside are skipped */
    struct krait_ctf_way way; /* up to the event */
    struct krait_err err;
};

/* Returns 0 or -ENOMEM. */
int krait_ctf_cursor_init(struct krait_ctf_cursor *cursor, struct krait_ctf_reader *reader,
                          const struct krait_ctf_stream *stream);
void krait_ctf_cursor_done(struct krait_ctf_cursor *cursor);

/* From the next packet on, reads only packets that may have events from from_ns to to_ns, both included. A packet is
 * outside if its full times say so and its neighbours do not contradict them. The contents of such a packet, damage
 * included, are not read. */
void krait_ctf_cursor_range(struct krait_ctf_cursor *cursor, int64_t from_ns, int64_t to_ns);

/* Moves to the next event and reads its header. Before the next call, the caller must skip the event's fields with
 * krait_ctf_event_skip, or print them (text/pretty.h). Returns 1, 0 at the end, or a negative errno with cursor->err
 * set. */
int krait_ctf_next(struct krait_ctf_cursor *cursor);

/* The time by which the current event is merged with those of other streams: its own. With `by_turn`, the first event
 * of a packet is merged by the times that packets give, if those are later. Hot path. */
static inline int64_t krait_ctf_turn(const struct krait_ctf_cursor *cursor)
{
    bool first = cursor->event_at == cursor->first_at;
    return KRAIT_UNLIKELY(first) ? KRAIT_MAX(cursor->ns, cursor->turn_ns) : cursor->ns;
}

/* Moves to the beginning of a packet, which may have no events; none is current. Returns 0 or a negative errno with cursor->err
 * set. */
int krait_ctf_enter(struct krait_ctf_cursor *cursor, const struct krait_ctf_stream *stream, uint32_t packet);

/* Moves to an event whose packet, bit and time are known. It becomes the current event, with its fields not skipped
 * yet. Its ticks are exact if the clock counts nanoseconds, otherwise as precise as a double. Returns 0 or a negative
 * errno with cursor->err set. */
int krait_ctf_seek(struct krait_ctf_cursor *cursor, const struct krait_ctf_stream *stream, uint32_t packet,
                   uint64_t bit, int64_t ns);

/* Skips the fields. Returns 0 or a negative errno with cursor->err set. */
int krait_ctf_event_skip(struct krait_ctf_cursor *cursor);

/* Moves back to the beginning of the fields, so that they can be printed after they were skipped. */
void krait_ctf_event_rewind(struct krait_ctf_cursor *cursor);

/* The code of the current event's class, compiled on first use. On failure NULL with cursor->err set. */
struct krait_program *krait_ctf_event_program(struct krait_ctf_cursor *cursor);

/* krait_ctf_event_passed for failures. */
int krait_ctf_event_damaged(struct krait_ctf_cursor *cursor, bool well);

/* For callers that skip the fields with cursor->d themselves: ends the event; `well` says whether that worked. Returns
 * 0, or a negative errno with cursor->err set from cursor->d.why, or because the event has no bits. Hot path. */
static inline int krait_ctf_event_passed(struct krait_ctf_cursor *cursor, bool well)
{
    bool moved = cursor->d.at != cursor->event_at;
    return KRAIT_LIKELY(well && moved) ? 0 : krait_ctf_event_damaged(cursor, well);
}

#endif
