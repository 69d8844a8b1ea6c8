/* SPDX-License-Identifier: Apache-2.0
 *
 * One CPU's stream of kernel events on disk: CTF 1.8 packets in the layout that LTTng's kernel tracer has.
 *
 *   packet   ┌─────────────────────────┬────────────────────────────┬────────┬────────┬───┐
 *            │ magic uuid stream       │ time_begin time_end        │ event  │ event  │ … │
 *            │ instance                │ content packet seq lost cpu│        │        │   │
 *            └─────────────────────────┴────────────────────────────┴────────┴────────┴───┘
 *             32 bytes                  52 bytes
 *
 *   event    ┌───────┬─────────┬────────┬─────────┐     time: the clock's low 32 bits
 *   compact  │ id:16 │ time:32 │ tid:32 │ payload │
 *            └───────┴─────────┴────────┴─────────┘
 *   event    ┌───────────┬───────┬─────────┬────────┬─────────┐    when 2^32 ticks or more went by since the
 *   extended │ 0xffff:16 │ id:32 │ time:64 │ tid:32 │ payload │    event before, or the packet's beginning
 *            └───────────┴───────┴─────────┴────────┴─────────┘
 *
 * Source: CTF 1.8.3; lttng-modules, the metadata of its event_header_large.
 */
#ifndef KRAIT_KERNEL_KERNEL_STREAM_H
#define KRAIT_KERNEL_KERNEL_STREAM_H

#include "base/buf.h"
#include "base/err.h"

struct krait_kernel_stream {
    int fd;
    uint32_t cpu;
    uint64_t instance;
    uint8_t uuid[16];
    struct krait_buf packet; /* being filled; its head is written when it is closed */
    uint64_t first, last;    /* times of its events */
    uint64_t in_packet;      /* its events */
    uint64_t lost;           /* before it: of the stream since its beginning */
    uint64_t sequence;
    uint64_t events, bytes; /* on disk */
    struct krait_kernel_counts {
        uint32_t *items; /* the events of each packet on disk; owned */
        size_t count, cap;
    } counts;
    uint64_t refused; /* events that the disk did not take; also in `lost` */
    uint64_t *room;   /* bytes that this and other streams may still write; not owned; NULL: any number */
    uint64_t no_room; /* events that were more than that; also in `lost` */
};

/* Makes the file. Errors: what open gives. */
int krait_kernel_stream_init(struct krait_kernel_stream *stream, const char *path, const uint8_t uuid[16],
                             uint32_t cpu, uint64_t instance, struct krait_err *err);
void krait_kernel_stream_done(struct krait_kernel_stream *stream);

/* The tid of what krait tells of the whole machine: readers take the tid of an event's context for the thread
 * that runs on its CPU. */
enum { KRAIT_KERNEL_NO_TID = -1 };

/* Room for an event with a payload of at most `max` bytes: returns where the payload goes, NULL when memory
 * is out. A packet that is full is written first; that the disk refuses it is in *rc. Hot path. */
uint8_t *krait_kernel_stream_begin(struct krait_kernel_stream *stream, uint16_t id, uint64_t time,
                                   int32_t tid, size_t max, int *rc);
/* The event's payload had n bytes. */
void krait_kernel_stream_end(struct krait_kernel_stream *stream, size_t n);

/* Writes a packet without events at a moment: readers tell losses, and what was recorded at all, from packet
 * to packet, so that a stream begins and ends with one. Returns 0 or a negative errno. */
int krait_kernel_stream_mark(struct krait_kernel_stream *stream, uint64_t time);
/* `count` events were lost here. Closes the packet. */
int krait_kernel_stream_lose(struct krait_kernel_stream *stream, uint64_t count);
/* Writes the file DIR/channel0_CPU anew without the packets that ended before this tick. Returns 0 or a
 * negative errno; the file is then as it was. */
int krait_kernel_stream_drop_before(struct krait_kernel_stream *stream, const char *dir, uint64_t since);
/* Writes the packet, whole or not at all. Returns 0 or a negative errno; its events are then `refused`. If there is no room for it,
 * drops it, and counts its events as `no_room`; so it is with all that follow until there is room again. */
int krait_kernel_stream_flush(struct krait_kernel_stream *stream);

#endif
