/* SPDX-License-Identifier: Apache-2.0 */
#include "record/collector_inside.h"

#include <fcntl.h>
#include <string.h>

/* ---- what is in a ring ---- */

static uint64_t known_packets(const struct krait_collector *c)
{
    return c->shm.packet_count >= 64 ? UINT64_MAX : (1ull << c->shm.packet_count) - 1;
}

static struct krait_packet_head *packet_head(const struct krait_collector *c, uint32_t r, uint32_t packet)
{
    return (struct krait_packet_head *)krait_shm_packet(&c->shm, r, packet);
}

/* Of a closed packet; what the program says, but no more than there is. */
static uint32_t packet_bytes(const struct krait_collector *c, uint32_t r, uint32_t packet)
{
    uint32_t bytes = atomic_load_explicit(&c->shm.rings[r].lens[packet], memory_order_relaxed);
    return bytes < c->shm.packet_bytes ? bytes : c->shm.packet_bytes;
}

/* The open packet's index and its committed bytes; false when there is none, or it has been taken already, or
 * what the program has there is not sound (or is changing while we look). */
static bool open_packet(const struct krait_collector *c, uint32_t r, uint32_t *packet, uint32_t *bytes)
{
    const struct krait_ring *ring = &c->shm.rings[r];
    uint32_t index = atomic_load_explicit(&ring->open_packet, memory_order_acquire);
    if (index >= c->shm.packet_count || packet_head(c, r, index)->packet_seq_num < c->rings[r].next_seq)
        return false;
    const uint8_t *packets = __atomic_load_n(&ring->packets, __ATOMIC_RELAXED);
    uint64_t offset = (uintptr_t)__atomic_load_n(&ring->cur, __ATOMIC_ACQUIRE) - (uintptr_t)packets;
    uint64_t begin = (uint64_t)index * c->shm.packet_bytes;
    if (offset < begin || offset - begin > c->shm.packet_bytes)
        return false;
    *packet = index;
    *bytes = (uint32_t)(offset - begin);
    return *bytes >= sizeof(struct krait_packet_head);
}

/* ---- writing packets ---- */

static struct krait_stream *ring_stream(struct krait_collector *c, uint32_t r)
{
    struct krait_collected_ring *ring = &c->rings[r];
    struct krait_err err;
    if (ring->stream)
        return ring->stream;
    if (krait_tracedir_stream(c->procs[ring->proc].dir, ring->tid ? ring->tid : 1, &ring->stream, &err))
        krait_collector_note_trouble(c, &err);
    else
        c->total.threads++;
    return ring->stream;
}

/* What the head says of the events that are not on disk yet. A copy, since the program may change it. */
static struct krait_packet_head head_of_rest(const struct krait_collector *c, uint32_t r, uint32_t packet)
{
    struct krait_packet_head head = *packet_head(c, r, packet);
    if (c->rings[r].taken[packet])
        head.timestamp_begin = c->rings[r].taken_time;
    return head;
}

static uint32_t first_untaken(const struct krait_collector *c, uint32_t r, uint32_t packet)
{
    return KRAIT_MAX(c->rings[r].taken[packet], (uint32_t)sizeof(struct krait_packet_head));
}

static void write_thread_events(struct krait_collector *c, uint32_t r, const struct krait_packet_head *head,
                                const uint8_t *events, size_t n)
{
    struct krait_collected_proc *proc = &c->procs[c->rings[r].proc];
    struct krait_stream *stream = ring_stream(c, r);
    if (stream && krait_collector_write(c, proc, stream, head, events, n) == 0)
        return;
    proc->discarded[1] += krait_packet_count_events(events, n);
    /* The thread's stack is no longer what a reader would believe. */
    atomic_store(&c->shm.rings[r].resync, 1);
}

static void write_thread_packet(struct krait_collector *c, uint32_t r, uint32_t packet, uint32_t bytes)
{
    uint32_t from = first_untaken(c, r, packet);
    if (bytes <= from)
        return;
    struct krait_packet_head head = head_of_rest(c, r, packet);
    write_thread_events(c, r, &head, krait_shm_packet(&c->shm, r, packet) + from, bytes - from);
}

/* What is committed in the open packet leaves as a packet of its own, which ends with its last event: the
 * writer goes on, and what it adds begins there. */
static void write_open_events(struct krait_collector *c, uint32_t r, uint32_t packet, uint32_t bytes)
{
    uint32_t from = first_untaken(c, r, packet);
    if (bytes <= from)
        return;
    struct krait_packet_head head = head_of_rest(c, r, packet);
    const uint8_t *events = krait_shm_packet(&c->shm, r, packet) + from;
    uint64_t time = head.timestamp_begin;
    size_t whole = krait_packet_last_time(events, bytes - from, &time);
    head.timestamp_end = time;
    write_thread_events(c, r, &head, events, whole);
    c->rings[r].taken[packet] = from + (uint32_t)whole;
    c->rings[r].taken_time = time;
}

/* Definitions leave in pieces: [taken, bytes) of the packet, under a head of our own. */
static void write_definitions(struct krait_collector *c, uint32_t r, uint32_t packet, uint32_t bytes)
{
    struct krait_collected_proc *proc = &c->procs[c->rings[r].proc];
    uint32_t from = first_untaken(c, r, packet);
    if (bytes <= from)
        return;
    size_t n = bytes - from;
    KRAIT_AUTO_FREE uint8_t *copy = malloc(n);
    if (!copy)
        return;
    memcpy(copy, krait_shm_packet(&c->shm, r, packet) + from, n);
    struct krait_packet_head head = { 0 };
    uint64_t first = 0, last = 0;
    krait_tracedir_order(copy, n, &proc->definition_time, krait_clock_now(&c->clock));
    size_t whole = krait_tracedir_define(proc->dir, copy, n, &first, &last);
    head.timestamp_begin = first;
    head.timestamp_end = last;
    krait_collector_write(c, proc, proc->definitions, &head, copy, whole);
    c->rings[r].taken[packet] = bytes;
}

static void write_packet(struct krait_collector *c, uint32_t r, uint32_t packet, uint32_t bytes)
{
    krait_collector_beat(c);
    if (c->rings[r].kind == KRAIT_RING_DEFINITIONS)
        write_definitions(c, r, packet, bytes);
    else
        write_thread_packet(c, r, packet, bytes);
}

/* ---- taking ---- */

/* Of the packets in `ready`, the one to be written first. */
static uint32_t first_packet(const struct krait_collector *c, uint32_t r, uint64_t ready)
{
    uint32_t first = (uint32_t)__builtin_ctzll(ready);
    uint64_t first_seq = UINT64_MAX;
    for (; ready; ready &= ready - 1) {
        uint32_t packet = (uint32_t)__builtin_ctzll(ready);
        uint64_t seq = packet_head(c, r, packet)->packet_seq_num;
        if (seq < first_seq) {
            first_seq = seq;
            first = packet;
        }
    }
    return first;
}

/* Closed packets in their order. Returns whether there were any. */
static bool take_ready(struct krait_collector *c, uint32_t r)
{
    _Atomic uint64_t *word = &c->shm.rings[r].ready;
    uint64_t ready = atomic_load_explicit(word, memory_order_acquire) & known_packets(c);
    bool any = ready != 0;
    while (ready) {
        uint32_t first = first_packet(c, r, ready);
        c->rings[r].next_seq = packet_head(c, r, first)->packet_seq_num + 1;
        write_packet(c, r, first, packet_bytes(c, r, first));
        c->rings[r].taken[first] = 0;
        ready &= ~(1ull << first);
        atomic_fetch_and_explicit(word, ~(1ull << first), memory_order_release);
    }
    return any;
}

/* Keeps what the head says of a ring whose process is known, when it is seen for the first time. */
static bool get_to_know(struct krait_collector *c, uint32_t r)
{
    const struct krait_ring *head = &c->shm.rings[r];
    struct krait_collected_ring *ring = &c->rings[r];
    uint32_t proc = __atomic_load_n(&head->proc, __ATOMIC_RELAXED);
    if (ring->known)
        return true;
    if (proc >= KRAIT_PROCS_MAX || !c->procs[proc].dir)
        return false;
    *ring = (struct krait_collected_ring){
        .known = true,
        .proc = proc,
        .kind = __atomic_load_n(&head->kind, __ATOMIC_RELAXED),
        .tid = __atomic_load_n(&head->tid, __ATOMIC_RELAXED),
    };
    return true;
}

static void take_open_definitions(struct krait_collector *c, uint32_t r)
{
    uint32_t packet, bytes;
    if (c->rings[r].kind == KRAIT_RING_DEFINITIONS && open_packet(c, r, &packet, &bytes) &&
        bytes > c->rings[r].taken[packet])
        write_definitions(c, r, packet, bytes);
}

/* Takes all, the open packet too. Its writer may be alive and go on meanwhile: a packet that it closes after
 * we looked for closed ones stands before the one that is open then. */
static void take_rest(struct krait_collector *c, uint32_t r)
{
    uint32_t packet, bytes;
    bool open = false, changed = true;
    for (int tries = 0; changed && tries < 100; tries++) {
        take_ready(c, r);
        open = open_packet(c, r, &packet, &bytes);
        changed = atomic_load_explicit(&c->shm.rings[r].ready, memory_order_acquire) & known_packets(c);
    }
    if (!open)
        return;
    struct krait_packet_head *head = packet_head(c, r, packet);
    head->timestamp_end = krait_clock_now(&c->clock);
    head->events_discarded = atomic_load_explicit(&c->shm.rings[r].discarded, memory_order_relaxed);
    c->rings[r].next_seq = head->packet_seq_num + 1;
    write_packet(c, r, packet, bytes);
}

/* The ring is nobody's any more. */
static void forget_ring(struct krait_collector *c, uint32_t r)
{
    struct krait_collected_ring *ring = &c->rings[r];
    if (ring->stream)
        krait_tracedir_stream_close(c->procs[ring->proc].dir, ring->stream);
    *ring = (struct krait_collected_ring){ 0 };
}

static void free_ring(struct krait_collector *c, uint32_t r)
{
    forget_ring(c, r);
    fallocate(c->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              (off_t)(krait_shm_packet(&c->shm, r, 0) - c->shm.base), (off_t)c->shm.ring_bytes);
    atomic_store(&c->shm.rings[r].state, KRAIT_SLOT_FREE);
    atomic_fetch_add(&c->shm.control->ring_frees, 1);
}

static void finish_ring(struct krait_collector *c, uint32_t r)
{
    take_rest(c, r);
    c->procs[c->rings[r].proc].discarded[0] += atomic_load(&c->shm.rings[r].discarded);
}

bool krait_drain_rings(struct krait_collector *c)
{
    bool any = false;
    uint32_t used = krait_collector_rings_used(c);
    for (uint32_t r = 0; r < used; r++) {
        uint32_t word = atomic_load_explicit(&c->shm.rings[r].state, memory_order_acquire);
        enum krait_slot_state state = krait_slot_state(word);
        if (state < KRAIT_SLOT_OPEN && c->rings[r].known)
            forget_ring(c, r);
        if (state < KRAIT_SLOT_OPEN || !get_to_know(c, r))
            continue;
        any |= take_ready(c, r);
        take_open_definitions(c, r);
        if (state == KRAIT_SLOT_CLOSED) {
            finish_ring(c, r);
            free_ring(c, r);
        }
    }
    return any;
}

/* A packet that was closed since the last look stands before the open one: such a thread is not quiet. */
static void take_open_events(struct krait_collector *c, uint32_t r)
{
    uint32_t packet, bytes;
    if (open_packet(c, r, &packet, &bytes) &&
        !(atomic_load_explicit(&c->shm.rings[r].ready, memory_order_acquire) & known_packets(c)))
        write_open_events(c, r, packet, bytes);
}

void krait_drain_open(struct krait_collector *c)
{
    uint32_t used = krait_collector_rings_used(c);
    for (uint32_t r = 0; r < used; r++) {
        uint32_t word = atomic_load_explicit(&c->shm.rings[r].state, memory_order_acquire);
        if (krait_slot_state(word) == KRAIT_SLOT_OPEN && c->rings[r].known &&
            c->rings[r].kind != KRAIT_RING_DEFINITIONS)
            take_open_events(c, r);
    }
}

/* Whether the ring is the process's: as it was known first, or as it says now. */
static bool is_of(struct krait_collector *c, uint32_t r, uint32_t proc)
{
    uint32_t word = atomic_load_explicit(&c->shm.rings[r].state, memory_order_acquire);
    if (c->rings[r].known)
        return c->rings[r].proc == proc;
    if (krait_slot_state(word) == KRAIT_SLOT_TAKEN)
        return krait_slot_owner(word) == proc;
    return krait_slot_state(word) >= KRAIT_SLOT_OPEN &&
           __atomic_load_n(&c->shm.rings[r].proc, __ATOMIC_RELAXED) == proc;
}

static void take_rest_of(struct krait_collector *c, uint32_t proc, bool definitions)
{
    uint32_t used = krait_collector_rings_used(c);
    for (uint32_t r = 0; r < used; r++) {
        uint32_t word = atomic_load_explicit(&c->shm.rings[r].state, memory_order_acquire);
        if (is_of(c, r, proc) && krait_slot_state(word) >= KRAIT_SLOT_OPEN && get_to_know(c, r) &&
            (c->rings[r].kind == KRAIT_RING_DEFINITIONS) == definitions)
            finish_ring(c, r);
    }
}

/* A process that lives goes on meanwhile. It defines what an event names before it writes that: with the
 * definitions taken last there is none without. */
void krait_drain_rest(struct krait_collector *c, uint32_t proc)
{
    take_rest_of(c, proc, false);
    take_rest_of(c, proc, true);
}

void krait_drain_give_back(struct krait_collector *c, uint32_t proc)
{
    uint32_t used = krait_collector_rings_used(c);
    for (uint32_t r = 0; r < used; r++) {
        if (is_of(c, r, proc))
            free_ring(c, r);
    }
}

static uint64_t events_in(const struct krait_collector *c, uint32_t r, uint32_t packet, uint32_t bytes)
{
    size_t head = sizeof(struct krait_packet_head);
    return bytes > head ? krait_packet_count_events(krait_shm_packet(&c->shm, r, packet) + head, bytes - head)
                        : 0;
}

static void discard_ready(struct krait_collector *c, uint32_t r)
{
    uint64_t ready = atomic_load_explicit(&c->shm.rings[r].ready, memory_order_acquire) & known_packets(c);
    for (uint64_t left = ready; left; left &= left - 1) {
        uint32_t packet = (uint32_t)__builtin_ctzll(left);
        c->total.lost[KRAIT_lost_reason_disk] += events_in(c, r, packet, packet_bytes(c, r, packet));
    }
    atomic_fetch_and_explicit(&c->shm.rings[r].ready, ~ready, memory_order_release);
}

static void discard_open(struct krait_collector *c, uint32_t r)
{
    uint32_t packet, bytes;
    if (open_packet(c, r, &packet, &bytes))
        c->total.lost[KRAIT_lost_reason_disk] += events_in(c, r, packet, bytes);
    c->total.lost[KRAIT_lost_reason_ring_full] += atomic_load(&c->shm.rings[r].discarded);
}

/* Rings in state `from` or a later one are closed for good. */
static void discard(struct krait_collector *c, uint32_t proc, enum krait_slot_state from)
{
    uint32_t used = krait_collector_rings_used(c);
    for (uint32_t r = 0; r < used; r++) {
        uint32_t word = atomic_load_explicit(&c->shm.rings[r].state, memory_order_acquire);
        if (krait_slot_state(word) < KRAIT_SLOT_OPEN || !is_of(c, r, proc))
            continue;
        discard_ready(c, r);
        if (krait_slot_state(word) < from)
            continue;
        discard_open(c, r);
        free_ring(c, r);
    }
}

void krait_drain_discard(struct krait_collector *c, uint32_t proc)
{
    discard(c, proc, KRAIT_SLOT_CLOSED);
}

void krait_drain_discard_rest(struct krait_collector *c, uint32_t proc)
{
    discard(c, proc, KRAIT_SLOT_OPEN);
}
