/* SPDX-License-Identifier: Apache-2.0
 *
 * The writer's side of a recording, in the traced program: joining, rings, packets, definitions. The hot path is in
 * ring.h. Needs only libc. Nothing here prints, exits, locks or raises. The caller saves errno.
 */
#ifndef KRAIT_RECORD_WRITER_H
#define KRAIT_RECORD_WRITER_H

#include "event/payload.h"
#include "record/door.h"
#include "record/ring.h"

enum { KRAIT_MAP_CLOSED = 1 }; /* added to the address of a ring that is mapped without access yet */

/* One process's part in a recording. */
struct krait_writer {
    struct krait_shm shm;    /* without the rings' bytes */
    struct krait_proc *proc; /* NULL: no slot was free, or not joined since fork */
    uint32_t proc_index;
    bool counter;      /* the clock */
    uint64_t dev, ino; /* of the recording */
    char path[64];
    char key[KRAIT_DOOR_KEY + 1]; /* of the collector's door; empty: none */
    bool apart;                   /* the numbers of processes that the collector knows are not those here */
    uint8_t *_Atomic *ring_maps;  /* where each ring's bytes are, + KRAIT_MAP_CLOSED; NULL: not mapped here */
    uint8_t *seed;                /* the page below the first ring, once more, without access */
    _Atomic uint64_t no_ring_since; /* there was none when ring_frees + 1 was this */
    uint32_t *own;   /* 0: this process is a copy of the one that has joined; NULL: not known */
    uint8_t *window; /* the chunks that are mapped here; NULL: rings do not grow */
    uint32_t window_first, window_count;
};

/* Maps the recording at `address` (the value of KRAIT_SESSION: its path, and the key of the collector's door). Returns 0, or a negative errno: -ENOENT where
 * the collector is gone, -EPROTO where it is of another version, -ESHUTDOWN where the recording has ended. */
int krait_writer_map(struct krait_writer *writer, const char *address);
/* No thread writes any more. */
void krait_writer_unmap(struct krait_writer *writer);
/* The same where threads may still write: the recording's memory goes, and pages without effect take its place
 * for good. */
void krait_writer_abandon(struct krait_writer *writer);

/* Where the ring's packet is, here. */
static inline uint8_t *krait_writer_packet(const struct krait_writer *writer, const struct krait_ring *ring,
                                           uint32_t place)
{
    uint64_t at = (uint64_t)(place % KRAIT_PACKETS_MAX) * writer->shm.packet_bytes;
    uint32_t chunk = place / KRAIT_PACKETS_MAX - 1 - writer->window_first;
    return place < KRAIT_PACKETS_MAX ? ring->packets + at
                                     : writer->window + chunk * krait_shm_chunk_bytes(&writer->shm) + at;
}

/* Tells the collector why this process is not recorded. */
void krait_writer_refuse(struct krait_writer *writer, const char *why);

/* Takes a process slot for this process; again after fork. Returns 0, -EAGAIN when there is none, -ESHUTDOWN
 * when the recording has ended. */
int krait_writer_join(struct krait_writer *writer);

/* Whether this process is the one that has joined, and not a copy of it. hot path */
static inline bool krait_writer_is_own(const struct krait_writer *writer)
{
    return !writer->own || *writer->own;
}

/* The process records no more: the collector finishes its trace at once. Fine when it has not joined. */
void krait_writer_leave(struct krait_writer *writer);

/* A ring for a thread, or for definitions; NULL when there is none left (counted as lost_reason no_ring by
 * the caller's first event). Any thread. */
struct krait_ring *krait_writer_ring_new(struct krait_writer *writer, enum krait_ring_kind kind,
                                         uint32_t tid);
/* The owner writes no more. NULL is fine. */
void krait_writer_ring_close(struct krait_ring *ring);

static inline uint64_t krait_writer_now(const struct krait_writer *writer)
{
    return KRAIT_LIKELY(writer->counter) ? krait_clock_counter() : krait_clock_ns(CLOCK_MONOTONIC);
}

enum krait_ring_room {
    KRAIT_ROOM_OK = 0,
    KRAIT_ROOM_NONE = 1,   /* the ring is full: the event is lost and has been counted; or the recording has
                            * been stopped */
    KRAIT_ROOM_RESYNC = 2, /* there is room again after a loss: say the stack first */
};

/* Makes room for one event of at most `bytes` (header included) at time t: closes a full packet, opens the next. */
enum krait_ring_room krait_writer_room(struct krait_writer *writer, struct krait_ring *ring, uint64_t t,
                                       size_t bytes);

/* Writes one event whose payload is `word`, or that has none, as short as it can be; needs room for 17 bytes. */
void krait_writer_put(struct krait_ring *ring, uint64_t t, uint32_t event, uint32_t word);

/* Writes one event whose payload is at most KRAIT_RING_MARGIN - 13 bytes, as short as it can be; needs room for
 * 13 + n bytes. */
void krait_writer_put_small(struct krait_ring *ring, uint64_t t, uint32_t event, const void *payload,
                            size_t n);

/* Writes one event with any payload in the long form; needs room for 13 + n bytes. */
void krait_writer_put_extended(struct krait_ring *ring, uint64_t t, uint32_t event, const void *payload,
                               size_t n);

/* Counts a loss, unless the recording has been stopped: what comes then is not its. */
void krait_writer_lost(struct krait_writer *writer, enum krait_event_enum_value reason, uint64_t count);

/* A new code id for this process, from 1. */
uint32_t krait_writer_new_code(struct krait_writer *writer);

/* Whether the recording still runs: not stopped, and the collector alive. */
bool krait_writer_running(const struct krait_writer *writer);
/* Whether the collector has stopped it: one load. */
bool krait_writer_stopped(const struct krait_writer *writer);

/* Makes room and writes one event, whose n bytes krait_put_NAME() has made, now; returns false when it was lost. For
 * definitions and other rare events. */
bool krait_writer_event(struct krait_writer *writer, struct krait_ring *ring, uint32_t event,
                        const void *payload, size_t n);

#endif
