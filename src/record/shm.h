/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory that a traced program and the collector share.
 *
 * The collector creates one memfd for the whole recording. Each process finds it by the path in KRAIT_SESSION
 * (/proc/PID/fd/N). It maps everything before the rings, and of the rings only its own, because a program may have
 * little address space (RLIMIT_AS). A memfd needs no room in /dev/shm, disappears with the last process, and costs
 * memory only for touched pages. It is sealed against shrinking, so no process can take the memory away from another.
 * It contains no pointer that the other side follows.
 *
 *   ┌─────────┬───────────────┬────────────┬─────────────┬─────────────────────────┬──────────────────────┐
 *   │ control │ process slots │ ring heads │ chunk heads │ rings: ring_bytes each, │ chunks: chunk_bytes  │
 *   │         │               │            │             │ in packets              │ each, in packets     │
 *   └─────────┴───────────────┴────────────┴─────────────┴─────────────────────────┴──────────────────────┘
 *
 * Who writes what, and how the two sides agree without a lock:
 *
 * - `state` of the control page says whether the recording is on, off or over; switch.h explains how processes learn
 *   of it.
 *
 * - A traced process takes a slot or a ring by a compare-and-swap of `state` from FREE to TAKEN with the number of
 *   its owner. Only the collector sets it back to FREE, when the owner is dead or has closed it. (Two writers in one
 *   ring would follow each other's addresses.) TAKEN contains the owner because the owner may be killed before it
 *   can note that elsewhere.
 *
 * - A ring has one writer, its thread, and up to 64 packets. `ready` has a bit for each packet that is complete and
 *   not on disk yet: the writer sets it (release) when it closes the packet, the collector clears it (release) when
 *   the packet is written. The writer opens the lowest packet whose bit is clear. So a thread with few events uses a
 *   few pages, which stay in the cache, and a burst can use the whole ring.
 *
 * - A ring grows when all of its packets are ready: its writer takes a chunk, which is 64 more packets with a head of
 *   their own. A process maps a window of the chunks when it joins, so growing takes no system call. The writer marks
 *   a chunk BUSY while its open packet is in it. The collector takes back a chunk that is not busy and has nothing
 *   ready, and returns its pages to the kernel, so a burst costs memory only while it lasts. The state word also
 *   counts the packets that were closed in the chunk: if a chunk was used meanwhile, its word has changed.
 *   A place is the number of a packet in its ring: below 64 the ring's own, and then 64 for each chunk.
 *
 * - In the open packet, `cur` is the commit: events below it are complete. The writer moves it after it has stored
 *   the bytes (a plain store: x86 keeps the order, elsewhere it is a release). Once a second, and when the process is
 *   dead, the collector takes the open packet up to `cur`. The writer does not know, and what it adds is taken later.
 *   A packet with events is always open or ready or both, because it becomes ready before it stops being open. Its
 *   sequence number tells whether all of it was taken.
 *
 * The writer fills in time_begin, time_end, packet_seq_num and events_discarded of a packet's head, the collector the
 * rest. Both sides check what they read and keep a copy of the layout: a program can write anywhere in its own memory,
 * and only its own trace may suffer.
 */
#ifndef KRAIT_RECORD_SHM_H
#define KRAIT_RECORD_SHM_H

#include "base/base.h"
#include "event/event.h"
#include "record/names_met.h"

#include <stdatomic.h>
#include <stdio.h>

#define KRAIT_SHM_MAGIC   0x6b726169742d3031ull /* "krait-01" */
#define KRAIT_SHM_VERSION 18u                   /* agent and collector must agree */

/* Variables of the environment of a recorded program: the path of the shared memory, and that its children are not recorded. */
#define KRAIT_ENV_SESSION     "KRAIT_SESSION"
#define KRAIT_ENV_NO_CHILDREN "KRAIT_NO_CHILDREN"

enum {
    KRAIT_PACKETS_MAX = 64, /* bits of `ready` */
    KRAIT_CHUNKS_MAX = 1 << 15,
    KRAIT_PROCS_MAX = 4096,
    KRAIT_FILTER_BYTES = 8192,
    KRAIT_REFUSALS = 8,
    KRAIT_COMMAND_BYTES = 2048, /* a command line and its NUL; longer ones are cut */
};

enum krait_record_flags {
    KRAIT_RECORD_C_CALLS = 1 << 0,
    KRAIT_RECORD_CHILDREN = 1 << 1,
    KRAIT_RECORD_LOSSLESS = 1 << 2,
    KRAIT_RECORD_CALL_SITES = 1 << 3,
    KRAIT_RECORD_GIL = 1 << 4,
    KRAIT_RECORD_TASKS = 1 << 5,
    KRAIT_RECORD_LOG = 1 << 8, /* there are filters of this kind, and of the next */
    KRAIT_RECORD_AUDIT = 1 << 9,
    KRAIT_RECORD_GC = 1 << 10,
    KRAIT_RECORD_IMPORTS = 1 << 11,
    KRAIT_RECORD_COST = 1 << 12, /* agents measure what an event costs: event_ticks */
    KRAIT_RECORD_ASKED = KRAIT_RECORD_LOG | KRAIT_RECORD_AUDIT | KRAIT_RECORD_GC | KRAIT_RECORD_IMPORTS,
};

/* Of strings that say what to record. */
enum krait_filter_kind {
    KRAIT_FILTER_INCLUDE = '+', /* globs of functions */
    KRAIT_FILTER_EXCLUDE = '-',
    KRAIT_FILTER_LOG = 'l',   /* NAME[:LEVEL] of loggers */
    KRAIT_FILTER_AUDIT = 'a', /* globs of audit events */
    KRAIT_FILTER_ARGS = 'f',  /* functions and their arguments: base/argspec.h */
};

enum krait_session_state {
    KRAIT_SESSION_RUN = 1,
    KRAIT_SESSION_STOP = 2, /* agents switch themselves off when they next look */
    KRAIT_SESSION_DONE = 3, /* all is on disk */
    KRAIT_SESSION_OFF = 4,  /* switched off for now: switch.h */
};

enum krait_slot_state {
    KRAIT_SLOT_FREE = 0,
    KRAIT_SLOT_TAKEN = 1, /* being filled; the bits above are a slot's pid, a ring's process slot */
    KRAIT_SLOT_OPEN = 2,
    KRAIT_SLOT_CLOSED = 3, /* its owner writes no more; the collector drains and frees it */
    KRAIT_SLOT_BITS = 2,
};

static inline enum krait_slot_state krait_slot_state(uint32_t word)
{
    return (enum krait_slot_state)(word & ((1u << KRAIT_SLOT_BITS) - 1));
}

/* The word of a slot that `owner` has just taken, and the owner in such a word. */
static inline uint32_t krait_slot_taken(uint32_t owner)
{
    return owner << KRAIT_SLOT_BITS | KRAIT_SLOT_TAKEN;
}

static inline uint32_t krait_slot_owner(uint32_t word)
{
    return word >> KRAIT_SLOT_BITS;
}

struct krait_control {
    uint64_t magic;
    uint32_t version;
    uint32_t flags; /* enum krait_record_flags */
    uint64_t total_bytes;
    uint64_t rings_offset; /* of the first ring's bytes */
    uint64_t ring_bytes;
    uint64_t chunks_offset; /* of the first chunk's bytes */
    uint32_t packet_bytes;
    uint32_t packet_count;
    uint32_t ring_max;
    uint32_t chunk_max;     /* 0: rings do not grow */
    uint32_t window_chunks; /* chunks that one process maps, beginning at a multiple of this number */
    uint32_t clock_counter; /* 1: the time-stamp counter, 0: CLOCK_MONOTONIC */
    uint64_t clock_freq;
    uint32_t max_overhead_ppm; /* 0: no governor */
    int32_t collector_pid;
    _Atomic uint32_t state;    /* enum krait_session_state; a futex */
    _Atomic uint32_t sleeping; /* 1 while the collector naps; a futex */
    /* Rings below this index have been taken at least once; the collector looks at these. */
    _Atomic uint32_t ring_used;
    _Atomic uint32_t changes; /* of flags, max_overhead_ppm and filters, since the recording began */
    _Atomic uint32_t wakes;   /* counts changes of `state` and `changes`; a futex: switch.h */
    _Atomic uint32_t proc_used;
    _Atomic uint32_t chunk_used;
    /* Rings given back: a thread that found none tries again when this has changed. */
    _Atomic uint32_t ring_frees;
    _Atomic uint64_t beat_ns;                       /* CLOCK_MONOTONIC of the collector's last sign of life */
    _Atomic uint64_t lost[KRAIT_COUNT_lost_reason]; /* for processes without a slot to count in */
    /* Processes that could not be recorded, and why, for the summary. A row is taken by setting its pid. */
    struct krait_refusal {
        _Atomic int32_t pid;
        char why[92];
    } refusals[KRAIT_REFUSALS];
    _Atomic uint32_t refused; /* all such processes, those too that found no row */
    /* Bit i: filter i has matched a function: --include first, then --exclude. Behind these, two for each of --log: a logger
     * asked for its level and the program had none of that name; a program had it. Those beyond 64 are not told. */
    _Atomic uint64_t filters_met;
    /* The same for --include and --exclude as krait ctl set has changed them last. */
    _Atomic uint64_t set_met;
    struct krait_names_met names_met[KRAIT_NAMED_KINDS];
    /* What is asked for: strings one after the other, each with its NUL, the first byte an enum krait_filter_kind;
     * ends with an empty string. */
    char filters[KRAIT_FILTER_BYTES];
};

/* A process image: one CTF trace. */
struct krait_proc {
    _Atomic uint32_t state;
    int32_t pid;   /* as in the /proc that the session's path goes through */
    char comm[16]; /* the command's name: the process may be gone before anyone can ask the kernel */
    /* Where its stack begins, which changes when it executes another program (proc(5), the 28th number of stat). */
    uint64_t image;
    _Atomic uint64_t lost[KRAIT_COUNT_lost_reason];
    _Atomic uint32_t next_code;   /* ids are handed out from 1 */
    _Atomic uint32_t off;         /* 1: its hooks are switched off */
    _Atomic uint32_t event_ticks; /* what recording a call and its end costs; 0: not measured */
    _Atomic uint32_t changes;     /* krait_control.changes when it began to record what that says */
    _Atomic uint32_t begun;       /* 1: its hooks were in place; before, it may be refused still */
} __attribute__((aligned(64)));

/* Bits of a ring's `resync`: why the stack must be stated before the next event. */
enum krait_resync {
    KRAIT_RESYNC_GO_ON = 1 << 0, /* events were lost, but earlier frames of the stack are still known */
    KRAIT_RESYNC_ANEW = 1 << 1,  /* the stated stack may be lost too: the collector could not write it */
    KRAIT_RESYNC_STACK = 1 << 2, /* nothing was lost: the thread has a stack that was never stated */
};

enum krait_ring_kind {
    KRAIT_RING_THREAD = 0,
    KRAIT_RING_DEFINITIONS = 1,
};

struct krait_ring {
    /* The writer's cache line: an event touches nothing else. */
    uint8_t *cur;     /* where the next event goes: an address in the writer */
    uint8_t *limit;   /* from here on the packet is full; NULL: no packet is open */
    uint64_t window;  /* the last event's time >> 27 */
    uint8_t *packets; /* packet 0, an address in the writer: cur - packets is an offset */
    uint64_t calls;   /* the governor's count since its last look */
    uint64_t unused_hot[3];
    /* The rest. */
    _Atomic uint32_t state; /* enum krait_slot_state */
    uint32_t kind;          /* enum krait_ring_kind */
    uint32_t proc;          /* index of the process slot */
    uint32_t tid;
    _Atomic uint32_t open_packet; /* its place, or UINT32_MAX */
    uint32_t index;               /* of this ring */
    uint64_t next_seq;
    _Atomic uint64_t discarded; /* events, by the writer */
    _Atomic uint32_t resync;    /* enum krait_resync: state the stack before the next event */
    _Atomic uint32_t grown;     /* it has had a chunk */
    uint64_t chunks;            /* where chunk 0 is or would be, an address in the writer */
    uint32_t pauses;        /* the writer's: pauses of recording that this thread has written, times two */
    uint64_t stated;        /* the writer's: the time at which the thread's stack was stated last */
    _Atomic uint64_t ready; /* the only word that both sides write */
    _Atomic uint32_t lens[KRAIT_PACKETS_MAX]; /* bytes of each closed packet */
} __attribute__((aligned(64)));

_Static_assert(offsetof(struct krait_ring, state) == 64, "an event touches one line of its ring");
_Static_assert(sizeof(struct krait_ring) % 64 == 0, "rings do not share lines");

/* The low bits of a chunk's state; above them its ring's index, and above 32 bits the count of closed packets. */
enum krait_chunk_state {
    KRAIT_CHUNK_FREE = 0,
    KRAIT_CHUNK_IDLE = 1, /* belongs to a ring whose open packet is elsewhere */
    KRAIT_CHUNK_BUSY = 2, /* belongs to a ring whose open packet is here */
    KRAIT_CHUNK_BACK = 3, /* the collector is taking it back */
};

struct krait_chunk {
    _Atomic uint64_t state;
    _Atomic uint64_t ready; /* as in a ring */
    _Atomic uint32_t lens[KRAIT_PACKETS_MAX];
} __attribute__((aligned(64)));

static inline enum krait_chunk_state krait_chunk_state(uint64_t word)
{
    return (enum krait_chunk_state)(word & 3);
}

static inline uint32_t krait_chunk_ring(uint64_t word)
{
    return (uint32_t)word >> 2;
}

/* The word with another state, for `ring`, and with its count increased by `more`. */
static inline uint64_t krait_chunk_word(uint64_t word, enum krait_chunk_state state, uint32_t ring,
                                        uint32_t more)
{
    return (uint64_t)((uint32_t)(word >> 32) + more) << 32 | ring << 2 | state;
}

/* A mapped recording, on either side. The layout is a copy: in the memory itself it may change. */
struct krait_shm {
    struct krait_control *control;
    struct krait_proc *procs;
    struct krait_ring *rings;
    struct krait_chunk *chunks;
    uint8_t *base;
    size_t bytes; /* that are mapped from base on */
    uint64_t rings_offset;
    uint64_t ring_bytes;
    uint64_t chunks_offset;
    uint32_t packet_bytes;
    uint32_t packet_count;
    uint32_t ring_max;
    uint32_t chunk_max;
    uint32_t window_chunks;
};

static inline size_t krait_shm_procs_offset(void)
{
    return (sizeof(struct krait_control) + 4095) & ~(size_t)4095;
}

static inline size_t krait_shm_rings_offset(void)
{
    return krait_shm_procs_offset() + KRAIT_PROCS_MAX * sizeof(struct krait_proc);
}

static inline uint64_t krait_shm_chunk_heads_offset(uint32_t ring_max)
{
    return krait_shm_rings_offset() + (uint64_t)ring_max * sizeof(struct krait_ring);
}

static inline uint64_t krait_shm_chunk_bytes(const struct krait_shm *shm)
{
    return (uint64_t)shm->packet_bytes * KRAIT_PACKETS_MAX;
}

/* The same recording, mapped at another address. */
static inline void krait_shm_move(struct krait_shm *shm, uint8_t *base, size_t bytes)
{
    shm->base = base;
    shm->bytes = bytes;
    shm->control = (struct krait_control *)base;
    shm->procs = (struct krait_proc *)(base + krait_shm_procs_offset());
    shm->rings = (struct krait_ring *)(base + krait_shm_rings_offset());
    shm->chunks = (struct krait_chunk *)(base + krait_shm_chunk_heads_offset(shm->ring_max));
}

/* Reads the layout of a recording of which `bytes` at `base` are mapped, at least the control page. */
static inline void krait_shm_at(struct krait_shm *shm, uint8_t *base, size_t bytes)
{
    const struct krait_control *control = (struct krait_control *)base;
    shm->rings_offset = control->rings_offset;
    shm->ring_bytes = control->ring_bytes;
    shm->chunks_offset = control->chunks_offset;
    shm->packet_bytes = control->packet_bytes;
    shm->packet_count = control->packet_count;
    shm->ring_max = control->ring_max;
    shm->chunk_max = control->chunk_max;
    shm->window_chunks = control->window_chunks;
    krait_shm_move(shm, base, bytes);
}

/* Notes that a process is not recorded, and why. */
static inline void krait_shm_refuse(struct krait_control *control, int32_t pid, const char *why)
{
    atomic_fetch_add(&control->refused, 1);
    for (size_t i = 0; i < KRAIT_REFUSALS; i++) {
        struct krait_refusal *row = &control->refusals[i];
        int32_t none = 0;
        if (!atomic_compare_exchange_strong(&row->pid, &none, pid))
            continue;
        snprintf(row->why, sizeof(row->why), "%s", why);
        return;
    }
}

/* A ring's packet where all is mapped: the collector's. */
static inline uint8_t *krait_shm_packet(const struct krait_shm *shm, uint32_t ring, uint32_t place)
{
    uint64_t own = shm->rings_offset + ring * shm->ring_bytes;
    uint64_t in_chunks = shm->chunks_offset - krait_shm_chunk_bytes(shm);
    return shm->base + (place < KRAIT_PACKETS_MAX ? own : in_chunks) + (uint64_t)place * shm->packet_bytes;
}

#endif
