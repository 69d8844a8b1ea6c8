/* SPDX-License-Identifier: Apache-2.0 */
#include "record/collector_inside.h"
#include "record/folder.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum {
    PACKET_BYTES = 32 * 1024,
    RING_BYTES = 2 * 1024 * 1024,
    RINGS = 4096,
    WINDOW_BYTES = 64 * 1024 * 1024, /* by which one process may grow, or by a quarter of all */
    RESERVE_BYTES = 1024 * 1024,     /* given back to a full disk for the last metadata */
};

/* Keeps a little of the disk for the end; that it cannot is no reason to stop. */
static void make_reserve(struct krait_collector *c)
{
    struct statvfs disk;
    if (statvfs(c->dir, &disk))
        return;
    uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (room < 16 * 4096)
        return;
    if (asprintf(&c->reserve, "%s/.reserve", c->dir) < 0) {
        c->reserve = NULL;
        return;
    }
    uint64_t bytes = KRAIT_MIN(room / 16, (uint64_t)RESERVE_BYTES);
    if (c->max_bytes)
        bytes = KRAIT_MIN(bytes, c->max_bytes / 32);
    KRAIT_AUTO_CLOSE int fd = open(c->reserve, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0 && posix_fallocate(fd, 0, (off_t)bytes) == 0)
        c->reserve_bytes = bytes;
    else
        unlink(c->reserve);
}

static int add_filter(struct krait_control *control, size_t *at, enum krait_filter_kind kind,
                      const char *text, struct krait_err *err)
{
    size_t n = strlen(text) + 1;
    if (*at + 2 + n >= sizeof(control->filters))
        return krait_err_set(err, -E2BIG,
                             "--include, --exclude, --log, --audit and --args take %zu bytes in all",
                             sizeof(control->filters) - 2);
    control->filters[(*at)++] = (char)kind;
    memcpy(control->filters + *at, text, n);
    *at += n;
    return 0;
}

/* The first two kinds first, and then --log: filters_met has bits for each of them. */
static int add_filters(struct krait_control *control, const struct krait_collector_options *options,
                       struct krait_err *err)
{
    const struct {
        enum krait_filter_kind kind;
        struct krait_collector_words words;
    } all[] = { { KRAIT_FILTER_INCLUDE, options->include },
                { KRAIT_FILTER_EXCLUDE, options->exclude },
                { KRAIT_FILTER_LOG, options->log },
                { KRAIT_FILTER_AUDIT, options->audit },
                { KRAIT_FILTER_ARGS, options->args } };
    size_t at = 0;
    int rc = 0;
    for (size_t k = 0; k < KRAIT_ARRAY_LEN(all); k++) {
        for (size_t i = 0; i < all[k].words.count && !rc; i++)
            rc = add_filter(control, &at, all[k].kind, all[k].words.items[i], err);
    }
    return rc;
}

/* What the metadata tells of --args: krait info compares it with the functions that there are. */
static int keep_args(struct krait_collector *c, const struct krait_collector_words *args,
                     struct krait_err *err)
{
    for (size_t i = 0; i < args->count; i++)
        krait_buf_fmt(&c->args, "%s%s", i ? "\n" : "", args->items[i]);
    c->recording.args = c->args.data;
    return c->args.failed ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}

/* How many parts, of `wanted`, may be without taking more than 1 / `share` of what this process may have of
 * memory or file size. */
static uint32_t affordable(unsigned share, uint32_t wanted, uint64_t bytes)
{
    static const int limits[] = { RLIMIT_AS, RLIMIT_FSIZE };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(limits); i++) {
        struct rlimit limit;
        if (getrlimit(limits[i], &limit) || limit.rlim_cur == RLIM_INFINITY)
            continue;
        uint64_t most = limit.rlim_cur / share / bytes;
        wanted = most < wanted ? (uint32_t)most : wanted;
    }
    return wanted;
}

static uint64_t whole_pages(uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) & ~(page - 1);
}

int krait_collector_check(const struct krait_collector_options *options, struct krait_err *err)
{
    uint64_t least = 2 * whole_pages(PACKET_BYTES);
    if (options->max_bytes && options->max_bytes < 1 << 20)
        return krait_err_set(err, -EINVAL, "--max-size is too small: 1M at least");
    uint64_t ring_bytes = options->ring_bytes ? options->ring_bytes : least;
    if (ring_bytes < least || ring_bytes > 1ull << 32 || options->rings > 1u << 20)
        return krait_err_set(err, -EINVAL, "--ring-size is from %u KiB to 4 GiB, --max-threads up to 524288",
                             (unsigned)(least / 1024));
    return 0;
}

static void plan_chunks(struct krait_shm *plan, uint64_t buffer_bytes)
{
    uint64_t bytes = krait_shm_chunk_bytes(plan);
    uint64_t wanted = KRAIT_MIN(buffer_bytes / bytes, (uint64_t)KRAIT_CHUNKS_MAX);
    plan->chunk_max = affordable(4, (uint32_t)wanted, bytes);
    uint32_t window = KRAIT_MAX((uint32_t)(WINDOW_BYTES / bytes), plan->chunk_max / 4);
    plan->window_chunks = KRAIT_MIN(KRAIT_MAX(window, 1u), plan->chunk_max);
}

/* What the memory is like: see shm.h. */
static int plan_shm(struct krait_shm *plan, const struct krait_collector_options *options,
                    struct krait_err *err)
{
    int rc = krait_collector_check(options, err);
    if (rc)
        return rc;
    uint32_t rings = options->rings ? options->rings : RINGS;
    uint64_t ring_bytes = options->ring_bytes ? options->ring_bytes : RING_BYTES;
    uint64_t packet_bytes = whole_pages(KRAIT_MAX(ring_bytes / KRAIT_PACKETS_MAX, (uint64_t)PACKET_BYTES));
    uint64_t packets = KRAIT_MIN(ring_bytes / packet_bytes, (uint64_t)KRAIT_PACKETS_MAX);
    plan->packet_bytes = (uint32_t)packet_bytes;
    plan->packet_count = (uint32_t)packets;
    plan->ring_bytes = packet_bytes * packets;
    plan->ring_max = affordable(2, rings, plan->ring_bytes);
    if (!plan->ring_max)
        return krait_err_set(
            err, -ENOMEM,
            "the limits of memory or file size here (ulimit -v, ulimit -f) leave no room for rings;"
            " raise them, or choose a smaller --ring-size");
    plan_chunks(plan, options->buffer_bytes);
    uint64_t heads =
        krait_shm_chunk_heads_offset(plan->ring_max) + plan->chunk_max * sizeof(struct krait_chunk);
    plan->rings_offset = whole_pages(heads);
    plan->chunks_offset = plan->rings_offset + plan->ring_max * plan->ring_bytes;
    plan->bytes = plan->chunks_offset + plan->chunk_max * krait_shm_chunk_bytes(plan);
    return 0;
}

static void fill_control(struct krait_control *control, const struct krait_shm *plan,
                         const struct krait_clock *clock, const struct krait_collector_options *options)
{
    control->flags = options->flags;
    control->total_bytes = plan->bytes;
    control->rings_offset = plan->rings_offset;
    control->ring_bytes = plan->ring_bytes;
    control->packet_bytes = plan->packet_bytes;
    control->packet_count = plan->packet_count;
    control->ring_max = plan->ring_max;
    control->chunks_offset = plan->chunks_offset;
    control->chunk_max = plan->chunk_max;
    control->window_chunks = plan->window_chunks;
    control->clock_counter = clock->counter;
    control->clock_freq = clock->freq;
    control->max_overhead_ppm = (uint32_t)(options->max_overhead * 1e4);
    control->collector_pid = getpid();
    control->version = KRAIT_SHM_VERSION;
    control->magic = KRAIT_SHM_MAGIC;
}

static int make_shm(struct krait_collector *c, const struct krait_collector_options *options,
                    struct krait_err *err)
{
    struct krait_shm plan = { 0 };
    int rc = plan_shm(&plan, options, err);
    if (rc)
        return rc;
    c->fd = memfd_create("krait", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (c->fd < 0 || ftruncate(c->fd, (off_t)plan.bytes) < 0 ||
        fcntl(c->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return krait_err_errno(err, "no shared memory (memfd)");
    uint8_t *base = mmap(NULL, plan.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, c->fd, 0);
    if (base == MAP_FAILED)
        return krait_err_errno(err, "cannot map %zu bytes of shared memory; try a smaller --ring-size",
                               plan.bytes);
    fill_control((struct krait_control *)base, &plan, &c->clock, options);
    krait_shm_at(&c->shm, base, plan.bytes);
    c->recording.ring_bytes = plan.ring_bytes;
    c->recording.buffer_bytes = plan.chunk_max * krait_shm_chunk_bytes(&plan);
    krait_collector_beat(c);
    c->switched.state = options->idle ? KRAIT_SESSION_OFF : KRAIT_SESSION_RUN;
    atomic_store(&c->shm.control->state, c->switched.state);
    rc = keep_args(c, &options->args, err);
    return rc ? rc : add_filters(c->shm.control, options, err);
}

static int make_folder(struct krait_collector *c, const char *dir, struct krait_err *err)
{
    c->dir = strdup(dir);
    return c->dir ? krait_folder_make(c->dir, &c->dir_made, err)
                  : krait_err_set(err, -ENOMEM, "out of memory");
}

static void note_address(struct krait_collector *c)
{
    snprintf(c->address, sizeof(c->address), "%s%s%s", c->session, *c->join.key ? "@" : "", c->join.key);
    snprintf(c->variable, sizeof(c->variable), "%s%s", c->address, c->join.file ? c->join.file : "");
}

static void take_options(struct krait_collector *c, const struct krait_collector_options *options)
{
    c->tap = options->tap;
    c->duration_ns = options->duration_ns;
    c->max_bytes = options->max_bytes;
    c->last_ns = options->last_ns;
    c->last_bytes = options->last_bytes;
    c->tells_exceptions = options->tells_exceptions;
    c->keep_newest = options->keep_newest || c->last_ns || c->last_bytes;
    c->recording.dropped_for = c->last_ns || c->last_bytes ? "--last" : "--keep newest";
    if (c->last_bytes && !c->max_bytes) /* what is kept after a cut is a quarter: newest.c */
        c->max_bytes = 4 * c->last_bytes;
    c->begin_ns = c->program_ns = c->opened_ns = krait_clock_ns(CLOCK_MONOTONIC);
    c->switched.since_ns = c->rate.at[0].ns = c->trimmed_ns = c->begin_ns;
    c->open_ns = options->open_ns ? options->open_ns : KRAIT_COLLECTOR_OPEN_NS;
}

/* By ring and by chunk. */
static int make_tables(struct krait_collector *c)
{
    c->rings = calloc(c->shm.ring_max, sizeof(*c->rings));
    c->chunk_taken = calloc(c->shm.chunk_max + 1, sizeof(*c->chunk_taken));
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(c->ready); i++)
        c->ready[i] = calloc((c->shm.chunk_max + 1) * (size_t)KRAIT_PACKETS_MAX, sizeof(**c->ready));
    return c->rings && c->chunk_taken && c->ready[0] && c->ready[1] ? 0 : -ENOMEM;
}

int krait_collector_new(struct krait_collector **out, const struct krait_collector_options *options,
                        struct krait_err *err)
{
    struct krait_collector *c = calloc(1, sizeof(*c));
    if (!c)
        return krait_err_set(err, -ENOMEM, "out of memory");
    c->fd = -1;
    krait_join_socket_init(&c->join);
    krait_ctl_init(&c->ctl);
    c->spare_fds = krait_tracedir_spare_fds();
    for (size_t i = 0; i < KRAIT_PROCS_MAX; i++)
        c->procs[i].pidfd = -1;
    krait_clock_init(&c->clock);
    take_options(c, options);
    int rc = c->tap ? 0 : make_folder(c, options->dir, err);
    if (!rc)
        rc = make_shm(c, options, err);
    if (!rc)
        rc = krait_triggers_new(&c->triggers, options->snapshot_on.items, options->snapshot_on.count, err);
    if (!rc && (krait_triggers_begin(c) || make_tables(c)))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    if (!rc && c->dir && access(c->dir, W_OK | X_OK) < 0)
        rc = krait_folder_refused(err, "write in", c->dir);
    if (rc) {
        krait_collector_free(c);
        return rc;
    }
    if (c->dir)
        make_reserve(c);
    krait_limits_look_at_disk(c);
    krait_join_socket_open(&c->join);
    krait_ctl_open(&c->ctl, c->dir, c->fd);
    if (c->dir && c->spare_fds > 1) {
        krait_join_file_open(&c->join, c->dir);
        krait_ctl_open_file(&c->ctl, c->dir);
        c->spare_fds -= 2;
    }
    snprintf(c->session, sizeof(c->session), "/proc/%d/fd/%d", getpid(), c->fd);
    note_address(c);
    *out = c;
    return 0;
}

static bool is_our_proc(pid_t pid)
{
    char path[64];
    struct stat of_theirs, of_ours;
    snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
    return stat(path, &of_theirs) || stat("/proc/self/ns/pid", &of_ours) ||
           of_theirs.st_ino == of_ours.st_ino;
}

int krait_collector_admit(struct krait_collector *c, pid_t pid, struct krait_err *err)
{
    int rc = krait_join_socket_admit(&c->join, pid);
    note_address(c);
    if (rc && !is_our_proc(pid))
        return krait_err_set(
            err, rc,
            "process %d is in a network and a PID namespace of its own, from where it cannot "
            "reach krait; run krait as root, or in that container",
            pid);
    return 0;
}

bool krait_collector_drop_empty(struct krait_collector *c)
{
    if (!c->dir_made || rmdir(c->dir) < 0)
        return false;
    c->dir_made = false;
    return true;
}

void krait_collector_free(struct krait_collector *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < KRAIT_PROCS_MAX; i++) {
        krait_tracedir_free(c->procs[i].dir);
        if (c->procs[i].pidfd >= 0)
            close(c->procs[i].pidfd);
    }
    if (c->shm.base)
        munmap(c->shm.base, c->shm.bytes);
    if (c->fd >= 0)
        close(c->fd);
    krait_join_socket_close(&c->join);
    krait_ctl_close(&c->ctl);
    if (c->reserve)
        unlink(c->reserve);
    krait_collector_drop_empty(c);
    krait_triggers_free(c->triggers);
    krait_collector_said_done(c);
    krait_buf_done(&c->ended);
    krait_buf_done(&c->args);
    free(c->reserve);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(c->ready); i++)
        free(c->ready[i]);
    krait_map_done(&c->joined);
    krait_map_done(&c->begun);
    krait_map_done(&c->told);
    free(c->chunk_taken);
    free(c->rings);
    free(c->dir);
    free(c);
}

const char *krait_collector_session(const struct krait_collector *c)
{
    return c->session;
}

const char *krait_collector_address(const struct krait_collector *c)
{
    return c->address;
}

const char *krait_collector_variable(const struct krait_collector *c)
{
    return c->variable;
}
