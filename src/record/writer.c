/* SPDX-License-Identifier: Apache-2.0 */
#include "record/writer.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* glibc's, of the image. */
extern void *__libc_stack_end;

/* --lossless: a collector that gives no sign of life for so long is waited for no more. */
#define PATIENCE_NS (10 * KRAIT_NS_PER_S)

/* ---- mapping ---- */

/* Whether the layout fits the file: sizes are checked once here, so that no index can leave it later. */
static bool layout_is_sound(const struct krait_shm *shm, uint64_t file_bytes)
{
    uint64_t heads = krait_shm_rings_offset() + (uint64_t)shm->ring_max * sizeof(struct krait_ring);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return shm->ring_max && shm->packet_count && shm->packet_count <= KRAIT_PACKETS_MAX &&
           shm->packet_bytes >= 4096 && shm->ring_bytes == (uint64_t)shm->packet_bytes * shm->packet_count &&
           shm->ring_bytes % page == 0 && shm->rings_offset % page == 0 && shm->rings_offset >= heads &&
           shm->rings_offset <= file_bytes &&
           shm->ring_max <= (file_bytes - shm->rings_offset) / shm->ring_bytes;
}

/* Opens the recording, and nothing else that may lie there: the collector's pid and its file's number may be
 * another's by now. What is sealed against shrinking cannot raise SIGBUS. */
static int open_session(const char *path, struct stat *st)
{
    if (stat(path, st) < 0)
        return -errno;
    if (!S_ISREG(st->st_mode) || (uint64_t)st->st_size < krait_shm_rings_offset())
        return -EPROTO;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    int seals = fcntl(fd, F_GET_SEALS);
    if (fstat(fd, st) < 0 || seals < 0 || !(seals & F_SEAL_SHRINK)) {
        close(fd);
        return -EPROTO;
    }
    return fd;
}

/* `bytes` at `offset` of the file; not in core dumps, which are the program's. */
static uint8_t *map_part(int fd, uint64_t offset, size_t bytes)
{
    uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)offset);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, bytes, MADV_DONTDUMP);
    return at;
}

/* Reads the layout from the control page and checks it. */
static int read_layout(int fd, const struct stat *st, struct krait_shm *layout)
{
    uint8_t *page = map_part(fd, 0, sizeof(struct krait_control));
    if (!page)
        return -errno;
    krait_shm_at(layout, page, sizeof(struct krait_control));
    int rc = -EPROTO;
    if (layout->control->magic == KRAIT_SHM_MAGIC && layout->control->version == KRAIT_SHM_VERSION)
        rc = layout_is_sound(layout, (uint64_t)st->st_size) ? 0 : -EPROTO;
    if (!rc && atomic_load(&layout->control->state) != KRAIT_SESSION_RUN)
        rc = -ESHUTDOWN;
    munmap(page, sizeof(struct krait_control));
    return rc;
}

static int map_heads(struct krait_writer *writer, int fd, const struct stat *st)
{
    struct krait_shm layout;
    int rc = read_layout(fd, st, &layout);
    if (rc)
        return rc;
    writer->ring_maps = calloc(layout.ring_max, sizeof(*writer->ring_maps));
    uint8_t *base = writer->ring_maps ? map_part(fd, 0, layout.rings_offset) : NULL;
    if (!base) {
        free(writer->ring_maps);
        return -ENOMEM;
    }
    writer->shm = layout;
    krait_shm_move(&writer->shm, base, layout.rings_offset);
    return 0;
}

int krait_writer_map(struct krait_writer *writer, const char *path)
{
    struct stat st;
    KRAIT_AUTO_CLOSE int fd = open_session(path, &st);
    if (fd < 0)
        return fd;
    struct krait_writer made = { .dev = st.st_dev, .ino = st.st_ino };
    int rc = map_heads(&made, fd, &st);
    if (rc)
        return rc;
    if (strlen(path) < sizeof(made.path))
        strcpy(made.path, path);
    made.counter = made.shm.control->clock_counter;
    *writer = made;
    return 0;
}

/* The ring's bytes by what is mapped already: mremap with an old size of 0 maps the same file once more, from
 * the given page on and as far as is asked for (mremap(2), of shareable mappings). So it is from the last
 * page below the ring that is mapped here, mostly the ring's neighbour's, and what lies between goes at once;
 * pages of it that are locked (mlockall) would be filled. */
static uint8_t *map_by_neighbour(const struct krait_writer *writer, uint32_t i)
{
    uint32_t next = i; /* as far as it is mapped */
    while (next && !atomic_load_explicit(&writer->ring_maps[next - 1], memory_order_acquire))
        next--;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = writer->shm.ring_bytes;
    size_t between = page + (i - next) * bytes;
    uint8_t *end = next ? writer->ring_maps[next - 1] + bytes : writer->shm.base + writer->shm.bytes;
    munlock(end - page, page);
    uint8_t *at = mremap(end - page, 0, between + bytes, MREMAP_MAYMOVE);
    if (at == MAP_FAILED)
        return NULL;
    munmap(at, between);
    return at + between;
}

/* Where a limit of address space or a kernel of another kind forbids that. */
static uint8_t *map_by_path(const struct krait_writer *writer, uint32_t i)
{
    struct stat st;
    KRAIT_AUTO_CLOSE int fd = open_session(writer->path, &st);
    bool ours = fd >= 0 && st.st_dev == writer->dev && st.st_ino == writer->ino;
    return ours ? map_part(fd, writer->shm.rings_offset + i * writer->shm.ring_bytes, writer->shm.ring_bytes)
                : NULL;
}

/* The bytes of a ring that this thread has taken, mapped once and kept: the ring is likely to be taken here
 * again. */
static uint8_t *map_ring(struct krait_writer *writer, uint32_t i)
{
    uint8_t *at = atomic_load_explicit(&writer->ring_maps[i], memory_order_acquire);
    if (at)
        return at;
    at = map_by_neighbour(writer, i);
    if (!at)
        at = map_by_path(writer, i);
    atomic_store_explicit(&writer->ring_maps[i], at, memory_order_release);
    return at;
}

void krait_writer_unmap(struct krait_writer *writer)
{
    if (!writer->shm.base)
        return;
    for (uint32_t i = 0; i < writer->shm.ring_max; i++) {
        if (writer->ring_maps[i])
            munmap(writer->ring_maps[i], writer->shm.ring_bytes);
    }
    free(writer->ring_maps);
    munmap(writer->shm.base, writer->shm.bytes);
    *writer = (struct krait_writer){ 0 };
}

/* As the collector knows it, who shares our /proc: in another pid namespace getpid() is another number. */
static pid_t own_pid(void)
{
    char text[24];
    ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);
    if (n <= 0)
        return getpid();
    text[n] = '\0';
    long pid = strtol(text, NULL, 10);
    return pid > 0 && pid <= INT32_MAX ? (pid_t)pid : getpid();
}

void krait_writer_refuse(struct krait_writer *writer, const char *why)
{
    pid_t pid = own_pid();
    for (size_t i = 0; i < KRAIT_REFUSALS; i++) {
        struct krait_refusal *row = &writer->shm.control->refusals[i];
        int32_t none = 0;
        if (!atomic_compare_exchange_strong(&row->pid, &none, pid))
            continue;
        snprintf(row->why, sizeof(row->why), "%s", why);
        return;
    }
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

static bool session_runs(const struct krait_writer *writer)
{
    return atomic_load_explicit(&writer->shm.control->state, memory_order_relaxed) == KRAIT_SESSION_RUN;
}

int krait_writer_join(struct krait_writer *writer)
{
    writer->proc = NULL;
    if (!session_runs(writer))
        return -ESHUTDOWN;
    pid_t pid = own_pid();
    for (uint32_t i = 0; i < KRAIT_PROCS_MAX; i++) {
        struct krait_proc *proc = &writer->shm.procs[i];
        if (!take_slot(&proc->state, (uint32_t)pid))
            continue;
        raise_used(&writer->shm.control->proc_used, i + 1);
        proc->pid = pid;
        prctl(PR_GET_NAME, proc->comm);
        proc->image = (uintptr_t)__libc_stack_end;
        for (size_t r = 0; r < KRAIT_LOST_REASONS; r++)
            atomic_store(&proc->lost[r], 0);
        atomic_store(&proc->next_code, 1);
        atomic_store(&proc->state, KRAIT_SLOT_OPEN);
        writer->proc = proc;
        writer->proc_index = i;
        return 0;
    }
    krait_writer_lost(writer, KRAIT_lost_reason_no_ring, 1);
    return -EAGAIN;
}

static void ring_init(const struct krait_writer *writer, uint32_t i, uint8_t *packets)
{
    struct krait_ring *ring = &writer->shm.rings[i];
    __atomic_store_n(&ring->cur, NULL, __ATOMIC_RELAXED);
    ring->limit = NULL;
    ring->packets = packets;
    ring->window = 0;
    ring->calls = 0;
    ring->proc = writer->proc_index;
    ring->index = i;
    atomic_store(&ring->open_packet, UINT32_MAX);
    ring->next_seq = 0;
    atomic_store(&ring->discarded, 0);
    atomic_store(&ring->resync, 0);
    atomic_store(&ring->ready, 0);
}

/* The lowest ring that is free, taken and mapped. */
static struct krait_ring *take_ring(struct krait_writer *writer)
{
    for (uint32_t i = 0; i < writer->shm.ring_max; i++) {
        struct krait_ring *ring = &writer->shm.rings[i];
        if (!take_slot(&ring->state, writer->proc_index))
            continue;
        raise_used(&writer->shm.control->ring_used, i + 1);
        uint8_t *packets = map_ring(writer, i);
        if (packets) {
            ring_init(writer, i, packets);
            return ring;
        }
        atomic_store(&ring->state, KRAIT_SLOT_FREE);
        return NULL;
    }
    return NULL;
}

struct krait_ring *krait_writer_ring_new(struct krait_writer *writer, enum krait_ring_kind kind, uint32_t tid)
{
    if (!writer->proc || !session_runs(writer))
        return NULL;
    /* A thread without a ring asks at each of its events. */
    uint64_t now = atomic_load(&writer->shm.control->ring_frees) + 1ull;
    struct krait_ring *ring = atomic_load(&writer->no_ring_since) == now ? NULL : take_ring(writer);
    if (!ring) {
        atomic_store(&writer->no_ring_since, now);
        return NULL;
    }
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

/* ---- packets ---- */

static void wake_collector(struct krait_control *control)
{
    if (atomic_load(&control->sleeping) && atomic_exchange(&control->sleeping, 0))
        syscall(SYS_futex, &control->sleeping, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void krait_writer_leave(struct krait_writer *writer)
{
    if (!writer->proc)
        return;
    atomic_store(&writer->proc->state, KRAIT_SLOT_CLOSED);
    wake_collector(writer->shm.control);
}

static struct krait_packet_head *packet_head(const struct krait_writer *writer, const struct krait_ring *ring,
                                             uint32_t packet)
{
    return (struct krait_packet_head *)(ring->packets + (size_t)packet * writer->shm.packet_bytes);
}

static uint64_t discarded(const struct krait_ring *ring)
{
    return atomic_load_explicit(&ring->discarded, memory_order_relaxed);
}

/* Ready before it is no longer open: see shm.h. */
static void close_packet(struct krait_writer *writer, struct krait_ring *ring, uint64_t t)
{
    uint32_t packet = atomic_load_explicit(&ring->open_packet, memory_order_relaxed);
    if (packet >= writer->shm.packet_count)
        return;
    struct krait_packet_head *head = packet_head(writer, ring, packet);
    head->timestamp_end = t;
    head->events_discarded = discarded(ring);
    atomic_store_explicit(&ring->lens[packet], (uint32_t)(ring->cur - (uint8_t *)head), memory_order_relaxed);
    uint64_t ready = atomic_fetch_or_explicit(&ring->ready, 1ull << packet, memory_order_release);
    atomic_store_explicit(&ring->open_packet, UINT32_MAX, memory_order_release);
    ring->limit = NULL;
    /* Until the ring is half full the collector's own naps are short enough, and waking it would cost the
     * program. */
    if (2 * (unsigned)__builtin_popcountll(ready) >= writer->shm.packet_count)
        wake_collector(writer->shm.control);
}

static bool open_packet(struct krait_writer *writer, struct krait_ring *ring, uint64_t t)
{
    uint64_t free_packets = ~atomic_load_explicit(&ring->ready, memory_order_acquire);
    uint32_t packet = free_packets ? (uint32_t)__builtin_ctzll(free_packets) : KRAIT_PACKETS_MAX;
    if (packet >= writer->shm.packet_count)
        return false;
    struct krait_packet_head *head = packet_head(writer, ring, packet);
    head->timestamp_begin = t;
    head->timestamp_end = 0;
    head->packet_seq_num = ring->next_seq++;
    head->events_discarded = discarded(ring);
    ring->window = t >> KRAIT_CTF_TS_BITS;
    krait_ring_commit(ring, (uint8_t *)head + sizeof(*head));
    atomic_store_explicit(&ring->open_packet, packet, memory_order_release);
    ring->limit = (uint8_t *)head + writer->shm.packet_bytes - KRAIT_RING_MARGIN;
    return true;
}

static bool collector_beats(const struct krait_writer *writer)
{
    uint64_t beat = atomic_load_explicit(&writer->shm.control->beat_ns, memory_order_relaxed);
    return krait_clock_ns(CLOCK_MONOTONIC) < beat + PATIENCE_NS;
}

static bool collector_exists(const struct krait_writer *writer)
{
    return kill(writer->shm.control->collector_pid, 0) == 0 || errno == EPERM;
}

/* In another pid namespace the collector's number says nothing, but it beats. */
bool krait_writer_running(const struct krait_writer *writer)
{
    return session_runs(writer) && (collector_exists(writer) || collector_beats(writer));
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

enum krait_ring_room krait_writer_room(struct krait_writer *writer, struct krait_ring *ring, uint64_t t,
                                       size_t bytes)
{
    bool fits = ring->limit && ring->cur + bytes <= ring->limit + KRAIT_RING_MARGIN;
    if (!fits) {
        close_packet(writer, ring, t);
        bool lossless = writer->shm.control->flags & KRAIT_RECORD_LOSSLESS;
        if (!open_packet(writer, ring, t) && !(lossless && wait_for_packet(writer, ring, t))) {
            wake_collector(writer->shm.control);
            atomic_store_explicit(&ring->discarded, discarded(ring) + 1, memory_order_relaxed);
            atomic_store_explicit(&ring->resync, 1, memory_order_relaxed);
            return KRAIT_ROOM_NONE;
        }
    }
    /* The collector may ask for it too, after a packet that it could not write. */
    if (KRAIT_UNLIKELY(atomic_load_explicit(&ring->resync, memory_order_relaxed)))
        return KRAIT_ROOM_RESYNC;
    return KRAIT_ROOM_OK;
}

void krait_writer_put_extended(struct krait_ring *ring, uint64_t t, uint32_t event, const void *payload,
                               size_t n)
{
    struct krait_event_extended head = { .tag = KRAIT_CTF_EXTENDED, .id = event, .timestamp = t };
    uint8_t *cur = ring->cur;
    memcpy(cur, &head, sizeof(head));
    if (n)
        memcpy(cur + sizeof(head), payload, n);
    ring->window = t >> KRAIT_CTF_TS_BITS;
    krait_ring_commit(ring, cur + sizeof(head) + n);
}

void krait_writer_put(struct krait_ring *ring, uint64_t t, uint32_t event, uint32_t word)
{
    bool has_word = krait_event_payload_bytes[event] != 0;
    if (!krait_ring_has_room(ring, t))
        krait_writer_put_extended(ring, t, event, &word, has_word ? sizeof(word) : 0);
    else if (has_word)
        krait_ring_put_code(ring, t, event, word);
    else
        krait_ring_put(ring, t, event);
}

void krait_writer_lost(struct krait_writer *writer, enum krait_event_enum_value reason, uint64_t count)
{
    _Atomic uint64_t *lost = writer->proc ? writer->proc->lost : writer->shm.control->lost;
    atomic_fetch_add_explicit(&lost[reason], count, memory_order_relaxed);
}

uint32_t krait_writer_new_code(struct krait_writer *writer)
{
    return writer->proc ? atomic_fetch_add(&writer->proc->next_code, 1) : 0;
}

/* ---- payloads ---- */

static void payload_add(struct krait_payload *p, const void *bytes, size_t n)
{
    if (n > sizeof(p->bytes) - p->n)
        return;
    memcpy(p->bytes + p->n, bytes, n);
    p->n += n;
}

void krait_payload_u8(struct krait_payload *p, uint8_t v)
{
    payload_add(p, &v, sizeof(v));
}

void krait_payload_u16(struct krait_payload *p, uint16_t v)
{
    payload_add(p, &v, sizeof(v));
}

void krait_payload_u32(struct krait_payload *p, uint32_t v)
{
    payload_add(p, &v, sizeof(v));
}

void krait_payload_u64(struct krait_payload *p, uint64_t v)
{
    payload_add(p, &v, sizeof(v));
}

void krait_payload_str(struct krait_payload *p, const char *s, size_t max)
{
    size_t n = strnlen(s, max);
    if (s[n]) {
        while (n && ((unsigned char)s[n] & 0xc0) == 0x80)
            n--;
    }
    payload_add(p, s, n);
    payload_add(p, "", 1);
}

bool krait_writer_event(struct krait_writer *writer, struct krait_ring *ring, uint32_t event,
                        const struct krait_payload *payload)
{
    uint64_t t = krait_writer_now(writer);
    size_t bytes = sizeof(struct krait_event_extended) + payload->n;
    if (krait_writer_room(writer, ring, t, bytes) == KRAIT_ROOM_NONE)
        return false;
    krait_writer_put_extended(ring, t, event, payload->bytes, payload->n);
    return true;
}
