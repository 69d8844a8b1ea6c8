/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/cut_own.h"

#include "base/outfile.h"
#include "event/payload.h"
#include "trace/gil.h"
#include "trace/import.h"
#include "trace/stack.h"

#include <string.h>

enum { EXTENDED = sizeof(struct krait_event_extended) };

/* ---- before the range ---- */

/* In the long form: the first of a packet has to be, and they are few. */
static void add_event(struct krait_buf *out, uint32_t id, uint64_t ticks, const void *payload, size_t n)
{
    uint8_t head[EXTENDED];
    krait_head_extend(head, id, ticks);
    krait_buf_add(out, head, sizeof(head));
    krait_buf_add(out, payload, n);
}

static void add_frames(struct krait_buf *out, uint64_t ticks, const struct krait_stack_frame *frames,
                       uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id = frames[i].lang == KRAIT_STACK_C ? KRAIT_EVENT_c_call : KRAIT_EVENT_python_call;
        add_event(out, id, ticks, &frames[i].code, sizeof(frames[i].code));
    }
}

/* Of greenlets: each is built up and left under its number, which leaves an empty one. */
static void add_left(struct krait_buf *out, uint64_t ticks, const struct krait_stack *stack)
{
    for (uint32_t i = 0; i < stack->left_cap; i++) {
        const struct krait_payload_python_switch leave = { .from = (uint16_t)i, .to = 0 };
        uint8_t payload[sizeof(leave)];
        if (!stack->left[i].len)
            continue;
        add_frames(out, ticks, stack->left[i].frames, stack->left[i].len);
        add_event(out, KRAIT_EVENT_python_switch, ticks, payload, krait_put_python_switch(payload, &leave));
    }
}

static int add_stack(struct krait_buf *out, const struct krait_trace *trace, uint32_t thread,
                     uint64_t from_ns, uint64_t ticks)
{
    struct krait_stack *stack = calloc(1, sizeof(*stack));
    if (!stack)
        return -ENOMEM;
    int rc = krait_calls_stack_at(trace, thread, from_ns, stack);
    if (!rc) {
        add_left(out, ticks, stack);
        add_frames(out, ticks, stack->frames, stack->len);
    }
    krait_stack_done(stack);
    free(stack);
    return rc;
}

/* Who has the GIL when the range begins, in the wait of a thread: often not who had it when the wait began. 0: nobody, or it is not
 * known. */
static int find_holder(struct krait_cut_then *then, const struct krait_trace *trace, uint32_t thread,
                       const struct krait_gil_wait *wait, uint32_t *holder)
{
    struct krait_gil_part part = { 0 };
    if (!then->gil && krait_gil_holders_new(&then->gil, trace))
        return -ENOMEM;
    bool has = krait_gil_part_next(then->gil, &trace->threads[thread], wait, &part);
    *holder = has && part.state == KRAIT_GIL_HELD ? part.holder : 0;
    return 0;
}

/* A wait for the GIL that goes on. */
static int add_wait(struct krait_buf *out, const struct krait_trace *trace, uint32_t thread, uint64_t from_ns,
                    uint64_t ticks, struct krait_cut_then *then)
{
    KRAIT_CLEANUP(krait_gil_waits_done) struct krait_gil_waits waits = { 0 };
    int rc = krait_gil_waits_read(&waits, trace, thread, (struct krait_range){ from_ns, from_ns + 1 });
    if (rc || !waits.count || waits.items[0].begin_ns != from_ns)
        return rc;
    const struct krait_payload_gil_interpreter of = { .id = waits.items[0].of };
    struct krait_payload_gil_wait wait = { 0 };
    rc = find_holder(then, trace, thread, &waits.items[0], &wait.holder);
    if (rc)
        return rc;
    uint8_t payload[KRAIT_MAX(sizeof(of), sizeof(wait))];
    if (of.id)
        add_event(out, KRAIT_EVENT_gil_interpreter, ticks, payload, krait_put_gil_interpreter(payload, &of));
    add_event(out, KRAIT_EVENT_gil_wait, ticks, payload, krait_put_gil_wait(payload, &wait));
    return 0;
}

static void forget_tasks(struct krait_cut_then *then)
{
    free(then->tasks);
    then->tasks = NULL;
    then->task_count = 0;
}

void krait_cut_then_done(struct krait_cut_then *then)
{
    forget_tasks(then);
    krait_gil_holders_free(then->gil);
    *then = (struct krait_cut_then){ 0 };
}

static int know_tasks(struct krait_cut_then *then, const struct krait_trace *trace, uint32_t process,
                      uint64_t from_ns)
{
    if (then->process == process + 1)
        return 0;
    forget_tasks(then);
    then->process = process + 1;
    return krait_tasks_at(trace, process, from_ns, &then->tasks, &then->task_count);
}

/* Those of a thread that run, or those that do not. */
static void add_tasks(struct krait_buf *out, uint64_t ticks, const struct krait_cut_then *of, uint32_t thread,
                      bool runs)
{
    for (uint32_t i = 0; i < of->task_count; i++) {
        const struct krait_task_then *then = &of->tasks[i];
        const struct krait_payload_task_run run = { .task = then->left.task };
        uint8_t payload[KRAIT_MAX(KRAIT_BYTES_task_leave, KRAIT_BYTES_task_await)];
        if (then->thread != thread || then->runs != runs)
            continue;
        size_t n = runs ? krait_put_task_run(payload, &run) : krait_put_task_leave(payload, &then->left);
        add_event(out, runs ? KRAIT_EVENT_task_run : KRAIT_EVENT_task_leave, ticks, payload, n);
        if (then->awaits.task)
            add_event(out, KRAIT_EVENT_task_await, ticks, payload,
                      krait_put_task_await(payload, &then->awaits));
    }
}

int krait_cut_before(struct krait_buf *events, const struct krait_trace *trace, uint32_t thread,
                     uint64_t from_ns, uint64_t ticks, struct krait_cut_then *then)
{
    int rc = know_tasks(then, trace, trace->threads[thread].process, from_ns);
    if (rc)
        return rc;
    add_tasks(events, ticks, then, thread, false);
    rc = add_stack(events, trace, thread, from_ns, ticks);
    add_tasks(events, ticks, then, thread, true);
    rc = rc ? rc : add_wait(events, trace, thread, from_ns, ticks, then);
    return rc || !events->failed ? rc : -ENOMEM;
}

struct krait_cut_edges krait_cut_edges_of(const struct krait_ctf_trace *trace, struct krait_range range,
                                          krait_copy_time_fn *time)
{
    const struct krait_ctf_clock *clock = trace->metadata->clocks[0];
    bool has_end = range.to_ns != UINT64_MAX;
    uint64_t from = range.from_ns ? krait_ctf_ticks_from(clock, (int64_t)range.from_ns, time) : 0;
    return (struct krait_cut_edges){
        .range = range,
        .before = from ? from - 1 : 0,
        .behind = has_end ? krait_ctf_ticks_from(clock, (int64_t)range.to_ns, time) : UINT64_MAX,
    };
}

/* ---- definitions ---- */

struct definitions {
    const struct krait_trace *trace;
    uint32_t process;
    struct krait_ticks clock; /* a copy: it remembers a second */
    const struct krait_cut_edges *edges;
    struct krait_buf events;
    uint64_t bytes; /* written */
};

static void definitions_done(struct definitions *d)
{
    krait_buf_done(&d->events);
}

static uint64_t clamped(const struct definitions *d, uint64_t ticks)
{
    return KRAIT_MIN(KRAIT_MAX(ticks, d->edges->before), d->edges->behind);
}

/* Behind the range a name belongs to the last thread with its id; one that began there too is not in the part. */
static bool names_thread_of_part(const struct definitions *d, uint32_t tid, uint64_t t_ns)
{
    bool belongs = true;
    for (uint32_t i = 0; t_ns >= d->edges->range.to_ns && i < d->trace->thread_count; i++) {
        const struct krait_thread *thread = &d->trace->threads[i];
        if (thread->process == d->process && thread->tid == tid && thread->begin_ns <= t_ns)
            belongs = thread->begin_ns < d->edges->range.to_ns;
    }
    return belongs;
}

/* What packets' heads count is told by those that are in the part. */
static bool is_counted_by_packets(const struct krait_payload_lost *lost)
{
    return lost->reason == KRAIT_lost_reason_ring_full || lost->reason == KRAIT_lost_reason_disk;
}

static bool is_wanted(const struct definitions *d, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    struct krait_payload_thread_name name;
    struct krait_payload_lost lost;
    if (id == KRAIT_EVENT_thread_name && krait_read_thread_name(&payload, &name))
        return names_thread_of_part(d, name.vtid, t_ns);
    if (id == KRAIT_EVENT_lost && krait_read_lost(&payload, &lost))
        return !is_counted_by_packets(&lost);
    return true;
}

/* An event that is not whole, or not known, ends the packet, as for every reader. */
static void copy_events(struct definitions *d, const struct krait_packet *packet)
{
    struct krait_cursor cursor = { packet->body, packet->end };
    struct krait_event_head head = { .t = packet->head.timestamp_begin };
    while (cursor.at < cursor.end && krait_head_read(&cursor, &head)) {
        struct krait_cursor payload = cursor;
        if (!krait_payload_skip(head.id, &cursor))
            return;
        if (is_wanted(d, head.id, krait_ticks_ns(&d->clock, head.t), payload))
            add_event(&d->events, head.id, clamped(d, head.t), payload.at, (size_t)(cursor.at - payload.at));
    }
}

static void add_packet(struct definitions *d, const struct krait_packet *packet, struct krait_buf *out)
{
    krait_buf_clear(&d->events);
    copy_events(d, packet);
    struct krait_packet_head head = packet->head;
    head.timestamp_begin = clamped(d, head.timestamp_begin);
    head.timestamp_end = clamped(d, head.timestamp_end);
    head.content_size = head.packet_size = (sizeof(head) + d->events.len) * 8;
    krait_buf_add(out, &head, sizeof(head));
    krait_buf_add(out, d->events.data, d->events.len);
    d->bytes += head.packet_size / 8;
}

static int write_definitions(struct definitions *d, struct krait_packets *packets, const char *path,
                             struct krait_err *err)
{
    KRAIT_AUTO_OUTFILE out = KRAIT_OUTFILE_INIT;
    struct krait_damage ignored = { 0 }; /* the trace's own, which says it */
    struct krait_packet packet;
    int rc = krait_outfile_open(&out, path, err);
    while (!rc && krait_packets_next(packets, &packet, &ignored)) {
        add_packet(d, &packet, &out.buf);
        if (d->events.failed)
            return krait_err_set(err, -ENOMEM, "out of memory");
        krait_outfile_spill(&out); /* what fails is told by the commit */
    }
    return rc ? rc : krait_outfile_commit(&out, err);
}

int krait_cut_definitions(struct krait_copied *copied, const struct krait_trace *trace, uint32_t process,
                          const struct krait_cut_edges *edges, const char *dir, struct krait_err *err)
{
    const struct krait_image *image = &krait_recordings_of(trace)->images[process];
    KRAIT_CLEANUP(definitions_done)
    struct definitions d = { .trace = trace, .process = process, .clock = image->clock, .edges = edges };
    KRAIT_AUTO_FREE char *from = NULL, *to = NULL;
    if (asprintf(&from, "%s/" KRAIT_FILE_DEFINITIONS, image->dir) < 0 ||
        asprintf(&to, "%s/" KRAIT_FILE_DEFINITIONS, dir) < 0)
        return krait_err_set(err, -ENOMEM, "out of memory");
    struct krait_packets packets;
    int rc = krait_packets_open(&packets, from, image->uuid, err);
    if (rc)
        return rc == -ENOENT ? 0 : rc; /* the trace says that its functions have no names */
    rc = write_definitions(&d, &packets, to, err);
    krait_packets_close(&packets);
    copied->bytes += d.bytes;
    return rc;
}

/* ---- metadata ---- */

static bool is_entry_of_cut(const char *line)
{
    line += strspn(line, " ");
    return strncmp(line, KRAIT_ENV_CUT_FROM " =", strlen(KRAIT_ENV_CUT_FROM " =")) == 0 ||
           strncmp(line, KRAIT_ENV_CUT_UNTIL " =", strlen(KRAIT_ENV_CUT_UNTIL " =")) == 0;
}

static void add_entries(struct krait_buf *out, struct krait_range range)
{
    if (range.from_ns)
        krait_buf_fmt(out, "    %s = %llu;\n", KRAIT_ENV_CUT_FROM, (unsigned long long)range.from_ns);
    if (range.to_ns != UINT64_MAX)
        krait_buf_fmt(out, "    %s = %llu;\n", KRAIT_ENV_CUT_UNTIL, (unsigned long long)range.to_ns);
}

void krait_cut_metadata(struct krait_buf *out, const char *text, struct krait_range range)
{
    while (*text) {
        const char *end = strchrnul(text, '\n');
        end += *end == '\n';
        bool is_env = strncmp(text, "env {", strlen("env {")) == 0;
        if (!is_entry_of_cut(text))
            krait_buf_add(out, text, (size_t)(end - text));
        if (is_env)
            add_entries(out, range);
        text = end;
    }
}
