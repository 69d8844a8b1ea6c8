/* SPDX-License-Identifier: Apache-2.0
 *
 * What a user without rights can have of the kernel: the context switches and page faults of his own program.
 *
 * The events are opened on this process, for each CPU, to be inherited and switched on by exec: so they begin
 * with the program, and follow its threads and children wherever they run, into rings of this process, one a
 * CPU. An event with a CPU can be inherited and have a ring; one that follows a thread cannot
 * (perf_event_open(2), "inherit", "mmap").
 *
 * Switches, names, forks and exits come beside the minor page faults' event, since they are not kept from users as a
 * counter of context switches would be, which counts in the kernel. Major faults have an event of their own.
 */
#include "kernel/perf.h"

#include "kernel/kernel_source.h"
#include "kernel/perf_clock.h"
#include "kernel/perf_record.h"

#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* A user may lock 516 KiB for each CPU (perf_event_mlock_kb), and one page is the ring's head. */
enum { RING_BYTES = 512 * 1024, RING_BYTES_MIN = 16 * 1024 };
enum { MINOR, MAJOR, EVENTS };

#define PARANOID "/proc/sys/kernel/perf_event_paranoid"
#define MLOCK_KB "/proc/sys/kernel/perf_event_mlock_kb"
#ifndef PERF_FORMAT_LOST /* Linux 6.0 */
#define PERF_FORMAT_LOST (1u << 4)
#endif

/* ---- what is written ---- */

enum { IN, OUT, FORK, EXIT, COMM, FAULT, CLASSES };

struct thread {
    int32_t tid, pid;
};
struct left {
    int32_t tid, pid;
    uint32_t preempted;
} __attribute__((packed));
struct forked { /* as LTTng's */
    char parent_comm[16];
    int32_t parent_tid, parent_pid;
    char child_comm[16];
    int32_t child_tid, child_pid;
} __attribute__((packed));
struct named {
    char comm[16];
    int32_t tid, pid;
    uint32_t exec;
} __attribute__((packed));
struct faulted {
    uint64_t address, ip;
    uint32_t major;
} __attribute__((packed));

#define THREAD                  \
    { "tid", KRAIT_KTYPE_I32 }, \
    {                           \
        "pid", KRAIT_KTYPE_I32  \
    }
static const struct krait_kernel_field thread_fields[] = { THREAD };
static const struct krait_kernel_field left_fields[] = { THREAD, { "preempted", KRAIT_KTYPE_U32 } };
static const struct krait_kernel_field forked_fields[] = {
    { "parent_comm", KRAIT_KTYPE_COMM }, { "parent_tid", KRAIT_KTYPE_I32 }, { "parent_pid", KRAIT_KTYPE_I32 },
    { "child_comm", KRAIT_KTYPE_COMM },  { "child_tid", KRAIT_KTYPE_I32 },  { "child_pid", KRAIT_KTYPE_I32 },
};
static const struct krait_kernel_field named_fields[] = { { "comm", KRAIT_KTYPE_COMM },
                                                          THREAD,
                                                          { "exec", KRAIT_KTYPE_U32 } };
static const struct krait_kernel_field faulted_fields[] = { { "address", KRAIT_KTYPE_X64 },
                                                            { "ip", KRAIT_KTYPE_X64 },
                                                            { "major", KRAIT_KTYPE_U32 } };
#undef THREAD

/* Names of perf's own where LTTng's events mean something else: a switch has two sides, an exit is followed
 * by the last switch, a fault is told when it begins. */
static const struct {
    const char *name;
    const struct krait_kernel_field *fields;
    uint16_t field_count;
} classes[CLASSES] = {
#define FIELDS(f) f, KRAIT_ARRAY_LEN(f)
    [IN] = { "perf_switch_in", FIELDS(thread_fields) },
    [OUT] = { "perf_switch_out", FIELDS(left_fields) },
    [FORK] = { "sched_process_fork", FIELDS(forked_fields) },
    [EXIT] = { "perf_exit", FIELDS(thread_fields) },
    [COMM] = { "perf_comm", FIELDS(named_fields) },
    [FAULT] = { "perf_page_fault", FIELDS(faulted_fields) },
#undef FIELDS
};

/* ---- the source ---- */

struct ring {
    int fds[EVENTS]; /* -1: the CPU is not there */
    struct perf_event_mmap_page *head;
    uint64_t major_id;
    uint64_t lost;    /* as its records told */
    uint64_t damaged; /* records */
};

struct perf {
    struct krait_kernel kernel;
    struct krait_perf_clock clock;
    uint16_t ids[CLASSES];
    struct krait_map comm_of; /* of threads, by number: ids in `comms` */
    struct krait_strtab comms;
    struct ring *rings; /* as many as the kernel has streams */
    size_t ring_bytes;
    uint64_t flushed_ns;
};

static struct perf *perf_of(struct krait_kernel *kernel)
{
    return KRAIT_CONTAINER(kernel, struct perf, kernel);
}

/* ---- opening ---- */

int krait_perf_event_open(struct perf_event_attr *attr, int pid, int cpu)
{
    attr->size = sizeof(*attr);
    int fd = (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int krait_perf_refusal(int rc, struct krait_err *err)
{
    KRAIT_AUTO_BUF text = { 0 };
    long paranoid = krait_buf_read_file(&text, PARANOID) || !text.data ? 0 : strtol(text.data, NULL, 10);
    if (rc == -ENOSYS)
        return krait_err_set(err, rc, "this kernel has no perf events; boot one with CONFIG_PERF_EVENTS");
    if (rc != -EACCES && rc != -EPERM)
        return krait_err_set(err, rc, "perf events cannot be opened: %s", strerror(-rc));
    if (paranoid > 2)
        return krait_err_set(
            err, rc,
            "perf_event_paranoid is %ld, which keeps perf events from users; with 2 they have "
            "those of their own programs: sudo sysctl kernel.perf_event_paranoid=2",
            paranoid);
    return krait_err_set(err, rc,
                         "perf_event_open is refused (%s); in a container, let the seccomp profile allow it",
                         strerror(-rc));
}

static int open_event(const struct perf *p, int which, int cpu)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .config = which == MAJOR ? PERF_COUNT_SW_PAGE_FAULTS_MAJ : PERF_COUNT_SW_PAGE_FAULTS_MIN,
        .sample_period = 1,
        .sample_type = KRAIT_PERF_SAMPLE_TYPE,
        .read_format = PERF_FORMAT_LOST,
        .disabled = 1,
        .inherit = 1,
        .enable_on_exec = 1,
        .exclude_kernel = 1, /* where it is not, users are refused */
        .exclude_hv = 1,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = krait_perf_clock_id(p->kernel.clock),
        .watermark = 1,
        .wakeup_watermark = UINT32_MAX, /* nobody sleeps on it: krait comes by itself */
        .context_switch = which == MINOR,
        .task = which == MINOR,
        .comm = which == MINOR,
        .comm_exec = which == MINOR,
    };
    int fd = krait_perf_event_open(&attr, 0, cpu);
    if (fd != -EINVAL)
        return fd;
    attr.read_format = 0;
    return krait_perf_event_open(&attr, 0, cpu);
}

static int open_events(struct ring *ring, const struct perf *p, size_t cpu, struct krait_err *err)
{
    for (int which = 0; which < EVENTS; which++) {
        ring->fds[which] = open_event(p, which, (int)cpu);
        if (ring->fds[which] == -ENODEV)
            return 0;
        if (ring->fds[which] < 0)
            return krait_perf_refusal(ring->fds[which], err);
    }
    return 0;
}

static void unmap_rings(struct perf *p)
{
    for (size_t i = 0; i < p->kernel.cpu_count; i++) {
        if (p->rings[i].head)
            munmap(p->rings[i].head, (size_t)sysconf(_SC_PAGESIZE) + p->ring_bytes);
        p->rings[i].head = NULL;
    }
}

/* Returns 0 or a negative errno. */
static int map_all(struct perf *p)
{
    const size_t bytes = (size_t)sysconf(_SC_PAGESIZE) + p->ring_bytes;
    for (size_t i = 0; i < p->kernel.cpu_count; i++) {
        if (p->rings[i].fds[MAJOR] < 0) /* the last that was opened */
            continue;
        void *head = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->rings[i].fds[MINOR], 0);
        if (head == MAP_FAILED)
            return -errno;
        p->rings[i].head = head;
    }
    return 0;
}

/* All of one size, as large as asked for or as this user may lock: no CPU goes without for the others' sake. */
static int map_rings(struct perf *p, struct krait_err *err)
{
    for (;; p->ring_bytes /= 2) {
        int rc = map_all(p);
        if (!rc)
            return 0;
        unmap_rings(p);
        if ((rc != -EPERM && rc != -ENOMEM) || p->ring_bytes <= RING_BYTES_MIN)
            return krait_err_set(
                err, rc,
                "cannot map rings of perf events: %s; other perf events of this user hold the "
                "memory that " MLOCK_KB " and RLIMIT_MEMLOCK allow",
                strerror(-rc));
    }
}

static int begin_stream(struct perf *p, size_t cpu, struct krait_err *err)
{
    struct ring *ring = &p->rings[cpu];
    if (!ring->head)
        return 0;
    if (ioctl(ring->fds[MAJOR], PERF_EVENT_IOC_SET_OUTPUT, ring->fds[MINOR]) ||
        ioctl(ring->fds[MAJOR], PERF_EVENT_IOC_ID, &ring->major_id))
        return krait_err_errno(err, "cannot join perf events in one ring");
    return krait_kernel_make_stream(&p->kernel, cpu, err);
}

static int open_rings(struct perf *p, struct krait_err *err)
{
    size_t count = p->kernel.cpu_count;
    p->rings = calloc(count, sizeof(*p->rings));
    if (!p->rings)
        return krait_err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++)
        p->rings[i].fds[MINOR] = p->rings[i].fds[MAJOR] = -1;
    int rc = 0;
    for (size_t i = 0; !rc && i < count; i++)
        rc = open_events(&p->rings[i], p, i, err);
    rc = rc ? rc : map_rings(p, err);
    for (size_t i = 0; !rc && i < count; i++)
        rc = begin_stream(p, i, err);
    if (!rc)
        krait_kernel_begin_streams(&p->kernel);
    return rc;
}

static int declare(struct perf *p, struct krait_err *err)
{
    for (int i = 0; i < CLASSES; i++) {
        int id = krait_kernel_classes_declare(&p->kernel.classes, classes[i].name, classes[i].fields,
                                              classes[i].field_count);
        if (id < 0)
            return krait_err_set(err, id, "out of memory");
        p->ids[i] = (uint16_t)id;
    }
    return krait_kernel_describe(&p->kernel, err);
}

/* A power of two, as the kernel wants it. */
static size_t ring_size(uint64_t wanted)
{
    size_t size = RING_BYTES_MIN;
    while (2 * size <= (wanted ? wanted : RING_BYTES))
        size *= 2;
    return size;
}

static int open_perf(struct krait_kernel *kernel, const struct krait_kernel_record_options *options,
                     struct krait_err *err)
{
    struct perf *p = perf_of(kernel);
    p->ring_bytes = ring_size(options->ring_bytes);
    krait_perf_clock_init(&p->clock, kernel->clock);
    int rc = krait_kernel_make_folder(kernel, options->dir, err);
    if (!rc)
        rc = open_rings(p, err);
    return rc ? rc : declare(p, err);
}

static void close_perf(struct krait_kernel *kernel, struct krait_err *err)
{
    struct perf *p = perf_of(kernel);
    if (p->rings)
        unmap_rings(p);
    for (size_t i = 0; p->rings && i < kernel->cpu_count; i++) {
        krait_close_fd(&p->rings[i].fds[MAJOR]);
        krait_close_fd(&p->rings[i].fds[MINOR]);
    }
    krait_map_done(&p->comm_of);
    krait_strtab_done(&p->comms);
    free(p->rings);
}

/* ---- records ---- */

static void put(struct perf *p, size_t cpu, int class, const struct krait_perf_record *record,
                const void *payload, size_t n)
{
    int rc;
    struct krait_kernel_stream *stream = &p->kernel.streams[cpu];
    uint64_t ticks = krait_perf_clock_ticks(&p->clock, record->time);
    uint8_t *to = krait_kernel_stream_begin(stream, p->ids[class], ticks, record->tid, n, &rc);
    krait_kernel_note(&p->kernel, rc);
    if (!to)
        return;
    memcpy(to, payload, n);
    krait_kernel_stream_end(stream, n);
}

static void copy_comm(const struct perf *p, char to[16], int32_t tid)
{
    const uint64_t *known = krait_map_get(&p->comm_of, (uint32_t)tid);
    memset(to, 0, 16);
    if (known)
        memcpy(to, p->comms.texts[*known], p->comms.lens[*known]);
}

/* Without memory the thread has no name in its forks. */
static void note_comm(struct perf *p, int32_t tid, const char *comm)
{
    uint32_t id = krait_strtab_add(&p->comms, comm, strlen(comm));
    if (id != KRAIT_NO_ID)
        krait_map_put(&p->comm_of, (uint32_t)tid, id);
}

static void take_switch(struct perf *p, size_t cpu, const struct krait_perf_record *record)
{
    if (record->tid <= 0) /* a thread that is no more is switched from */
        return;
    if (!(record->misc & PERF_RECORD_MISC_SWITCH_OUT)) {
        put(p, cpu, IN, record, &(struct thread){ record->tid, record->pid }, sizeof(struct thread));
        return;
    }
    struct left left = { record->tid, record->pid, !!(record->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) };
    put(p, cpu, OUT, record, &left, sizeof(left));
}

static void take_fork(struct perf *p, size_t cpu, const struct krait_perf_record *record)
{
    struct forked forked = { .parent_tid = record->task.ptid,
                             .parent_pid = record->task.ppid,
                             .child_tid = record->task.tid,
                             .child_pid = record->task.pid };
    copy_comm(p, forked.parent_comm, forked.parent_tid);
    memcpy(forked.child_comm, forked.parent_comm, sizeof(forked.child_comm));
    note_comm(p, forked.child_tid, forked.child_comm);
    put(p, cpu, FORK, record, &forked, sizeof(forked));
}

static void take_exit(struct perf *p, size_t cpu, const struct krait_perf_record *record)
{
    put(p, cpu, EXIT, record, &(struct thread){ record->task.tid, record->task.pid }, sizeof(struct thread));
}

static void take_comm(struct perf *p, size_t cpu, const struct krait_perf_record *record)
{
    struct named named = { .tid = record->comm.tid,
                           .pid = record->comm.pid,
                           .exec = !!(record->misc & PERF_RECORD_MISC_COMM_EXEC) };
    memcpy(named.comm, record->comm.text, sizeof(named.comm));
    note_comm(p, named.tid, record->comm.text);
    put(p, cpu, COMM, record, &named, sizeof(named));
}

static void take_fault(struct perf *p, size_t cpu, const struct krait_perf_record *record)
{
    struct faulted faulted = { record->sample.addr, record->sample.ip,
                               record->sample.id == p->rings[cpu].major_id };
    put(p, cpu, FAULT, record, &faulted, sizeof(faulted));
}

static void lose(struct perf *p, size_t cpu, uint64_t count)
{
    p->rings[cpu].lost += count;
    krait_kernel_note(&p->kernel, krait_kernel_stream_lose(&p->kernel.streams[cpu], count));
}

static void take_lost(struct perf *p, size_t cpu, const struct krait_perf_record *record)
{
    lose(p, cpu, record->lost);
}

typedef void take(struct perf *p, size_t cpu, const struct krait_perf_record *record);

static void take_record(struct perf *p, size_t cpu, const void *bytes, size_t n)
{
    static take *const takes[] = {
        [PERF_RECORD_SAMPLE] = take_fault, [PERF_RECORD_FORK] = take_fork, [PERF_RECORD_EXIT] = take_exit,
        [PERF_RECORD_COMM] = take_comm,    [PERF_RECORD_LOST] = take_lost, [PERF_RECORD_SWITCH] = take_switch,
    };
    struct krait_perf_record record;
    if (krait_perf_record_parse(&record, bytes, n))
        takes[record.type](p, cpu, &record);
    else
        p->rings[cpu].damaged++;
}

/* ---- rings ---- */

/* Bytes that may go around the ring's end. */
static void copy_out(const struct perf *p, const struct ring *ring, uint64_t at, void *to, size_t n)
{
    const char *data = (const char *)ring->head + sysconf(_SC_PAGESIZE);
    size_t from = at & (p->ring_bytes - 1);
    size_t first = KRAIT_MIN(n, p->ring_bytes - from);
    memcpy(to, data + from, first);
    memcpy((char *)to + first, data, n - first);
}

/* As far as there is room. Returns how many bytes it took. */
static uint64_t empty_ring(struct perf *p, size_t cpu)
{
    uint64_t most = krait_kernel_may_take(&p->kernel);
    struct ring *ring = &p->rings[cpu];
    if (!ring->head)
        return 0;
    uint64_t head = __atomic_load_n(&ring->head->data_head, __ATOMIC_ACQUIRE);
    uint64_t begin = ring->head->data_tail, at = begin;
    while (at - begin < most && head - at >= sizeof(struct perf_event_header)) {
        struct perf_event_header record;
        char bytes[KRAIT_PERF_RECORD_MAX];
        copy_out(p, ring, at, &record, sizeof(record));
        if (record.size < sizeof(record) || record.size > head - at) {
            ring->damaged++;
            at = head;
            break;
        }
        size_t n = KRAIT_MIN((size_t)record.size, sizeof(bytes));
        copy_out(p, ring, at, bytes, n);
        take_record(p, cpu, bytes, n);
        at += record.size;
    }
    __atomic_store_n(&ring->head->data_tail, at, __ATOMIC_RELEASE);
    return at - begin;
}

/* Page faults come in bursts: a ring that has an eighth of its room taken may be full soon. */
static bool round_perf(struct krait_kernel *kernel)
{
    struct perf *p = perf_of(kernel);
    bool fast = false;
    krait_perf_clock_sync(&p->clock);
    for (size_t i = 0; i < kernel->cpu_count; i++) {
        uint64_t most = krait_kernel_may_take(kernel), taken = empty_ring(p, i);
        fast |= taken && taken >= KRAIT_MIN(most, p->ring_bytes / 8);
    }
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
    if (now - p->flushed_ns >= KRAIT_NS_PER_S) {
        krait_kernel_flush(kernel);
        p->flushed_ns = now;
    }
    return fast;
}

/* ---- the end ---- */

static void stop_perf(struct krait_kernel *kernel)
{
    struct perf *p = perf_of(kernel);
    for (size_t i = 0; i < kernel->cpu_count; i++) {
        for (int which = 0; p->rings[i].head && which < EVENTS; which++)
            ioctl(p->rings[i].fds[which], PERF_EVENT_IOC_DISABLE, 0);
    }
}

/* A loss is told by the next record that finds room. Where there was none, the events' own counts have it. */
static void count_last_losses(struct perf *p, size_t cpu)
{
    struct {
        uint64_t value, lost;
    } counts;
    uint64_t lost = 0;
    for (int which = 0; which < EVENTS; which++) {
        if (read(p->rings[cpu].fds[which], &counts, sizeof(counts)) == sizeof(counts))
            lost += counts.lost;
    }
    if (lost > p->rings[cpu].lost)
        lose(p, cpu, lost - p->rings[cpu].lost);
}

static void finish_perf(struct krait_kernel *kernel, struct krait_kernel_summary *sum)
{
    struct perf *p = perf_of(kernel);
    krait_perf_clock_sync(&p->clock);
    for (size_t i = 0; i < kernel->cpu_count; i++) {
        if (!p->rings[i].head)
            continue;
        empty_ring(p, i);
        count_last_losses(p, i);
        sum->lost += p->rings[i].lost;
        sum->damaged += p->rings[i].damaged;
        sum->cpus += p->rings[i].lost > 0;
    }
}

const struct krait_kernel_source krait_kernel_perf = {
    .scope = KRAIT_KERNEL_OWN,
    .tracer = "    tracer_name = \"krait-perf\";\n",
    .size = sizeof(struct perf),
    .open = open_perf,
    .round = round_perf,
    .stop = stop_perf,
    .finish = finish_perf,
    .close = close_perf,
};
