/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait states` of samples: what they tell of threads, where the kernel was not recorded.
 */
#include "base/json.h"
#include "cmd/ending.h"
#include "cmd/states.h"
#include "cmd/within.h"
#include "trace/sample_runs.h"

#include <string.h>

struct row {
    uint64_t id, pid, threads;
    uint64_t ns[KRAIT_SAMPLE_UNKNOWN + 1];
    const char *process, *thread;
};

#define OF(member) krait_sheet_number_at, offsetof(struct row, member)
#define NS(title, key, flags, is)                                  \
    {                                                              \
        { title, 0, 0, 0 }, key, KRAIT_SHEET_NS, flags, OF(ns[is]) \
    }
#define ID(title, member)                                            \
    {                                                                \
        { title, 0, 0, 0 }, title, KRAIT_SHEET_NUMBER, 0, OF(member) \
    }
#define NAME(title, key, min, member)                                                          \
    {                                                                                          \
        { title, KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, min, 0 }, key, KRAIT_SHEET_NAME, 0, \
            krait_sheet_name_at, offsetof(struct row, member)                                  \
    }
#define STATES                                                               \
    NS("on CPU", "on_cpu_ns", KRAIT_SHEET_DASH, KRAIT_SAMPLE_RUNS),          \
        NS("GIL", "gil_ns", KRAIT_SHEET_DASH, KRAIT_SAMPLE_GIL),             \
        NS("blocked", "blocked_ns", KRAIT_SHEET_DASH, KRAIT_SAMPLE_BLOCKED), \
        NS("unknown", "unknown_ns", KRAIT_SHEET_DASH | KRAIT_SHEET_QUIET, KRAIT_SAMPLE_UNKNOWN)

static const struct krait_sheet_column thread_columns[] = {
    ID("tid", id),
    STATES,
    ID("pid", pid),
    NAME("process", "process", 8, process),
    NAME("thread", "name", 12, thread),
};

static const struct krait_sheet_column process_columns[] = {
    ID("pid", pid),
    STATES,
    { { "threads", 0, 0, 0 }, "threads", KRAIT_SHEET_COUNT, 0, OF(threads) },
    NAME("process", "name", 12, process),
};

#undef STATES
#undef NAME
#undef ID
#undef NS
#undef OF

static int add_times(struct row *row, struct states *s, uint32_t thread, struct krait_range range)
{
    const struct krait_ranges *parts = &s->options->select.parts;
    bool some;
    KRAIT_CLEANUP(krait_sample_runs_done)
    struct krait_sample_runs runs = { .damage = { s->damage.text, sizeof(s->damage.text) } };
    int rc = krait_sample_runs_read(&runs, s->trace, thread, range);
    range.to_ns = KRAIT_MIN(range.to_ns, s->trace->threads[thread].end_ns);
    for (uint32_t i = 0; i < runs.count && !rc; i++) {
        uint64_t from_ns = KRAIT_MAX(runs.items[i].begin_ns, range.from_ns);
        uint64_t to_ns = KRAIT_MIN(runs.items[i + 1].begin_ns, range.to_ns);
        row->ns[runs.items[i].is] += to_ns > from_ns ? krait_ranges_overlap(parts, from_ns, to_ns, &some) : 0;
    }
    return rc;
}

/* A row for each chosen thread, or for its process: those of one lie one after the other. */
static int fill(struct states *s, struct krait_sheet *sheet, bool by_thread, struct krait_range range)
{
    const struct krait_trace *trace = s->trace;
    struct row row = { 0 };
    int rc = 0;
    for (uint32_t i = 0; i < trace->thread_count && !rc; i++) {
        const struct krait_thread *thread = &trace->threads[i];
        const struct krait_process *process = &trace->processes[thread->process];
        bool is_last = by_thread || i + 1 == trace->thread_count || thread[1].process != thread->process;
        if (krait_select_thread((void *)&s->options->select, trace, i)) {
            row.threads++;
            row.id = thread->tid;
            row.thread = thread->name;
            row.pid = process->pid;
            row.process = process->name;
            rc = add_times(&row, s, i, range);
        }
        if (!is_last)
            continue;
        if (row.threads)
            krait_sheet_add(sheet, &row);
        row = (struct row){ 0 };
    }
    return rc;
}

static int add_sheet(struct states *s, const struct states_view *view, struct krait_range range,
                     struct krait_err *err)
{
    bool by_thread = strcmp(view->by, "thread") == 0;
    KRAIT_CLEANUP(krait_sheet_done)
    struct krait_sheet sheet = { .columns = by_thread ? thread_columns : process_columns,
                                 .column_count = by_thread ? KRAIT_ARRAY_LEN(thread_columns)
                                                           : KRAIT_ARRAY_LEN(process_columns) };
    int rc = fill(s, &sheet, by_thread, range);
    if (rc || sheet.failed)
        return krait_err_set(err, -ENOMEM, "out of memory");
    rc = krait_sheet_sort(&sheet, s->options->sort ? s->options->sort : "on_cpu_ns", err);
    return rc ? rc : krait_states_put(s, view, &sheet);
}

static void close_json(struct states *s)
{
    uint64_t lost = 0;
    for (uint32_t i = 0; i < s->trace->lost_count; i++)
        lost += s->trace->lost[i].count;
    krait_json_lost_events(&s->out, lost);
    krait_json_key_text_or_null(&s->out, "damage", s->damage.text);
    krait_buf_str(&s->out, "}\n");
}

static void note_state(struct states *s, struct krait_range range)
{
    if (!s->options->csv && !s->options->json)
        krait_buf_str(&s->notes,
                      "the states are those of samples: on CPU is running or ready for a CPU; samples do "
                      "not tell what blocked threads wait for\n");
    krait_ending_notes(&s->notes, s->trace, range, s->damage.text, "");
}

int krait_states_sampled(struct states *s, struct krait_err *err)
{
    struct krait_select *select = (void *)&s->options->select;
    select->sums_parts = true;
    int rc = krait_within(select, s->trace, "states", err);
    rc = rc ? rc : krait_select_some(select, s->trace, err);
    struct krait_range range = krait_select_range(select, s->trace);
    s->zero_ns = (int64_t)krait_trace_zero(s->trace);
    snprintf(s->damage.text, sizeof(s->damage.text), "%s", s->trace->damage);
    if (!rc && s->only && s->only->of != OF_THREADS)
        rc = krait_err_set(err, -ENODATA,
                           "--by %s: samples tell what threads and processes did; record with --kernel",
                           s->only->by);
    if (!rc && s->only && s->only->where == ALONE)
        rc = krait_err_set(err, -ENODATA, "--by %s is of the kernel's events; record with --kernel",
                           s->only->by);
    if (!rc && s->options->all)
        rc = krait_err_set(err, -ENODATA,
                           "--all: samples are of the recorded programs alone; record with --kernel");
    if (s->options->json && !rc) {
        krait_buf_char(&s->out, '{');
        krait_json_key_u64(&s->out, "begin_ns", (uint64_t)s->zero_ns);
        krait_json_key_bool(&s->out, "sampled_states", true);
    }
    for (const struct states_view *view = krait_states_views; view->by && !rc; view++) {
        if (view->of == OF_THREADS && view->where == IN_ALL && (!s->only || s->only == view))
            rc = add_sheet(s, view, range, err);
    }
    if (s->options->json && !rc)
        close_json(s);
    note_state(s, range);
    return rc || !s->out.failed ? rc : krait_err_set(err, -ENOMEM, "out of memory");
}
