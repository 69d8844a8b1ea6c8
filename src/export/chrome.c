/* SPDX-License-Identifier: Apache-2.0
 *
 * Chrome's Trace Event Format: a line of JSON for each begin (B) and end (E), streamed thread by thread; readers sort
 * by time. Source: "Trace Event Format", the document by N. Duca and D. Sinclair; what speedscope and Perfetto make
 * of it: an E without its name is refused by speedscope, and times are read as doubles, which cannot hold nanoseconds
 * since the epoch: so they count from the trace's beginning, and that is said in otherData.
 *
 * How a call began other than by a call is a second category, which no reader takes for a part of the name, as
 * speedscope does args. An end has no category: Perfetto takes only the begin's own for it. How it came about other
 * than by a return is its key "end", which is none of the format's: readers leave out what they do not know.
 *
 * Waits for the GIL are asynchronous events (b and e): readers draw them in a row of their own, and they are
 * no calls. Their id is local, or Perfetto takes them out of their process.
 *
 * Marks are instants (i) of their thread. Spans, imports and runs of the garbage collector are asynchronous events of
 * an id for each lane, within which they nest. States of tasks are asynchronous events too, of an id for each task. A
 * counter (C) is its process's. An arrow of krait.flow is a begin (s) and an end (f, to the call around it) of an id of
 * its own, at both ends of it.
 *
 * Of the kernel's part, system calls and functions of the kernel's are complete events (X) in the rows of the
 * threads that made them, written when they are over; what each CPU ran are X events in the rows of a process
 * "CPUs"; what threads waited for are asynchronous events like waits for the GIL.
 */
#include "base/array.h"
#include "base/json.h"
#include "base/json_read.h"
#include "export/formats.h"
#include "trace/importer.h"

#include <string.h>

struct chrome {
    struct krait_export_job *job;
    struct krait_outfile *out;
    struct krait_kernel_slices *kernel; /* NULL: there is nothing of it */
    struct krait_export_texts names, kinds;
    struct krait_export_ids ids;
    struct krait_buf where; /* pid and tid of the thread, ready to write */
    struct krait_buf waits; /* what its waits are called, ready to write */
    bool *has_row;          /* by CPU */
    uint32_t cpus;          /* up to which has_row tells */
    uint32_t arrows;        /* how many are written */
    bool some;              /* an event is written already */
};

static void name_text(struct krait_buf *buf, const struct krait_trace *trace, uint32_t func)
{
    KRAIT_AUTO_BUF label = { 0 };
    krait_export_func_label(&label, &trace->funcs[func]);
    krait_json_str(buf, label.data, label.len);
    buf->failed |= label.failed;
}

static void kind_text(struct krait_buf *buf, const struct krait_trace *trace, uint32_t func)
{
    krait_buf_str(buf, krait_func_kind_name(trace->funcs[func].kind));
}

#define ADD(buf, literal) krait_buf_add(buf, literal, sizeof(literal) - 1)

/* Microseconds with the nanoseconds behind the point. */
static void add_time(struct krait_buf *buf, uint64_t ns)
{
    unsigned rest = (unsigned)(ns % KRAIT_NS_PER_US);
    char fraction[4] = { '.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
                         (char)('0' + rest % 10) };
    krait_json_u64(buf, ns / KRAIT_NS_PER_US);
    krait_buf_add(buf, fraction, sizeof(fraction));
}

static void add_separator(struct chrome *chrome)
{
    krait_buf_str(&chrome->out->buf, chrome->some ? ",\n" : "\n");
    chrome->some = true;
}

/* The beginning of an event, up to its name. */
static void add_phase(struct krait_buf *buf, char phase)
{
    ADD(buf, KRAIT_JSON_FIRST("ph") "\"");
    krait_buf_char(buf, phase);
    ADD(buf, "\"" KRAIT_JSON_NEXT("name"));
}

static void add_category(struct chrome *chrome, uint32_t func, uint8_t kind)
{
    struct krait_buf *buf = &chrome->out->buf;
    ADD(buf, KRAIT_JSON_NEXT("cat") "\"");
    krait_export_text_add(buf, &chrome->kinds, func);
    if (krait_export_ways[kind]) {
        krait_buf_char(buf, ',');
        krait_buf_str(buf, krait_export_ways[kind]);
    }
    krait_buf_char(buf, '"');
}

static void add_exception(struct krait_buf *buf, const char *type)
{
    if (!type)
        return;
    krait_json_key_open(buf, "args", '{');
    krait_json_key_text(buf, "exception", type);
    krait_buf_char(buf, '}');
}

static void add_event(struct chrome *chrome, const struct krait_call_batch *ops, uint32_t i)
{
    uint64_t t_ns = ops->t_ns[i];
    uint32_t func = ops->func[i];
    uint8_t kind = krait_op_shown(ops, i);
    struct krait_buf *buf = &chrome->out->buf;
    add_separator(chrome);
    bool is_end = krait_op_is_end(kind);
    add_phase(buf, is_end ? 'E' : 'B');
    krait_export_text_add(buf, &chrome->names, func);
    if (!is_end)
        add_category(chrome, func, kind);
    else if (krait_export_ways[kind])
        krait_json_key_text(buf, "end", krait_export_ways[kind]);
    if (KRAIT_UNLIKELY(kind == KRAIT_OP_UNWIND))
        add_exception(buf, krait_export_exception(chrome->job->trace, ops, i));
    krait_buf_add(buf, chrome->where.data, chrome->where.len);
    ADD(buf, KRAIT_JSON_NEXT("ts"));
    add_time(buf, krait_export_since_begin(chrome->job, t_ns));
    krait_buf_char(buf, '}');
}

static int add_ops(void *ctx, const struct krait_call_batch *ops)
{
    struct chrome *chrome = ctx;
    for (uint32_t i = 0; i < ops->n; i++) {
        add_event(chrome, ops, i);
        if (krait_outfile_spill(chrome->out))
            return chrome->out->error;
    }
    return 0;
}

static void add_wait_end(struct chrome *chrome, char phase, uint64_t t_ns)
{
    struct krait_buf *buf = &chrome->out->buf;
    add_separator(chrome);
    add_phase(buf, phase);
    krait_buf_add(buf, chrome->waits.data, chrome->waits.len);
    ADD(buf, KRAIT_JSON_NEXT("cat") "\"gil\"");
    krait_buf_add(buf, chrome->where.data, chrome->where.len);
    ADD(buf, KRAIT_JSON_NEXT("ts"));
    add_time(buf, krait_export_since_begin(chrome->job, t_ns));
}

static int add_waits(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct chrome *chrome = ctx;
    struct krait_buf *buf = &chrome->out->buf;
    for (uint32_t i = 0; i < batch->n; i++) {
        add_wait_end(chrome, 'b', batch->t_ns[i]);
        krait_buf_fmt(buf, KRAIT_JSON_NEXT("args") KRAIT_JSON_FIRST("holder") "%u}}",
                      (unsigned)batch->value[i]);
        add_wait_end(chrome, 'e', batch->end_ns[i]);
        krait_buf_char(buf, '}');
        if (krait_outfile_spill(chrome->out))
            return chrome->out->error;
    }
    return 0;
}

static void add_name(struct chrome *chrome, const char *what, uint32_t pid, uint32_t tid, const char *name)
{
    struct krait_buf *buf = &chrome->out->buf;
    add_separator(chrome);
    add_phase(buf, 'M');
    krait_json_cstr(buf, what);
    krait_json_key_u64(buf, "pid", pid);
    krait_json_key_u64(buf, "tid", tid);
    krait_json_key_open(buf, "args", '{');
    krait_json_key_text(buf, "name", name);
    ADD(buf, "}}");
}

static void name_waits(struct chrome *chrome, const char *thread, uint32_t tid)
{
    KRAIT_AUTO_BUF name = { 0 };
    krait_buf_fmt(&name, "%s waits for the GIL", thread);
    krait_buf_clear(&chrome->waits);
    krait_json_str(&chrome->waits, name.data, name.len);
    krait_buf_fmt(&chrome->waits, KRAIT_JSON_NEXT("id2") KRAIT_JSON_FIRST("local") "\"%u\"}", tid);
    chrome->waits.failed |= name.failed;
}

/* -- marks, spans, counters and flows -- */

static uint32_t pid_of(const struct chrome *chrome, uint32_t thread)
{
    return chrome->ids.pids[chrome->job->trace->threads[thread].process];
}

/* An event of a thread's, up to what its kind adds. */
static void add_at(struct chrome *chrome, char phase, const char *name, const char *cat, uint64_t t_ns)
{
    struct krait_buf *buf = &chrome->out->buf;
    add_separator(chrome);
    add_phase(buf, phase);
    krait_json_cstr(buf, name);
    krait_json_key_text(buf, "cat", cat);
    krait_buf_add(buf, chrome->where.data, chrome->where.len);
    ADD(buf, KRAIT_JSON_NEXT("ts"));
    add_time(buf, krait_export_since_begin(chrome->job, t_ns));
}

/* Arguments are the fields where these are an object, else a text of them: one bad field must not break the file. */
static void add_fields(struct krait_buf *buf, const char *fields)
{
    KRAIT_CLEANUP(krait_arena_done) struct krait_arena arena = { 0 };
    struct krait_err ignored = { 0 };
    struct krait_json *json = NULL;
    if (!*fields)
        return;
    krait_json_key(buf, "args");
    if (krait_json_read(&json, &arena, fields, strlen(fields), 0, &ignored) == 0 &&
        json->kind == KRAIT_JSON_OBJECT) {
        krait_buf_str(buf, fields);
        return;
    }
    krait_buf_char(buf, '{');
    krait_json_key_text(buf, "fields", fields);
    krait_buf_char(buf, '}');
}

static int add_marks(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct chrome *chrome = ctx;
    struct krait_buf *buf = &chrome->out->buf;
    for (uint32_t i = 0; i < batch->n; i++) {
        const char *name = krait_track_text(chrome->job->trace, batch->name[i]);
        if (krait_marks_also(track, name))
            continue;
        add_at(chrome, 'i', name, "mark", batch->t_ns[i]);
        krait_json_key_text(buf, "s", track->of == KRAIT_OF_PROCESS ? "p" : "t");
        add_fields(buf, batch->text[i]);
        krait_buf_char(buf, '}');
        if (krait_outfile_spill(chrome->out))
            return chrome->out->error;
    }
    return 0;
}

static void add_span_end(struct chrome *chrome, char phase, const struct krait_track *track, uint32_t name,
                         uint64_t t_ns)
{
    add_at(chrome, phase, krait_track_text(chrome->job->trace, name), "span", t_ns);
    krait_buf_fmt(&chrome->out->buf, KRAIT_JSON_NEXT("id2") KRAIT_JSON_FIRST("local") "\"span %zu\"}",
                  (size_t)(track - chrome->job->trace->tracks));
}

static int add_spans(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct chrome *chrome = ctx;
    struct krait_buf *buf = &chrome->out->buf;
    for (uint32_t i = 0; i < batch->n; i++) {
        add_span_end(chrome, 'b', track, batch->name[i], batch->t_ns[i]);
        if (batch->text)
            add_fields(buf, batch->text[i]);
        krait_buf_char(buf, '}');
        add_span_end(chrome, 'e', track, batch->name[i], batch->end_ns[i]);
        krait_buf_char(buf, '}');
        if (krait_outfile_spill(chrome->out))
            return chrome->out->error;
    }
    return 0;
}

/* `parts` is a power of ten: a counter's values have all their digits. */
static void add_parts(struct krait_buf *buf, int64_t value, uint32_t parts)
{
    uint64_t whole = value < 0 ? -(uint64_t)value : (uint64_t)value;
    int digits = 0;
    for (uint32_t rest = parts; rest >= 10; rest /= 10)
        digits++;
    krait_buf_fmt(buf, "%s%llu", value < 0 ? "-" : "", (unsigned long long)(whole / KRAIT_MAX(parts, 1u)));
    if (digits)
        krait_buf_fmt(buf, ".%0*llu", digits, (unsigned long long)(whole % parts));
}

static int add_values(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct chrome *chrome = ctx;
    struct krait_buf *buf = &chrome->out->buf;
    for (uint32_t i = 0; i < batch->n; i++) {
        add_at(chrome, 'C', track->name, "counter", batch->t_ns[i]);
        krait_json_key_open(buf, "args", '{');
        krait_json_key(buf, "value");
        add_parts(buf, batch->value[i], track->parts);
        ADD(buf, "}}");
        if (krait_outfile_spill(chrome->out))
            return chrome->out->error;
    }
    return 0;
}

static void add_arrow_end(struct chrome *chrome, char phase, uint32_t thread, uint64_t t_ns)
{
    struct krait_buf *buf = &chrome->out->buf;
    add_separator(chrome);
    add_phase(buf, phase);
    ADD(buf, "\"flow\"" KRAIT_JSON_NEXT("cat") "\"flow\"");
    krait_json_key_u64(buf, "id", chrome->arrows);
    krait_json_key_u64(buf, "pid", pid_of(chrome, thread));
    krait_json_key_u64(buf, "tid", chrome->ids.tids[thread]);
    ADD(buf, KRAIT_JSON_NEXT("ts"));
    add_time(buf, krait_export_since_begin(chrome->job, t_ns));
    krait_buf_str(buf, phase == 'f' ? KRAIT_JSON_NEXT("bp") "\"e\"}" : "}");
}

/* Arrows that cross the range's edge have one end only, and are left out. */
static int add_flows(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct chrome *chrome = ctx;
    const struct krait_trace *trace = chrome->job->trace;
    const struct krait_range *range = &chrome->job->what.range;
    for (uint32_t i = 0; i < batch->n; i++) {
        uint32_t to = trace->tracks[batch->to[i]].thread;
        if (batch->t_ns[i] <= range->from_ns || batch->end_ns[i] >= range->to_ns ||
            !krait_export_takes(chrome->job, to))
            continue;
        chrome->arrows++;
        add_arrow_end(chrome, 's', track->thread, batch->t_ns[i]);
        add_arrow_end(chrome, 'f', to, batch->end_ns[i]);
        if (krait_outfile_spill(chrome->out))
            return chrome->out->error;
    }
    return 0;
}

static int add_tracks(struct chrome *chrome, uint32_t thread)
{
    static const struct krait_export_thread_fns fns = {
        .waits = add_waits,
        .spans = add_spans,
        .marks = add_marks,
        .values = add_values,
        .flows = add_flows,
    };
    return krait_export_thread_kinds(chrome->job, thread, &fns, chrome);
}

/* -- states of tasks, like those of threads -- */

static int begin_task(void *ctx, const struct krait_track *track)
{
    return 0; /* each state has the task's name */
}

static void add_task_end(struct chrome *chrome, char phase, const struct krait_track *track, const char *name,
                         uint64_t t_ns)
{
    add_at(chrome, phase, name, "task", t_ns);
    krait_buf_fmt(&chrome->out->buf, KRAIT_JSON_NEXT("id2") KRAIT_JSON_FIRST("local") "\"task %u\"}",
                  track->number);
}

static int add_task_states(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct chrome *chrome = ctx;
    struct krait_buf *buf = &chrome->out->buf;
    for (uint32_t i = 0; i < batch->n; i++) {
        const char *state = krait_track_text(chrome->job->trace, batch->name[i]);
        const char *whom = krait_export_whom(state, batch->value[i]);
        KRAIT_AUTO_BUF name = { 0 };
        krait_buf_fmt(&name, "%s: %s", track->thread_name, state);
        if (name.failed)
            return -ENOMEM;
        add_task_end(chrome, 'b', track, name.data, batch->t_ns[i]);
        if (whom) {
            krait_json_key_open(buf, "args", '{');
            krait_json_key_u64(buf, whom, (uint64_t)batch->value[i]);
            krait_buf_char(buf, '}');
        }
        krait_buf_char(buf, '}');
        add_task_end(chrome, 'e', track, name.data, batch->end_ns[i]);
        krait_buf_char(buf, '}');
        if (krait_outfile_spill(chrome->out))
            return chrome->out->error;
    }
    return 0;
}

static int add_thread(void *ctx, uint32_t index)
{
    struct chrome *chrome = ctx;
    const struct krait_trace *trace = chrome->job->trace;
    const struct krait_thread *thread = &trace->threads[index];
    uint32_t pid = chrome->ids.pids[thread->process], tid = chrome->ids.tids[index];
    add_name(chrome, "process_name", pid, pid, krait_export_process_name(&trace->processes[thread->process]));
    add_name(chrome, "thread_name", pid, tid, krait_export_thread_name(trace, thread));
    krait_buf_clear(&chrome->where);
    krait_buf_fmt(&chrome->where, KRAIT_JSON_NEXT("pid") "%u" KRAIT_JSON_NEXT("tid") "%u", pid, tid);
    name_waits(chrome, krait_export_thread_name(trace, thread), tid);
    if (chrome->where.failed || chrome->waits.failed)
        return -ENOMEM;
    int rc = krait_export_walk(chrome->job, index, add_ops, chrome);
    rc = rc ? rc : add_tracks(chrome, index);
    return rc ? rc : krait_export_tasks(chrome->job, index, begin_task, add_task_states, chrome);
}

/* -- the kernel's part -- */

/* A complete event up to its arguments, behind which a '}' is missing. `name` is text as it is. */
static void add_complete(struct chrome *chrome, const char *name, const char *cat, uint32_t pid, uint32_t tid)
{
    struct krait_buf *buf = &chrome->out->buf;
    add_separator(chrome);
    add_phase(buf, 'X');
    krait_json_cstr(buf, name);
    krait_json_key_text(buf, "cat", cat);
    krait_json_key_u64(buf, "pid", pid);
    krait_json_key_u64(buf, "tid", tid);
}

static void add_span(struct chrome *chrome, uint64_t begin_ns, uint64_t end_ns)
{
    struct krait_buf *buf = &chrome->out->buf;
    ADD(buf, KRAIT_JSON_NEXT("ts"));
    add_time(buf, krait_export_since_begin(chrome->job, begin_ns));
    ADD(buf, KRAIT_JSON_NEXT("dur"));
    add_time(buf, end_ns - begin_ns);
}

static int add_kslice(void *ctx, const struct krait_kernel_slice *slice)
{
    struct chrome *chrome = ctx;
    struct krait_buf *buf = &chrome->out->buf;
    char cat[32];
    snprintf(cat, sizeof(cat), "%s%s%s", slice->is_call ? "syscall" : "kernel", slice->live ? ",live" : "",
             slice->cut ? ",cut" : "");
    add_complete(chrome, chrome->kernel->names.texts[slice->name], cat, pid_of(chrome, slice->place),
                 chrome->ids.tids[slice->place]);
    add_span(chrome, slice->begin_ns, slice->end_ns);
    if (slice->is_call && !slice->cut)
        krait_buf_fmt(buf, KRAIT_JSON_NEXT("args") KRAIT_JSON_FIRST("ret") "%lld}", (long long)slice->ret);
    krait_buf_char(buf, '}');
    return krait_outfile_spill(chrome->out) ? chrome->out->error : 0;
}

/* Rows are numbered from 1: to some readers thread 0 is the idle task. */
static uint32_t row_of(uint32_t cpu)
{
    return cpu + 1;
}

/* A row for each CPU up to this one, of which those that run something are named. */
static int grow_rows(struct chrome *chrome, uint32_t count)
{
    bool any = chrome->cpus > 0;
    if (!KRAIT_GROW_FILLED(chrome->has_row, chrome->cpus, count, 0))
        return -ENOMEM;
    if (!any)
        add_name(chrome, "process_name", chrome->ids.none, row_of(0), "CPUs");
    return 0;
}

static int name_row(struct chrome *chrome, uint32_t cpu)
{
    char name[32];
    int rc = cpu < chrome->cpus ? 0 : grow_rows(chrome, cpu + 1);
    if (rc || chrome->has_row[cpu])
        return rc;
    chrome->has_row[cpu] = true;
    snprintf(name, sizeof(name), "CPU %u", cpu);
    add_name(chrome, "thread_name", chrome->ids.none, row_of(cpu), name);
    return 0;
}

static int add_run(void *ctx, uint32_t cpu, const struct krait_kthread *thread, uint64_t begin_ns,
                   uint64_t end_ns)
{
    struct chrome *chrome = ctx;
    int rc = name_row(chrome, cpu);
    if (rc)
        return rc;
    add_complete(chrome, *thread->name ? thread->name : "thread", "cpu", chrome->ids.none, row_of(cpu));
    add_span(chrome, begin_ns, end_ns);
    krait_buf_fmt(&chrome->out->buf, KRAIT_JSON_NEXT("args") KRAIT_JSON_FIRST("tid") "%d}}",
                  krait_kthread_own_id(thread));
    return krait_outfile_spill(chrome->out) ? chrome->out->error : 0;
}

static void add_state_end(struct chrome *chrome, char phase, const char *name, uint32_t thread, uint64_t t_ns)
{
    struct krait_buf *buf = &chrome->out->buf;
    uint32_t tid = chrome->ids.tids[thread];
    add_separator(chrome);
    add_phase(buf, phase);
    krait_json_cstr(buf, name);
    krait_buf_fmt(
        buf, KRAIT_JSON_NEXT("cat") "\"state\"" KRAIT_JSON_NEXT("id2") KRAIT_JSON_FIRST("local") "\"%u\"}",
        tid);
    krait_json_key_u64(buf, "pid", pid_of(chrome, thread));
    krait_json_key_u64(buf, "tid", tid);
    ADD(buf, KRAIT_JSON_NEXT("ts"));
    add_time(buf, krait_export_since_begin(chrome->job, t_ns));
}

static int add_state(void *ctx, uint32_t thread, const struct krait_kchange *change,
                     const struct krait_kthread *by)
{
    static const char *const titles[KRAIT_TS_COUNT] = {
#define X(name, text, title, drop) title,
        KRAIT_THREAD_STATES(X)
#undef X
    };
    struct chrome *chrome = ctx;
    struct krait_buf *buf = &chrome->out->buf;
    const struct krait_trace *trace = chrome->job->trace;
    KRAIT_AUTO_BUF name = { 0 };
    krait_buf_fmt(&name, "%s: %s", krait_export_thread_name(trace, &trace->threads[thread]),
                  titles[change->was]);
    if (name.failed)
        return -ENOMEM;
    add_state_end(chrome, 'b', name.data, thread, (uint64_t)change->since_ns);
    if (by)
        krait_buf_fmt(buf, KRAIT_JSON_NEXT("args") KRAIT_JSON_FIRST("by") "%d}", krait_kthread_own_id(by));
    krait_buf_char(buf, '}');
    add_state_end(chrome, 'e', name.data, thread, (uint64_t)change->ns);
    krait_buf_char(buf, '}');
    return krait_outfile_spill(chrome->out) ? chrome->out->error : 0;
}

static int add_kernel(struct chrome *chrome)
{
    const struct krait_kernel_sink sink = {
        .ctx = chrome, .end = add_kslice, .ran = add_run, .waited = add_state
    };
    return chrome->kernel ? krait_kernel_slices_walk(chrome->kernel, &sink) : 0;
}

/* -- lanes that analyses made: rows of a process of their own -- */

static int begin_lane(void *ctx, const struct krait_track *track)
{
    struct chrome *chrome = ctx;
    uint32_t pid = chrome->ids.lanes, tid = track->key + 1;
    KRAIT_AUTO_BUF name = { 0 };
    krait_export_lane_name(&name, track);
    if (track->key == 0)
        add_name(chrome, "process_name", pid, tid, "Declared lanes");
    if (!name.failed)
        add_name(chrome, "thread_name", pid, tid, name.data);
    krait_buf_clear(&chrome->where);
    krait_buf_fmt(&chrome->where, KRAIT_JSON_NEXT("pid") "%u" KRAIT_JSON_NEXT("tid") "%u", pid, tid);
    return chrome->where.failed || name.failed ? -ENOMEM : 0;
}

static int add_lane_slices(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct chrome *chrome = ctx;
    for (uint32_t i = 0; i < batch->n; i++) {
        add_complete(chrome, krait_track_text(chrome->job->trace, batch->name[i]), "lane", chrome->ids.lanes,
                     track->key + 1);
        add_span(chrome, batch->t_ns[i], batch->end_ns[i]);
        krait_buf_char(&chrome->out->buf, '}');
        if (krait_outfile_spill(chrome->out))
            return chrome->out->error;
    }
    return 0;
}

static int add_lanes(struct chrome *chrome)
{
    static const struct krait_export_kind kinds[] = { { KRAIT_TRACK_SLICES, NULL, add_lane_slices },
                                                      { KRAIT_TRACK_STATES, NULL, add_lane_slices },
                                                      { KRAIT_TRACK_COUNTER, NULL, add_values } };
    return krait_export_lanes(chrome->job, begin_lane, kinds, KRAIT_ARRAY_LEN(kinds), chrome);
}

/* -- all of it -- */

/* A number that a double may not hold, as text. */
static void add_digits(struct krait_buf *buf, const char *key, uint64_t n)
{
    krait_json_key(buf, key);
    krait_buf_fmt(buf, "\"%llu\"", (unsigned long long)n);
}

static void add_head(struct chrome *chrome)
{
    struct krait_buf *buf = &chrome->out->buf;
    krait_buf_char(buf, '{');
    krait_json_key_text(buf, "displayTimeUnit", "ns");
    krait_json_key_open(buf, "otherData", '{');
    krait_json_key_text(buf, "exporter", "krait " KRAIT_VERSION);
    add_digits(buf, "begin_ns", chrome->job->zero_ns);
    if (!chrome->job->no_kernel && krait_trace_kernel_lost(chrome->job->trace))
        add_digits(buf, "kernel_lost", krait_trace_kernel_lost(chrome->job->trace));
    krait_buf_char(buf, '}');
    krait_json_key_open(buf, "traceEvents", '[');
}

static int write_all(struct chrome *chrome, struct krait_err *err)
{
    struct krait_buf *buf = &chrome->out->buf;
    add_head(chrome);
    int rc = krait_export_each_thread(chrome->job, add_thread, chrome);
    rc = rc ? rc : add_kernel(chrome);
    rc = rc ? rc : add_lanes(chrome);
    ADD(buf, "\n]}\n");
    return rc ? krait_err_set(err, rc, "cannot read the calls") : 0;
}

int krait_export_write_chrome(struct krait_export_job *job, struct krait_outfile *out, struct krait_err *err)
{
    struct chrome chrome = { .job = job, .out = out };
    int rc = krait_export_kernel_new(&chrome.kernel, job, err);
    if (!rc)
        rc = krait_export_texts_init(&chrome.names, job->trace, name_text, err);
    if (!rc)
        rc = krait_export_texts_init(&chrome.kinds, job->trace, kind_text, err);
    if (!rc)
        rc = krait_export_ids_init(&chrome.ids, job->trace, NULL, err);
    if (!rc)
        rc = write_all(&chrome, err);
    krait_export_texts_done(&chrome.names);
    krait_export_texts_done(&chrome.kinds);
    krait_export_ids_done(&chrome.ids);
    krait_kernel_slices_free(chrome.kernel);
    free(chrome.has_row);
    krait_buf_done(&chrome.where);
    krait_buf_done(&chrome.waits);
    return rc;
}
