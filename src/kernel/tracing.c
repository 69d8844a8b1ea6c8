/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/functions.h"
#include "kernel/kernel_source.h"
#include "kernel/kernel_tsdl.h"
#include "kernel/ringpage.h"
#include "kernel/statedump.h"
#include "kernel/steal.h"
#include "kernel/tracefs.h"
#include "kernel/uprobes.h"

#include <fcntl.h>
#include <string.h>

#define STATEDUMP "statedump_0"
#define OFF       "krait_off"

enum {
    RING_BYTES = 4 * 1024 * 1024,
    PIPE_BYTES = 1024 * 1024,
    PIPES_A_ROUND = 8,
    PAGE_MAX = 64 * 1024, /* the largest page of a ring that tracefs allows is 128 pages; ours are one */
};

struct cpu {
    struct krait_kernel_stream *stream; /* NULL: the CPU is not there */
    int raw;                            /* trace_pipe_raw; -1: not open */
    uint64_t lost;                      /* as its pages told */
    uint64_t damaged;                   /* pages */
};

struct tracing {
    struct krait_kernel kernel;
    struct krait_clock own_clock; /* when the kernel has not the recording's */
    int root, instance;
    int on; /* tracing_on; open, it keeps others from removing the instance */
    int pipe[2];
    struct krait_statedump dump;
    struct krait_kernel_stream dump_stream; /* with steal time too */
    uint16_t steal;                         /* the id of that event */
    int off;                                /* of OFF; -1: not declared */
    uint32_t groups;
    struct cpu *cpus;   /* as many as the kernel has streams */
    const char *tracer; /* of functions; NULL: they are not recorded */
    char *functions;    /* their pattern */
    uint32_t probes;    /* in programs that are set */
    /* While the recording is opened: those of krait_kernel_record_options. Later, NULL: errors are trouble. */
    struct krait_err *functions_note, *probes_note;
    size_t page_bytes;
    uint8_t *pages; /* PIPE_BYTES of them */
    uint64_t flushed_ns;
};

static struct tracing *tracing_of(struct krait_kernel *kernel)
{
    return KRAIT_CONTAINER(kernel, struct tracing, kernel);
}

/* ---- the instance ---- */

/* Cannot fail once it is open, and where it does there is nothing to be done about it. */
static void switch_tracing(const struct tracing *k, bool on)
{
    ssize_t n = write(k->on, on ? "1" : "0", 1);
    (void)n;
}

static int configure(struct tracing *k, const char *file, const char *value, struct krait_err *err)
{
    int rc = krait_tracefs_write(k->instance, file, value);
    return rc ? krait_err_set(err, rc, "the kernel does not take %s for tracing's %s: %s", value, file,
                              strerror(-rc))
              : 0;
}

/* The recording's counter where the kernel can trace with it (x86-tsc), else CLOCK_MONOTONIC for the kernel's
 * part alone: readers join both by the time of day then. */
static int set_clock(struct tracing *k, struct krait_err *err)
{
    if (k->kernel.clock->counter && krait_tracefs_write(k->instance, "trace_clock", "x86-tsc") == 0)
        return 0;
    if (k->kernel.clock->counter) {
        k->own_clock = (struct krait_clock){ .first = k->kernel.clock->first, .freq = KRAIT_NS_PER_S };
        k->own_clock.first.ticks = k->own_clock.first.monotonic_ns;
        k->kernel.clock = &k->own_clock;
    }
    return configure(k, "trace_clock", "mono", err);
}

static int set_up(struct tracing *k, uint64_t ring_bytes, struct krait_err *err)
{
    char kb[32];
    snprintf(kb, sizeof(kb), "%llu", (unsigned long long)(ring_bytes ? ring_bytes : RING_BYTES) / 1024);
    /* Names of tasks for the kernel's own text, kept at each switch under a lock; events have them anyhow. Took 0.6
     * to 0.9 us of 9 from a byte sent to another process and back. A kernel without the option has no such cost. */
    krait_tracefs_write(k->instance, "trace_options", "norecord-cmd");
    /* What is written to the machine's trace_marker comes here too; Linux 6.16 and later. */
    krait_tracefs_write(k->instance, "trace_options", "copy_trace_marker");
    int rc = set_clock(k, err);
    return rc ? rc : configure(k, "buffer_size_kb", kb, err);
}

/* header_page says how large a page of the ring is: "field: char data; offset:16; size:4080; ...". The
 * instance's own: since Linux 6.8 each has its size (buffer_subbuf_size_kb). */
static int learn_page(struct tracing *k, struct krait_err *err)
{
    KRAIT_AUTO_BUF text = { 0 };
    int rc = krait_tracefs_read(k->instance, "events/header_page", &text);
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

static void ring_path(char *path, size_t size, size_t cpu)
{
    snprintf(path, size, "per_cpu/cpu%zu/trace_pipe_raw", cpu);
}

/* Of each CPU that is there. */
static int make_streams(struct tracing *k, struct krait_err *err)
{
    char path[64];
    int rc = 0;
    size_t count = k->kernel.cpu_count;
    k->cpus = calloc(count, sizeof(*k->cpus));
    if (!k->cpus)
        return krait_err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++) {
        ring_path(path, sizeof(path), i);
        bool there = faccessat(k->instance, path, F_OK, 0) == 0 || errno != ENOENT;
        k->cpus[i] = (struct cpu){ .stream = there ? &k->kernel.streams[i] : NULL, .raw = -1 };
        if (!rc && there)
            rc = krait_kernel_make_stream(&k->kernel, i, err);
    }
    return rc;
}

/* Of each stream. An instance whose trace_pipe_raw is open takes no other tracer (EBUSY,
 * tracing_set_tracer in kernel/trace/trace.c): so after start_functions, and what comes meanwhile waits. */
static int open_rings(struct tracing *k, struct krait_err *err)
{
    char path[64];
    for (size_t i = 0; i < k->kernel.cpu_count; i++) {
        if (!k->cpus[i].stream)
            continue;
        ring_path(path, sizeof(path), i);
        k->cpus[i].raw = openat(k->instance, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (k->cpus[i].raw < 0)
            return krait_err_errno(err, "cannot read the kernel's %s", path);
    }
    return 0;
}

static int open_pipe(struct tracing *k, struct krait_err *err)
{
    k->pages = malloc(PIPE_BYTES);
    if (!k->pages)
        return krait_err_set(err, -ENOMEM, "out of memory");
    if (pipe2(k->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
        return krait_err_errno(err, "cannot make a pipe");
    fcntl(k->pipe[1], F_SETPIPE_SZ, PIPE_BYTES); /* fewer pages at a time where that is not allowed */
    return 0;
}

static void read_steal(struct tracing *k)
{
    krait_kernel_note(&k->kernel, krait_steal_write(k->steal, &k->dump_stream, k->kernel.clock));
}

/* Scheduling and the like first, all at one moment; then the dump, so that nobody is missed between them;
 * system calls after it, or the trace would begin with krait's own. */
static int start(struct tracing *k, struct krait_err *err)
{
    const uint32_t syscalls = 1u << KRAIT_KERNEL_SYSCALLS;
    krait_kernel_begin_streams(&k->kernel);
    krait_kernel_note(&k->kernel,
                      krait_kernel_stream_mark(&k->dump_stream, krait_clock_now(k->kernel.clock)));
    switch_tracing(k, false);
    int rc = krait_kernel_enable(k->instance, k->groups & ~syscalls, err);
    switch_tracing(k, true);
    if (rc)
        return rc;
    read_steal(k);
    krait_kernel_note(&k->kernel,
                      krait_statedump_write(&k->dump, &k->kernel.classes, &k->dump_stream, k->kernel.clock));
    rc = krait_kernel_enable(k->instance, k->groups & syscalls, err);
    krait_kernel_note(&k->kernel, krait_statedump_end(&k->dump, &k->dump_stream, k->kernel.clock));
    return rc;
}

static int make_dump_stream(struct tracing *k, struct krait_err *err)
{
    KRAIT_AUTO_FREE char *path = NULL;
    if (asprintf(&path, "%s/" STATEDUMP, k->kernel.dir) < 0)
        return krait_err_set(err, -ENOMEM, "out of memory");
    return krait_kernel_stream_init(&k->dump_stream, path, k->kernel.uuid, 0, 0, err);
}

/* What functions there are, and which tracer follows them. Without them the rest is recorded: why is in
 * options->functions_note. */
static uint32_t find_functions(struct tracing *k, const struct krait_kernel_record_options *options)
{
    struct krait_err *note = options->functions_note;
    if (!options->functions)
        return 0;
    k->tracer = krait_functions_tracer(k->instance, note);
    if (k->tracer && krait_kernel_symbols_load(&k->kernel.classes.symbols, options->functions, note))
        k->tracer = NULL;
    k->functions = k->tracer ? strdup(options->functions) : NULL;
    if (k->tracer && !k->functions) {
        krait_err_set(note, -ENOMEM, "out of memory");
        k->tracer = NULL;
    }
    if (k->tracer && strcmp(k->tracer, "function") == 0)
        krait_err_set(note, -ENOTSUP,
                      "entries alone are recorded, since this kernel has no function_graph in tracing "
                      "instances; newer ones have");
    return k->tracer ? 1u << KRAIT_KERNEL_FUNCTIONS : 0;
}

/* The probes' events and classes. Without them the rest is recorded. */
static void set_probes(struct tracing *k, const struct krait_kernel_record_options *options)
{
    if (!options->probe_count ||
        krait_uprobes_add(k->root, options->probes, options->probe_count, options->probes_note))
        return;
    k->probes = options->probe_count;
    for (uint32_t i = 0; i < k->probes; i++) {
        char path[64];
        krait_uprobe_path(path, sizeof(path), i);
        if (krait_kernel_classes_probe(&k->kernel.classes, k->instance, path, options->probes[i].name))
            krait_err_set(options->probes_note, -ENOMEM, "out of memory");
    }
}

static void start_probes(struct tracing *k, struct krait_err *note)
{
    for (uint32_t i = 0; i < k->probes; i++) {
        char path[64];
        krait_uprobe_path(path, sizeof(path), i);
        krait_kernel_enable_event(k->instance, path, note);
    }
}

static int switch_on(struct krait_kernel *kernel, struct krait_err *err)
{
    struct tracing *k = tracing_of(kernel);
    struct krait_err functions = { 0 }, probes = { 0 };
    int rc = start(k, err);
    if (!rc && k->tracer)
        krait_functions_start(k->instance, k->tracer, k->functions,
                              k->functions_note ? k->functions_note : &functions);
    if (!rc)
        start_probes(k, k->probes_note ? k->probes_note : &probes);
    k->functions_note = k->probes_note = NULL;
    krait_kernel_note_err(kernel, &functions);
    krait_kernel_note_err(kernel, &probes);
    return rc ? rc : open_rings(k, err);
}

static int load(struct tracing *k, const struct krait_kernel_record_options *options, struct krait_err *err)
{
    int rc = krait_kernel_classes_load(&k->kernel.classes, k->instance, k->groups, err);
    if (!rc)
        set_probes(k, options);
    int steal = rc ? 0 : krait_steal_declare(&k->kernel.classes);
    k->steal = (uint16_t)steal;
    if (!rc && (steal < 0 || krait_statedump_declare(&k->dump, &k->kernel.classes)))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    return rc ? rc : krait_kernel_describe(&k->kernel, err);
}

static int open_all(struct tracing *k, const struct krait_kernel_record_options *options,
                    struct krait_err *err)
{
    uint32_t groups = 0;
    int rc = krait_kernel_groups_parse(options->groups, &groups, err);
    if (rc)
        return rc;
    k->groups = groups | 1u << KRAIT_KERNEL_MARKS;
    k->root = krait_tracefs_open(err);
    if (k->root < 0)
        return k->root;
    krait_tracefs_sweep(k->root);
    krait_uprobes_sweep(k->root);
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
        rc = krait_kernel_make_folder(&k->kernel, options->dir, err);
    if (!rc)
        rc = make_streams(k, err);
    k->groups |= find_functions(k, options);
    if (!rc)
        rc = load(k, options, err);
    return rc ? rc : make_dump_stream(k, err);
}

static int open_tracing(struct krait_kernel *kernel, const struct krait_kernel_record_options *options,
                        struct krait_err *err)
{
    struct tracing *k = tracing_of(kernel);
    k->root = k->instance = k->on = k->pipe[0] = k->pipe[1] = k->dump_stream.fd = k->off = -1;
    k->functions_note = options->idle ? NULL : options->functions_note;
    k->probes_note = options->idle ? NULL : options->probes_note;
    return open_all(k, options, err);
}

static void close_rings(struct tracing *k)
{
    for (size_t i = 0; k->cpus && i < k->kernel.cpu_count; i++)
        krait_close_fd(&k->cpus[i].raw);
}

static void close_tracing(struct krait_kernel *kernel, struct krait_err *err)
{
    struct tracing *k = tracing_of(kernel);
    close_rings(k);
    krait_close_fd(&k->pipe[0]);
    krait_close_fd(&k->pipe[1]);
    krait_close_fd(&k->on);
    if (k->instance >= 0) {
        close(k->instance);
        krait_tracefs_remove_instance(k->root, err);
        krait_uprobes_remove(k->root, k->probes); /* the instance had them on */
    }
    krait_close_fd(&k->root);
    krait_kernel_stream_done(&k->dump_stream);
    free(k->cpus);
    free(k->functions);
    free(k->pages);
}

/* ---- pages ---- */

static void take_event(struct tracing *k, struct cpu *cpu, uint64_t time, const uint8_t *event, size_t n)
{
    const struct krait_kernel_class *class = krait_kernel_class_of(&k->kernel.classes, event, n);
    int rc;
    if (!class)
        return;
    if (!class->name[0]) {
        krait_kernel_convert(&k->kernel.classes, class, event, n, NULL);
        return;
    }
    if (KRAIT_UNLIKELY(class->is_mark))
        k->kernel.classes.items[class->id].seen = true;
    uint8_t *to =
        krait_kernel_stream_begin(cpu->stream, class->id, time, krait_kernel_tid(event), class->out_max, &rc);
    krait_kernel_note(&k->kernel, rc);
    if (to)
        krait_kernel_stream_end(cpu->stream, krait_kernel_convert(&k->kernel.classes, class, event, n, to));
}

/* Overwritten so far, as the kernel counts; UINT64_MAX where it does not say. */
static uint64_t overrun(const struct tracing *k, const struct cpu *cpu)
{
    char path[64];
    KRAIT_AUTO_BUF text = { 0 };
    snprintf(path, sizeof(path), "per_cpu/cpu%td/stats", cpu - k->cpus);
    const char *line =
        krait_tracefs_read(k->instance, path, &text) || !text.data ? NULL : strstr(text.data, "overrun:");
    return line ? strtoull(line + strlen("overrun:"), NULL, 10) : UINT64_MAX;
}

/* How many are missing before a page, of those not counted yet. A page has no room for the number when it is
 * full to its end; the kernel's count, which goes on meanwhile, then holds what later pages tell again. Pages
 * with losses are few, also where the ring runs over all the time: about one each time it is emptied. */
static uint64_t lost_before(const struct tracing *k, const struct cpu *cpu, const struct krait_ringpage *page)
{
    uint64_t all = overrun(k, cpu);
    if (all == UINT64_MAX)
        return page->lost == KRAIT_RINGPAGE_LOST_UNKNOWN ? 1 : page->lost;
    return KRAIT_MIN(page->lost, all - KRAIT_MIN(all, cpu->lost));
}

static void take_page(struct tracing *k, struct cpu *cpu, const uint8_t *bytes)
{
    struct krait_ringpage page;
    const uint8_t *event;
    size_t n;
    if (!krait_ringpage_begin(&page, bytes, k->page_bytes)) {
        cpu->damaged++;
        return;
    }
    if (page.lost) {
        page.lost = lost_before(k, cpu, &page);
        cpu->lost += page.lost;
        krait_kernel_note(&k->kernel, krait_kernel_stream_lose(cpu->stream, page.lost));
    }
    while (krait_ringpage_next(&page, &event, &n))
        take_event(k, cpu, page.time, event, n);
    cpu->damaged += page.damaged;
}

/* Reads what is in the pipe: whole pages. Returns how many bytes. */
static size_t take_pipe(struct tracing *k, struct cpu *cpu, size_t bytes)
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

/* How many there is room for, at most a pipe full. */
static size_t pages_to_take(const struct tracing *k)
{
    uint64_t bytes = krait_kernel_may_take(&k->kernel);
    return (size_t)KRAIT_MIN(bytes, (uint64_t)PIPE_BYTES) / k->page_bytes * k->page_bytes;
}

/* tracing_buffers_splice_read (kernel/trace/trace.c) hands out full pages alone. At most `times` pipes full: a CPU
 * that fills its ring as fast as we empty it is not the only one. Returns whether there was more than one. */
static bool take_full_pages(struct tracing *k, struct cpu *cpu, unsigned times)
{
    unsigned taken = 0;
    for (unsigned i = 0; i < times; i++) {
        size_t most = pages_to_take(k);
        ssize_t n =
            most ? splice(cpu->raw, NULL, k->pipe[1], NULL, most, SPLICE_F_NONBLOCK | SPLICE_F_MOVE) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || take_pipe(k, cpu, (size_t)n) == 0)
            break;
        taken++;
    }
    return taken > 1;
}

/* And read() what the open page has as well. Returns whether there was one. */
static bool take_open_page(struct tracing *k, struct cpu *cpu)
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

static bool round_tracing(struct krait_kernel *kernel)
{
    struct tracing *k = tracing_of(kernel);
    bool fast = false;
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
    bool flush = kernel->takes_all || now - k->flushed_ns >= KRAIT_NS_PER_S;
    for (size_t i = 0; i < kernel->cpu_count; i++) {
        if (k->cpus[i].raw < 0)
            continue;
        fast |= take_full_pages(k, &k->cpus[i], PIPES_A_ROUND);
        if (flush && pages_to_take(k))
            take_open_page(k, &k->cpus[i]);
    }
    if (flush) {
        read_steal(k);
        krait_kernel_flush(kernel);
        k->flushed_ns = now;
    }
    return fast;
}

/* ---- switching off, and the end ---- */

static void stop_tracing(struct krait_kernel *kernel)
{
    struct tracing *k = tracing_of(kernel);
    read_steal(k);
    switch_tracing(k, false);
}

static void take_rest(struct tracing *k, struct cpu *cpu)
{
    if (cpu->raw < 0)
        return;
    take_full_pages(k, cpu, UINT32_MAX);
    while (take_open_page(k, cpu))
        ;
}

static void put_off(struct tracing *k, struct krait_kernel_stream *stream, uint64_t time)
{
    const uint32_t off = 1;
    int rc = 0;
    uint8_t *to =
        krait_kernel_stream_begin(stream, (uint16_t)k->off, time, KRAIT_KERNEL_NO_TID, sizeof(off), &rc);
    krait_kernel_note(&k->kernel, rc);
    if (!to)
        return;
    memcpy(to, &off, sizeof(off));
    krait_kernel_stream_end(stream, sizeof(off));
    krait_kernel_note(&k->kernel, krait_kernel_stream_flush(stream));
}

/* An event on each CPU tells readers that nothing is known from here on. Only recordings that were switched off have its class
 * in their metadata. */
static void put_all_off(struct tracing *k)
{
    static const struct krait_kernel_field fields[] = { { "switched_off", KRAIT_KTYPE_U32 } };
    struct krait_err err = { 0 };
    if (k->off < 0)
        k->off = krait_kernel_classes_declare(&k->kernel.classes, OFF, fields, KRAIT_ARRAY_LEN(fields));
    if (k->off < 0) {
        krait_kernel_note(&k->kernel, k->off);
        return;
    }
    krait_kernel_describe(&k->kernel, &err);
    krait_kernel_note_err(&k->kernel, &err);
    uint64_t now = krait_clock_now(k->kernel.clock);
    for (size_t i = 0; i < k->kernel.cpu_count; i++) {
        if (k->cpus[i].stream)
            put_off(k, k->cpus[i].stream, now);
    }
}

/* It is not enough to write 0 to tracing_on: each event would still run until it reads that. */
static void switch_off(struct krait_kernel *kernel)
{
    struct tracing *k = tracing_of(kernel);
    stop_tracing(kernel);
    krait_tracefs_write(k->instance, "events/enable", "0");
    for (size_t i = 0; i < kernel->cpu_count; i++)
        take_rest(k, &k->cpus[i]);
    close_rings(k);
    if (k->tracer)
        krait_tracefs_write(k->instance, "current_tracer", "nop");
    put_all_off(k);
}

static void finish_cpu(struct tracing *k, struct cpu *cpu, struct krait_kernel_summary *sum)
{
    take_rest(k, cpu);
    sum->damaged += cpu->damaged;
    sum->lost += cpu->lost;
    sum->cpus += cpu->lost > 0;
}

static void finish_tracing(struct krait_kernel *kernel, struct krait_kernel_summary *sum)
{
    struct tracing *k = tracing_of(kernel);
    /* To the end of the recording: lttng-analyses take only what is within the times of all streams. */
    krait_kernel_finish_stream(kernel, &k->dump_stream, sum);
    for (size_t i = 0; i < kernel->cpu_count; i++)
        finish_cpu(k, &k->cpus[i], sum);
}

const struct krait_kernel_source krait_kernel_tracing = {
    .tracer = KRAIT_KERNEL_LTTNG,
    .file = STATEDUMP,
    .scope = KRAIT_KERNEL_WHOLE,
    .open = open_tracing,
    .switch_on = switch_on,
    .switch_off = switch_off,
    .round = round_tracing,
    .stop = stop_tracing,
    .finish = finish_tracing,
    .close = close_tracing,
    .size = sizeof(struct tracing),
};
