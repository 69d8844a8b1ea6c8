/* SPDX-License-Identifier: Apache-2.0
 *
 * The events of a thread that krait recorded, without most of its calls: those who look for marks, tasks or the GIL need not
 * pass millions of calls. In a recording that goes on the places of these events are noted once, when their packet is first
 * seen; otherwise a stretch is a packet, with all calls in it.
 *
 *     packet       |c c c c c M c c c c c c c c c c c c c c c G G c c c c c c c|    c: a call begins or ends
 *     stretches              |-|                             |---|
 *
 * Events that follow one another within STRETCH_GAP bytes are one stretch, so stretches take at most 3 % of the stream's size.
 */
#ifndef KRAIT_TRACE_STRETCHES_H
#define KRAIT_TRACE_STRETCHES_H

#include "event/event.h"
#include "trace/packets.h"

struct krait_trace;
struct krait_thread_file;

struct krait_noted_stretch {
    uint64_t ticks;                 /* the time before its first event */
    uint32_t packet, offset, bytes; /* the packet is one of the thread's file; in its events */
};

/* Zeroed memory has none, of nothing. */
struct krait_noted_stretches {
    struct krait_noted_stretch *items;
    uint32_t count, cap;
    bool ids[KRAIT_EVENT_IDS]; /* of the events that are there besides calls */
    bool is_kept;              /* they are all that the file has */
};

/* Notes the stretches of the file's next packet, which has that index. Returns 0 or -ENOMEM. */
int krait_stretches_note(struct krait_noted_stretches *noted, uint32_t index,
                         const struct krait_packet *packet);

struct krait_stretches {
    const struct krait_thread_file *file;
    struct krait_packets packets;
    struct krait_packet packet; /* that the stretch is in */
    struct krait_cursor cursor; /* of the stretch's events */
    uint64_t ticks;             /* the time before its first event */
    uint32_t next;              /* of the noted ones */
    uint32_t at;                /* the packet's index; KRAIT_NO_ID: none yet */
    bool is_anew; /* the file was written anew since the trace was opened: no place that was noted holds */
    const struct krait_image *image;
};

/* Those of a thread from a time on, and some before it. Returns 0, -ENOMEM, or another negative errno if the file cannot be
 * opened. */
int krait_stretches_open(struct krait_stretches *stretches, const struct krait_trace *trace, uint32_t thread,
                         uint64_t from_ns);
void krait_stretches_close(struct krait_stretches *stretches);
/* False when there is no more. Damage of packets is said. */
bool krait_stretches_next(struct krait_stretches *stretches, struct krait_damage *damage);

#endif
