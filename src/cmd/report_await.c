/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report --by task --at TIME`: what each task of asyncio and trio did at one moment, as a tree: a task that waits
 * for another stands above it, and one that waits at the end of a nursery of trio above all tasks in that. gather(),
 * wait() and task groups of asyncio are such nurseries, and so are the greenlets of joinall(). A greenlet that has
 * switched to one whose parent it is stands above that, too: it goes on at the end of that one at the latest.
 */
#include "base/array.h"
#include "base/fmt.h"
#include "cmd/report.h"
#include "cmd/sheet.h"
#include "trace/tasks.h"
#include "trace/track.h"

#include <string.h>

enum { DEEPEST = 64 }; /* deeper tasks are indented no further */

struct row {
    uint64_t id, for_ns;
    /* Ids of the task that it waits for, and of the one that ended its wait; KRAIT_SHEET_NONE: not known. */
    uint64_t whom, woken_by;
    /* Of a greenlet, ids + 1 of the one that it switched to, and of its parent: 1 is a main greenlet. 0: it is not known, or is
     * gevent's hub, to which all switch. */
    uint64_t to, parent;
    const char *state, *process, *name, *coroutine;
    const char *task, *branch; /* its label; its coroutine as the tree has it */
    uint64_t depth;            /* in the tree */
    uint64_t nursery;          /* at whose end it waits: an address; 0: at none */
    /* Indices of the last task of that nursery, and of the one before it; KRAIT_NO_ID: none. */
    uint32_t child, sibling;
    uint32_t track;
    bool is_known, is_shown; /* it has a state at that moment; it is in the sheet */
    bool is_awaited;         /* by a task that has a row */
};

/* To be shown. */
struct open {
    struct row *row;
    uint64_t depth;
};

struct awaiting {
    struct report *report;
    uint64_t at_ns;
    struct row *rows; /* by index in trace->tasks */
    struct krait_arena texts;
    struct krait_map by_id; /* process and id to the index + 1 */
    bool *asked;            /* by process: some of its tasks have rows */
    struct open *open;      /* has room: each task waits for one, and each is in one nursery */
};

static void awaiting_done(struct awaiting *a)
{
    free(a->rows);
    krait_arena_done(&a->texts);
    krait_map_done(&a->by_id);
    free(a->open);
    free(a->asked);
}

/* -- columns -- */

static void put_greenlet(struct krait_table *table, const struct krait_sheet_spot *at)
{
    char text[KRAIT_FMT_SIZE];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)at->cell.number - 1);
    krait_table_cell(table,
                     at->cell.number == 0   ? "-"
                     : at->cell.number == 1 ? "main"
                                            : text,
                     KRAIT_STYLE_NONE, 0);
}

static bool is_greenlet(const struct krait_sheet_cell *cell)
{
    return cell->number;
}

static void add_greenlet(struct krait_buf *out, const struct krait_sheet_cell *cell,
                         void (*add_text)(struct krait_buf *out, const char *text))
{
    krait_buf_fmt(out, "%llu", (unsigned long long)cell->number - 1);
}

static const struct krait_sheet_kind kind_greenlet = { .put = put_greenlet,
                                                       .is_known = is_greenlet,
                                                       .value = add_greenlet };

#define OF(member) offsetof(struct row, member)
#define NAME(title, key, member, flags, drop)                                                                \
    {                                                                                                        \
        { title, KRAIT_COLUMN_LEFT, 0, drop }, key, KRAIT_SHEET_NAME, flags, krait_sheet_name_at, OF(member) \
    }

static const struct krait_sheet_column columns[] = {
    NAME("state", "state", state, 0, 0),
    { { "for", 0, 0, 0 }, "for_ns", KRAIT_SHEET_NS, 0, krait_sheet_number_at, OF(for_ns) },
    { { "id", 0, 0, 2 }, "id", KRAIT_SHEET_NUMBER, 0, krait_sheet_number_at, OF(id) },
    { { "waits for", 0, 0, 2 },
      "waits_for",
      KRAIT_SHEET_NUMBER,
      KRAIT_SHEET_DASH,
      krait_sheet_number_at,
      OF(whom) },
    { { "woken by", 0, 0, 3 },
      "woken_by",
      KRAIT_SHEET_NUMBER,
      KRAIT_SHEET_DASH | KRAIT_SHEET_QUIET,
      krait_sheet_number_at,
      OF(woken_by) },
    { { "switched to", 0, 0, 3 },
      "switched_to",
      &kind_greenlet,
      KRAIT_SHEET_QUIET,
      krait_sheet_number_at,
      OF(to) },
    { { "parent", 0, 0, 3 }, "parent", &kind_greenlet, KRAIT_SHEET_QUIET, krait_sheet_number_at, OF(parent) },
    NAME("process", "process", process, KRAIT_SHEET_DATA, 0),
    { { "depth", 0, 0, 0 }, "depth", KRAIT_SHEET_NUMBER, KRAIT_SHEET_DATA, krait_sheet_number_at, OF(depth) },
    NAME("task", "task", task, KRAIT_SHEET_DATA, 0),
    REPORT_TASK_NAME(OF(name)),
    NAME("coroutine", "coroutine", coroutine, KRAIT_SHEET_DATA, 0),
    { { "coroutine", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 12, 0 },
      NULL,
      KRAIT_SHEET_NAME,
      0,
      krait_sheet_name_at,
      OF(branch) },
};

#undef NAME
#undef OF

/* -- what they do -- */

static uint64_t key_of(uint32_t process, uint64_t id)
{
    return (uint64_t)process << 32 | (uint32_t)id;
}

static bool waits_for_task(const struct row *row)
{
    return strcmp(row->state, krait_task_state_names[KRAIT_TASK_TASK]) == 0;
}

/* The state that lasts beyond the moment; the range ends right behind it. */
static int take_states(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct awaiting *a = ctx;
    struct row *row = &a->rows[track->key];
    uint32_t last = batch->n - 1;
    row->is_known = batch->n && batch->end_ns[last] > a->at_ns;
    if (!row->is_known)
        return 0;
    row->state = krait_track_text(a->report->trace, batch->name[last]);
    row->for_ns = a->at_ns - batch->t_ns[last];
    bool waits = waits_for_task(row);
    uint64_t value = batch->value[last] ? (uint64_t)batch->value[last] : KRAIT_SHEET_NONE;
    row->whom = waits ? value : KRAIT_SHEET_NONE;
    row->woken_by = waits ? KRAIT_SHEET_NONE : value;
    return 0;
}

/* A task of a chosen process has a row. */
static int takes(void *ctx, uint32_t index)
{
    struct awaiting *a = ctx;
    const struct krait_track *track = &a->report->trace->tracks[index];
    if (track->of != KRAIT_OF_TASK || track->kind != KRAIT_TRACK_STATES ||
        !krait_select_named(&a->report->options->select.processes, track->process_name, track->pid))
        return 0;
    a->rows[track->key] = (struct row){ .id = track->number,
                                        .whom = KRAIT_SHEET_NONE,
                                        .woken_by = KRAIT_SHEET_NONE,
                                        .track = index,
                                        .process = track->process_name,
                                        .child = KRAIT_NO_ID,
                                        .sibling = KRAIT_NO_ID };
    a->asked[track->process] = true;
    return krait_map_put(&a->by_id, key_of(track->process, track->number), track->key + 1) ? -ENOMEM : 1;
}

/* -- the tree -- */

static struct row *awaited_by(const struct awaiting *a, const struct row *row)
{
    uint32_t process = a->report->trace->tracks[row->track].process;
    const uint64_t *index =
        row->whom == KRAIT_SHEET_NONE ? NULL : krait_map_get(&a->by_id, key_of(process, row->whom));
    return index && *index && a->rows[*index - 1].is_known ? &a->rows[*index - 1] : NULL;
}

/* -- nurseries -- */

static uint64_t nursery_of(const struct awaiting *a, uint32_t task)
{
    const struct krait_task *of = &a->report->trace->tasks[task];
    return a->at_ns < of->moved_ns ? of->nursery_before : of->nursery;
}

/* What holds the tasks that it waits for: the nursery's address, or the number of the set. 0: there are not several. */
static uint64_t several_of(const struct row *row, const struct krait_task_then *then)
{
    bool is_of_several = then->left.reason == KRAIT_task_leave_reason_future ||
                         then->left.reason == KRAIT_task_leave_reason_tasks;
    if (then->runs || !waits_for_task(row))
        return 0;
    return is_of_several ? then->left.on : then->awaits.set;
}

static bool is_hub(const struct awaiting *a, uint64_t index)
{
    return krait_task_is_hub(a->report->trace->tasks[index].name);
}

/* An id + 1; 0: it is not known, or gevent's hub. */
static uint64_t other_greenlet(const struct awaiting *a, uint32_t process, uint32_t id)
{
    const uint64_t *index = krait_map_get(&a->by_id, key_of(process, id));
    bool is_known = id == 0 || (index && !is_hub(a, *index - 1));
    return is_known ? (uint64_t)id + 1 : 0;
}

/* KRAIT_NO_ID: it is no greenlet, or its parent is not known. */
static uint32_t parent_of(const struct awaiting *a, uint64_t index)
{
    return krait_task_parent_at(&a->report->trace->tasks[index], a->at_ns);
}

/* A greenlet waits for the one that it has switched to, whose end goes back to it. */
static void take_greenlet(struct awaiting *a, uint32_t process, uint64_t index,
                          const struct krait_task_then *then)
{
    struct row *row = &a->rows[index];
    uint32_t id = (uint32_t)then->left.on;
    bool is_left = !then->runs && then->left.reason == KRAIT_task_leave_reason_switched;
    if (is_hub(a, index))
        return;
    row->parent = other_greenlet(a, process, parent_of(a, index));
    if (!is_left)
        return;
    row->to = other_greenlet(a, process, id);
    const uint64_t *to = id ? krait_map_get(&a->by_id, key_of(process, id)) : NULL;
    if (to && !waits_for_task(row) && parent_of(a, *to - 1) == row->id)
        row->whom = id;
}

/* Notes of the tasks of a process which wait for several, and puts them by that into `waiting`; of greenlets, to which
 * they switched. */
static int find_waits(struct awaiting *a, uint32_t process, struct krait_map *waiting)
{
    KRAIT_AUTO_FREE struct krait_task_then *then = NULL;
    uint32_t count = 0;
    int rc = krait_tasks_at(a->report->trace, process, a->at_ns + 1, &then, &count);
    for (uint32_t i = 0; i < count && !rc; i++) {
        const uint64_t *index = krait_map_get(&a->by_id, key_of(process, then[i].left.task));
        struct row *row = index && *index ? &a->rows[*index - 1] : NULL;
        if (!row || !row->is_known)
            continue;
        take_greenlet(a, process, *index - 1, &then[i]);
        row->nursery = several_of(row, &then[i]);
        rc = row->nursery ? krait_map_put(waiting, row->nursery, *index) : 0;
    }
    return rc;
}

/* The tasks that run in those nurseries. */
static int find_children(struct awaiting *a, uint32_t process)
{
    const struct krait_trace *trace = a->report->trace;
    struct krait_map waiting = { 0 };
    int rc = find_waits(a, process, &waiting);
    for (uint32_t i = 0; i < trace->task_count && !rc; i++) {
        const uint64_t *parent = trace->tasks[i].process == process && a->rows[i].is_known && nursery_of(a, i)
                                     ? krait_map_get(&waiting, nursery_of(a, i))
                                     : NULL;
        if (!parent || !*parent)
            continue;
        struct row *above = &a->rows[*parent - 1];
        a->rows[i].sibling = above->child;
        above->child = i;
        a->rows[i].is_awaited = true;
    }
    krait_map_done(&waiting);
    return rc;
}

static int find_nurseries(struct awaiting *a)
{
    const struct krait_trace *trace = a->report->trace;
    KRAIT_AUTO_FREE bool *have = calloc(trace->process_count + 1, sizeof(*have));
    int rc = have ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < trace->task_count && !rc; i++)
        have[trace->tasks[i].process] |=
            trace->tasks[i].nursery || trace->tasks[i].parents[0].id != KRAIT_NO_ID;
    for (uint32_t i = 0; i < trace->process_count && !rc; i++)
        rc = have[i] && a->asked[i] ? find_children(a, i) : 0;
    return rc;
}

/* -- the tree, drawn -- */

static int show_row(struct awaiting *a, struct krait_sheet *sheet, struct row *row, uint64_t depth)
{
    const struct krait_trace *trace = a->report->trace;
    const struct krait_track *track = &trace->tracks[row->track];
    const struct krait_task *task = &trace->tasks[track->key];
    int indent = 2 * (int)KRAIT_MIN(depth, (uint64_t)DEEPEST);
    row->depth = depth;
    row->task = track->thread_name;
    row->name = strcmp(task->name, "?") == 0 ? NULL : task->name;
    row->coroutine = krait_report_coroutine(trace, task, &a->texts);
    row->branch = row->coroutine ? krait_arena_fmt(&a->texts, "%*s%s", indent, "", row->coroutine) : NULL;
    if (!row->branch)
        return -ENOMEM;
    krait_sheet_add(sheet, row);
    row->is_shown = true;
    return 0;
}

/* A task, and below it what it waits for. Who waits for one that is shown already names it by its id alone. */
static int show(struct awaiting *a, struct krait_sheet *sheet, struct row *row)
{
    uint32_t n = 0;
    int rc = 0;
    a->open[n++] = (struct open){ row, 0 };
    while (n && !rc) {
        struct open next = a->open[--n];
        if (next.row->is_shown)
            continue;
        rc = show_row(a, sheet, next.row, next.depth);
        struct row *on = awaited_by(a, next.row);
        if (on)
            a->open[n++] = (struct open){ on, next.depth + 1 };
        for (uint32_t i = next.row->child; i != KRAIT_NO_ID; i = a->rows[i].sibling)
            a->open[n++] = (struct open){ &a->rows[i], next.depth + 1 };
    }
    return rc ? rc : sheet->failed ? -ENOMEM : 0;
}

/* Those that nobody waits for first; then what is left, which wait for each other in a circle. */
static int fill(struct awaiting *a, struct krait_sheet *sheet)
{
    uint32_t count = a->report->trace->task_count;
    int rc = find_nurseries(a);
    for (uint32_t i = 0; i < count && !rc; i++) {
        struct row *on = a->rows[i].is_known ? awaited_by(a, &a->rows[i]) : NULL;
        if (on)
            on->is_awaited = true;
    }
    for (int others = 0; others < 2; others++) {
        for (uint32_t i = 0; i < count && !rc; i++) {
            struct row *row = &a->rows[i];
            rc = row->is_known && row->is_awaited == others ? show(a, sheet, row) : 0;
        }
    }
    return rc;
}

/* Where the recording has no end, the tasks do what they did last: nothing has been recorded since. */
static void extend_unfinished(struct awaiting *a, struct krait_trace *trace)
{
    for (uint32_t i = 0; i < trace->process_count; i++) {
        struct krait_process *process = &trace->processes[i];
        if (!*process->end)
            process->end_ns = KRAIT_MAX(process->end_ns, a->at_ns + 1);
    }
}

/* A time after the end has no tasks, but those of processes whose end was not recorded. */
static void note_end(const struct awaiting *a, bool has_tasks)
{
    struct report *report = a->report;
    char text[KRAIT_FMT_SIZE];
    uint64_t end = report->trace->end_ns;
    if (report->format != REPORT_TABLE || end <= report->zero_ns || a->at_ns <= end)
        return;
    krait_fmt_ns(text, end - report->zero_ns);
    if (has_tasks)
        krait_buf_fmt(&report->notes, "nothing was recorded after %s: these tasks are as they were then\n",
                      text);
    else
        krait_buf_fmt(&report->notes, "the recording is from 0 to %s\n", text);
}

int krait_report_await(struct report *report, struct krait_trace *trace, struct krait_err *err)
{
    KRAIT_CLEANUP(awaiting_done) struct awaiting a = { .report = report };
    KRAIT_CLEANUP(krait_sheet_done)
    struct krait_sheet sheet = { .columns = columns, .of = &a, .column_count = KRAIT_ARRAY_LEN(columns) };
    const struct krait_select at = { .from = report->options->at };
    int rc = krait_tracks_find_kinds(trace, 1 << KRAIT_TRACK_STATES, err);
    if (rc)
        return rc;
    report->zero_ns = krait_trace_zero(trace);
    a.at_ns = krait_select_range(&at, trace).from_ns;
    a.rows = calloc((size_t)trace->task_count + 1, sizeof(*a.rows));
    a.open = calloc(2 * (size_t)trace->task_count + 2, sizeof(*a.open));
    a.asked = calloc((size_t)trace->process_count + 1, sizeof(*a.asked));
    extend_unfinished(&a, trace);
    const struct krait_range until = { 0, a.at_ns + 1 };
    rc = a.rows && a.open && a.asked ? krait_report_walk_tracks(report, until, takes, take_states, &a)
                                     : -ENOMEM;
    rc = rc ? rc : fill(&a, &sheet);
    rc = rc ? rc
            : krait_report_sheet(report, &sheet,
                                 report->format == REPORT_TABLE ? "tasks at that time" : "tasks");
    if (!rc)
        note_end(&a, sheet.rows);
    return rc == -ENOMEM ? krait_err_set(err, rc, "out of memory") : rc;
}
