/* SPDX-License-Identifier: Apache-2.0 */
#include "record/writer_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* Whether the layout fits the file: sizes are checked once here, so that no index can leave it later. */
static bool layout_is_sound(const struct krait_shm *shm, uint64_t file_bytes)
{
    uint64_t heads =
        krait_shm_chunk_heads_offset(shm->ring_max) + shm->chunk_max * sizeof(struct krait_chunk);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    bool can_grow =
        !shm->chunk_max ||
        (shm->chunk_max <= KRAIT_CHUNKS_MAX && shm->window_chunks && shm->window_chunks <= shm->chunk_max &&
         shm->chunks_offset % page == 0 && shm->chunks_offset <= file_bytes &&
         shm->chunk_max <= (file_bytes - shm->chunks_offset) / krait_shm_chunk_bytes(shm));
    return can_grow && shm->ring_max && shm->packet_count && shm->packet_count <= KRAIT_PACKETS_MAX &&
           shm->packet_bytes >= 4096 && shm->ring_bytes == (uint64_t)shm->packet_bytes * shm->packet_count &&
           shm->ring_bytes % page == 0 && shm->rings_offset % page == 0 && shm->rings_offset >= heads &&
           shm->rings_offset <= file_bytes &&
           shm->ring_max <= (file_bytes - shm->rings_offset) / shm->ring_bytes;
}

/* What is sealed against shrinking cannot raise SIGBUS. Returns the file, or closes it. */
static int check_session(int fd, struct stat *st)
{
    int seals = fcntl(fd, F_GET_SEALS);
    if (fstat(fd, st) == 0 && seals >= 0 && seals & F_SEAL_SHRINK &&
        (uint64_t)st->st_size >= krait_shm_rings_offset())
        return fd;
    close(fd);
    return -EPROTO;
}

/* Opens the recording, and nothing else that may lie there: the collector's pid and its file's number may be
 * another's by now. */
static int open_session(const char *path, struct stat *st)
{
    if (stat(path, st) < 0)
        return -errno;
    if (!S_ISREG(st->st_mode) || (uint64_t)st->st_size < krait_shm_rings_offset())
        return -EPROTO;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return fd < 0 ? -errno : check_session(fd, st);
}

/* The recording, by its path or through the collector's socket. */
static int open_recording(const struct krait_writer *writer, struct stat *st)
{
    int fd = open_session(writer->path, st);
    if (fd >= 0 || !*writer->key)
        return fd;
    int asked = krait_join_ask(writer->key, writer->join_file);
    return asked < 0 ? fd : check_session(asked, st);
}

/* `bytes` at `offset` of the file; not in core dumps, which are the program's. */
static uint8_t *map_as(int fd, uint64_t offset, size_t bytes, int protection)
{
    uint8_t *at = mmap(NULL, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, (off_t)offset);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, bytes, MADV_DONTDUMP);
    return at;
}

static uint8_t *map_part(int fd, uint64_t offset, size_t bytes)
{
    return map_as(fd, offset, bytes, PROT_READ | PROT_WRITE);
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
    uint32_t state = atomic_load(&layout->control->state);
    if (!rc && state != KRAIT_SESSION_RUN && state != KRAIT_SESSION_OFF)
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

/* How many of `wanted` pieces are mapped ahead. A limit of address space is the program's: little of it is taken. */
static uint32_t affordable(uint32_t wanted, uint64_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return wanted;
    return (uint32_t)KRAIT_MIN(limit.rlim_cur / 16 / bytes, (uint64_t)wanted);
}

/* Processes have different windows as far as there are several. All at once, before the program may be
 * forbidden to map anything (seccomp). */
static void map_window(struct krait_writer *writer, int fd)
{
    const struct krait_shm *shm = &writer->shm;
    uint64_t bytes = krait_shm_chunk_bytes(shm);
    uint32_t count = shm->chunk_max ? affordable(shm->window_chunks, bytes) : 0;
    if (!count)
        return;
    uint32_t windows = shm->chunk_max / shm->window_chunks;
    writer->window_first = (uint32_t)getpid() % windows * shm->window_chunks;
    writer->window = map_part(fd, shm->chunks_offset + writer->window_first * bytes, count * bytes);
    writer->window_count = writer->window ? count : 0;
}

static uint32_t count_taken(const struct krait_shm *shm)
{
    uint32_t i = 0;
    while (i < shm->ring_max && krait_slot_state(atomic_load(&shm->rings[i].state)) != KRAIT_SLOT_FREE)
        i++;
    return i;
}

/* The rings that this process will take first, so that its threads begin without a call that a seccomp filter
 * may kill for; and behind them the page that map_by_seed goes by. Without access: mlockall fills nothing. */
static void map_rings_ahead(struct krait_writer *writer, int fd)
{
    enum { AHEAD_BYTES = 64 * 1024 * 1024 };
    const struct krait_shm *shm = &writer->shm;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint32_t first = count_taken(shm);
    uint32_t wanted = (uint32_t)(AHEAD_BYTES / shm->ring_bytes), left = shm->ring_max - first;
    uint32_t count = affordable(KRAIT_MIN(wanted, left), shm->ring_bytes);
    uint64_t offset = shm->rings_offset + first * shm->ring_bytes;
    writer->seed = map_as(fd, shm->rings_offset - page, page, PROT_NONE);
    uint8_t *at = count ? map_as(fd, offset, count * shm->ring_bytes, PROT_NONE) : NULL;
    for (uint32_t i = 0; at && i < count; i++)
        writer->ring_maps[first + i] = at + i * shm->ring_bytes + KRAIT_MAP_CLOSED;
}

/* Splits an address into path, key and file (join.h). */
static void read_address(struct krait_writer *writer, const char *address)
{
    const char *at = strchr(address, '@');
    size_t n = at ? (size_t)(at - address) : strlen(address);
    if (n < sizeof(writer->path))
        memcpy(writer->path, address, n);
    if (!at || strlen(at + 1) < KRAIT_JOIN_KEY)
        return;
    memcpy(writer->key, at + 1, KRAIT_JOIN_KEY);
    if (at[1 + KRAIT_JOIN_KEY] == '/')
        writer->join_file = strdup(at + 1 + KRAIT_JOIN_KEY);
}

static int map_all(struct krait_writer *made)
{
    struct stat st;
    KRAIT_AUTO_CLOSE int fd = open_recording(made, &st);
    if (fd < 0)
        return fd;
    made->dev = st.st_dev;
    made->ino = st.st_ino;
    int rc = map_heads(made, fd, &st);
    if (rc)
        return rc;
    made->counter = made->shm.control->clock_counter;
    map_window(made, fd);
    map_rings_ahead(made, fd);
    return 0;
}

int krait_writer_map(struct krait_writer *writer, const char *address)
{
    struct krait_writer made = { .patience_ns = 10 * KRAIT_NS_PER_MS };
    read_address(&made, address);
    int rc = map_all(&made);
    if (rc)
        free(made.join_file);
    else
        *writer = made;
    return rc;
}

/* The ring's bytes by what is mapped already: mremap with an old size of 0 maps the same file once more, from
 * the given page on and as far as is asked for (mremap(2), of shareable mappings). What lies between goes at
 * once. A page without access, since pages that are locked (mlockall) would be filled; where so much may not
 * be locked, the page is unlocked first. */
static uint8_t *map_by_seed(const struct krait_writer *writer, uint32_t i)
{
    if (!writer->seed)
        return NULL;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = writer->shm.ring_bytes;
    size_t between = page + i * bytes;
    uint8_t *at = mremap(writer->seed, 0, between + bytes, MREMAP_MAYMOVE);
    if (at == MAP_FAILED && errno == EAGAIN && munlock(writer->seed, page) == 0)
        at = mremap(writer->seed, 0, between + bytes, MREMAP_MAYMOVE);
    if (at == MAP_FAILED)
        return NULL;
    munmap(at, between);
    return at + between + KRAIT_MAP_CLOSED;
}

/* Where a limit of address space or a kernel of another kind forbids that. */
static uint8_t *map_by_path(const struct krait_writer *writer, uint32_t i)
{
    struct stat st;
    KRAIT_AUTO_CLOSE int fd = open_recording(writer, &st);
    bool ours = fd >= 0 && st.st_dev == writer->dev && st.st_ino == writer->ino;
    return ours ? map_part(fd, writer->shm.rings_offset + i * writer->shm.ring_bytes, writer->shm.ring_bytes)
                : NULL;
}

static bool is_closed(const uint8_t *ring_map)
{
    return (uintptr_t)ring_map & KRAIT_MAP_CLOSED;
}

/* A ring's bytes that are mapped with or without access, with access; NULL where that is refused, and then they
 * are no longer mapped. */
static uint8_t *open_map(const struct krait_writer *writer, uint8_t *at)
{
    if (!is_closed(at))
        return at;
    at -= KRAIT_MAP_CLOSED;
    if (mprotect(at, writer->shm.ring_bytes, PROT_READ | PROT_WRITE) == 0)
        return at;
    munmap(at, writer->shm.ring_bytes);
    return NULL;
}

uint8_t *krait_writer_map_ring(struct krait_writer *writer, uint32_t i)
{
    uint8_t *at = atomic_load_explicit(&writer->ring_maps[i], memory_order_acquire);
    at = open_map(writer, at ? at : map_by_seed(writer, i));
    if (!at)
        at = map_by_path(writer, i);
    atomic_store_explicit(&writer->ring_maps[i], at, memory_order_release);
    return at;
}

uint32_t *krait_writer_map_own(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    if (madvise(at, page, MADV_WIPEONFORK) == 0)
        return at;
    munmap(at, page);
    return NULL;
}

void krait_writer_unmap(struct krait_writer *writer)
{
    if (!writer->shm.base)
        return;
    for (uint32_t i = 0; i < writer->shm.ring_max; i++) {
        uint8_t *at = writer->ring_maps[i];
        if (at)
            munmap(at - is_closed(at), writer->shm.ring_bytes);
    }
    if (writer->seed)
        munmap(writer->seed, (size_t)sysconf(_SC_PAGESIZE));
    free(writer->ring_maps);
    free(writer->join_file);
    if (writer->window)
        munmap(writer->window, writer->window_count * krait_shm_chunk_bytes(&writer->shm));
    if (writer->own)
        munmap(writer->own, (size_t)sysconf(_SC_PAGESIZE));
    munmap(writer->shm.base, writer->shm.bytes);
    *writer = (struct krait_writer){ 0 };
}

/* Nothing stands behind the pages from now on; who still writes there writes for nobody. */
static void replace_pages(void *at, size_t bytes)
{
    mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void krait_writer_abandon(struct krait_writer *writer)
{
    const struct krait_shm *shm = &writer->shm;
    writer->proc = NULL;
    for (uint32_t i = 0; i < shm->ring_max; i++) {
        uint8_t *at = atomic_load(&writer->ring_maps[i]);
        if (at)
            replace_pages(at - is_closed(at), shm->ring_bytes);
    }
    if (writer->seed)
        replace_pages(writer->seed, (size_t)sysconf(_SC_PAGESIZE));
    if (writer->window)
        replace_pages(writer->window, writer->window_count * krait_shm_chunk_bytes(shm));
    replace_pages(shm->base, shm->bytes);
}
