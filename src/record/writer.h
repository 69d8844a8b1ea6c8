/* SPDX-License-Identifier: Apache-2.0
 *
 * The writer's side of a recording, in the traced program: joining, rings, packets, definitions. The hot path is in
 * ring.h. It needs only libc. Nothing here prints, exits, locks or raises. The caller saves errno.
 */
#ifndef KRAIT_RECORD_WRITER_H
#define KRAIT_RECORD_WRITER_H

#include "event/payload.h"
#include "record/join.h"
#include "record/ring.h"

enum {
    KRAIT_MAP_CLOSED = 1
}; /* added to the address of a ring that is mapped, but without access rights yet */

/* One process's part in a recording. */
struct krait_writer {
    struct krait_shm shm;    /* without the rings' bytes */
    struct krait_proc *proc; /* NULL: no slot was free, or it has not joined since fork */
    uint32_t proc_index;
    bool counter;      /* the clock */
    uint64_t dev, ino; /* of the recording */
    char path[64];
    char key[KRAIT_JOIN_KEY + 1]; /* of the collector's socket (join.h); empty: none */
    char *join_file;              /* of the same for other network namespaces; NULL: none. Allocated */
    bool apart;                   /* the collector sees other process ids than this process */
    bool reserved;                /* proc_index is a slot that krait_writer_reserve took for this process */
    uint32_t changes;             /* krait_control.changes before this process read what is to be recorded */
    bool settles; /* may write though the recording is off: what begins its part, or ends it until it is on */
    uint8_t *_Atomic
        *ring_maps; /* the address of each ring's bytes, + KRAIT_MAP_CLOSED; NULL: not mapped here */
    uint8_t *seed;  /* a second mapping of the page below the first ring, without access */
    _Atomic uint64_t no_ring_since; /* there was no free ring when ring_frees + 1 had this value */
    uint64_t patience_ns;           /* how long a process that begins waits for a slot and its rings */
    uint64_t patient_until_ns;      /* CLOCK_MONOTONIC; set by krait_writer_join */
    uint32_t *own;   /* points to 0 in a fork of the process that has joined; NULL: not known */
    uint8_t *window; /* the chunks that are mapped here; NULL: rings do not grow */
    uint32_t window_first, window_count;
};

/* Maps the recording at `address` (the value of KRAIT_SESSION: its path, the key and the file of the
 * collector's sockets).
 * Returns 0, or a negative errno: -ENOENT if the collector is gone, -EPROTO if it has another version, -ESHUTDOWN if
 * the recording has ended; one that is off can be mapped. */
int krait_writer_map(struct krait_writer *writer, const char *address);
/* For when no thread writes any more. */
void krait_writer_unmap(struct krait_writer *writer);
/* The same if threads may still write: pages without any effect replace the recording's memory for good. */
void krait_writer_abandon(struct krait_writer *writer);

/* The address of the ring's packet in this process. */
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

/* Takes a process slot for this process; call it again after fork. Where none is free it waits for the collector, up to
 * patience_ns. Returns 0, -EAGAIN if none is free then, -ESHUTDOWN if the recording has ended, -EHOSTDOWN if it is off. */
int krait_writer_join(struct krait_writer *writer);
/* The process records from now on: nothing can keep it from that any more. */
void krait_writer_begun(const struct krait_writer *writer);
/* Takes a slot for krait_writer_join to use later: the collector knows then that the process is ready. May fail. */
void krait_writer_reserve(struct krait_writer *writer);

/* Whether this process is the one that has joined, and not a fork of it. hot path */
static inline bool krait_writer_is_own(const struct krait_writer *writer)
{
    return !writer->own || *writer->own;
}

/* Ends the recording of this process: the collector finishes its trace at once. May be called without having joined. */
void krait_writer_leave(struct krait_writer *writer);

/* A ring for a thread, or for definitions; NULL if none is left (the caller's first event counts that as lost_reason
 * no_ring), or the recording is over, or for a thread if it is off. Any thread. Waits for one only in the first
 * patience_ns after krait_writer_join. */
struct krait_ring *krait_writer_ring_new(struct krait_writer *writer, enum krait_ring_kind kind,
                                         uint32_t tid);
/* The owner will not write any more. NULL is fine. */
void krait_writer_ring_close(struct krait_ring *ring);

static inline uint64_t krait_writer_now(const struct krait_writer *writer)
{
    return KRAIT_LIKELY(writer->counter) ? krait_clock_counter() : krait_clock_ns(CLOCK_MONOTONIC);
}

enum krait_ring_room {
    KRAIT_ROOM_OK = 0,
    KRAIT_ROOM_NONE = 1,   /* the ring is full: the event is lost and counted; or the recording was
                            * stopped */
    KRAIT_ROOM_RESYNC = 2, /* there is room again after a loss: state the stack first */
};

/* Makes room for one event of at most `bytes` (header included) at time t: closes a full packet and opens the next. */
enum krait_ring_room krait_writer_room(struct krait_writer *writer, struct krait_ring *ring, uint64_t t,
                                       size_t bytes);

/* When the open packet of the calling thread's ring begins; there is one after krait_writer_room. */
uint64_t krait_writer_begin(const struct krait_writer *writer, const struct krait_ring *ring);

/* Writes one event whose payload is `word`, or that has none, in its shortest form; needs room for 17 bytes. */
void krait_writer_put(struct krait_ring *ring, uint64_t t, uint32_t event, uint32_t word);

/* Writes one event whose payload is at most KRAIT_RING_MARGIN - 13 bytes, in its shortest form; needs room for 13 + n
 * bytes. */
void krait_writer_put_small(struct krait_ring *ring, uint64_t t, uint32_t event, const void *payload,
                            size_t n);

/* Writes one event with any payload in the long form; needs room for 13 + n bytes. */
void krait_writer_put_extended(struct krait_ring *ring, uint64_t t, uint32_t event, const void *payload,
                               size_t n);

/* Counts a loss, unless the recording was stopped: later events do not belong to it. */
void krait_writer_lost(struct krait_writer *writer, enum krait_event_enum_value reason, uint64_t count);

/* A new code id for this process, from 1. */
uint32_t krait_writer_new_code(struct krait_writer *writer);

/* enum krait_session_state, by one load: who asks twice may be told of two states, and take the second for a third. */
uint32_t krait_writer_session(const struct krait_writer *writer);
/* Whether nobody collects any more, also where it is switched off. */
bool krait_writer_is_over(const struct krait_writer *writer);
/* Whether what is to be recorded has changed since krait_writer_note_changes, which is called before it is read: one load. */
bool krait_writer_has_changed(const struct krait_writer *writer);
void krait_writer_note_changes(struct krait_writer *writer);
/* Whether it is off, and may be switched on again. */
bool krait_writer_is_off(const struct krait_writer *writer);

/* Makes room for and writes one event with the current time; krait_put_NAME() has written its n bytes. Returns false if
 * it was lost. For definitions and other rare events. */
bool krait_writer_event(struct krait_writer *writer, struct krait_ring *ring, uint32_t event,
                        const void *payload, size_t n);

#endif
