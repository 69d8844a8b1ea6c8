/* SPDX-License-Identifier: Apache-2.0
 *
 * The hot path: one event, from the hook to shared memory. The rest of the writer is writer.h.
 *
 * An event costs one reading of the clock, two predicted branches, a store of 4 or 8 bytes, and the commit.
 * Everything rare is behind one branch: no packet is open, the packet is full, the clock's upper bits changed, the
 * thread has no ring. All functions here may be called on any thread, take no lock, make no system call and do not
 * change errno; "hot path".
 */
#ifndef KRAIT_RECORD_RING_H
#define KRAIT_RECORD_RING_H

#include "base/clock.h"
#include "ctf/format.h"
#include "record/shm.h"

enum {
    /* Room beyond `limit`: for an event of the hot path with its extended header, or the payload of a frame. */
    KRAIT_RING_MARGIN = 32,
};

/* Whether the event at time t can take the hot path. */
static inline bool krait_ring_has_room(const struct krait_ring *ring, uint64_t t)
{
    return KRAIT_LIKELY(ring->cur < ring->limit && t >> KRAIT_CTF_TS_BITS == ring->window);
}

/* Whether `bytes`, header included, fit into the open packet. */
static inline bool krait_ring_fits(const struct krait_ring *ring, size_t bytes)
{
    return ring->limit && ring->cur + bytes <= ring->limit + KRAIT_RING_MARGIN;
}

static inline void krait_ring_commit(struct krait_ring *ring, uint8_t *to)
{
    /* A release store of a plain variable: on x86 it is an ordinary store, and gcc keeps it after the event's bytes. */
    __atomic_store_n(&ring->cur, to, __ATOMIC_RELEASE);
}

/* Needs krait_ring_has_room. An event without fields: 4 bytes. */
static inline void krait_ring_put(struct krait_ring *ring, uint64_t t, uint32_t event)
{
    uint32_t word = krait_head_pack(event, t);
    uint8_t *cur = ring->cur;
    memcpy(cur, &word, sizeof(word));
    krait_ring_commit(ring, cur + sizeof(word));
}

/* Needs krait_ring_has_room. An event whose one field is a code: 8 bytes, one store. */
static inline void krait_ring_put_code(struct krait_ring *ring, uint64_t t, uint32_t event, uint32_t code)
{
    uint64_t word = krait_head_join(krait_head_pack(event, t), code);
    uint8_t *cur = ring->cur;
    memcpy(cur, &word, sizeof(word));
    krait_ring_commit(ring, cur + sizeof(word));
}

#endif
