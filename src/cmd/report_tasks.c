/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report --by task`: how long the tasks of asyncio and trio, and greenlets, ran, and what they waited for. Tasks that nobody
 * named are one row by their coroutine.
 */
#include "base/array.h"
#include "base/fmt.h"
#include "cmd/report.h"
#include "cmd/sheet.h"
#include "trace/flows.h"
#include "trace/tasks.h"
#include "trace/track.h"

#include <string.h>

struct row {
    uint64_t tasks, steps, longest_ns, waited_ns;
    uint64_t ns[KRAIT_TASK_STATES];
    const struct krait_func *func; /* of its coroutine; NULL: it never began */
    const char *name, *coroutine, *file;
    uint64_t line;
};

struct tasks {
    struct report *report;
    struct krait_strtab groups; /* what makes a row; its ids are their indices */
    struct krait_arena arena;
    struct row *rows;
    uint32_t count, cap;
    uint32_t *row_of; /* by index in trace->tasks */
    bool *is_counted; /* the same: it did something in the range */
};

static void tasks_done(struct tasks *tasks)
{
    krait_strtab_done(&tasks->groups);
    krait_arena_done(&tasks->arena);
    free(tasks->rows);
    free(tasks->row_of);
    free(tasks->is_counted);
}

/* -- columns -- */

#define STATE(title, key, state, flags, drop)                                     \
    {                                                                             \
        { title, 0, 0, drop }, key, KRAIT_SHEET_NS, flags, krait_sheet_number_at, \
            offsetof(struct row, ns[state])                                       \
    }
#define OF(member) offsetof(struct row, member)

/* What a narrow table leaves out first: names that no task has, steps, waits of almost no time, the longest step, the other waits
 * and the time in which tasks were ready. */
enum { OF_WAIT = 1, OF_READY = OF_WAIT, OF_LONGEST, OF_SHORT_WAIT, OF_STEPS, OF_NO_NAME };
#define WAIT_FLAGS (KRAIT_SHEET_QUIET | KRAIT_SHEET_DASH | KRAIT_SHEET_RANKED)

static const struct krait_sheet_column columns[] = {
    { { "tasks", 0, 0, 0 }, "tasks", KRAIT_SHEET_COUNT, 0, krait_sheet_number_at, OF(tasks) },
    STATE("running", "running_ns", KRAIT_TASK_RUNNING, 0, 0),
    { { "steps", 0, 0, OF_STEPS }, "steps", KRAIT_SHEET_COUNT, 0, krait_sheet_number_at, OF(steps) },
    { { "longest", 0, 0, OF_LONGEST },
      "longest_ns",
      KRAIT_SHEET_NS,
      0,
      krait_sheet_number_at,
      OF(longest_ns) },
    STATE("ready", "ready_ns", KRAIT_TASK_READY, KRAIT_SHEET_DASH | KRAIT_SHEET_RANKED, OF_READY),
    { { "waiting", 0, 0, 0 },
      "waiting_ns",
      KRAIT_SHEET_NS,
      KRAIT_SHEET_DASH,
      krait_sheet_number_at,
      OF(waited_ns) },
    STATE("timer", "timer_ns", KRAIT_TASK_TIMER, WAIT_FLAGS, OF_WAIT),
    STATE("lock", "lock_ns", KRAIT_TASK_LOCK, WAIT_FLAGS, OF_WAIT),
    STATE("queue", "queue_ns", KRAIT_TASK_QUEUE, WAIT_FLAGS, OF_WAIT),
    STATE("socket", "socket_ns", KRAIT_TASK_SOCKET, WAIT_FLAGS, OF_WAIT),
    STATE("child", "child_ns", KRAIT_TASK_CHILD, WAIT_FLAGS, OF_WAIT),
    STATE("task", "task_ns", KRAIT_TASK_TASK, WAIT_FLAGS, OF_WAIT),
    STATE("future", "future_ns", KRAIT_TASK_FUTURE, WAIT_FLAGS, OF_WAIT),
    STATE("switch", "switch_ns", KRAIT_TASK_SWITCH, WAIT_FLAGS, OF_WAIT),
    REPORT_TASK_NAME(OF(name)),
    { { "coroutine", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 12, 0 },
      "coroutine",
      KRAIT_SHEET_NAME,
      0,
      krait_sheet_name_at,
      OF(coroutine) },
    { { "file", KRAIT_COLUMN_LEFT, 0, 5 },
      "file",
      KRAIT_SHEET_NAME,
      KRAIT_SHEET_DATA,
      krait_sheet_name_at,
      OF(file) },
    { { "line", 0, 0, 5 }, "line", KRAIT_SHEET_NUMBER, KRAIT_SHEET_DATA, krait_sheet_number_at, OF(line) },
};

#undef OF
#undef STATE

/* -- rows -- */

const char *krait_report_coroutine(const struct krait_trace *trace, const struct krait_task *task,
                                   struct krait_arena *arena)
{
    char label[1024] = "(not begun)";
    if (task->func != KRAIT_NO_ID)
        krait_func_label(&trace->funcs[task->func], label, sizeof(label));
    return krait_arena_strdup(arena, label);
}

static int name_row(struct tasks *tasks, struct row *row, const struct krait_task *task)
{
    const struct krait_trace *trace = tasks->report->trace;
    *row = (struct row){ .line = KRAIT_SHEET_NONE, .name = krait_task_has_name(task) ? task->name : NULL };
    if (task->func != KRAIT_NO_ID) {
        row->func = &trace->funcs[task->func];
        row->file = row->func->file;
        row->line = row->func->line;
    }
    row->coroutine = krait_report_coroutine(trace, task, &tasks->arena);
    return row->coroutine ? 0 : -ENOMEM;
}

/* Its row, new if there was none. */
static int group(struct tasks *tasks, const struct krait_task *task, uint32_t *to)
{
    KRAIT_AUTO_BUF key = { 0 };
    krait_buf_fmt(&key, "%u %s", task->func, krait_task_has_name(task) ? task->name : "");
    *to = key.failed ? KRAIT_NO_ID : krait_strtab_add(&tasks->groups, key.data, key.len);
    if (*to == KRAIT_NO_ID)
        return -ENOMEM;
    if (*to < tasks->count)
        return 0;
    if (!KRAIT_GROW(tasks->rows, tasks->cap, tasks->count + 1))
        return -ENOMEM;
    return name_row(tasks, &tasks->rows[tasks->count++], task);
}

static enum krait_task_state state_of(const struct tasks *tasks, uint32_t name)
{
    const char *text = krait_track_text(tasks->report->trace, name);
    int i = 0;
    while (i < KRAIT_TASK_STATES - 1 && strcmp(krait_task_state_names[i], text) != 0)
        i++;
    return (enum krait_task_state)i;
}

static int add_batch(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct tasks *tasks = ctx;
    struct row *row = &tasks->rows[tasks->row_of[track->key]];
    for (uint32_t i = 0; i < batch->n; i++) {
        enum krait_task_state state = state_of(tasks, batch->name[i]);
        bool is_in;
        uint64_t ns = krait_ranges_overlap(&tasks->report->options->select.parts, batch->t_ns[i],
                                           batch->end_ns[i], &is_in);
        if (!is_in)
            continue;
        row->tasks += !tasks->is_counted[track->key];
        tasks->is_counted[track->key] = true;
        row->ns[state] += ns;
        if (state == KRAIT_TASK_RUNNING) {
            row->steps++;
            row->longest_ns = KRAIT_MAX(row->longest_ns, ns);
        } else if (state != KRAIT_TASK_READY) {
            row->waited_ns += ns;
        }
    }
    return 0;
}

/* Groups the tasks of the chosen processes, those that ran in a chosen thread. */
static int takes(void *ctx, uint32_t index)
{
    struct tasks *tasks = ctx;
    const struct report *report = tasks->report;
    const struct krait_track *track = &report->trace->tracks[index];
    if (track->of != KRAIT_OF_TASK ||
        !krait_select_track((void *)&report->options->select, report->trace, track))
        return 0;
    return group(tasks, &report->trace->tasks[track->key], &tasks->row_of[track->key]) ? -ENOMEM : 1;
}

static int walk_all(struct tasks *tasks)
{
    struct report *report = tasks->report;
    size_t count = (size_t)report->trace->task_count + 1;
    tasks->row_of = calloc(count, sizeof(*tasks->row_of));
    tasks->is_counted = calloc(count, sizeof(*tasks->is_counted));
    bool has_both = tasks->row_of && tasks->is_counted;
    return has_both ? krait_report_walk_tracks(report, report->range, takes, add_batch, tasks) : -ENOMEM;
}

static enum krait_task_state state_at(const struct krait_sheet_column *column)
{
    return (enum krait_task_state)((column->arg - offsetof(struct row, ns)) / sizeof(uint64_t));
}

/* Waits of almost no time, and names. */
static void find_unimportant(const struct tasks *tasks, struct krait_sheet_column *chosen)
{
    enum { SHORT = 100 }; /* a wait of less than one of so many parts of all waiting */
    uint64_t ns[KRAIT_TASK_STATES] = { 0 }, waited_ns = 0;
    bool has_names = false;
    for (uint32_t i = 0; i < tasks->count; i++) {
        has_names |= tasks->rows[i].name != NULL;
        waited_ns += tasks->rows[i].waited_ns;
        for (unsigned s = 0; s < KRAIT_TASK_STATES; s++)
            ns[s] += tasks->rows[i].ns[s];
    }
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(columns); i++) {
        if (columns[i].flags == WAIT_FLAGS && ns[state_at(&columns[i])] < waited_ns / SHORT)
            chosen[i].column.drop = OF_SHORT_WAIT;
        if (columns[i].arg == offsetof(struct row, name) && !has_names)
            chosen[i].column.drop = OF_NO_NAME;
    }
}

/* Samples tell which task ran; not how often, or what tasks wait for. */
static void leave_unknown(struct report *report, struct krait_sheet_column *chosen)
{
    char taken[KRAIT_FMT_SIZE], interval[KRAIT_FMT_SIZE];
    const struct krait_trace_samples *samples = &report->trace->samples;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(columns); i++) {
        bool is_time = columns[i].kind == KRAIT_SHEET_NS &&
                       columns[i].arg != offsetof(struct row, ns[KRAIT_TASK_RUNNING]);
        if (is_time || columns[i].arg == offsetof(struct row, steps))
            chosen[i].flags |= KRAIT_SHEET_UNKNOWN;
    }
    if (report->format == REPORT_TABLE)
        krait_buf_fmt(
            &report->notes,
            "estimates from %s, one every %s: they do not tell steps, or what tasks wait for; tasks that no sample met "
            "are missing\n",
            krait_fmt_counted(taken, samples->taken, "sample"), krait_fmt_ns(interval, samples->interval_ns));
}

static int is_work(void *ctx, const struct krait_flow *flow)
{
    return flow->kind == KRAIT_FLOW_WORK;
}

/* For those who look for the work of a pool among the tasks. */
static int note_work(struct report *report, struct krait_trace *trace, struct krait_err *err)
{
    int rc = krait_tracks_find_kinds(trace, 1 << KRAIT_TRACK_FLOWS, err);
    if (rc || !krait_flows_each(trace, KRAIT_RANGE_ALL, is_work, NULL))
        return rc;
    krait_buf_str(
        &report->notes,
        "work for executors does not count as tasks; to see how long it waited: krait intervals TRACE "
        "--start '^work:submit' --stop '^work:start' --key id --by function\n");
    return 0;
}

int krait_report_tasks(struct report *report, struct krait_trace *trace, struct krait_err *err)
{
    KRAIT_CLEANUP(tasks_done) struct tasks tasks = { .report = report };
    struct krait_sheet_column chosen[KRAIT_ARRAY_LEN(columns)];
    memcpy(chosen, columns, sizeof(chosen));
    KRAIT_CLEANUP(krait_sheet_done)
    struct krait_sheet sheet = { .columns = chosen, .of = &tasks, .column_count = KRAIT_ARRAY_LEN(columns) };
    if (trace->samples.rate)
        leave_unknown(report, chosen);
    int rc = krait_tracks_find_kinds(trace, 1 << KRAIT_TRACK_STATES, err);
    if (rc)
        return rc;
    report->zero_ns = krait_trace_zero(trace);
    report->range = krait_select_range(&report->options->select, trace);
    rc = walk_all(&tasks);
    find_unimportant(&tasks, chosen);
    for (uint32_t i = 0; i < tasks.count && !rc; i++) {
        if (tasks.rows[i].steps || tasks.rows[i].waited_ns || tasks.rows[i].ns[KRAIT_TASK_READY])
            krait_sheet_add(&sheet, &tasks.rows[i]);
    }
    rc =
        rc ? rc : krait_sheet_sort(&sheet, report->options->sort ? report->options->sort : "running_ns", err);
    rc = rc ? rc : krait_report_sheet(report, &sheet, "tasks");
    if (!rc && !sheet.rows && report->format == REPORT_TABLE)
        rc = note_work(report, trace, err);
    return rc == -ENOMEM ? krait_err_set(err, rc, "out of memory") : rc;
}
