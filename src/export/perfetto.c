/* SPDX-License-Identifier: Apache-2.0
 *
 * Perfetto's protobuf: a Trace is a row of TracePackets (field 1). Each thread is a packet sequence of its own:
 *
 *   clock snapshot      once: says that the trace's times are nanoseconds since the epoch
 *   track descriptor    of each process
 *   track descriptor    of the thread: SEQ_INCREMENTAL_STATE_CLEARED; its track is what follows' default
 *   track event         SLICE_BEGIN {name, category, source location} or SLICE_END, with its time
 *
 * Names and locations are interned: said once a sequence, in the first packet that uses them.
 *
 * How a call began or ended other than by call and return is a debug annotation, "begin" or "end", and the type of the
 * exception that it was left by another, "exception". Waits for the GIL are slices of a track of their own below the
 * thread's, where it has any; "holder" is who had the GIL.
 *
 * Marks are instants of their thread's track, or of a track for each stream of another tracer's; what they say is an
 * annotation, "fields". Those of krait.flow are of the flow of their id, between which Perfetto draws arrows. Links of
 * OpenTelemetry's spans are two instants and a flow each. Spans, imports and runs of the garbage collector are slices of
 * tracks below the thread's, those of a task of tracks below one of the task's, which is below the thread's; counters are
 * tracks of theirs. States of tasks are slices of a track for each, below one of the process's. Lanes that analyses made
 * are tracks below one of theirs.
 *
 * Of the kernel's part, ftrace.h writes what Perfetto knows as the kernel's events, in one sequence. System
 * calls, and functions of the kernel's, are slices of the threads' tracks, in another sequence: as sys_enter
 * they would need the numbers by which Perfetto names them, which traces do not hold. Threads and processes
 * then have the kernel's numbers, so that its events are of them.
 *
 * Times are absolute and in the trace's default clock: the trace processor sorts packets by them. Its default
 * is BOOTTIME; the snapshot sets REALTIME equal to it, so that the wall-clock times shown are right.
 * Descriptors have times too, their process' and thread's begins: without one they count as of what is before
 * them in the file, where the kernel's events have ended the thread, and would name another of its number.
 *
 * Source: the protos of the package perfetto 0.59 (trace_packet, track_event, track_descriptor,
 * interned_data, clock_snapshot), and "Synthetic Track Event" in Perfetto's documentation.
 */
#include "event/event.h"
#include "event/works.h"
#include "export/formats.h"
#include "export/ftrace.h"
#include "export/perfetto_packet.h"
#include "export/proto.h"
#include "trace/flows.h"
#include "trace/importer.h"
#include "trace/lanes.h"

#include <string.h>

enum { SEQ_CLEARED = 1, SEQ_NEEDS_STATE = 2 };
enum { SNAPSHOT_CLOCK = 1, CLOCK_ID = 1, CLOCK_TIMESTAMP = 2, REALTIME = 1, BOOTTIME = 6 };
enum { DEFAULTS_TRACK_EVENT = 11, EVENT_DEFAULTS_TRACK = 11 };
enum { PROCESS_PID = 1, PROCESS_CMDLINE = 2, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };

/* Interned with the thread's descriptor: categories by enum krait_func_kind, annotations by enum
 * krait_op_kind; iids are the index + 1, as 0 is not one. */
enum { OF_GIL = KRAIT_FUNC_C + 1, OF_SYSCALL, OF_KERNEL, OF_NATIVE };
static const uint8_t category_of[] = {
    [KRAIT_FUNC_PYTHON] = KRAIT_FUNC_PYTHON, [KRAIT_FUNC_C] = KRAIT_FUNC_C, [KRAIT_FUNC_NATIVE] = OF_NATIVE
};
static const char *const categories[] = {
    [KRAIT_FUNC_PYTHON] = "python", [KRAIT_FUNC_C] = "c",   [OF_GIL] = "gil",
    [OF_SYSCALL] = "syscall",       [OF_KERNEL] = "kernel", [OF_NATIVE] = "native"
};
enum { KEY_BEGIN, KEY_END, KEY_HOLDER, KEY_RET, KEY_EXCEPTION };
static const char *const keys[] = {
    [KEY_BEGIN] = "begin",         [KEY_END] = "end", [KEY_HOLDER] = "holder", [KEY_RET] = "ret",
    [KEY_EXCEPTION] = "exception",
};

struct perfetto {
    struct krait_export_job *job;
    struct krait_outfile *out;
    struct krait_kernel_slices *kernel; /* NULL: there is nothing of it */
    struct krait_export_ids ids;
    struct krait_export_texts names;
    uint32_t sequence;
    uint32_t *said_in;                   /* by function: the sequence in which it was interned last */
    bool *has_track, *has_tasks;         /* by process: it, or that of its tasks, is described */
    const struct krait_track *described; /* the last that has a track of its own; or NULL */
    uint32_t waiting;                    /* the thread that has a track of waits; else KRAIT_NO_ID */
    uint32_t thread;                     /* that is written */
    uint32_t named;                      /* of the kernel's names: how many are interned */
    uint64_t links;                      /* that are written */
};

static uint64_t process_track(uint32_t process)
{
    return (uint64_t)process + 1;
}

static uint64_t thread_track(const struct krait_trace *trace, uint32_t thread)
{
    return (uint64_t)trace->process_count + thread + 1;
}

static uint64_t waits_track(const struct krait_trace *trace, uint32_t thread)
{
    return thread_track(trace, trace->thread_count) + thread;
}

static void name_text(struct krait_buf *buf, const struct krait_trace *trace, uint32_t func)
{
    KRAIT_AUTO_BUF label = { 0 };
    krait_export_func_label(&label, &trace->funcs[func]);
    krait_pb_str(buf, INTERNED_STRING, label.data, label.len);
    buf->failed |= label.failed;
}

static void add_clock(struct krait_buf *buf, uint32_t id, uint64_t ns)
{
    size_t clock = krait_pb_begin(buf, SNAPSHOT_CLOCK);
    krait_pb_u64(buf, CLOCK_ID, id);
    krait_pb_u64(buf, CLOCK_TIMESTAMP, ns);
    krait_pb_end(buf, clock);
}

static void add_clocks(struct krait_buf *buf, uint64_t ns, uint32_t sequence)
{
    size_t packet = krait_pb_begin(buf, TRACE_PACKET);
    krait_pb_u64(buf, PACKET_TIMESTAMP, ns);
    size_t snapshot = krait_pb_begin(buf, PACKET_CLOCK_SNAPSHOT);
    add_clock(buf, BOOTTIME, ns);
    add_clock(buf, REALTIME, ns);
    krait_pb_end(buf, snapshot);
    krait_pb_u64(buf, PACKET_SEQUENCE_ID, sequence);
    krait_pb_end(buf, packet);
}

static void add_process(struct perfetto *perfetto, uint32_t index)
{
    const struct krait_process *process = &perfetto->job->trace->processes[index];
    struct krait_buf *buf = &perfetto->out->buf;
    size_t packet = krait_pb_begin(buf, TRACE_PACKET);
    krait_pb_u64(buf, PACKET_TIMESTAMP, process->begin_ns);
    krait_pb_u64(buf, PACKET_SEQUENCE_ID, perfetto->sequence);
    size_t track = krait_pb_begin(buf, PACKET_TRACK_DESCRIPTOR);
    krait_pb_u64(buf, TRACK_UUID, process_track(index));
    size_t descriptor = krait_pb_begin(buf, TRACK_PROCESS);
    krait_pb_u64(buf, PROCESS_PID, perfetto->ids.pids[index]);
    if (*process->command)
        krait_pb_cstr(buf, PROCESS_CMDLINE, process->command);
    krait_pb_cstr(buf, PROCESS_NAME, krait_export_process_name(process));
    krait_pb_end(buf, descriptor);
    krait_pb_end(buf, track);
    krait_pb_end(buf, packet);
}

static void add_thread_track(struct perfetto *perfetto, uint32_t index)
{
    const struct krait_trace *trace = perfetto->job->trace;
    const struct krait_thread *thread = &trace->threads[index];
    struct krait_buf *buf = &perfetto->out->buf;
    size_t track = krait_pb_begin(buf, PACKET_TRACK_DESCRIPTOR);
    krait_pb_u64(buf, TRACK_UUID, thread_track(trace, index));
    krait_pb_u64(buf, TRACK_PARENT, process_track(thread->process));
    size_t descriptor = krait_pb_begin(buf, TRACK_THREAD);
    krait_pb_u64(buf, THREAD_PID, perfetto->ids.pids[thread->process]);
    krait_pb_u64(buf, THREAD_TID, perfetto->ids.tids[index]);
    krait_pb_cstr(buf, THREAD_NAME, krait_export_thread_name(trace, thread));
    krait_pb_end(buf, descriptor);
    krait_pb_end(buf, track);
}

/* How many of the categories a trace has: the last is of few. */
static size_t categories_of(const struct krait_trace *trace)
{
    for (uint32_t i = 0; i < trace->func_count; i++) {
        if (trace->funcs[i].kind == KRAIT_FUNC_NATIVE)
            return OF_NATIVE + 1;
    }
    return OF_NATIVE;
}

/* Interned from `texts`, which may have holes. */
static void intern_list(struct krait_buf *buf, uint32_t field, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!texts[i])
            continue;
        size_t entry = krait_pb_begin(buf, field);
        krait_pb_u64(buf, IID, i + 1);
        krait_pb_cstr(buf, INTERNED_STRING, texts[i]);
        krait_pb_end(buf, entry);
    }
}

static void next_sequence(struct perfetto *perfetto)
{
    if (++perfetto->sequence == 1)
        add_clocks(&perfetto->out->buf, perfetto->job->trace->begin_ns, perfetto->sequence);
}

/* The packet that a sequence begins with; returns what ends it. */
static size_t begin_sequence(struct perfetto *perfetto)
{
    struct krait_buf *buf = &perfetto->out->buf;
    size_t packet = krait_pb_begin(buf, TRACE_PACKET);
    krait_pb_u64(buf, PACKET_SEQUENCE_ID, perfetto->sequence);
    krait_pb_u64(buf, PACKET_SEQUENCE_FLAGS, SEQ_CLEARED);
    size_t interned = krait_pb_begin(buf, PACKET_INTERNED_DATA);
    intern_list(buf, INTERNED_CATEGORY, categories, categories_of(perfetto->job->trace));
    intern_list(buf, INTERNED_KEY, keys, KRAIT_ARRAY_LEN(keys));
    intern_list(buf, INTERNED_TEXT, krait_export_ways, KRAIT_ARRAY_LEN(krait_export_ways));
    krait_pb_end(buf, interned);
    return packet;
}

static void add_sequence_start(struct perfetto *perfetto, uint32_t index)
{
    struct krait_buf *buf = &perfetto->out->buf;
    size_t packet = begin_sequence(perfetto);
    size_t defaults = krait_pb_begin(buf, PACKET_DEFAULTS);
    size_t event = krait_pb_begin(buf, DEFAULTS_TRACK_EVENT);
    krait_pb_u64(buf, EVENT_DEFAULTS_TRACK, thread_track(perfetto->job->trace, index));
    krait_pb_end(buf, event);
    krait_pb_end(buf, defaults);
    krait_pb_u64(buf, PACKET_TIMESTAMP, perfetto->job->trace->threads[index].begin_ns);
    add_thread_track(perfetto, index);
    krait_pb_end(buf, packet);
}

static void intern_func(struct perfetto *perfetto, uint32_t id)
{
    const struct krait_func *func = &perfetto->job->trace->funcs[id];
    struct krait_buf *buf = &perfetto->out->buf;
    size_t interned = krait_pb_begin(buf, PACKET_INTERNED_DATA);
    size_t name = krait_pb_begin(buf, INTERNED_NAME);
    krait_pb_u64(buf, IID, (uint64_t)id + 1);
    krait_export_text_add(buf, &perfetto->names, id);
    krait_pb_end(buf, name);
    if (*func->file) {
        size_t location = krait_pb_begin(buf, INTERNED_LOCATION);
        krait_pb_u64(buf, IID, (uint64_t)id + 1);
        krait_pb_cstr(buf, LOCATION_FILE, func->file);
        krait_pb_u64(buf, LOCATION_LINE, func->line);
        krait_pb_end(buf, location);
    }
    krait_pb_end(buf, interned);
    perfetto->said_in[id] = perfetto->sequence;
}

static void add_way(struct krait_buf *buf, uint8_t kind)
{
    if (!krait_export_ways[kind])
        return;
    size_t annotation = krait_pb_begin(buf, EVENT_ANNOTATION);
    krait_pb_u64(buf, ANNOTATION_NAME, (krait_op_is_end(kind) ? KEY_END : KEY_BEGIN) + 1);
    krait_pb_u64(buf, ANNOTATION_TEXT, (uint64_t)kind + 1);
    krait_pb_end(buf, annotation);
}

static void add_begin(struct perfetto *perfetto, uint32_t id, uint8_t kind)
{
    const struct krait_func *func = &perfetto->job->trace->funcs[id];
    struct krait_buf *buf = &perfetto->out->buf;
    if (perfetto->said_in[id] != perfetto->sequence)
        intern_func(perfetto, id);
    size_t event = krait_pb_begin(buf, PACKET_TRACK_EVENT);
    krait_pb_u64(buf, EVENT_TYPE, SLICE_BEGIN);
    krait_pb_u64(buf, EVENT_NAME, (uint64_t)id + 1);
    krait_pb_u64(buf, EVENT_CATEGORY, (uint64_t)category_of[func->kind] + 1);
    if (*func->file)
        krait_pb_u64(buf, EVENT_LOCATION, (uint64_t)id + 1);
    add_way(buf, kind);
    krait_pb_end(buf, event);
}

/* The type of the exception that a call was left by, where that is known. */
static void add_exception(struct krait_buf *buf, const char *type)
{
    size_t annotation = krait_pb_begin(buf, EVENT_ANNOTATION);
    krait_pb_u64(buf, ANNOTATION_NAME, KEY_EXCEPTION + 1);
    krait_pb_cstr(buf, ANNOTATION_STRING, type);
    krait_pb_end(buf, annotation);
}

static void add_end(struct krait_buf *buf, uint8_t kind, const char *exception)
{
    size_t event = krait_pb_begin(buf, PACKET_TRACK_EVENT);
    krait_pb_u64(buf, EVENT_TYPE, SLICE_END);
    add_way(buf, kind);
    if (exception)
        add_exception(buf, exception);
    krait_pb_end(buf, event);
}

static int add_ops(void *ctx, const struct krait_call_batch *ops)
{
    struct perfetto *perfetto = ctx;
    struct krait_buf *buf = &perfetto->out->buf;
    for (uint32_t i = 0; i < ops->n; i++) {
        size_t packet = krait_pb_begin(buf, TRACE_PACKET);
        krait_pb_u64(buf, PACKET_TIMESTAMP, ops->t_ns[i]);
        krait_pb_u64(buf, PACKET_SEQUENCE_ID, perfetto->sequence);
        krait_pb_u64(buf, PACKET_SEQUENCE_FLAGS, SEQ_NEEDS_STATE);
        if (krait_op_is_end(ops->kind[i]))
            add_end(buf, krait_op_shown(ops, i), krait_export_exception(perfetto->job->trace, ops, i));
        else
            add_begin(perfetto, ops->func[i], krait_op_shown(ops, i));
        krait_pb_end(buf, packet);
        if (krait_outfile_spill(perfetto->out))
            return perfetto->out->error;
    }
    return 0;
}

/* A packet that is not closed yet, with an event of a track of its own in it. */
struct open_event {
    size_t packet, event;
};

static struct open_event begin_event(struct perfetto *perfetto, uint64_t type, uint64_t t_ns, uint64_t track)
{
    struct krait_buf *buf = &perfetto->out->buf;
    struct open_event open = { .packet = krait_pb_begin(buf, TRACE_PACKET) };
    krait_pb_u64(buf, PACKET_TIMESTAMP, t_ns);
    krait_pb_u64(buf, PACKET_SEQUENCE_ID, perfetto->sequence);
    krait_pb_u64(buf, PACKET_SEQUENCE_FLAGS, SEQ_NEEDS_STATE);
    open.event = krait_pb_begin(buf, PACKET_TRACK_EVENT);
    krait_pb_u64(buf, EVENT_TYPE, type);
    krait_pb_u64(buf, EVENT_TRACK, track);
    return open;
}

static void end_event(struct perfetto *perfetto, struct open_event open)
{
    krait_pb_end(&perfetto->out->buf, open.event);
    krait_pb_end(&perfetto->out->buf, open.packet);
}

static void add_waits_track(struct perfetto *perfetto)
{
    const struct krait_trace *trace = perfetto->job->trace;
    struct krait_buf *buf = &perfetto->out->buf;
    size_t packet = krait_pb_begin(buf, TRACE_PACKET);
    krait_pb_u64(buf, PACKET_SEQUENCE_ID, perfetto->sequence);
    size_t track = krait_pb_begin(buf, PACKET_TRACK_DESCRIPTOR);
    krait_pb_u64(buf, TRACK_UUID, waits_track(trace, perfetto->thread));
    krait_pb_cstr(buf, TRACK_NAME, "GIL");
    krait_pb_u64(buf, TRACK_PARENT, thread_track(trace, perfetto->thread));
    krait_pb_end(buf, track);
    krait_pb_end(buf, packet);
    perfetto->waiting = perfetto->thread;
}

static void add_wait_end(struct perfetto *perfetto, uint64_t type, uint64_t t_ns, uint32_t holder)
{
    struct krait_buf *buf = &perfetto->out->buf;
    struct open_event open =
        begin_event(perfetto, type, t_ns, waits_track(perfetto->job->trace, perfetto->thread));
    if (type == SLICE_BEGIN) {
        krait_pb_u64(buf, EVENT_CATEGORY, OF_GIL + 1);
        krait_pb_cstr(buf, EVENT_NAME_TEXT, "waits for the GIL");
        size_t annotation = krait_pb_begin(buf, EVENT_ANNOTATION);
        krait_pb_u64(buf, ANNOTATION_NAME, KEY_HOLDER + 1);
        krait_pb_u64(buf, ANNOTATION_NUMBER, holder);
        krait_pb_end(buf, annotation);
    }
    end_event(perfetto, open);
}

static int add_waits(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct perfetto *perfetto = ctx;
    if (perfetto->waiting != perfetto->thread)
        add_waits_track(perfetto);
    for (uint32_t i = 0; i < batch->n; i++) {
        add_wait_end(perfetto, SLICE_BEGIN, batch->t_ns[i], (uint32_t)batch->value[i]);
        add_wait_end(perfetto, SLICE_END, batch->end_ns[i], 0);
        if (krait_outfile_spill(perfetto->out))
            return perfetto->out->error;
    }
    return 0;
}

/* -- marks, spans and counters -- */

static uint64_t own_track(const struct krait_trace *trace, const struct krait_track *track)
{
    return waits_track(trace, trace->thread_count) + (uint64_t)(track - trace->tracks);
}

/* What all lanes stand below. */
static uint64_t lanes_track(const struct krait_trace *trace)
{
    return own_track(trace, trace->tracks + trace->track_count);
}

static void add_descriptor(struct perfetto *perfetto, const char *name, uint64_t uuid, uint64_t parent,
                           bool is_counter)
{
    struct krait_buf *buf = &perfetto->out->buf;
    size_t packet = krait_pb_begin(buf, TRACE_PACKET);
    krait_pb_u64(buf, PACKET_SEQUENCE_ID, perfetto->sequence);
    size_t descriptor = krait_pb_begin(buf, PACKET_TRACK_DESCRIPTOR);
    krait_pb_u64(buf, TRACK_UUID, uuid);
    krait_pb_cstr(buf, TRACK_NAME, name);
    if (parent)
        krait_pb_u64(buf, TRACK_PARENT, parent);
    if (is_counter)
        krait_pb_end(buf, krait_pb_begin(buf, TRACK_COUNTER));
    krait_pb_end(buf, descriptor);
    krait_pb_end(buf, packet);
}

static bool is_same_task(const struct krait_track *a, const struct krait_track *b)
{
    return a->of == KRAIT_OF_TASK && b->of == KRAIT_OF_TASK && a->process == b->process &&
           a->number == b->number && a->thread == b->thread;
}

/* What a task's spans in a thread stand below: adjacent tracks, of which the first is the number. */
static uint64_t task_track(const struct krait_trace *trace, const struct krait_track *track)
{
    const struct krait_track *first = track;
    while (first > trace->tracks && is_same_task(first - 1, track))
        first--;
    return lanes_track(trace) + 1 + (uint64_t)(first - trace->tracks);
}

static uint64_t parent_of(const struct krait_trace *trace, const struct krait_track *track)
{
    return track->of == KRAIT_OF_TASK      ? task_track(trace, track)
           : track->of == KRAIT_OF_PROCESS ? process_track(track->process)
           : track->thread != KRAIT_NO_ID  ? thread_track(trace, track->thread)
                                           : 0;
}

static void describe(struct perfetto *perfetto, const struct krait_track *track)
{
    const struct krait_trace *trace = perfetto->job->trace;
    if (perfetto->described == track)
        return;
    if (track->of == KRAIT_OF_TASK)
        add_descriptor(perfetto, track->thread_name, task_track(trace, track),
                       thread_track(trace, track->thread), false);
    add_descriptor(perfetto, track->name, own_track(trace, track), parent_of(trace, track),
                   track->kind == KRAIT_TRACK_COUNTER);
    perfetto->described = track;
}

static void add_fields(struct krait_buf *buf, const char *text)
{
    if (!*text)
        return;
    size_t annotation = krait_pb_begin(buf, EVENT_ANNOTATION);
    krait_pb_cstr(buf, ANNOTATION_NAME_TEXT, "fields");
    krait_pb_cstr(buf, ANNOTATION_STRING, text);
    krait_pb_end(buf, annotation);
}

static void add_number(struct krait_buf *buf, const char *key, uint64_t number)
{
    size_t annotation = krait_pb_begin(buf, EVENT_ANNOTATION);
    krait_pb_cstr(buf, ANNOTATION_NAME_TEXT, key);
    krait_pb_u64(buf, ANNOTATION_NUMBER, number);
    krait_pb_end(buf, annotation);
}

/* Of a thread on its track, of a stream on one of its own. */
static uint64_t marks_track(const struct krait_trace *trace, const struct krait_track *track)
{
    return track->thread != KRAIT_NO_ID ? thread_track(trace, track->thread) : own_track(trace, track);
}

/* `{ id = 7 }` of krait.flow, or of work for executors: Perfetto draws arrows between events of the same flow. */
static void add_flow(struct krait_buf *buf, const char *name, const char *text,
                     const struct krait_trace *trace, uint32_t process)
{
    static const char lead[] = "{ id = ";
    bool is_users = strcmp(name, krait_event_find(KRAIT_EVENT_user_flow)->name) == 0;
    if ((!is_users && strncmp(name, "work:", strlen("work:")) != 0) || strncmp(text, lead, strlen(lead)) != 0)
        return;
    uint64_t id = strtoull(text + strlen(lead), NULL, 10);
    krait_pb_fixed64(buf, EVENT_FLOW,
                     is_users ? id : krait_work_key(trace->processes[process].host, process, id));
}

static void add_mark(struct perfetto *perfetto, const struct krait_track *track, uint64_t t_ns,
                     const char *name, const char *text)
{
    struct krait_buf *buf = &perfetto->out->buf;
    struct open_event open = begin_event(perfetto, INSTANT, t_ns, marks_track(perfetto->job->trace, track));
    krait_pb_cstr(buf, EVENT_CATEGORY_TEXT, "mark");
    krait_pb_cstr(buf, EVENT_NAME_TEXT, name);
    if (track->importer == KRAIT_IMPORTER_krait_marks)
        add_flow(buf, name, text, perfetto->job->trace, track->process);
    add_fields(buf, text);
    end_event(perfetto, open);
}

static int add_marks(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct perfetto *perfetto = ctx;
    if (track->thread == KRAIT_NO_ID)
        describe(perfetto, track);
    for (uint32_t i = 0; i < batch->n; i++) {
        const char *name = krait_track_text(perfetto->job->trace, batch->name[i]);
        if (!krait_marks_also(track, name))
            add_mark(perfetto, track, batch->t_ns[i], name, batch->text[i]);
        if (krait_outfile_spill(perfetto->out))
            return perfetto->out->error;
    }
    return 0;
}

static int add_spans(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct perfetto *perfetto = ctx;
    struct krait_buf *buf = &perfetto->out->buf;
    uint64_t uuid = own_track(perfetto->job->trace, track);
    describe(perfetto, track);
    for (uint32_t i = 0; i < batch->n; i++) {
        struct open_event open = begin_event(perfetto, SLICE_BEGIN, batch->t_ns[i], uuid);
        krait_pb_cstr(buf, EVENT_CATEGORY_TEXT, "span");
        krait_pb_cstr(buf, EVENT_NAME_TEXT, krait_track_text(perfetto->job->trace, batch->name[i]));
        if (batch->text)
            add_fields(buf, batch->text[i]);
        end_event(perfetto, open);
        end_event(perfetto, begin_event(perfetto, SLICE_END, batch->end_ns[i], uuid));
        if (krait_outfile_spill(perfetto->out))
            return perfetto->out->error;
    }
    return 0;
}

static int add_values(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct perfetto *perfetto = ctx;
    describe(perfetto, track);
    for (uint32_t i = 0; i < batch->n; i++) {
        double value = (double)batch->value[i] / KRAIT_MAX(track->parts, 1u);
        uint64_t bits;
        memcpy(&bits, &value, sizeof(bits));
        struct open_event open =
            begin_event(perfetto, COUNTER, batch->t_ns[i], own_track(perfetto->job->trace, track));
        krait_pb_fixed64(&perfetto->out->buf, EVENT_DOUBLE_VALUE, bits);
        end_event(perfetto, open);
        if (krait_outfile_spill(perfetto->out))
            return perfetto->out->error;
    }
    return 0;
}

static void add_link_end(struct perfetto *perfetto, uint32_t thread, uint64_t t_ns, uint64_t flow)
{
    struct krait_buf *buf = &perfetto->out->buf;
    struct open_event open = begin_event(perfetto, INSTANT, t_ns, thread_track(perfetto->job->trace, thread));
    krait_pb_cstr(buf, EVENT_CATEGORY_TEXT, "mark");
    krait_pb_cstr(buf, EVENT_NAME_TEXT, KRAIT_FLOW_LINK_NAME);
    krait_pb_fixed64(buf, EVENT_FLOW, flow);
    end_event(perfetto, open);
}

/* Each is a flow of its own: Perfetto draws those of one id from place to place, but links all lead from the same one. */
static int add_links(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct perfetto *perfetto = ctx;
    const struct krait_trace *trace = perfetto->job->trace;
    const struct krait_range *range = &perfetto->job->what.range;
    for (uint32_t i = 0; i < batch->n; i++) {
        uint32_t to = trace->tracks[batch->to[i]].thread;
        if (strcmp(krait_track_text(trace, batch->name[i]), KRAIT_FLOW_LINK_NAME) != 0 ||
            batch->t_ns[i] <= range->from_ns || batch->end_ns[i] >= range->to_ns ||
            !krait_export_takes(perfetto->job, to))
            continue;
        uint64_t flow = krait_hash_u64(++perfetto->links << 32); /* the program's own are small */
        add_link_end(perfetto, track->thread, batch->t_ns[i], flow);
        add_link_end(perfetto, to, batch->end_ns[i], flow);
        if (krait_outfile_spill(perfetto->out))
            return perfetto->out->error;
    }
    return 0;
}

static int add_tracks(struct perfetto *perfetto, uint32_t index)
{
    static const struct krait_export_thread_fns fns = {
        .waits = add_waits,
        .spans = add_spans,
        .marks = add_marks,
        .values = add_values,
        .flows = add_links,
    };
    return krait_export_thread_kinds(perfetto->job, index, &fns, perfetto);
}

/* Of streams that are no thread's, in a sequence of their own. */
static int add_groups(struct perfetto *perfetto)
{
    const struct krait_trace *trace = perfetto->job->trace;
    bool some = false;
    for (uint32_t i = 0; i < trace->track_count; i++)
        some |= trace->tracks[i].thread == KRAIT_NO_ID && trace->tracks[i].of != KRAIT_OF_PROCESS &&
                trace->tracks[i].kind == KRAIT_TRACK_INSTANTS;
    if (!some)
        return 0;
    next_sequence(perfetto);
    krait_pb_end(&perfetto->out->buf, begin_sequence(perfetto));
    return krait_export_tracks(perfetto->job, KRAIT_NO_ID, KRAIT_TRACK_INSTANTS, NULL, add_marks, perfetto);
}

static int begin_lane(void *ctx, const struct krait_track *track)
{
    struct perfetto *perfetto = ctx;
    const struct krait_trace *trace = perfetto->job->trace;
    KRAIT_AUTO_BUF name = { 0 };
    krait_export_lane_name(&name, track);
    if (!name.failed)
        add_descriptor(perfetto, name.data, own_track(trace, track), lanes_track(trace),
                       track->kind == KRAIT_TRACK_COUNTER);
    perfetto->described = track;
    return name.failed ? -ENOMEM : 0;
}

/* Lanes that analyses made, in a sequence of their own. States are slices. */
static int add_lanes(struct perfetto *perfetto)
{
    static const struct krait_export_kind kinds[] = { { KRAIT_TRACK_SLICES, NULL, add_spans },
                                                      { KRAIT_TRACK_STATES, NULL, add_spans },
                                                      { KRAIT_TRACK_COUNTER, NULL, add_values } };
    const struct krait_trace *trace = perfetto->job->trace;
    if (krait_trace_recorded_tracks(trace) == trace->track_count)
        return 0;
    next_sequence(perfetto);
    krait_pb_end(&perfetto->out->buf, begin_sequence(perfetto));
    add_descriptor(perfetto, "Declared lanes", lanes_track(trace), 0, false);
    return krait_export_lanes(perfetto->job, begin_lane, kinds, KRAIT_ARRAY_LEN(kinds), perfetto);
}

/* -- states of tasks: slices of a track for each, which stand below one of their process's -- */

static uint64_t tasks_track(const struct krait_trace *trace, uint32_t process)
{
    return lanes_track(trace) + 1 + trace->track_count + process;
}

static int begin_task(void *ctx, const struct krait_track *track)
{
    struct perfetto *perfetto = ctx;
    const struct krait_trace *trace = perfetto->job->trace;
    uint64_t parent = tasks_track(trace, track->process);
    if (!perfetto->has_tasks[track->process])
        add_descriptor(perfetto, "Tasks", parent, process_track(track->process), false);
    perfetto->has_tasks[track->process] = true;
    add_descriptor(perfetto, track->thread_name, own_track(trace, track), parent, false);
    return krait_outfile_spill(perfetto->out) ? perfetto->out->error : 0;
}

static int add_task_states(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct perfetto *perfetto = ctx;
    struct krait_buf *buf = &perfetto->out->buf;
    uint64_t uuid = own_track(perfetto->job->trace, track);
    for (uint32_t i = 0; i < batch->n; i++) {
        const char *state = krait_track_text(perfetto->job->trace, batch->name[i]);
        const char *whom = krait_export_whom(state, batch->value[i]);
        struct open_event open = begin_event(perfetto, SLICE_BEGIN, batch->t_ns[i], uuid);
        krait_pb_cstr(buf, EVENT_CATEGORY_TEXT, "task");
        krait_pb_cstr(buf, EVENT_NAME_TEXT, state);
        if (whom)
            add_number(buf, whom, (uint64_t)batch->value[i]);
        end_event(perfetto, open);
        end_event(perfetto, begin_event(perfetto, SLICE_END, batch->end_ns[i], uuid));
        if (krait_outfile_spill(perfetto->out))
            return perfetto->out->error;
    }
    return 0;
}

static int add_thread(void *ctx, uint32_t index)
{
    struct perfetto *perfetto = ctx;
    uint32_t process = perfetto->job->trace->threads[index].process;
    perfetto->thread = index;
    next_sequence(perfetto);
    if (!perfetto->has_track[process])
        add_process(perfetto, process);
    perfetto->has_track[process] = true;
    add_sequence_start(perfetto, index);
    int rc = krait_export_walk(perfetto->job, index, add_ops, perfetto);
    rc = rc ? rc : add_tracks(perfetto, index);
    return rc ? rc : krait_export_tasks(perfetto->job, index, begin_task, add_task_states, perfetto);
}

/* -- the kernel's part -- */

/* A packet up to its event; returns what ends it. */
static size_t begin_kernel_packet(struct perfetto *perfetto, uint64_t t_ns)
{
    struct krait_buf *buf = &perfetto->out->buf;
    size_t packet = krait_pb_begin(buf, TRACE_PACKET);
    krait_pb_u64(buf, PACKET_TIMESTAMP, t_ns);
    krait_pb_u64(buf, PACKET_SEQUENCE_ID, perfetto->sequence);
    krait_pb_u64(buf, PACKET_SEQUENCE_FLAGS, SEQ_NEEDS_STATE);
    return packet;
}

static void intern_kernel_name(struct perfetto *perfetto, uint32_t name)
{
    struct krait_buf *buf = &perfetto->out->buf;
    size_t interned = krait_pb_begin(buf, PACKET_INTERNED_DATA);
    size_t entry = krait_pb_begin(buf, INTERNED_NAME);
    krait_pb_u64(buf, IID, (uint64_t)name + 1);
    krait_pb_cstr(buf, INTERNED_STRING, perfetto->kernel->names.texts[name]);
    krait_pb_end(buf, entry);
    krait_pb_end(buf, interned);
    perfetto->named = name + 1;
}

static int add_kernel_begin(void *ctx, const struct krait_kernel_slice *slice)
{
    struct perfetto *perfetto = ctx;
    struct krait_buf *buf = &perfetto->out->buf;
    size_t packet = begin_kernel_packet(perfetto, slice->begin_ns);
    if (slice->name >= perfetto->named)
        intern_kernel_name(perfetto, slice->name);
    size_t event = krait_pb_begin(buf, PACKET_TRACK_EVENT);
    krait_pb_u64(buf, EVENT_TYPE, SLICE_BEGIN);
    krait_pb_u64(buf, EVENT_TRACK, thread_track(perfetto->job->trace, slice->place));
    krait_pb_u64(buf, EVENT_NAME, (uint64_t)slice->name + 1);
    krait_pb_u64(buf, EVENT_CATEGORY, (slice->is_call ? OF_SYSCALL : OF_KERNEL) + 1);
    if (slice->live)
        add_way(buf, KRAIT_OP_LIVE);
    krait_pb_end(buf, event);
    krait_pb_end(buf, packet);
    return krait_outfile_spill(perfetto->out) ? perfetto->out->error : 0;
}

static int add_kernel_end(void *ctx, const struct krait_kernel_slice *slice)
{
    struct perfetto *perfetto = ctx;
    struct krait_buf *buf = &perfetto->out->buf;
    size_t packet = begin_kernel_packet(perfetto, slice->end_ns);
    size_t event = krait_pb_begin(buf, PACKET_TRACK_EVENT);
    krait_pb_u64(buf, EVENT_TYPE, SLICE_END);
    krait_pb_u64(buf, EVENT_TRACK, thread_track(perfetto->job->trace, slice->place));
    if (slice->cut)
        add_way(buf, KRAIT_OP_CUT);
    else if (slice->is_call) {
        size_t annotation = krait_pb_begin(buf, EVENT_ANNOTATION);
        krait_pb_u64(buf, ANNOTATION_NAME, KEY_RET + 1);
        krait_pb_u64(buf, ANNOTATION_SIGNED, (uint64_t)slice->ret);
        krait_pb_end(buf, annotation);
    }
    krait_pb_end(buf, event);
    krait_pb_end(buf, packet);
    return krait_outfile_spill(perfetto->out) ? perfetto->out->error : 0;
}

static int add_kernel(struct perfetto *perfetto)
{
    const struct krait_kernel_sink sink = { .ctx = perfetto,
                                            .begin = add_kernel_begin,
                                            .end = add_kernel_end };
    if (!perfetto->kernel)
        return 0;
    next_sequence(perfetto);
    krait_pb_end(&perfetto->out->buf, begin_sequence(perfetto));
    int rc = krait_kernel_slices_walk(perfetto->kernel, &sink);
    return rc ? rc
              : krait_export_ftrace(perfetto->kernel, perfetto->ids.pids, ++perfetto->sequence,
                                    perfetto->out);
}

static int write_all(struct perfetto *perfetto, struct krait_err *err)
{
    const struct krait_trace *trace = perfetto->job->trace;
    perfetto->said_in = calloc((size_t)trace->func_count + 1, sizeof(*perfetto->said_in));
    perfetto->has_track = calloc((size_t)trace->process_count + 1, sizeof(*perfetto->has_track));
    perfetto->has_tasks = calloc((size_t)trace->process_count + 1, sizeof(*perfetto->has_tasks));
    if (!perfetto->said_in || !perfetto->has_track || !perfetto->has_tasks)
        return krait_err_set(err, -ENOMEM, "out of memory for %u functions", trace->func_count);
    int rc = krait_export_each_thread(perfetto->job, add_thread, perfetto);
    rc = rc ? rc : add_groups(perfetto);
    rc = rc ? rc : add_lanes(perfetto);
    rc = rc ? rc : add_kernel(perfetto);
    return rc ? krait_err_set(err, rc, "cannot read the calls") : 0;
}

int krait_export_write_perfetto(struct krait_export_job *job, struct krait_outfile *out,
                                struct krait_err *err)
{
    struct perfetto perfetto = { .job = job, .out = out, .waiting = KRAIT_NO_ID };
    int rc = krait_export_kernel_new(&perfetto.kernel, job, err);
    if (!rc)
        rc = krait_export_texts_init(&perfetto.names, job->trace, name_text, err);
    if (!rc)
        rc = krait_export_ids_init(&perfetto.ids, job->trace, perfetto.kernel, err);
    if (!rc)
        rc = write_all(&perfetto, err);
    krait_export_texts_done(&perfetto.names);
    krait_export_ids_done(&perfetto.ids);
    krait_kernel_slices_free(perfetto.kernel);
    free(perfetto.said_in);
    free(perfetto.has_track);
    free(perfetto.has_tasks);
    return rc;
}
