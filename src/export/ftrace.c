/* SPDX-License-Identifier: Apache-2.0 */
#include "export/ftrace.h"

#include "export/perfetto_packet.h"
#include "export/proto.h"

#include <string.h>

enum { INFO_UTSNAME = 1, UTSNAME_SYSNAME = 1, UTSNAME_VERSION = 2, UTSNAME_RELEASE = 3 };
enum { TREE_PROCESS = 1, TREE_THREAD = 2 };
enum { PROCESS_PID = 1, PROCESS_CMDLINE = 3, THREAD_TID = 1, THREAD_NAME = 2, THREAD_TGID = 3 };
enum { BUNDLE_CPU = 1, BUNDLE_EVENT = 2 };
enum { EVENT_TIMESTAMP = 1, EVENT_PID = 2, EVENT_SWITCH = 4, EVENT_NEW_TASK = 235, EVENT_RENAME = 236 };
enum {
    SWITCH_PREV = 2,
    SWITCH_PREV_STATE = 4,
    SWITCH_NEXT_COMM = 5,
    SWITCH_NEXT = 6,
    RENAME_PID = 1,
    RENAME_COMM = 3
};
enum { NEW_TASK_PID = 1, NEW_TASK_COMM = 2, NEW_TASK_FLAGS = 3, CLONE_THREAD = 0x10000 }; /* linux/sched.h */

enum {
    MOST_EVENTS = 1024, /* of a bundle */
    MOST_CPUS = 1024,   /* the trace processor takes more for corruption (ftrace_tokenizer.cc) */
    PRIO_LESS = 100,    /* LTTng's priorities are the kernel's less that (lttng-modules, sched.h) */
};

/* -- events -- */

/* Of a kind: which field of FtraceEvent it is, and in that message the field for each of the kind's fields,
 * in their order (trace/kernel/kernel_events.def); 0: it has none. */
struct event_of {
    uint16_t event;
    uint8_t fields[KRAIT_KERNEL_EVENT_FIELDS];
    uint8_t prios; /* bits: fields that are priorities */
};

static const struct event_of events[KRAIT_KERNEL_EVENT_KINDS] = {
    [KRAIT_KERNEL_EVENT_SWITCH] = { EVENT_SWITCH, { 2, 4, 6, 5, 1, 3, 7 }, 1 << 5 | 1 << 6 },
    [KRAIT_KERNEL_EVENT_WAKING] = { 20, { 2, 1, 3, 5 }, 1 << 2 },
    [KRAIT_KERNEL_EVENT_WAKEUP] = { 17, { 2, 1, 3, 5 }, 1 << 2 },
    [KRAIT_KERNEL_EVENT_WAKEUP_NEW] = { 114, { 2, 1, 3, 5 }, 1 << 2 },
    [KRAIT_KERNEL_EVENT_FORK] = { 239, { 4, 0, 2, 3, 1 }, 0 },
    [KRAIT_KERNEL_EVENT_EXEC] = { 237, { 2, 1, 3 }, 0 },
    [KRAIT_KERNEL_EVENT_EXIT] = { 238, { 2, 1, 4 }, 1 << 2 },
    [KRAIT_KERNEL_EVENT_FREE] = { 240, { 2, 1, 3 }, 1 << 2 },
    [KRAIT_KERNEL_EVENT_IRQ_BEGIN] = { 36, { 1, 2 }, 0 },
    [KRAIT_KERNEL_EVENT_IRQ_END] = { 37, { 1, 2 }, 0 },
    [KRAIT_KERNEL_EVENT_SOFTIRQ_BEGIN] = { 24, { 1 }, 0 },
    [KRAIT_KERNEL_EVENT_SOFTIRQ_END] = { 25, { 1 }, 0 },
    [KRAIT_KERNEL_EVENT_FREQUENCY] = { 11, { 1, 2 }, 0 },
    [KRAIT_KERNEL_EVENT_CPU_IDLE] = { 13, { 1, 2 }, 0 },
};

struct cpu {
    struct krait_buf events; /* that are not written yet, each a BUNDLE_EVENT */
    uint32_t count;
    int64_t current; /* the thread that has it, as it is written; -1: nothing was */
};

struct ftrace {
    struct krait_kernel_slices *kernel;
    struct krait_outfile *out;
    uint32_t sequence;
    struct cpu *cpus; /* MOST_CPUS */
    uint64_t from_ns; /* since the epoch, once the walk has begun */
    bool in_range, done;
    int rc;
};

static void flush(struct ftrace *f, uint32_t number)
{
    struct cpu *cpu = &f->cpus[number];
    struct krait_buf *buf = &f->out->buf;
    if (!cpu->count)
        return;
    size_t packet = krait_pb_begin(buf, TRACE_PACKET);
    krait_pb_u64(buf, PACKET_SEQUENCE_ID, f->sequence);
    size_t bundle = krait_pb_begin(buf, PACKET_FTRACE);
    krait_pb_u64(buf, BUNDLE_CPU, number);
    krait_buf_add(buf, cpu->events.data, cpu->events.len);
    krait_pb_end(buf, bundle);
    krait_pb_end(buf, packet);
    buf->failed |= cpu->events.failed;
    krait_buf_clear(&cpu->events);
    cpu->count = 0;
    f->rc = krait_outfile_spill(f->out);
    f->done = f->rc;
}

/* Before the range, what was told of a CPU is not any more. */
static struct cpu *make_way(const struct ftrace *f, struct cpu *cpu)
{
    if (!f->in_range) {
        krait_buf_clear(&cpu->events);
        cpu->count = 0;
    }
    return cpu;
}

/* The CPU that an event is told of; NULL: it is not told. Before the range, the last switch alone is, with
 * its begin: it says who has the CPU then. */
static struct cpu *cpu_for(struct ftrace *f, const struct krait_kernel_event *ev)
{
    static const bool switches[KRAIT_KERNEL_EVENT_KINDS] = { [KRAIT_KERNEL_EVENT_SWITCH] = true,
                                                             [KRAIT_KERNEL_EVENT_RUN] = true,
                                                             [KRAIT_KERNEL_EVENT_LEAVE] = true,
                                                             [KRAIT_KERNEL_EVENT_END] = true };
    if (ev->cpu >= MOST_CPUS || !(f->in_range || switches[ev->cls->kind]))
        return NULL;
    return make_way(f, &f->cpus[ev->cpu]);
}

/* An event up to its own message; returns what ends it. */
static size_t begin_event(const struct ftrace *f, struct cpu *cpu, const struct krait_kernel_event *ev,
                          int64_t pid)
{
    size_t event = krait_pb_begin(&cpu->events, BUNDLE_EVENT);
    krait_pb_u64(&cpu->events, EVENT_TIMESTAMP, (uint64_t)KRAIT_MAX(ev->ns, (int64_t)f->from_ns));
    krait_pb_u64(&cpu->events, EVENT_PID, (uint64_t)pid);
    return event;
}

static void end_event(struct ftrace *f, struct cpu *cpu, const struct krait_kernel_event *ev, size_t event)
{
    krait_pb_end(&cpu->events, event);
    if (++cpu->count == MOST_EVENTS)
        flush(f, ev->cpu);
}

static void add_event_text(struct krait_buf *buf, uint32_t number, const struct krait_kernel_event *ev,
                           unsigned field)
{
    size_t n;
    const char *text = krait_kernel_event_text(ev, field, &n);
    krait_pb_str(buf, number, text, strnlen(text, n));
}

static void add_field(struct krait_buf *buf, const struct krait_kernel_event *ev, const struct event_of *to,
                      unsigned i)
{
    if (krait_kernel_event_is_text(ev, i)) {
        add_event_text(buf, to->fields[i], ev, i);
        return;
    }
    uint64_t number = (uint64_t)krait_kernel_event_int(ev, i);
    krait_pb_u64(buf, to->fields[i], to->prios >> i & 1 ? number + PRIO_LESS : number);
}

/* -- switches that the trace does not have -- */

/* Of a thread that is lost sight of. The trace processor has no state for that, and takes numbers that no kernel
 * has for a loss of data (task_state_invalid): this is TASK_IDLE's of Linux 4.14 and later, where only threads of
 * the kernel's own go. */
enum { STATE_UNKNOWN = 0x80 };

static void write_switch(struct ftrace *f, struct cpu *cpu, const struct krait_kernel_event *ev,
                         int64_t state, int64_t next)
{
    const struct krait_kthread *t =
        next > 0 ? krait_kernel_states_thread(f->kernel->known, (int32_t)next) : NULL;
    int64_t prev = KRAIT_MAX(cpu->current, 0);
    size_t event = begin_event(f, cpu, ev, prev), message = krait_pb_begin(&cpu->events, EVENT_SWITCH);
    krait_pb_u64(&cpu->events, SWITCH_PREV, (uint64_t)prev);
    krait_pb_u64(&cpu->events, SWITCH_PREV_STATE, (uint64_t)state);
    krait_pb_u64(&cpu->events, SWITCH_NEXT, (uint64_t)next);
    if (t && t->name[0])
        krait_pb_cstr(&cpu->events, SWITCH_NEXT_COMM, t->name);
    krait_pb_end(&cpu->events, message);
    end_event(f, cpu, ev, event);
    cpu->current = next;
}

/* An event says who has its CPU: it has had it since then at the latest, and whose the CPU was before, as it is
 * written, is unknown from then on. The trace processor takes a switch away from another thread than it knows for a
 * loss of data (mismatched_sched_switch_tids), and the other for running up to then. */
static void find_on_cpu(struct ftrace *f, const struct krait_kernel_event *ev, int64_t tid)
{
    struct cpu *cpu = ev->cpu < MOST_CPUS ? &f->cpus[ev->cpu] : NULL;
    bool is_first =
        cpu && cpu->current < 0 && ev->cls->kind != KRAIT_KERNEL_EVENT_FOUND; /* it says what came before */
    if (cpu && !is_first && tid >= 0 && tid != KRAIT_MAX(cpu->current, 0))
        write_switch(f, make_way(f, cpu), ev, cpu->current > 0 ? STATE_UNKNOWN : 0, tid);
}

/* Events whose context is of who runs on their CPU, as kernel_states.c has it. */
static void look_who_runs(struct ftrace *f, const struct krait_kernel_event *ev)
{
    static const bool tells[KRAIT_KERNEL_EVENT_KINDS] = {
        [KRAIT_KERNEL_EVENT_CALL_BEGIN] = true, [KRAIT_KERNEL_EVENT_CALL_END] = true,
        [KRAIT_KERNEL_EVENT_IRQ_BEGIN] = true,  [KRAIT_KERNEL_EVENT_IPI_BEGIN] = true,
        [KRAIT_KERNEL_EVENT_IRQ_END] = true,    [KRAIT_KERNEL_EVENT_SOFTIRQ_BEGIN] = true,
        [KRAIT_KERNEL_EVENT_WAKING] = true,     [KRAIT_KERNEL_EVENT_SOFTIRQ_END] = true,
        [KRAIT_KERNEL_EVENT_WAKEUP] = true,     [KRAIT_KERNEL_EVENT_WAKEUP_NEW] = true,
        [KRAIT_KERNEL_EVENT_NET_SEND] = true
    };
    if (ev->cls->kind == KRAIT_KERNEL_EVENT_SWITCH)
        find_on_cpu(f, ev, krait_kernel_event_int(ev, 0));
    else if (tells[ev->cls->kind])
        find_on_cpu(f, ev, krait_kernel_event_tid(ev));
}

static void on_call(void *ctx, const struct krait_kernel_event *ev)
{
    look_who_runs(ctx, ev);
}

static void on_found(void *ctx, const struct krait_kernel_event *ev)
{
    find_on_cpu(ctx, ev, krait_kernel_event_int(ev, 0));
}

/* What the CPU runs now is unknown; there is no word for that but none. */
static void on_lost(void *ctx, const struct krait_kernel_event *ev)
{
    find_on_cpu(ctx, ev, 0);
}

/* -- events as they are -- */

/* The kernel says of a fork twice what the trace has once; the trace processor goes by the other event, task_newtask
 * (ParseTaskNewTask in ftrace_parser.cc), for whether it is a thread or a process, whose, and from when. */
static void add_new_task(struct ftrace *f, struct cpu *cpu, const struct krait_kernel_event *ev, int64_t pid)
{
    bool is_thread = krait_kernel_event_int(ev, 0) != krait_kernel_event_int(ev, 1);
    size_t event = begin_event(f, cpu, ev, pid), message = krait_pb_begin(&cpu->events, EVENT_NEW_TASK);
    krait_pb_u64(&cpu->events, NEW_TASK_PID, (uint64_t)krait_kernel_event_int(ev, 0));
    if (krait_kernel_event_has(ev, 3))
        add_event_text(&cpu->events, NEW_TASK_COMM, ev, 3);
    krait_pb_u64(&cpu->events, NEW_TASK_FLAGS, is_thread ? CLONE_THREAD : 0);
    krait_pb_end(&cpu->events, message);
    end_event(f, cpu, ev, event);
}

/* A thread gets a name: of an event that says it, or that executes a program. By it the trace processor names a
 * process, not by sched_process_exec. */
static void add_rename(struct ftrace *f, struct cpu *cpu, const struct krait_kernel_event *ev, int64_t pid)
{
    enum { MOST = 15 }; /* bytes: TASK_COMM_LEN of include/linux/sched.h */
    size_t n, event = begin_event(f, cpu, ev, pid), message = krait_pb_begin(&cpu->events, EVENT_RENAME);
    const char *text = krait_kernel_event_text(ev, 1, &n);
    n = strnlen(text, n);
    const char *slash = ev->cls->kind == KRAIT_KERNEL_EVENT_EXEC ? memrchr(text, '/', n) : NULL,
               *name = slash ? slash + 1 : text;
    krait_pb_u64(&cpu->events, RENAME_PID, (uint64_t)krait_kernel_event_int(ev, 0));
    krait_pb_str(&cpu->events, RENAME_COMM, name, KRAIT_MIN(n - (size_t)(name - text), (size_t)MOST));
    krait_pb_end(&cpu->events, message);
    end_event(f, cpu, ev, event);
}

/* The thread in which an event of this CPU happened; -1: nobody knows. */
static int64_t thread_in(struct cpu *cpu, const struct krait_kernel_event *ev)
{
    bool switches = ev->cls->kind == KRAIT_KERNEL_EVENT_SWITCH;
    int64_t tid = switches ? krait_kernel_event_int(ev, 0) : krait_kernel_event_tid(ev);
    int64_t pid = tid >= 0 ? tid : cpu->current;
    if (switches)
        cpu->current = krait_kernel_event_int(ev, 2);
    return pid;
}

static void on_event(void *ctx, const struct krait_kernel_event *ev)
{
    struct ftrace *f = ctx;
    const struct event_of *to = &events[ev->cls->kind];
    look_who_runs(f, ev);
    struct cpu *cpu = cpu_for(f, ev);
    if (!cpu || !krait_kernel_event_has(ev, 0))
        return;
    int64_t pid = thread_in(cpu, ev);
    if (pid < 0)
        return;
    if (ev->cls->kind == KRAIT_KERNEL_EVENT_FORK && krait_kernel_event_has(ev, 1))
        add_new_task(f, cpu, ev, pid);
    if (ev->cls->kind == KRAIT_KERNEL_EVENT_EXEC && krait_kernel_event_has(ev, 1))
        add_rename(f, cpu, ev, pid);
    size_t event = begin_event(f, cpu, ev, pid), message = krait_pb_begin(&cpu->events, to->event);
    for (unsigned i = 0; i < KRAIT_KERNEL_EVENT_FIELDS; i++) {
        if (to->fields[i] && krait_kernel_event_has(ev, i))
            add_field(&cpu->events, ev, to, i);
    }
    krait_pb_end(&cpu->events, message);
    end_event(f, cpu, ev, event);
}

/* -- one program's threads, by perf events -- */

static void add_switch(struct ftrace *f, const struct krait_kernel_event *ev, int64_t prev, int64_t state,
                       int64_t next)
{
    if (prev < 0 || next < 0)
        return;
    find_on_cpu(f, ev, prev);
    struct cpu *cpu = cpu_for(f, ev);
    if (cpu && prev > 0)
        cpu->current = prev;
    if (cpu)
        write_switch(f, cpu, ev, state, next);
}

static void on_run(void *ctx, const struct krait_kernel_event *ev)
{
    add_switch(ctx, ev, 0, 0, krait_kernel_event_int(ev, 0));
}

/* TASK_RUNNING or TASK_INTERRUPTIBLE: how a thread sleeps is not told. */
static void on_leave(void *ctx, const struct krait_kernel_event *ev)
{
    add_switch(ctx, ev, krait_kernel_event_int(ev, 0), krait_kernel_event_int(ev, 1) ? 0 : 1, 0);
}

/* EXIT_DEAD (include/linux/sched.h): no switch follows. */
static void on_end(void *ctx, const struct krait_kernel_event *ev)
{
    add_switch(ctx, ev, krait_kernel_event_int(ev, 0), 0x10, 0);
}

static void on_named(void *ctx, const struct krait_kernel_event *ev)
{
    struct ftrace *f = ctx;
    struct cpu *cpu = cpu_for(f, ev);
    if (cpu && krait_kernel_event_tid(ev) >= 0)
        add_rename(f, cpu, ev, krait_kernel_event_tid(ev));
}

/* -- what is known of the machine -- */

static void add_text(struct krait_buf *buf, uint32_t field, const char *text)
{
    if (*text)
        krait_pb_cstr(buf, field, text);
}

static void add_system(struct ftrace *f)
{
    const struct krait_kernel_events *kernel_events = f->kernel->events;
    struct krait_buf *buf = &f->out->buf;
    size_t packet = krait_pb_begin(buf, TRACE_PACKET);
    krait_pb_u64(buf, PACKET_SEQUENCE_ID, f->sequence);
    size_t info = krait_pb_begin(buf, PACKET_SYSTEM_INFO), utsname = krait_pb_begin(buf, INFO_UTSNAME);
    add_text(buf, UTSNAME_SYSNAME, krait_kernel_events_env(kernel_events, "sysname"));
    add_text(buf, UTSNAME_VERSION, krait_kernel_events_env(kernel_events, "kernel_version"));
    add_text(buf, UTSNAME_RELEASE, krait_kernel_events_env(kernel_events, "kernel_release"));
    krait_pb_end(buf, utsname);
    krait_pb_end(buf, info);
    krait_pb_end(buf, packet);
}

static bool has_track(const struct ftrace *f, const uint32_t *pids, int32_t pid)
{
    for (uint32_t i = 0; i < f->kernel->trace->process_count; i++) {
        if (pids[i] == (uint32_t)pid)
            return true;
    }
    return false;
}

/* Its task_newtask is in the range: to be in the tree too would make it two threads. */
static bool is_new(const struct ftrace *f, const struct krait_kthread *t)
{
    return t && t->born_ns > f->kernel->known->origin_ns + (int64_t)f->kernel->from_ns;
}

static void add_processes(struct krait_buf *buf, const struct ftrace *f, const uint32_t *pids)
{
    const struct krait_kernel_states *known = f->kernel->known;
    for (uint32_t i = 0; i < known->process_count; i++) {
        int32_t pid = known->processes[i].pid;
        if (has_track(f, pids, pid) || is_new(f, krait_kernel_states_thread(known, pid)))
            continue;
        size_t process = krait_pb_begin(buf, TREE_PROCESS);
        krait_pb_u64(buf, PROCESS_PID, (uint64_t)pid);
        add_text(buf, PROCESS_CMDLINE, known->processes[i].name);
        krait_pb_end(buf, process);
    }
}

static void add_threads(struct krait_buf *buf, const struct ftrace *f)
{
    const struct krait_kernel_states *known = f->kernel->known;
    for (uint32_t i = 0; i < known->thread_count; i++) {
        const struct krait_kthread *t = known->threads[i];
        if (t->process == KRAIT_NO_ID || is_new(f, t))
            continue;
        size_t thread = krait_pb_begin(buf, TREE_THREAD);
        krait_pb_u64(buf, THREAD_TID, (uint64_t)t->tid);
        add_text(buf, THREAD_NAME, t->name);
        krait_pb_u64(buf, THREAD_TGID, (uint64_t)known->processes[t->process].pid);
        krait_pb_end(buf, thread);
    }
}

static void add_tree(struct ftrace *f, const uint32_t *pids)
{
    struct krait_buf *buf = &f->out->buf;
    size_t packet = krait_pb_begin(buf, TRACE_PACKET);
    krait_pb_u64(buf, PACKET_TIMESTAMP, f->kernel->trace->begin_ns);
    krait_pb_u64(buf, PACKET_SEQUENCE_ID, f->sequence);
    size_t tree = krait_pb_begin(buf, PACKET_PROCESS_TREE);
    add_processes(buf, f, pids);
    add_threads(buf, f);
    krait_pb_end(buf, tree);
    krait_pb_end(buf, packet);
}

/* -- walking -- */

static void on_begin(void *ctx, int64_t ns)
{
    struct ftrace *f = ctx;
    f->from_ns = (uint64_t)ns + f->kernel->from_ns;
}

static void on_from(void *ctx, int64_t ns)
{
    struct ftrace *f = ctx;
    f->in_range = true;
}

static int walk(struct ftrace *f)
{
    struct krait_kernel_event_walk walk = {
        .ctx = f,
        .from_ns = f->kernel->from_ns,
        .until_ns = f->kernel->until_ns,
        .done = &f->done,
        .begin = on_begin,
        .from = on_from,
        .handlers = { [KRAIT_KERNEL_EVENT_FOUND] = on_found,
                      [KRAIT_KERNEL_EVENT_LOST] = on_lost,
                      [KRAIT_KERNEL_EVENT_CALL_BEGIN] = on_call,
                      [KRAIT_KERNEL_EVENT_CALL_END] = on_call,
                      [KRAIT_KERNEL_EVENT_NET_SEND] = on_call,
                      [KRAIT_KERNEL_EVENT_RUN] = on_run,
                      [KRAIT_KERNEL_EVENT_LEAVE] = on_leave,
                      [KRAIT_KERNEL_EVENT_END] = on_end,
                      [KRAIT_KERNEL_EVENT_NAMED] = on_named },
    };
    for (unsigned i = 0; i < KRAIT_KERNEL_EVENT_KINDS; i++) {
        if (events[i].event)
            walk.handlers[i] = on_event;
    }
    int rc = krait_kernel_events_walk(f->kernel->events, &walk);
    for (uint32_t i = 0; !rc && !f->rc && f->in_range && i < MOST_CPUS; i++)
        flush(f, i);
    return rc ? rc : f->rc;
}

int krait_export_ftrace(struct krait_kernel_slices *kernel, const uint32_t *pids, uint32_t sequence,
                        struct krait_outfile *out)
{
    struct ftrace f = { .kernel = kernel, .out = out, .sequence = sequence };
    f.cpus = calloc(MOST_CPUS, sizeof(*f.cpus));
    if (!f.cpus)
        return -ENOMEM;
    for (uint32_t i = 0; i < MOST_CPUS; i++)
        f.cpus[i].current = -1;
    add_system(&f);
    add_tree(&f, pids);
    int rc = walk(&f);
    for (uint32_t i = 0; i < MOST_CPUS; i++)
        krait_buf_done(&f.cpus[i].events);
    free(f.cpus);
    return rc;
}
