/* SPDX-License-Identifier: Apache-2.0 */
#include "record/writer.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "record/writer_map.h"

/* glibc's, of the image. */
extern void *__libc_stack_end;

/* --lossless: a collector that gives no sign of life for so long is waited for no more. */
#define PATIENCE_NS (10 * KRAIT_NS_PER_S)

/* Whether /proc is the collector's, and lets this process see it. */
static bool sees_recording(const struct krait_writer *writer)
{
    struct stat st;
    return stat(writer->path, &st) == 0 && st.st_dev == writer->dev && st.st_ino == writer->ino;
}

/* As the collector knows it: by its /proc, where that is ours, else as it says. In another PID namespace getpid() is
 * another number. */
static pid_t own_pid(const struct krait_writer *writer)
{
    char text[24];
    pid_t told;
    if (*writer->key && !sees_recording(writer))
        return krait_join_ask_number(writer->key, writer->join_file, &told) ? getpid() : told;
    ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);
    if (n <= 0)
        return getpid();
    text[n] = '\0';
    long pid = strtol(text, NULL, 10);
    return pid > 0 && pid <= INT32_MAX ? (pid_t)pid : getpid();
}

void krait_writer_refuse(struct krait_writer *writer, const char *why)
{
    if (writer->shm.base) /* the recording may have been ended meanwhile */
        krait_shm_refuse(writer->shm.control, own_pid(writer), why);
}

/* ---- the collector ---- */

static void wake_collector(struct krait_control *control)
{
    if (atomic_load(&control->sleeping) && atomic_exchange(&control->sleeping, 0))
        syscall(SYS_futex, &control->sleeping, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static bool collector_beats(const struct krait_writer *writer)
{
    uint64_t beat = atomic_load_explicit(&writer->shm.control->beat_ns, memory_order_relaxed);
    return krait_clock_ns(CLOCK_MONOTONIC) < beat + PATIENCE_NS;
}

static bool collector_exists(const struct krait_writer *writer)
{
    return writer->apart || kill(writer->shm.control->collector_pid, 0) == 0 || errno == EPERM;
}

/* ---- process slots and rings ---- */

/* Raises *used to at least n: the collector looks at slots below it. */
static void raise_used(_Atomic uint32_t *used, uint32_t n)
{
    uint32_t seen = atomic_load(used);
    while (seen < n && !atomic_compare_exchange_weak(used, &seen, n))
        ;
}

static bool take_slot(_Atomic uint32_t *state, uint32_t owner)
{
    uint32_t expected = KRAIT_SLOT_FREE;
    return atomic_load_explicit(state, memory_order_relaxed) == KRAIT_SLOT_FREE &&
           atomic_compare_exchange_strong(state, &expected, krait_slot_taken(owner));
}

uint32_t krait_writer_session(const struct krait_writer *writer)
{
    return atomic_load_explicit(&writer->shm.control->state, memory_order_relaxed);
}

static bool session_runs(const struct krait_writer *writer)
{
    return krait_writer_session(writer) == KRAIT_SESSION_RUN;
}

/* A process that begins while all slots or rings are taken waits for the collector, which may have some to give back, of
 * processes that have ended. Returns false when it has waited long enough since krait_writer_join. */
static bool wait_for_room(const struct krait_writer *writer)
{
    if (krait_clock_ns(CLOCK_MONOTONIC) >= writer->patient_until_ns || !session_runs(writer) ||
        !collector_beats(writer))
        return false;
    wake_collector(writer->shm.control);
    int saved = errno;
    nanosleep(&(struct timespec){ .tv_nsec = 200 * KRAIT_NS_PER_US }, NULL);
    errno = saved;
    return true;
}

/* Whether the recording is on, or off with something that is to be in it still. */
static bool session_takes(const struct krait_writer *writer, bool also_off)
{
    uint32_t session = krait_writer_session(writer);
    return session == KRAIT_SESSION_RUN || (also_off && session == KRAIT_SESSION_OFF);
}

/* Whether the slot is this process's now; it may have been since an earlier image reserved it. */
static bool take_proc_slot(struct krait_proc *proc, pid_t pid)
{
    return take_slot(&proc->state, (uint32_t)pid) ||
           atomic_load_explicit(&proc->state, memory_order_relaxed) == krait_slot_taken((uint32_t)pid);
}

/* Returns false where no slot is free. */
static bool take_proc(struct krait_writer *writer)
{
    pid_t pid = own_pid(writer);
    writer->apart = pid != getpid();
    for (uint32_t i = 0; i < KRAIT_PROCS_MAX; i++) {
        struct krait_proc *proc = &writer->shm.procs[i];
        if (!take_proc_slot(proc, pid))
            continue;
        proc->pid = pid;
        proc->image = (uintptr_t)__libc_stack_end;
        prctl(PR_GET_NAME, proc->comm);
        raise_used(&writer->shm.control->proc_used, i + 1);
        writer->proc_index = i;
        return true;
    }
    return false;
}

void krait_writer_reserve(struct krait_writer *writer)
{
    writer->reserved = take_proc(writer);
}

int krait_writer_join(struct krait_writer *writer)
{
    writer->proc = NULL;
    if (!writer->own)
        writer->own = krait_writer_map_own();
    if (writer->own)
        *writer->own = 1;
    uint32_t session = krait_writer_session(writer);
    if (session != KRAIT_SESSION_RUN)
        return session == KRAIT_SESSION_OFF ? -EHOSTDOWN : -ESHUTDOWN;
    writer->patient_until_ns = krait_clock_ns(CLOCK_MONOTONIC) + writer->patience_ns;
    while (!writer->reserved && !take_proc(writer)) {
        if (wait_for_room(writer))
            continue;
        krait_writer_lost(writer, KRAIT_lost_reason_no_slot, 1);
        return -EAGAIN;
    }
    struct krait_proc *proc = &writer->shm.procs[writer->proc_index];
    writer->reserved = false;
    for (size_t r = 0; r < KRAIT_COUNT_lost_reason; r++)
        atomic_store(&proc->lost[r], 0);
    atomic_store(&proc->next_code, 1);
    atomic_store(&proc->off, 0);
    atomic_store(&proc->event_ticks, 0);
    atomic_store(&proc->begun, 0);
    writer->proc = proc;
    atomic_store(&proc->changes, writer->changes);
    atomic_store(&proc->state, KRAIT_SLOT_OPEN);
    return 0;
}

void krait_writer_begun(const struct krait_writer *writer)
{
    if (writer->proc)
        atomic_store(&writer->proc->begun, 1);
}

static void ring_init(const struct krait_writer *writer, uint32_t i, uint8_t *packets)
{
    struct krait_ring *ring = &writer->shm.rings[i];
    __atomic_store_n(&ring->cur, NULL, __ATOMIC_RELAXED);
    ring->limit = NULL;
    ring->packets = packets;
    ring->window = 0;
    ring->stated = 0;
    ring->calls = 0;
    ring->proc = writer->proc_index;
    ring->index = i;
    atomic_store(&ring->open_packet, UINT32_MAX);
    ring->next_seq = 0;
    atomic_store(&ring->discarded, 0);
    atomic_store(&ring->resync, 0);
    atomic_store(&ring->grown, 0);
    ring->chunks = (uintptr_t)writer->window - writer->window_first * krait_shm_chunk_bytes(&writer->shm);
    atomic_store(&ring->ready, 0);
}

/* Takes the lowest ring that is free, or that is and is mapped already: *i is its index, or ring_max. */
static struct krait_ring *take_free(const struct krait_writer *writer, bool mapped, uint32_t *i)
{
    for (*i = 0; *i < writer->shm.ring_max; ++*i) {
        if (mapped && !atomic_load_explicit(&writer->ring_maps[*i], memory_order_relaxed))
            continue;
        if (take_slot(&writer->shm.rings[*i].state, writer->proc_index))
            return &writer->shm.rings[*i];
    }
    return NULL;
}

/* A free ring, taken and mapped. */
static struct krait_ring *take_ring(struct krait_writer *writer)
{
    uint32_t i;
    struct krait_ring *ring = take_free(writer, true, &i);
    if (!ring)
        ring = take_free(writer, false, &i);
    if (!ring)
        return NULL;
    raise_used(&writer->shm.control->ring_used, i + 1);
    uint8_t *packets = krait_writer_map_ring(writer, i);
    if (!packets) {
        atomic_store(&ring->state, KRAIT_SLOT_FREE);
        return NULL;
    }
    ring_init(writer, i, packets);
    return ring;
}

/* A thread without a ring asks at each of its events: all rings are looked through only when one was given back. */
static struct krait_ring *find_ring(struct krait_writer *writer)
{
    uint64_t now = atomic_load(&writer->shm.control->ring_frees) + 1ull;
    if (atomic_load(&writer->no_ring_since) == now)
        return NULL;
    struct krait_ring *ring = take_ring(writer);
    if (!ring) {
        wake_collector(writer->shm.control); /* it may have some to give back, of processes that have ended */
        atomic_store(&writer->no_ring_since, now);
    }
    return ring;
}

struct krait_ring *krait_writer_ring_new(struct krait_writer *writer, enum krait_ring_kind kind, uint32_t tid)
{
    if (!writer->proc || !session_takes(writer, kind == KRAIT_RING_DEFINITIONS))
        return NULL;
    struct krait_ring *ring = find_ring(writer);
    while (!ring && wait_for_room(writer))
        ring = find_ring(writer);
    if (!ring)
        return NULL;
    ring->kind = kind;
    ring->tid = tid;
    atomic_store(&ring->state, KRAIT_SLOT_OPEN);
    return ring;
}

void krait_writer_ring_close(struct krait_ring *ring)
{
    if (ring)
        atomic_store_explicit(&ring->state, KRAIT_SLOT_CLOSED, memory_order_release);
}

void krait_writer_leave(struct krait_writer *writer)
{
    if (writer->reserved)
        atomic_store(&writer->shm.procs[writer->proc_index].state, KRAIT_SLOT_FREE);
    writer->reserved = false;
    if (!writer->proc)
        return;
    atomic_store(&writer->proc->state, KRAIT_SLOT_CLOSED);
    wake_collector(writer->shm.control);
}

/* ---- packets ---- */

static struct krait_packet_head *packet_head(const struct krait_writer *writer, const struct krait_ring *ring,
                                             uint32_t place)
{
    return (struct krait_packet_head *)krait_writer_packet(writer, ring, place);
}

static uint64_t discarded(const struct krait_ring *ring)
{
    return atomic_load_explicit(&ring->discarded, memory_order_relaxed);
}

/* Whether `place` is one of the ring's own packets, or in a chunk that is mapped here. */
static bool is_place(const struct krait_writer *writer, uint32_t place)
{
    uint32_t first = KRAIT_PACKETS_MAX * (1 + writer->window_first);
    return place < writer->shm.packet_count ||
           (place >= first && place - first < KRAIT_PACKETS_MAX * writer->window_count);
}

/* The chunk of a place; NULL for the ring's own. */
static struct krait_chunk *chunk_of(const struct krait_writer *writer, uint32_t place)
{
    return place < KRAIT_PACKETS_MAX ? NULL : &writer->shm.chunks[place / KRAIT_PACKETS_MAX - 1];
}

static void leave_chunk(struct krait_chunk *chunk, const struct krait_ring *ring)
{
    uint64_t word = atomic_load_explicit(&chunk->state, memory_order_relaxed);
    atomic_store_explicit(&chunk->state, krait_chunk_word(word, KRAIT_CHUNK_IDLE, ring->index, 1),
                          memory_order_release);
}

/* Ready before it is no longer open: see shm.h. */
static void close_packet(struct krait_writer *writer, struct krait_ring *ring, uint64_t t)
{
    uint32_t place = atomic_load_explicit(&ring->open_packet, memory_order_relaxed);
    if (!is_place(writer, place))
        return;
    struct krait_packet_head *head = packet_head(writer, ring, place);
    struct krait_chunk *chunk = chunk_of(writer, place);
    uint32_t packet = place % KRAIT_PACKETS_MAX;
    head->timestamp_end = t;
    head->events_discarded = discarded(ring);
    atomic_store_explicit(chunk ? &chunk->lens[packet] : &ring->lens[packet],
                          (uint32_t)(ring->cur - (uint8_t *)head), memory_order_relaxed);
    uint64_t ready =
        atomic_fetch_or_explicit(chunk ? &chunk->ready : &ring->ready, 1ull << packet, memory_order_release);
    atomic_store_explicit(&ring->open_packet, UINT32_MAX, memory_order_release);
    ring->limit = NULL;
    if (chunk)
        leave_chunk(chunk, ring);
    /* Until the ring is half full the collector's own naps are short enough, and waking it would cost the program. */
    if (chunk || 2 * (unsigned)__builtin_popcountll(ready) >= writer->shm.packet_count)
        wake_collector(writer->shm.control);
}

/* Says that the ring's next packet is in the chunk, if that is in this state and has room. */
static bool enter_chunk(struct krait_chunk *chunk, const struct krait_ring *ring,
                        enum krait_chunk_state state)
{
    uint64_t word = atomic_load_explicit(&chunk->state, memory_order_acquire);
    bool may_be = state == KRAIT_CHUNK_FREE || krait_chunk_ring(word) == ring->index;
    return may_be && krait_chunk_state(word) == state && ~atomic_load(&chunk->ready) &&
           atomic_compare_exchange_strong(&chunk->state, &word,
                                          krait_chunk_word(word, KRAIT_CHUNK_BUSY, ring->index, 0));
}

/* A place in one of the ring's chunks, or in one that it takes; UINT32_MAX when there is none. */
static uint32_t place_in_chunks(struct krait_writer *writer, struct krait_ring *ring)
{
    static const enum krait_chunk_state states[] = { KRAIT_CHUNK_IDLE, KRAIT_CHUNK_FREE };
    for (size_t s = atomic_load(&ring->grown) ? 0 : 1; s < KRAIT_ARRAY_LEN(states); s++) {
        for (uint32_t i = 0; i < writer->window_count; i++) {
            uint32_t index = writer->window_first + i;
            struct krait_chunk *chunk = &writer->shm.chunks[index];
            if (!enter_chunk(chunk, ring, states[s]))
                continue;
            atomic_store(&ring->grown, 1);
            raise_used(&writer->shm.control->chunk_used, index + 1);
            uint64_t ready = atomic_load_explicit(&chunk->ready, memory_order_acquire);
            return (1 + index) * KRAIT_PACKETS_MAX + (uint32_t)__builtin_ctzll(~ready);
        }
    }
    return UINT32_MAX;
}

static uint32_t free_place(struct krait_writer *writer, struct krait_ring *ring)
{
    uint64_t free_packets = ~atomic_load_explicit(&ring->ready, memory_order_acquire);
    uint32_t packet = free_packets ? (uint32_t)__builtin_ctzll(free_packets) : KRAIT_PACKETS_MAX;
    return packet < writer->shm.packet_count ? packet : place_in_chunks(writer, ring);
}

static bool open_packet(struct krait_writer *writer, struct krait_ring *ring, uint64_t t)
{
    uint32_t place = free_place(writer, ring);
    if (place == UINT32_MAX)
        return false;
    struct krait_packet_head *head = packet_head(writer, ring, place);
    head->timestamp_begin = t;
    head->timestamp_end = 0;
    head->packet_seq_num = ring->next_seq++;
    head->events_discarded = discarded(ring);
    ring->window = t >> KRAIT_CTF_TS_BITS;
    krait_ring_commit(ring, (uint8_t *)head + sizeof(*head));
    atomic_store_explicit(&ring->open_packet, place, memory_order_release);
    ring->limit = (uint8_t *)head + writer->shm.packet_bytes - KRAIT_RING_MARGIN;
    return true;
}

bool krait_writer_has_changed(const struct krait_writer *writer)
{
    return writer->proc &&
           atomic_load_explicit(&writer->shm.control->changes, memory_order_relaxed) != writer->changes;
}

void krait_writer_note_changes(struct krait_writer *writer)
{
    writer->changes = atomic_load(&writer->shm.control->changes);
    if (writer->proc)
        atomic_store(&writer->proc->changes, writer->changes);
}

bool krait_writer_is_off(const struct krait_writer *writer)
{
    return krait_writer_session(writer) == KRAIT_SESSION_OFF;
}

/* In another PID namespace the collector's number says nothing, but it beats. */
static bool has_collector(const struct krait_writer *writer)
{
    return writer->apart ? collector_beats(writer) : collector_exists(writer);
}

bool krait_writer_is_over(const struct krait_writer *writer)
{
    uint32_t state = krait_writer_session(writer);
    return (state != KRAIT_SESSION_RUN && state != KRAIT_SESSION_OFF) || !has_collector(writer);
}

/* --lossless: waits for the collector as long as it lives. Killed it is mostly gone at once; but it may be
 * stopped, or a zombie, or its number another's: then it is silent. */
static bool wait_for_packet(struct krait_writer *writer, struct krait_ring *ring, uint64_t t)
{
    while (session_runs(writer) && collector_beats(writer) && collector_exists(writer)) {
        if (open_packet(writer, ring, t))
            return true;
        wake_collector(writer->shm.control);
        nanosleep(&(struct timespec){ .tv_nsec = 100 * KRAIT_NS_PER_US }, NULL);
    }
    return false;
}

/* The recording may have been switched off since the event began: the end of a call must not be taken without its begin. */
static void look_before_next(struct krait_ring *ring)
{
    atomic_fetch_or_explicit(&ring->resync, KRAIT_RESYNC_GO_ON, memory_order_relaxed);
    ring->window = UINT64_MAX; /* to the slow path */
}

enum krait_ring_room krait_writer_room(struct krait_writer *writer, struct krait_ring *ring, uint64_t t,
                                       size_t bytes)
{
    if (!session_takes(writer, writer->settles)) {
        if (ring->kind == KRAIT_RING_THREAD)
            look_before_next(ring);
        return KRAIT_ROOM_NONE;
    }
    if (!krait_ring_fits(ring, bytes)) {
        close_packet(writer, ring, t);
        bool lossless = writer->shm.control->flags & KRAIT_RECORD_LOSSLESS;
        if (!open_packet(writer, ring, t) && !(lossless && wait_for_packet(writer, ring, t))) {
            wake_collector(writer->shm.control);
            atomic_store_explicit(&ring->discarded, discarded(ring) + 1, memory_order_relaxed);
            atomic_fetch_or_explicit(&ring->resync, KRAIT_RESYNC_GO_ON, memory_order_relaxed);
            return KRAIT_ROOM_NONE;
        }
    }
    /* The collector may ask for it too, after a packet that it could not write. */
    if (KRAIT_UNLIKELY(atomic_load_explicit(&ring->resync, memory_order_relaxed)))
        return KRAIT_ROOM_RESYNC;
    return KRAIT_ROOM_OK;
}

uint64_t krait_writer_begin(const struct krait_writer *writer, const struct krait_ring *ring)
{
    uint32_t place = atomic_load_explicit(&ring->open_packet, memory_order_relaxed);
    return is_place(writer, place) ? packet_head(writer, ring, place)->timestamp_begin : 0;
}

void krait_writer_put_extended(struct krait_ring *ring, uint64_t t, uint32_t event, const void *payload,
                               size_t n)
{
    uint8_t *cur = ring->cur, *to = cur + krait_head_extend(cur, event, t);
    if (n)
        memcpy(to, payload, n);
    ring->window = t >> KRAIT_CTF_TS_BITS;
    krait_ring_commit(ring, to + n);
}

void krait_writer_put_small(struct krait_ring *ring, uint64_t t, uint32_t event, const void *payload,
                            size_t n)
{
    if (event >= KRAIT_CTF_EXTENDED || !krait_ring_has_room(ring, t)) {
        krait_writer_put_extended(ring, t, event, payload, n);
        return;
    }
    uint32_t head = krait_head_pack(event, t);
    uint8_t *cur = ring->cur;
    memcpy(cur, &head, sizeof(head));
    memcpy(cur + sizeof(head), payload, n);
    krait_ring_commit(ring, cur + sizeof(head) + n);
}

void krait_writer_put(struct krait_ring *ring, uint64_t t, uint32_t event, uint32_t word)
{
    bool has_word = krait_event_bytes(event) != 0;
    if (event >= KRAIT_CTF_EXTENDED || !krait_ring_has_room(ring, t))
        krait_writer_put_extended(ring, t, event, &word, has_word ? sizeof(word) : 0);
    else if (has_word)
        krait_ring_put_code(ring, t, event, word);
    else
        krait_ring_put(ring, t, event);
}

void krait_writer_lost(struct krait_writer *writer, enum krait_event_enum_value reason, uint64_t count)
{
    _Atomic uint64_t *lost = writer->proc ? writer->proc->lost : writer->shm.control->lost;
    if (!session_runs(writer))
        return;
    atomic_fetch_add_explicit(&lost[reason], count, memory_order_relaxed);
}

uint32_t krait_writer_new_code(struct krait_writer *writer)
{
    return writer->proc ? atomic_fetch_add(&writer->proc->next_code, 1) : 0;
}

bool krait_writer_event(struct krait_writer *writer, struct krait_ring *ring, uint32_t event,
                        const void *payload, size_t n)
{
    uint64_t t = krait_writer_now(writer);
    if (krait_writer_room(writer, ring, t, sizeof(struct krait_event_extended) + n) == KRAIT_ROOM_NONE)
        return false;
    krait_writer_put_extended(ring, t, event, payload, n);
    return true;
}
