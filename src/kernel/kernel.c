/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/kernel.h"

#include "kernel/kernel_stream.h"
#include "kernel/kernel_tsdl.h"
#include "kernel/ringpage.h"
#include "kernel/statedump.h"
#include "kernel/tracefs.h"
#include "record/traceid.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum {
    RING_BYTES = 4 * 1024 * 1024,
    PIPE_BYTES = 1024 * 1024,
    PIPES_A_ROUND = 8,
    PAGE_MAX = 64 * 1024, /* the largest page of a ring that tracefs allows is 128 pages; ours are one */
};

struct cpu {
    int raw; /* trace_pipe_raw; -1: the CPU is not there */
    struct krait_kernel_stream stream;
    uint64_t lost;    /* as its pages told */
    uint64_t damaged; /* pages */
};

struct krait_kernel {
    const struct krait_clock *clock;
    struct krait_clock own_clock; /* when the kernel has not the recording's */
    int root, instance;
    int on; /* tracing_on; open, it keeps others from removing the instance */
    int pipe[2];
    char *dir;
    uint8_t uuid[16];
    struct krait_kernel_classes classes;
    struct krait_statedump dump;
    struct krait_kernel_stream dump_stream;
    struct cpu *cpus;
    size_t cpu_count;
    size_t page_bytes;
    uint8_t *pages; /* PIPE_BYTES of them */
    uint64_t flushed_ns;
    struct krait_err trouble;
    bool trouble_told;
};

int krait_kernel_check_groups(const char *groups, struct krait_err *err)
{
    uint32_t mask;
    return krait_kernel_groups_parse(groups, &mask, err);
}

static void note_trouble(struct krait_kernel *k, int rc)
{
    if (!rc || k->trouble.code)
        return;
    errno = -rc;
    krait_err_errno(&k->trouble, "cannot write the kernel's events to %s", k->dir);
}

const char *krait_kernel_trouble(struct krait_kernel *k)
{
    if (!k->trouble.code || k->trouble_told)
        return NULL;
    k->trouble_told = true;
    return k->trouble.text;
}

/* ---- the instance ---- */

/* Cannot fail once it is open, and where it does there is nothing to be done about it. */
static void switch_tracing(const struct krait_kernel *k, bool on)
{
    ssize_t n = write(k->on, on ? "1" : "0", 1);
    (void)n;
}

static int configure(struct krait_kernel *k, const char *file, const char *value, struct krait_err *err)
{
    int rc = krait_tracefs_write(k->instance, file, value);
    return rc ? krait_err_set(err, rc, "the kernel does not take %s for tracing's %s: %s", value, file,
                              strerror(-rc))
              : 0;
}

/* The recording's counter where the kernel can trace with it (x86-tsc), else CLOCK_MONOTONIC for the kernel's
 * part alone: readers join both by the time of day then. */
static int set_clock(struct krait_kernel *k, struct krait_err *err)
{
    if (k->clock->counter && krait_tracefs_write(k->instance, "trace_clock", "x86-tsc") == 0)
        return 0;
    if (k->clock->counter) {
        k->own_clock = (struct krait_clock){ .first = k->clock->first, .freq = KRAIT_NS_PER_S };
        k->own_clock.first.ticks = k->own_clock.first.monotonic_ns;
        k->clock = &k->own_clock;
    }
    return configure(k, "trace_clock", "mono", err);
}

static int set_up(struct krait_kernel *k, uint64_t ring_bytes, struct krait_err *err)
{
    char kb[32];
    snprintf(kb, sizeof(kb), "%llu", (unsigned long long)(ring_bytes ? ring_bytes : RING_BYTES) / 1024);
    /* Names of tasks for the kernel's own text, kept at each switch under a lock; events have them anyhow.
     * Took 0.6 to 0.9 us of 9 from a byte sent to another process and back. A kernel without the option has
     * no such cost. */
    krait_tracefs_write(k->instance, "trace_options", "norecord-cmd");
    int rc = set_clock(k, err);
    return rc ? rc : configure(k, "buffer_size_kb", kb, err);
}

/* header_page says how large a page of the ring is: "field: char data; offset:16; size:4080; ...". */
static int learn_page(struct krait_kernel *k, struct krait_err *err)
{
    KRAIT_AUTO_BUF text = { 0 };
    int rc = krait_tracefs_read(k->root, "events/header_page", &text);
    const char *line = rc || !text.data ? NULL : strstr(text.data, " data;");
    unsigned offset = 0, size = 0;
    if (!line || sscanf(line, " data; offset:%u; size:%u;", &offset, &size) != 2 ||
        offset != KRAIT_RINGPAGE_HEAD || size < 256 || size > PAGE_MAX)
        return krait_err_set(err, rc ? rc : -EBADMSG,
                             "events/header_page describes a ring that this krait does not know");
    k->page_bytes = offset + size;
    return 0;
}

/* ---- streams ---- */

static int open_cpu(struct krait_kernel *k, size_t i, struct krait_err *err)
{
    char raw[64];
    KRAIT_AUTO_FREE char *path = NULL;
    struct cpu *cpu = &k->cpus[i];
    snprintf(raw, sizeof(raw), "per_cpu/cpu%zu/trace_pipe_raw", i);
    cpu->raw = openat(k->instance, raw, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (cpu->raw < 0)
        return errno == ENOENT ? 0 : krait_err_errno(err, "cannot read the kernel's %s", raw);
    if (asprintf(&path, "%s/channel0_%zu", k->dir, i) < 0)
        return krait_err_set(err, -ENOMEM, "out of memory");
    int rc = krait_kernel_stream_init(&cpu->stream, path, k->uuid, (uint32_t)i, i + 1, err);
    if (!rc)
        note_trouble(k, krait_kernel_stream_mark(&cpu->stream, krait_clock_now(k->clock)));
    return rc;
}

static int open_cpus(struct krait_kernel *k, struct krait_err *err)
{
    long count = sysconf(_SC_NPROCESSORS_CONF);
    k->cpus = calloc((size_t)count, sizeof(*k->cpus));
    if (!k->cpus)
        return krait_err_set(err, -ENOMEM, "out of memory");
    for (; k->cpu_count < (size_t)count; k->cpu_count++)
        k->cpus[k->cpu_count].raw = k->cpus[k->cpu_count].stream.fd = -1;
    int rc = 0;
    for (size_t i = 0; !rc && i < k->cpu_count; i++)
        rc = open_cpu(k, i, err);
    return rc;
}

static int open_pipe(struct krait_kernel *k, struct krait_err *err)
{
    k->pages = malloc(PIPE_BYTES);
    if (!k->pages)
        return krait_err_set(err, -ENOMEM, "out of memory");
    if (pipe2(k->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
        return krait_err_errno(err, "cannot make a pipe");
    fcntl(k->pipe[1], F_SETPIPE_SZ, PIPE_BYTES); /* fewer pages at a time where that is not allowed */
    return 0;
}

static int open_folder(struct krait_kernel *k, const struct krait_kernel_options *options,
                       struct krait_err *err)
{
    if (asprintf(&k->dir, "%s/" KRAIT_KERNEL_FOLDER, options->dir) < 0) {
        k->dir = NULL;
        return krait_err_set(err, -ENOMEM, "out of memory");
    }
    if (mkdir(k->dir, 0777) < 0)
        return krait_err_errno(err, "cannot make the folder %s", k->dir);
    return krait_traceid_new(k->uuid, err);
}

/* Scheduling and the like first, all at one moment; then the dump, so that nobody is missed between them;
 * system calls after it, or the trace would begin with krait's own. */
static int start(struct krait_kernel *k, uint32_t groups, struct krait_err *err)
{
    KRAIT_AUTO_FREE char *path = NULL;
    const uint32_t syscalls = 1u << KRAIT_KERNEL_SYSCALLS;
    if (asprintf(&path, "%s/statedump_0", k->dir) < 0)
        return krait_err_set(err, -ENOMEM, "out of memory");
    int rc = krait_kernel_stream_init(&k->dump_stream, path, k->uuid, 0, 0, err);
    switch_tracing(k, false);
    if (!rc)
        rc = krait_kernel_enable(k->instance, groups & ~syscalls, err);
    switch_tracing(k, true);
    if (!rc)
        note_trouble(k, krait_statedump_write(&k->dump, &k->classes, &k->dump_stream, k->clock));
    return rc ? rc : krait_kernel_enable(k->instance, groups & syscalls, err);
}

static int load(struct krait_kernel *k, uint32_t groups, struct krait_err *err)
{
    int rc = krait_kernel_classes_load(&k->classes, k->instance, groups, err);
    if (!rc && krait_statedump_declare(&k->dump, &k->classes))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    return rc ? rc : krait_kernel_tsdl_write(k->dir, &k->classes, k->clock, k->uuid, err);
}

static int open_all(struct krait_kernel *k, const struct krait_kernel_options *options, struct krait_err *err)
{
    uint32_t groups = 0;
    int rc = krait_kernel_groups_parse(options->groups, &groups, err);
    if (rc)
        return rc;
    k->root = krait_tracefs_open(err);
    if (k->root < 0)
        return k->root;
    krait_tracefs_sweep(k->root);
    k->instance = krait_tracefs_make_instance(k->root, err);
    if (k->instance < 0)
        return k->instance;
    k->on = openat(k->instance, "tracing_on", O_WRONLY | O_CLOEXEC);
    if (k->on < 0)
        return krait_err_errno(err, "cannot open the tracing instance's tracing_on");
    rc = set_up(k, options->ring_bytes, err);
    if (!rc)
        rc = learn_page(k, err);
    if (!rc)
        rc = open_pipe(k, err);
    if (!rc)
        rc = open_folder(k, options, err);
    if (!rc)
        rc = open_cpus(k, err);
    if (!rc)
        rc = load(k, groups, err);
    return rc ? rc : start(k, groups, err);
}

static void remove_folder(const struct krait_kernel *k)
{
    static const char *const names[] = { "metadata", "statedump_0" };
    KRAIT_AUTO_CLOSE int dir = k->dir ? open(k->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(names); i++)
        unlinkat(dir, names[i], 0);
    for (size_t i = 0; i < k->cpu_count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "channel0_%zu", i);
        unlinkat(dir, name, 0);
    }
    if (k->dir)
        rmdir(k->dir);
}

int krait_kernel_open(struct krait_kernel **out, const struct krait_kernel_options *options,
                      struct krait_err *err)
{
    struct krait_kernel *k = calloc(1, sizeof(*k));
    if (!k)
        return krait_err_set(err, -ENOMEM, "out of memory");
    k->clock = options->clock;
    k->root = k->instance = k->on = k->pipe[0] = k->pipe[1] = k->dump_stream.fd = -1;
    int rc = open_all(k, options, err);
    if (rc) {
        remove_folder(k);
        krait_kernel_free(k);
        return rc;
    }
    *out = k;
    return 0;
}

void krait_kernel_free(struct krait_kernel *k)
{
    if (!k)
        return;
    for (size_t i = 0; i < k->cpu_count; i++) {
        krait_close_fd(&k->cpus[i].raw);
        krait_kernel_stream_done(&k->cpus[i].stream);
    }
    krait_close_fd(&k->pipe[0]);
    krait_close_fd(&k->pipe[1]);
    krait_close_fd(&k->on);
    if (k->instance >= 0) {
        close(k->instance);
        krait_tracefs_remove_instance(k->root);
    }
    krait_close_fd(&k->root);
    krait_kernel_stream_done(&k->dump_stream);
    krait_kernel_classes_done(&k->classes);
    free(k->cpus);
    free(k->pages);
    free(k->dir);
    free(k);
}

/* ---- pages ---- */

static void take_event(struct krait_kernel *k, struct cpu *cpu, uint64_t time, const uint8_t *event, size_t n)
{
    const struct krait_kernel_class *class = krait_kernel_class_of(&k->classes, event, n);
    int rc;
    if (!class)
        return;
    if (!class->name[0]) {
        krait_kernel_convert(&k->classes, class, event, n, NULL);
        return;
    }
    uint8_t *to = krait_kernel_stream_begin(&cpu->stream, class->id, time, krait_kernel_tid(event),
                                            class->out_max, &rc);
    note_trouble(k, rc);
    if (to)
        krait_kernel_stream_end(&cpu->stream, krait_kernel_convert(&k->classes, class, event, n, to));
}

/* How many, as the kernel counts: the page has no room for the number when it is full to the end. */
static uint64_t count_lost(const struct krait_kernel *k, const struct cpu *cpu)
{
    char path[64];
    KRAIT_AUTO_BUF text = { 0 };
    snprintf(path, sizeof(path), "per_cpu/cpu%td/stats", cpu - k->cpus);
    const char *line =
        krait_tracefs_read(k->instance, path, &text) || !text.data ? NULL : strstr(text.data, "overrun:");
    uint64_t all = line ? strtoull(line + strlen("overrun:"), NULL, 10) : 0;
    return KRAIT_MAX(all, cpu->lost);
}

static void take_page(struct krait_kernel *k, struct cpu *cpu, const uint8_t *bytes)
{
    struct krait_ringpage page;
    const uint8_t *event;
    size_t n;
    if (!krait_ringpage_begin(&page, bytes, k->page_bytes)) {
        cpu->damaged++;
        return;
    }
    if (page.lost) {
        if (page.lost == KRAIT_RINGPAGE_LOST_UNKNOWN)
            page.lost = KRAIT_MAX(count_lost(k, cpu) - cpu->lost, (uint64_t)1);
        cpu->lost += page.lost;
        note_trouble(k, krait_kernel_stream_lose(&cpu->stream, page.lost));
    }
    while (krait_ringpage_next(&page, &event, &n))
        take_event(k, cpu, page.time, event, n);
    cpu->damaged += page.damaged;
}

/* Reads what is in the pipe: whole pages. Returns how many bytes. */
static size_t take_pipe(struct krait_kernel *k, struct cpu *cpu, size_t bytes)
{
    size_t got = 0;
    while (got < bytes) {
        ssize_t n = read(k->pipe[0], k->pages + got, bytes - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    for (size_t at = 0; got - at >= k->page_bytes; at += k->page_bytes)
        take_page(k, cpu, k->pages + at);
    return got;
}

/* tracing_buffers_splice_read (kernel/trace/trace.c) hands out full pages alone. At most `times` pipes full:
 * a CPU that fills its ring as fast as we empty it is not the only one. */
static bool take_full_pages(struct krait_kernel *k, struct cpu *cpu, unsigned times)
{
    bool any = false;
    while (times--) {
        ssize_t n = splice(cpu->raw, NULL, k->pipe[1], NULL, PIPE_BYTES, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || take_pipe(k, cpu, (size_t)n) == 0)
            break;
        any = true;
    }
    return any;
}

/* And read() what the open page has as well. Returns whether there was one. */
static bool take_open_page(struct krait_kernel *k, struct cpu *cpu)
{
    ssize_t n;
    do
        n = read(cpu->raw, k->pages, k->page_bytes);
    while (n < 0 && errno == EINTR);
    if (n < (ssize_t)k->page_bytes)
        return false;
    take_page(k, cpu, k->pages);
    return true;
}

static void flush(struct krait_kernel *k)
{
    for (size_t i = 0; i < k->cpu_count; i++) {
        if (k->cpus[i].raw < 0)
            continue;
        take_open_page(k, &k->cpus[i]);
        note_trouble(k, krait_kernel_stream_flush(&k->cpus[i].stream));
    }
}

bool krait_kernel_round(struct krait_kernel *k)
{
    bool any = false;
    for (size_t i = 0; i < k->cpu_count; i++) {
        if (k->cpus[i].raw >= 0)
            any |= take_full_pages(k, &k->cpus[i], PIPES_A_ROUND);
    }
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
    if (now - k->flushed_ns >= KRAIT_NS_PER_S) {
        flush(k);
        k->flushed_ns = now;
    }
    return any;
}

/* ---- the end ---- */

static void finish_cpu(struct krait_kernel *k, struct cpu *cpu, struct krait_kernel_summary *sum)
{
    if (cpu->raw < 0)
        return;
    take_full_pages(k, cpu, UINT32_MAX);
    while (take_open_page(k, cpu))
        ;
    note_trouble(k, krait_kernel_stream_mark(&cpu->stream, krait_clock_now(k->clock)));
    sum->events += cpu->stream.events;
    sum->bytes += cpu->stream.bytes;
    sum->refused += cpu->stream.refused;
    sum->damaged += cpu->damaged;
    sum->lost += cpu->lost;
    sum->cpus += cpu->lost > 0;
}

void krait_kernel_stop(struct krait_kernel *k)
{
    switch_tracing(k, false);
}

void krait_kernel_finish(struct krait_kernel *k, struct krait_kernel_summary *summary)
{
    struct krait_err err = { 0 };
    *summary =
        (struct krait_kernel_summary){ .events = k->dump_stream.events, .bytes = k->dump_stream.bytes };
    krait_kernel_stop(k);
    for (size_t i = 0; i < k->cpu_count; i++)
        finish_cpu(k, &k->cpus[i], summary);
    if (krait_kernel_tsdl_write(k->dir, &k->classes, k->clock, k->uuid, &err) && !k->trouble.code)
        k->trouble = err;
}
