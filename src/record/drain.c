/* SPDX-License-Identifier: Apache-2.0 */
#include "record/collector_inside.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* ---- what is in a ring ---- */

/* 64 packets of a ring: bank 0 is the ring itself, bank k + 1 the chunk k. */
struct bank {
    _Atomic uint64_t *ready;
    _Atomic uint32_t *lens;
    uint32_t *taken;
    uint64_t known; /* its packets, as bits of `ready` */
};

static struct bank bank_of(const struct krait_collector *c, uint32_t r, uint32_t place)
{
    uint32_t chunk = place / KRAIT_PACKETS_MAX - 1;
    if (place >= KRAIT_PACKETS_MAX)
        return (struct bank){ &c->shm.chunks[chunk].ready, c->shm.chunks[chunk].lens, c->chunk_taken[chunk],
                              UINT64_MAX };
    uint64_t known = c->shm.packet_count >= 64 ? UINT64_MAX : (1ull << c->shm.packet_count) - 1;
    return (struct bank){ &c->shm.rings[r].ready, c->shm.rings[r].lens, c->rings[r].taken, known };
}

/* Whether the chunk is the ring's. */
static bool has_chunk(const struct krait_collector *c, uint32_t r, uint32_t chunk)
{
    uint64_t word = atomic_load_explicit(&c->shm.chunks[chunk].state, memory_order_acquire);
    return krait_chunk_state(word) != KRAIT_CHUNK_FREE && krait_chunk_ring(word) == r;
}

/* The place of the ring's next bank behind the one of `place`, or UINT32_MAX. What was read of a bank before
 * is older: a chunk that a ring has had since says so in `grown`. */
static uint32_t next_bank(struct krait_collector *c, uint32_t r, uint32_t place)
{
    if (!atomic_load_explicit(&c->shm.rings[r].grown, memory_order_acquire))
        return UINT32_MAX;
    uint32_t used = krait_collector_chunks_used(c);
    for (uint32_t chunk = place / KRAIT_PACKETS_MAX; chunk < used; chunk++) {
        if (has_chunk(c, r, chunk))
            return (chunk + 1) * KRAIT_PACKETS_MAX;
    }
    return UINT32_MAX;
}

static struct krait_packet_head *packet_head(const struct krait_collector *c, uint32_t r, uint32_t place)
{
    return (struct krait_packet_head *)krait_shm_packet(&c->shm, r, place);
}

/* Of a closed packet; what the program says, but no more than there is. */
static uint32_t packet_bytes(const struct krait_collector *c, uint32_t r, uint32_t place)
{
    const struct bank bank = bank_of(c, r, place);
    uint32_t bytes = atomic_load_explicit(&bank.lens[place % KRAIT_PACKETS_MAX], memory_order_relaxed);
    return bytes < c->shm.packet_bytes ? bytes : c->shm.packet_bytes;
}

/* How many bytes of a packet are on disk already. */
static uint32_t *taken_of(const struct krait_collector *c, uint32_t r, uint32_t place)
{
    return &bank_of(c, r, place).taken[place % KRAIT_PACKETS_MAX];
}

static bool has_ready(struct krait_collector *c, uint32_t r)
{
    uint64_t ready = 0;
    for (uint32_t place = 0; place != UINT32_MAX && !ready; place = next_bank(c, r, place)) {
        struct bank bank = bank_of(c, r, place);
        ready = atomic_load_explicit(bank.ready, memory_order_acquire) & bank.known;
    }
    return ready;
}

/* The address in the writer of a packet. */
static uint64_t writer_address(const struct krait_collector *c, const struct krait_ring *ring, uint32_t place)
{
    uint64_t packets = (uintptr_t)__atomic_load_n(&ring->packets, __ATOMIC_RELAXED);
    uint64_t chunks = __atomic_load_n(&ring->chunks, __ATOMIC_RELAXED) - krait_shm_chunk_bytes(&c->shm);
    return (place < KRAIT_PACKETS_MAX ? packets : chunks) + (uint64_t)place * c->shm.packet_bytes;
}

static bool is_place(struct krait_collector *c, uint32_t r, uint32_t place)
{
    if (place < KRAIT_PACKETS_MAX)
        return place < c->shm.packet_count;
    uint32_t chunk = place / KRAIT_PACKETS_MAX - 1;
    return chunk < c->shm.chunk_max && has_chunk(c, r, chunk);
}

/* The open packet's index and its committed bytes; false when there is none, or it has been taken already, or
 * what the program has there is not sound (or is changing while we look). */
static bool open_packet(struct krait_collector *c, uint32_t r, uint32_t *packet, uint32_t *bytes)
{
    const struct krait_ring *ring = &c->shm.rings[r];
    uint32_t place = atomic_load_explicit(&ring->open_packet, memory_order_acquire);
    if (!is_place(c, r, place) || packet_head(c, r, place)->packet_seq_num < c->rings[r].next_seq)
        return false;
    uint64_t cur = (uintptr_t)__atomic_load_n(&ring->cur, __ATOMIC_ACQUIRE);
    uint64_t offset = cur - writer_address(c, ring, place);
    if (offset > c->shm.packet_bytes)
        return false;
    *packet = place;
    *bytes = (uint32_t)offset;
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

/* When the events begin that are not on disk yet. */
static uint64_t begin_of_rest(const struct krait_collector *c, uint32_t r, uint32_t packet)
{
    return *taken_of(c, r, packet) ? c->rings[r].taken_time : packet_head(c, r, packet)->timestamp_begin;
}

static uint32_t first_untaken(const struct krait_collector *c, uint32_t r, uint32_t packet)
{
    return KRAIT_MAX(*taken_of(c, r, packet), (uint32_t)sizeof(struct krait_packet_head));
}

static void write_thread_events(struct krait_collector *c, uint32_t r, const struct krait_packet_head *head,
                                const uint8_t *events, size_t n)
{
    struct krait_collected_proc *proc = &c->procs[c->rings[r].proc];
    if (c->tap) {
        uint64_t count = c->tap->events(c->tap->ctx, r, head, events, n);
        proc->events += count;
        c->total.events += count;
        /* What is measured is of two events; agents measure it anew when they are switched on again. */
        c->cost_ticks += count * atomic_load(&c->shm.procs[c->rings[r].proc].event_ticks) / 2;
        return;
    }
    enum krait_limit_share share = c->rings[r].stream ? KRAIT_LIMIT_EVENTS : KRAIT_LIMIT_FIRST_EVENTS;
    if (!krait_limits_allow(c, sizeof(*head) + n, share)) {
        proc->lost[KRAIT_lost_reason_limit] += krait_packet_count_events(events, n);
        return;
    }
    struct krait_stream *stream = ring_stream(c, r);
    krait_triggers_see(c, r, head->timestamp_begin, events, n);
    if (stream && krait_collector_write(c, proc, stream, head, events, n) == 0)
        return;
    proc->lost[KRAIT_lost_reason_disk] += krait_packet_count_events(events, n);
    /* The thread's stack is no longer what a reader would believe. */
    atomic_fetch_or(&c->shm.rings[r].resync, KRAIT_RESYNC_ANEW);
}

static void write_thread_packet(struct krait_collector *c, uint32_t r, uint32_t packet, uint32_t bytes)
{
    uint32_t from = first_untaken(c, r, packet);
    if (bytes <= from)
        return;
    struct krait_packet_head head = *packet_head(c, r, packet); /* a copy, since the program may change it */
    head.timestamp_begin = begin_of_rest(c, r, packet);
    write_thread_events(c, r, &head, krait_shm_packet(&c->shm, r, packet) + from, bytes - from);
}

/* What is committed in the open packet leaves as a packet of its own, which ends with its last event: the
 * writer goes on, and what it adds begins there. Of its head, only the begin is read: the writer may be closing it. */
static void write_open_events(struct krait_collector *c, uint32_t r, uint32_t packet, uint32_t bytes)
{
    uint32_t from = first_untaken(c, r, packet);
    if (bytes <= from)
        return;
    struct krait_packet_head head = {
        .timestamp_begin = begin_of_rest(c, r, packet),
        .events_discarded = atomic_load_explicit(&c->shm.rings[r].discarded, memory_order_relaxed),
    };
    const uint8_t *events = krait_shm_packet(&c->shm, r, packet) + from;
    uint64_t time = head.timestamp_begin;
    size_t whole = krait_packet_last_time(events, bytes - from, &time);
    head.timestamp_end = time;
    write_thread_events(c, r, &head, events, whole);
    *taken_of(c, r, packet) = from + (uint32_t)whole;
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
    krait_triggers_define(c, c->rings[r].proc, copy, whole);
    if (c->tap)
        c->tap->defines(c->tap->ctx, c->rings[r].proc, copy, whole);
    head.timestamp_begin = first;
    head.timestamp_end = last;
    krait_collector_write(c, proc, proc->definitions, &head, copy, whole);
    *taken_of(c, r, packet) = bytes;
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

/* Lists the packets of a bank that are ready; returns how many. *last: the highest number among them and before. */
static size_t list_bank(const struct krait_collector *c, uint32_t r, uint32_t place, struct krait_ready *list,
                        uint64_t *last)
{
    struct bank bank = bank_of(c, r, place);
    uint64_t ready = atomic_load_explicit(bank.ready, memory_order_acquire) & bank.known;
    size_t n = 0;
    for (; ready; ready &= ready - 1) {
        uint32_t at = place + (uint32_t)__builtin_ctzll(ready);
        uint64_t seq = packet_head(c, r, at)->packet_seq_num;
        list[n++] = (struct krait_ready){ seq, at };
        *last = KRAIT_MAX(*last, seq);
    }
    return n;
}

/* A ring of definitions has a list of its own: it may be read in the middle of another's. */
static struct krait_ready *list_of(struct krait_collector *c, uint32_t r)
{
    return c->ready[c->rings[r].kind == KRAIT_RING_DEFINITIONS];
}

static size_t list_ready(struct krait_collector *c, uint32_t r, uint64_t *last)
{
    size_t n = 0;
    for (uint32_t place = 0; place != UINT32_MAX; place = next_bank(c, r, place))
        n += list_bank(c, r, place, list_of(c, r) + n, last);
    return n;
}

static int by_seq(const void *a, const void *b)
{
    const struct krait_ready *x = a, *y = b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static void take_packet(struct krait_collector *c, uint32_t r, const struct krait_ready *packet)
{
    c->rings[r].next_seq = packet->seq + 1;
    write_packet(c, r, packet->place, packet_bytes(c, r, packet->place));
    *taken_of(c, r, packet->place) = 0;
    atomic_fetch_and_explicit(bank_of(c, r, packet->place).ready,
                              ~(1ull << packet->place % KRAIT_PACKETS_MAX), memory_order_release);
}

static void take_definitions_first(struct krait_collector *c, uint32_t r);

/* Closed packets in their order. Returns whether there were any. Several words are not read at one instant: of two
 * packets, the later one may be seen alone. But whoever has seen it sees the earlier one too when it looks again. */
static bool take_ready(struct krait_collector *c, uint32_t r, bool may_pause)
{
    struct krait_ready *list = list_of(c, r);
    uint64_t last = 0, later = 0;
    size_t n = list_ready(c, r, &last);
    if (n && next_bank(c, r, 0) != UINT32_MAX)
        n = list_ready(c, r, &later);
    if (n)
        take_definitions_first(c, r);
    qsort(list, n, sizeof(*list), by_seq);
    for (size_t i = 0; i < n && list[i].seq <= last && !(may_pause && krait_limits_pause(c)); i++)
        take_packet(c, r, &list[i]);
    return n;
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
    if (ring->kind == KRAIT_RING_DEFINITIONS)
        c->procs[proc].definitions_ring = r;
    else if (c->tap)
        c->tap->thread_begins(c->tap->ctx, r, proc, ring->tid);
    return true;
}

static void take_open_definitions(struct krait_collector *c, uint32_t r)
{
    uint32_t packet, bytes;
    if (c->rings[r].kind == KRAIT_RING_DEFINITIONS && open_packet(c, r, &packet, &bytes) &&
        bytes > *taken_of(c, r, packet))
        write_definitions(c, r, packet, bytes);
}

/* The ring of a process's definitions, which may be behind those of its threads; UINT32_MAX: there is none. */
static uint32_t definitions_of(struct krait_collector *c, uint32_t proc)
{
    uint32_t used = c->procs[proc].definitions_ring == UINT32_MAX ? krait_collector_rings_used(c) : 0;
    for (uint32_t r = 0; r < used; r++) {
        const struct krait_ring *head = &c->shm.rings[r];
        uint32_t word = atomic_load_explicit(&head->state, memory_order_acquire);
        if (krait_slot_state(word) >= KRAIT_SLOT_OPEN &&
            __atomic_load_n(&head->proc, __ATOMIC_RELAXED) == proc &&
            __atomic_load_n(&head->kind, __ATOMIC_RELAXED) == KRAIT_RING_DEFINITIONS)
            get_to_know(c, r);
    }
    return c->procs[proc].definitions_ring;
}

/* A tap and triggers get the definitions before the events that they belong to: whoever writes these has written those. */
static void take_definitions_first(struct krait_collector *c, uint32_t r)
{
    if (!(c->tap || c->triggers) || c->rings[r].kind == KRAIT_RING_DEFINITIONS)
        return;
    uint32_t definitions = definitions_of(c, c->rings[r].proc);
    if (definitions == UINT32_MAX)
        return;
    take_ready(c, definitions, false);
    take_open_definitions(c, definitions);
}

/* Takes all, the open packet too. Its writer may be alive and go on meanwhile: a packet that it closes after
 * we looked for closed ones stands before the one that is open then. */
static void take_rest(struct krait_collector *c, uint32_t r)
{
    uint32_t packet, bytes;
    bool open = false, changed = true;
    for (int tries = 0; changed && tries < 100; tries++) {
        take_ready(c, r, false);
        open = open_packet(c, r, &packet, &bytes);
        changed = has_ready(c, r);
    }
    if (!open)
        return;
    struct krait_packet_head *head = packet_head(c, r, packet);
    take_definitions_first(c, r);
    head->timestamp_end = krait_collector_now_of(c, &c->procs[c->rings[r].proc]);
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
    if (c->tap && ring->known && ring->kind != KRAIT_RING_DEFINITIONS)
        c->tap->thread_ends(c->tap->ctx, r);
    if (ring->known && c->procs[ring->proc].definitions_ring == r)
        c->procs[ring->proc].definitions_ring = UINT32_MAX;
    krait_triggers_forget_ring(c, r);
    *ring = (struct krait_collected_ring){ 0 };
}

static void punch(struct krait_collector *c, const uint8_t *from, uint64_t bytes)
{
    fallocate(c->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(from - c->shm.base), (off_t)bytes);
}

/* Takes a chunk in state `word` back; nothing in it is wanted. */
static void free_chunk(struct krait_collector *c, uint32_t chunk, uint64_t word)
{
    struct krait_chunk *head = &c->shm.chunks[chunk];
    uint64_t back = krait_chunk_word(word, KRAIT_CHUNK_BACK, krait_chunk_ring(word), 0);
    if (!atomic_compare_exchange_strong(&head->state, &word, back))
        return;
    memset(c->chunk_taken[chunk], 0, sizeof(c->chunk_taken[chunk]));
    atomic_store(&head->ready, 0);
    punch(c, krait_shm_packet(&c->shm, 0, (chunk + 1) * KRAIT_PACKETS_MAX), krait_shm_chunk_bytes(&c->shm));
    atomic_store_explicit(&head->state, krait_chunk_word(word, KRAIT_CHUNK_FREE, 0, 0), memory_order_release);
}

/* `ring`: UINT32_MAX for all, then of those that are not in use alone. */
static void free_chunks(struct krait_collector *c, uint32_t ring)
{
    uint64_t taken = 0;
    uint32_t used = krait_collector_chunks_used(c);
    for (uint32_t i = 0; i < used; i++) {
        uint64_t word = atomic_load_explicit(&c->shm.chunks[i].state, memory_order_acquire);
        enum krait_chunk_state state = krait_chunk_state(word);
        taken += state != KRAIT_CHUNK_FREE;
        bool idle = state == KRAIT_CHUNK_IDLE && !atomic_load(&c->shm.chunks[i].ready);
        if (ring == UINT32_MAX ? idle : state != KRAIT_CHUNK_FREE && krait_chunk_ring(word) == ring)
            free_chunk(c, i, word);
    }
    c->recording.grown_bytes = KRAIT_MAX(c->recording.grown_bytes, taken * krait_shm_chunk_bytes(&c->shm));
}

void krait_drain_give_up(struct krait_collector *c)
{
    punch(c, c->shm.base + c->shm.rings_offset, c->shm.bytes - c->shm.rings_offset);
}

void krait_drain_shrink(struct krait_collector *c)
{
    free_chunks(c, UINT32_MAX);
}

void krait_drain_unlock(struct krait_collector *c)
{
    struct stat st;
    uint64_t wanted = c->shm.rings_offset + krait_collector_rings_used(c) * c->shm.ring_bytes +
                      krait_collector_chunks_used(c) * krait_shm_chunk_bytes(&c->shm);
    if (!c->shm.chunk_max || fstat(c->fd, &st) < 0 || (uint64_t)st.st_blocks * 512 <= wanted)
        return;
    for (uint32_t i = 0; i < c->shm.chunk_max; i++) {
        uint64_t word = atomic_load(&c->shm.chunks[i].state);
        if (krait_chunk_state(word) == KRAIT_CHUNK_FREE)
            free_chunk(c, i, word);
    }
}

static void free_ring(struct krait_collector *c, uint32_t r)
{
    forget_ring(c, r);
    free_chunks(c, r);
    punch(c, krait_shm_packet(&c->shm, r, 0), c->shm.ring_bytes);
    atomic_store(&c->shm.rings[r].state, KRAIT_SLOT_FREE);
    atomic_fetch_add(&c->shm.control->ring_frees, 1);
}

static void finish_ring(struct krait_collector *c, uint32_t r)
{
    take_rest(c, r);
    uint64_t *lost = c->procs[c->rings[r].proc].lost;
    lost[KRAIT_lost_reason_ring_full] += atomic_load(&c->shm.rings[r].discarded);
}

bool krait_drain_rings(struct krait_collector *c)
{
    bool any = false;
    uint32_t used = krait_collector_rings_used(c);
    for (uint32_t r = 0; r < used; r++) {
        uint32_t word = atomic_load_explicit(&c->shm.rings[r].state, memory_order_acquire);
        enum krait_slot_state state = krait_slot_state(word);
        if (state < KRAIT_SLOT_OPEN && c->rings[r].known && !c->trimming)
            forget_ring(c, r);
        if (state < KRAIT_SLOT_OPEN || !get_to_know(c, r))
            continue;
        any |= take_ready(c, r, c->rings[r].kind != KRAIT_RING_DEFINITIONS);
        take_open_definitions(c, r);
        if (state == KRAIT_SLOT_CLOSED && !c->trimming && !c->paused) {
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
    if (!open_packet(c, r, &packet, &bytes) || has_ready(c, r))
        return;
    take_definitions_first(c, r);
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

bool krait_drain_is_behind(struct krait_collector *c, uint32_t r)
{
    return c->rings[r].known && has_ready(c, r);
}

bool krait_drain_has_ready(struct krait_collector *c, uint32_t proc)
{
    uint32_t used = krait_collector_rings_used(c);
    for (uint32_t r = 0; r < used; r++) {
        if (c->rings[r].proc == proc && krait_drain_is_behind(c, r))
            return true;
    }
    return false;
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
    uint64_t last = 0;
    size_t n = list_ready(c, r, &last);
    for (size_t i = 0; i < n; i++) {
        uint32_t place = list_of(c, r)[i].place;
        c->total.lost[KRAIT_lost_reason_disk] += events_in(c, r, place, packet_bytes(c, r, place));
        atomic_fetch_and_explicit(bank_of(c, r, place).ready, ~(1ull << place % KRAIT_PACKETS_MAX),
                                  memory_order_release);
    }
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
