/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/top.h"
#include "view/width.h"

#include <string.h>

/* -- columns -- */

static const struct krait_sums_rounds *rounds_of(const struct top_view *view)
{
    return view->whole ? &view->sums->all : &view->sums->last;
}

static struct krait_sheet_cell get_descendants(void *of, const void *row, size_t unused)
{
    const struct top_row *r = row;
    return krait_sheet_number(r->total > r->own ? r->total - r->own : 0);
}

static struct krait_sheet_cell get_line(void *of, const void *row, size_t unused)
{
    uint32_t line = ((const struct top_row *)row)->line;
    return krait_sheet_number(line ? line : KRAIT_SHEET_NONE);
}

static struct krait_sheet_cell get_mean(void *of, const void *row, size_t unused)
{
    const struct top_row *r = row;
    return krait_sheet_number(r->calls ? r->total_ns / r->calls : 0);
}

static struct krait_sheet_cell get_rate(void *of, const void *row, size_t unused)
{
    return krait_sheet_number((uint64_t)(((const struct top_row *)row)->calls_s + 0.5));
}

static struct krait_sheet_cell get_name(void *of, const void *row, size_t unused)
{
    const struct top_row *r = row;
    const struct top_view *view = of;
    return krait_sheet_name(view->marks && r->marked ? r->marked : r->name);
}

/* Samples do not tell the module. */
static const char *place_of_row(const struct top_row *row)
{
    return row->module && *row->module ? row->module : row->file ? row->file : "";
}

static struct krait_sheet_cell get_place(void *of, const void *row, size_t unused)
{
    return krait_sheet_name(place_of_row(row));
}

static struct krait_sheet_cell get_holds(void *of, const void *row, size_t unused)
{
    return krait_sheet_number(((const struct top_row *)row)->holds_dropped);
}

static struct krait_sheet_cell get_id(void *of, const void *row, size_t offset)
{
    pid_t id = *(const pid_t *)(const void *)((const char *)row + offset);
    return krait_sheet_number(id > 0 ? (uint64_t)id : KRAIT_SHEET_NONE);
}

/* What a row is of, as a number that stays the same in all tables, with samples and with every call. */
static struct krait_sheet_cell get_identity(void *of, const void *row, size_t unused)
{
    const struct top_row *r = row;
    enum top_by by = ((const struct top_view *)of)->by;
    const char *const texts[] = { r->name, r->file, by == TOP_BY_TASK ? r->thread_name : NULL };
    uint64_t pid = by == TOP_BY_THREAD || by == TOP_BY_PROCESS ? (uint64_t)r->pid : 0;
    uint64_t key = krait_hash_u64(pid << 32 | (by == TOP_BY_THREAD ? (uint32_t)r->tid : 0)) + r->line;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(texts); i++)
        key = key * 31 + (texts[i] ? krait_hash_bytes(texts[i], strlen(texts[i])) : 0);
    return krait_sheet_number(key);
}

#define LEFT (KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN)

/* What tables are of. */
enum top_kind { OF_SAMPLES, OF_CALLS, OF_TASKS, OF_STATES, OF_CALL_STATES, KINDS };

enum { NOT = -1, COLUMNS_MOST = 32 };

struct top_column {
    struct krait_sheet_column column;
    int drop[KINDS]; /* column.drop by table; NOT: that has no such column */
    unsigned turn;   /* in which the key `s` sorts by it, from 1; 0: never */
};

/* Behind the last argument: the getter and its argument. */
#define TEXT(title, key, flags, min, ...)                                  \
    {                                                                      \
        { title, LEFT, min, 0 }, key, KRAIT_SHEET_NAME, flags, __VA_ARGS__ \
    }
#define NUMBER(title, key, kind, ...)                                \
    {                                                                \
        { title, 0, 0, 0 }, key, kind, KRAIT_SHEET_DASH, __VA_ARGS__ \
    }
#define NAME_OF(member)   krait_sheet_name_at, offsetof(struct top_row, member)
#define NUMBER_OF(member) krait_sheet_number_at, offsetof(struct top_row, member)

#define STATE(title, key, flags, state)                                                                    \
    {                                                                                                      \
        { title, 0, 0, 0 }, key, KRAIT_SHEET_SHARE, (flags) | KRAIT_SHEET_RANKED, NUMBER_OF(states[state]) \
    }

static const struct top_column columns[] = {
    { NUMBER("own", "own", KRAIT_SHEET_SHARE, NUMBER_OF(own)), { 0, 0, NOT, 0, 0 }, 1 },
    { NUMBER("total", "total", KRAIT_SHEET_SHARE, NUMBER_OF(total)), { 0, 0, NOT, 0, 0 }, 2 },
    { NUMBER("descendants", "descendants", KRAIT_SHEET_SHARE, get_descendants, 0), { 4, 7, NOT, 14, 16 }, 8 },
    { STATE("cpu", "on_cpu", 0, TOP_CPU), { NOT, NOT, NOT, 1, 1 }, 9 },
    { STATE("gil", "gil", KRAIT_SHEET_QUIET, TOP_GIL), { NOT, NOT, NOT, 1, 1 }, 10 },
    { STATE("lock", "lock", KRAIT_SHEET_QUIET, TOP_LOCK), { NOT, NOT, NOT, 1, 1 }, 11 },
    { STATE("disk", "disk", KRAIT_SHEET_QUIET, TOP_DISK), { NOT, NOT, NOT, 1, 1 }, 12 },
    { STATE("net", "network", KRAIT_SHEET_QUIET, TOP_NETWORK), { NOT, NOT, NOT, 1, 1 }, 13 },
    { STATE("poll", "poll", KRAIT_SHEET_QUIET, TOP_POLL), { NOT, NOT, NOT, 1, 1 }, 14 },
    { STATE("timer", "timer", KRAIT_SHEET_QUIET, TOP_TIMER), { NOT, NOT, NOT, 1, 1 }, 15 },
    { STATE("child", "child", KRAIT_SHEET_QUIET, TOP_CHILD), { NOT, NOT, NOT, 1, 1 }, 16 },
    { STATE("other", "other", KRAIT_SHEET_QUIET, TOP_OTHER), { NOT, NOT, NOT, 1, 1 }, 17 },
    { NUMBER("calls/s", "calls_per_s", KRAIT_SHEET_COUNT, get_rate, 0), { NOT, 0, NOT, NOT, 0 }, 5 },
    { NUMBER("running", "running", KRAIT_SHEET_SHARE, NUMBER_OF(own)), { NOT, NOT, 0, NOT, NOT }, 1 },
    { NUMBER("steps/s", "steps_per_s", KRAIT_SHEET_COUNT, get_rate, 0), { NOT, NOT, 0, NOT, NOT }, 4 },
    { NUMBER("longest", "longest_ns", KRAIT_SHEET_NS, NUMBER_OF(longest_ns)), { NOT, NOT, 0, NOT, NOT }, 2 },
    { NUMBER("mean", "mean_ns", KRAIT_SHEET_NS, get_mean, 0), { NOT, 2, 2, NOT, 10 }, 7 },
    { NUMBER("calls", "calls", KRAIT_SHEET_COUNT, NUMBER_OF(calls)), { NOT, 5, NOT, NOT, 13 }, 6 },
    { NUMBER("steps", "steps", KRAIT_SHEET_COUNT, NUMBER_OF(calls)), { NOT, NOT, 4, NOT, NOT }, 5 },
    { NUMBER("own time", "own_ns", KRAIT_SHEET_NS, NUMBER_OF(own_ns)), { 1, 3, NOT, 11, 11 }, 3 },
    { NUMBER("total time", "total_ns", KRAIT_SHEET_NS, NUMBER_OF(total_ns)), { 2, 4, NOT, 12, 12 }, 4 },
    { NUMBER("running time", "running_ns", KRAIT_SHEET_NS, NUMBER_OF(own_ns)), { NOT, NOT, 3, NOT, NOT }, 3 },
    { NUMBER("tasks", "tasks", KRAIT_SHEET_COUNT, NUMBER_OF(tasks)), { NOT, NOT, 1, NOT, NOT }, 8 },
    { TEXT("name", "name", KRAIT_SHEET_DASH, 8, NAME_OF(thread_name)), { NOT, NOT, 0, NOT, NOT }, 0 },
    { TEXT("function", "function", 0, 16, get_name, 0), { 0, 0, NOT, 0, 0 }, 0 },
    { TEXT("coroutine", "coroutine", 0, 16, NAME_OF(name)), { NOT, NOT, 0, NOT, NOT }, 0 },
    { NUMBER("line", "line", KRAIT_SHEET_NUMBER, get_line, 0), { 3, 6, 5, 13, 15 }, 0 },
    { TEXT("file", "file", 0, 12, NAME_OF(file)), { 0, 1, 1, 0, 1 }, 0 },
    { { { "", 0, 0, 0 }, KRAIT_HOLDS_KEY, KRAIT_SHEET_BOOL, KRAIT_SHEET_DATA, get_holds, 0 },
      { NOT, 0, NOT, NOT, 0 },
      0 },
};

/* Before these, where rows are of one. */
static const struct krait_sheet_column process_column =
    NUMBER("process", "process", KRAIT_SHEET_NUMBER, get_id, offsetof(struct top_row, pid));
static const struct krait_sheet_column thread_column =
    NUMBER("thread", "thread", KRAIT_SHEET_NUMBER, get_id, offsetof(struct top_row, tid));
static const struct krait_sheet_column thread_name_column = {
    { "name", LEFT, 8, 1 }, "thread_name", KRAIT_SHEET_NAME, KRAIT_SHEET_DASH, NAME_OF(thread_name)
};

/* What bars are of. */
static const char *const measures[KINDS] = { [OF_SAMPLES] = "own_ns",
                                             [OF_CALLS] = "calls",
                                             [OF_TASKS] = "steps",
                                             [OF_STATES] = "own_ns",
                                             [OF_CALL_STATES] = "calls" };

/* Behind these, for bars. */
static const struct krait_sheet_column module_column = {
    { NULL, 0, 0, 0 }, NULL, KRAIT_SHEET_NAME, KRAIT_SHEET_DATA, NAME_OF(module)
};

/* Behind the names of bars, where some of them are equal. */
static const struct krait_sheet_column place_column = {
    { "module", LEFT, 10, 1 }, NULL, KRAIT_SHEET_NAME, KRAIT_SHEET_DASH, get_place, 0
};

/* Behind all others, for krait itself. */
static const struct krait_sheet_column identity_column = { { NULL, 0, 0, 0 },  NULL,
                                                           KRAIT_SHEET_NUMBER, KRAIT_SHEET_DATA,
                                                           get_identity,       0 };

#undef NUMBER_OF
#undef NAME_OF
#undef STATE
#undef NUMBER
#undef TEXT

/* The table that the tool of 2005 printed: which of the columns, and what it called them. */
static const struct {
    const char *key, *title;
    unsigned flags; /* of the column */
    uint32_t drop;
} classic_columns[] = {
    { "function", "function", 0, 0 }, { "total_ns", "total time", KRAIT_SHEET_DASH, 0 },
    { "total", "%", 0, 0 },           { "descendants", "descendants", 0, 1 },
    { "own", "itself", 0, 0 },        { "own_ns", "own time", KRAIT_SHEET_DATA, 0 },
    { "file", "file", 0, 0 },         { "line", "line", KRAIT_SHEET_DASH, 2 },
};

/* Returns how many there are. */
static uint32_t columns_of(enum top_kind kind, struct krait_sheet_column *to)
{
    uint32_t count = 0;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(columns); i++) {
        if (columns[i].drop[kind] == NOT)
            continue;
        to[count] = columns[i].column;
        to[count++].column.drop = (uint32_t)columns[i].drop[kind];
    }
    return count;
}

static uint32_t classic_of(struct krait_sheet_column *to)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(classic_columns); i++) {
        size_t from = 0;
        while (strcmp(columns[from].column.key, classic_columns[i].key) != 0)
            from++;
        to[i] = columns[from].column;
        to[i].column.title = classic_columns[i].title;
        to[i].column.drop = classic_columns[i].drop;
        to[i].flags = classic_columns[i].flags;
    }
    return KRAIT_ARRAY_LEN(classic_columns);
}

static enum top_kind kind_of(struct top_shape shape)
{
    if (!shape.exact)
        return shape.kernel ? OF_STATES : OF_SAMPLES;
    return shape.by == TOP_BY_TASK ? OF_TASKS : shape.kernel ? OF_CALL_STATES : OF_CALLS;
}

const char *top_usual_sort(struct top_shape shape, enum top_picture picture)
{
    bool has_bars = picture == TOP_BARS || picture == TOP_CLOCK;
    return has_bars ? measures[kind_of(shape)] : top_next_sort(NULL, shape);
}

int top_check_sort(const char *key, struct top_shape shape, struct krait_err *err)
{
    struct krait_sheet_column chosen[COLUMNS_MOST];
    struct krait_sheet sheet = { .columns = chosen, .column_count = columns_of(kind_of(shape), chosen) };
    int rc = krait_sheet_sort(&sheet, key, err);
    struct krait_suggest self = KRAIT_SUGGEST(key, strlen(key));
    krait_suggest_try(&self, "self");
    if (rc == -EINVAL && self.best && kind_of(shape) != OF_TASKS && !strstr(err->text, "did you mean")) {
        const struct krait_err told = *err;
        return krait_err_set(err, rc, "%s; did you mean 'own', which krait report calls self?", told.text);
    }
    return rc;
}

/* The column of such a table with the least turn after that one; NULL: it has none. */
static const struct top_column *next_turn(enum top_kind kind, unsigned turn)
{
    const struct top_column *next = NULL;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(columns); i++) {
        bool is_next = columns[i].drop[kind] != NOT && columns[i].turn > turn;
        if (is_next && (!next || columns[i].turn < next->turn))
            next = &columns[i];
    }
    return next;
}

const char *top_next_sort(const char *sort, struct top_shape shape)
{
    enum top_kind kind = kind_of(shape);
    unsigned turn = 0;
    for (size_t i = 0; sort && i < KRAIT_ARRAY_LEN(columns); i++) {
        if (columns[i].drop[kind] != NOT && strcmp(sort, columns[i].column.key) == 0)
            turn = columns[i].turn;
    }
    const struct top_column *next = next_turn(kind, turn);
    return (next ? next : next_turn(kind, 0))->column.key;
}

/* At the end, those that there were; else those that there are. */
static uint32_t processes_of(const struct top_view *view)
{
    return view->live ? top_figures(view).processes : view->processes;
}

static uint32_t threads_of(const struct top_view *view)
{
    return view->live ? top_figures(view).threads : view->threads;
}

static bool has_processes(const struct top_view *view)
{
    uint32_t processes = view->live ? krait_live_figures_all(view->live).processes : view->processes;
    return processes > 1;
}

static struct top_shape shape_of(const struct top_view *view)
{
    return (struct top_shape){ view->live != NULL, view->kernel, view->by };
}

static uint32_t place_of(const struct krait_sheet_column *of, uint32_t count, const char *key)
{
    uint32_t i = 0;
    while (i < count && (!of[i].key || strcmp(of[i].key, key) != 0))
        i++;
    return i;
}

/* Bars need the names and, behind all that the table shows, one number; the rows can be sorted by the others. */
static uint32_t keep_for_bars(const struct top_view *view, struct krait_sheet_column *of, uint32_t count,
                              enum top_kind kind, bool places)
{
    enum { NAME_BESIDE = 8 }; /* a name's least columns beside a clock */
    static const char *const names[] = {
        "process", "thread", "thread_name", "name", "function", "coroutine"
    };
    struct krait_sheet_column measure = of[place_of(of, count, measures[kind])];
    for (uint32_t i = 0; i < count; i++) {
        bool is_name = false;
        for (size_t k = 0; k < KRAIT_ARRAY_LEN(names); k++)
            is_name |= of[i].key && strcmp(of[i].key, names[k]) == 0;
        of[i].flags |= is_name ? 0 : KRAIT_SHEET_DATA;
        if (is_name && view->beside_clock)
            of[i].column.min = KRAIT_MIN(of[i].column.min, (uint32_t)NAME_BESIDE);
    }
    of[place_of(of, count, measures[kind])] = module_column;
    if (places) {
        of[count] = place_column;
        of[count++].column.title = view->live ? "module" : "file"; /* as get_place */
    }
    of[count] = measure;
    of[count].column.drop = 0;
    return count + 1;
}

/* Whether functions of the same name have different modules or files. Sets `*needed`. Returns 0 or -ENOMEM. */
static int needs_places(const struct top_row *rows, uint32_t count, bool *needed)
{
    struct krait_map first = { 0 }; /* hash of the name -> its first row */
    int rc = 0;
    *needed = false;
    for (uint32_t i = 0; i < count && !*needed && !rc; i++) {
        uint64_t key = krait_hash_bytes(rows[i].name, strlen(rows[i].name));
        const uint64_t *before = krait_map_get(&first, key);
        if (!before)
            rc = krait_map_put(&first, key, i);
        else if (strcmp(rows[i].name, rows[*before].name) == 0)
            *needed = strcmp(place_of_row(&rows[i]), place_of_row(&rows[*before])) != 0;
    }
    krait_map_done(&first);
    return rc;
}

static uint32_t choose_columns(const struct top_view *view, bool places, struct krait_sheet_column *to)
{
    const struct top_shape shape = shape_of(view);
    uint32_t count = 0;
    if (view->by == TOP_BY_PROCESS || (view->by == TOP_BY_THREAD && has_processes(view)))
        to[count++] = process_column;
    if (view->by == TOP_BY_THREAD) {
        to[count++] = thread_column;
        to[count++] = thread_name_column;
    }
    count += view->classic ? classic_of(to + count) : columns_of(kind_of(shape), to + count);
    if (view->picture == TOP_BARS)
        count = keep_for_bars(view, to, count, kind_of(shape), places);
    if (view->scroll)
        to[count++] = identity_column;
    return count;
}

static int make_sheet(const struct top_view *view, struct krait_sheet_column *chosen,
                      struct krait_sheet *sheet)
{
    KRAIT_AUTO_FREE struct top_row *rows = NULL;
    uint32_t count;
    bool places = false;
    int rc = top_rows(view, &rows, &count);
    if (!rc && view->picture == TOP_BARS)
        rc = needs_places(rows, count, &places);
    *sheet = (struct krait_sheet){ .columns = chosen,
                                   .of = (void *)view,
                                   .column_count = choose_columns(view, places, chosen) };
    for (uint32_t i = 0; i < count && !rc; i++)
        krait_sheet_add(sheet, &rows[i]);
    if (rc || sheet->failed)
        return -ENOMEM;
    rc = krait_sheet_sort(sheet, view->sort, NULL);
    if (view->reversed)
        krait_sheet_reverse(sheet);
    return rc;
}

/* -- for people -- */

/* "process 4711, Python 3.11.2: python3 app.py"; "4 processes of 4711, ...". */
static void add_command(const struct top_view *view, const struct krait_table_look *look,
                        struct krait_buf *out)
{
    enum { COMMAND_LEAST = 10 };
    KRAIT_AUTO_BUF safe = { 0 };
    char count[KRAIT_FMT_SIZE];
    size_t before = out->len;
    uint32_t processes = processes_of(view);
    krait_fmt_safe(&safe, view->command ? view->command : "");
    if (processes > 1)
        krait_buf_fmt(out, "%s of ", krait_fmt_counted(count, processes, "process"));
    else
        krait_buf_str(out, "process ");
    krait_buf_fmt(out, "%d%s%s: ", view->pid, *view->python ? ", Python " : "", view->python);
    uint32_t taken = (uint32_t)(out->len - before);
    uint32_t room = look->width > taken + COMMAND_LEAST ? look->width - taken : COMMAND_LEAST;
    krait_width_command(out, safe.data ? safe.data : "", look->width ? room : UINT32_MAX, look->utf8);
    krait_buf_char(out, '\n');
    out->failed |= safe.failed;
}

/* The time that the heading is of: "last 1.000 s of 12.35 s", or "12.35 s" if it is the whole. */
static void add_time(const struct top_view *view, uint64_t ns, uint64_t all_ns, struct krait_buf *line)
{
    char text[KRAIT_FMT_SIZE];
    if (view->whole || ns == all_ns) {
        krait_buf_str(line, krait_fmt_ns(text, all_ns));
        return;
    }
    krait_buf_fmt(line, "last %s", krait_fmt_ns(text, ns));
    krait_buf_fmt(line, " of %s", krait_fmt_ns(text, all_ns));
}

/* Children that are not in the table. */
static void add_unseen(const struct top_view *view, uint64_t ns, struct krait_buf *line)
{
    const struct top_unseen_sum unseen = view->whole ? view->unseen : view->last_unseen;
    char text[KRAIT_FMT_SIZE];
    if (!unseen.count && !unseen.cpu_ns)
        return;
    krait_buf_str(line, ", ");
    if (unseen.count)
        krait_buf_fmt(line, "%s ", krait_fmt_count(text, unseen.count));
    krait_buf_fmt(line, "%s too short to be read (CPU %s)", unseen.count == 1 ? "child" : "children",
                  krait_fmt_share(text, unseen.cpu_ns, KRAIT_MAX(ns, 1u)));
}

/* What samples tell. */
static void add_rounds(const struct top_view *view, struct krait_buf *line)
{
    const struct krait_sums_rounds *now = rounds_of(view), *all = &view->sums->all;
    char text[KRAIT_FMT_SIZE], count[KRAIT_FMT_SIZE];
    add_time(view, now->ns, all->ns, line);
    krait_buf_fmt(line, ", %s", krait_fmt_counted(count, now->rounds, "sample"));
    if (view->gil)
        krait_buf_str(line, " of the GIL's holder");
    else if (view->idle)
        krait_buf_str(line, ", of sleeping threads too");
    if (view->cpu >= 0)
        krait_buf_fmt(line, ", CPU %.0f%%", view->cpu * 100);
    krait_buf_fmt(line, ", GIL held %s", krait_fmt_share(text, now->gil, now->rounds));
    if (now->gc)
        krait_buf_fmt(line, ", GC %s", krait_fmt_share(text, now->gc, now->rounds));
    krait_buf_fmt(line, ", %s, %.1f counted", krait_fmt_counted(count, view->threads, "thread"),
                  (double)now->stacks / (double)KRAIT_MAX(now->rounds, 1u));
    add_unseen(view, now->ns, line);
    if (view->memory)
        krait_buf_fmt(line, ", memory %s", krait_fmt_bytes(text, view->memory));
    if (now->failures)
        krait_buf_fmt(line, ", not read %s",
                      krait_fmt_share(text, now->failures, now->failures + now->stacks));
}

/* What is not in the table: an exact one says what it has not seen. */
static void add_gaps(const struct top_view *view, const struct krait_live_figures *now,
                     struct krait_buf *line)
{
    char text[KRAIT_FMT_SIZE];
    if (view->lost)
        krait_buf_fmt(line, ", lost %s", krait_fmt_counted(text, view->lost, "event"));
    if (now->dropped)
        krait_buf_fmt(line, ", --max-overhead dropped %s", krait_fmt_counted(text, now->dropped, "function"));
    if (now->pauses)
        krait_buf_fmt(line, ", --max-overhead paused for %s", krait_fmt_ns(text, now->pauses));
    if (view->failed)
        krait_buf_fmt(line, ", %s not recorded", krait_fmt_counted(text, view->failed, "process"));
    if (view->stopped)
        krait_buf_fmt(line, ", %s stopped recording", krait_fmt_counted(text, view->stopped, "process"));
}

/* What every call tells. */
static void add_figures(const struct top_view *view, struct krait_buf *line)
{
    const struct krait_live_figures now = top_figures(view), all = krait_live_figures_all(view->live);
    char text[KRAIT_FMT_SIZE], count[KRAIT_FMT_SIZE];
    double seconds = (double)KRAIT_MAX(now.ns, 1u) / 1e9;
    add_time(view, now.ns, all.ns, line);
    krait_buf_fmt(line, ", exact: %s/s",
                  krait_fmt_counted(count, (uint64_t)((double)now.events / seconds), "event"));
    if (view->cpu >= 0)
        krait_buf_fmt(line, ", CPU %.0f%%", view->cpu * 100);
    krait_buf_fmt(line, ", GIL held by Python code %s", krait_fmt_share(text, now.gil_held, now.ns));
    krait_buf_fmt(line, ", GIL waits %s", krait_fmt_share(text, now.gil_wait, now.ns));
    if (now.gc)
        krait_buf_fmt(line, ", GC %s", krait_fmt_share(text, now.gc, now.ns));
    if (now.longest)
        krait_buf_fmt(line, ", event-loop lag %s", krait_fmt_ns(text, now.lag));
    if (now.longest)
        krait_buf_fmt(line, ", longest task step %s", krait_fmt_ns(text, now.longest));
    krait_buf_fmt(line, ", %s", krait_fmt_counted(count, threads_of(view), "thread"));
    if (now.looks && view->by != TOP_BY_TASK)
        krait_buf_fmt(line, ", split by %s", krait_fmt_counted(count, now.looks, "sample"));
    if (view->memory)
        krait_buf_fmt(line, ", memory %s", krait_fmt_bytes(text, view->memory));
    add_gaps(view, &now, line);
}

static void add_heading(const struct top_view *view, const struct krait_table_look *look,
                        struct krait_buf *out)
{
    KRAIT_AUTO_BUF line = { 0 };
    if (view->live)
        add_figures(view, &line);
    else
        add_rounds(view, &line);
    if (view->cpu >= 0)
        krait_buf_fmt(&line, "; krait itself CPU %.1f%%", view->own_cpu * 100);
    if (view->cost >= 0)
        krait_buf_fmt(&line, ", %s the program %.1f%%", view->live ? "recording costs" : "reading costs",
                      view->cost * 100);
    if (view->filter && view->picture != TOP_STACKS) { /* stacks are shown whole */
        krait_buf_str(&line, "; only ");
        krait_fmt_safe(&line, view->filter);
    }
    krait_width_wrap(out, line.data ? line.data : "", 0, 2, look->width ? look->width : UINT32_MAX);
    out->failed |= line.failed;
}

static const char *nothing_text(const struct top_view *view)
{
    if (view->by == TOP_BY_TASK)
        return view->match ? "no task that ran is one of these\n" : "no task has run\n";
    if (view->live)
        return view->match ? "no function that was called is one of these\n" : "no function was called\n";
    if (!view->processes && !view->sums->all.stacks)
        return "no Python runs yet\n";
    if (!view->sums->all.rounds)
        return "no samples yet\n";
    return view->match && view->sums->all.stacks ? "no function that was met is one of these\n"
                                                 : "no thread ran Python code at any sample\n";
}

static uint32_t count_lines(const struct krait_buf *text)
{
    uint32_t lines = 0;
    for (size_t i = 0; i < text->len; i++)
        lines += text->data[i] == '\n';
    return lines;
}

/* A heading leaves room for rows: its last lines go where there is none. */
static void shorten_heading(const struct top_view *view, struct krait_buf *heading)
{
    enum { BELOW = 4 }; /* an empty line, the table's head, two rows */
    while (view->height && count_lines(heading) + BELOW > view->height && count_lines(heading) > 1) {
        do
            heading->data[--heading->len] = '\0';
        while (heading->data[heading->len - 1] != '\n');
    }
}

/* How many rows fit below so many lines; 0: all. */
static uint32_t fitting_rows(const struct top_view *view, uint32_t above)
{
    if (!view->height)
        return view->limit;
    uint32_t room = view->height > above ? view->height - above : 1;
    return view->limit ? KRAIT_MIN(view->limit, room) : room;
}

static bool is_sorted_by(const char *key)
{
    bool found = false;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(columns) && key && !found; i++)
        found = columns[i].turn && strcmp(columns[i].column.key, key) == 0;
    return found;
}

/* Those that the table shows: it leaves out columns for which there is no room, and some without numbers. */
static void note_sorts(struct top_sorts *sorts, const struct krait_sheet *sheet,
                       const struct krait_table *table, const struct krait_table_look *look)
{
    sorts->count = 0;
    for (uint32_t i = 0; i < sheet->column_count && sorts->count < KRAIT_ARRAY_LEN(sorts->keys); i++) {
        const struct krait_sheet_column *column = &sheet->columns[i];
        if (is_sorted_by(column->key) && krait_table_shows(table, look, column->column.title))
            sorts->keys[sorts->count++] = column->key;
    }
}

static int print_bars(const struct top_view *view, const struct krait_sheet *sheet,
                      const struct krait_table *table, const struct krait_table_look *look,
                      struct krait_buf *out)
{
    const struct krait_sheet_column *of = sheet->columns;
    uint32_t count = sheet->column_count;
    struct top_bars bars = { .sheet = sheet,
                             .table = table,
                             .number = place_of(of, count, measures[kind_of(shape_of(view))]),
                             .name = place_of(of, count, view->by == TOP_BY_TASK ? "coroutine" : "function"),
                             .file = place_of(of, count, "file"),
                             .colours = view->colours,
                             .beside = view->beside_clock };
    while (of[bars.module].get != module_column.get || of[bars.module].arg != module_column.arg)
        bars.module++;
    return top_bars_text(&bars, look, out);
}

static int print_shown(const struct top_view *view, const struct krait_sheet *sheet, uint32_t rows,
                       const struct krait_table_look *look, struct krait_buf *out)
{
    struct krait_table *table;
    int rc = krait_sheet_table_new(&table, sheet, rows);
    if (rc)
        return rc;
    if (view->sorts)
        note_sorts(view->sorts, sheet, table, look);
    rc = view->picture == TOP_BARS ? print_bars(view, sheet, table, look, out)
                                   : krait_table_print(table, look, out);
    krait_table_free(table);
    return rc;
}

/* The table below so many lines. */
static int add_table(const struct top_view *view, struct krait_sheet *sheet, uint32_t above,
                     const struct krait_table_look *look, struct krait_buf *out)
{
    enum { HEAD = 1 };
    uint32_t rows = fitting_rows(view, above + HEAD);
    struct top_scroll *scroll = view->scroll;
    if (!scroll)
        return print_shown(view, sheet, rows, look, out);
    uint32_t all = view->limit ? KRAIT_MIN(view->limit, sheet->rows) : sheet->rows;
    top_scroll_fit(scroll, sheet, sheet->column_count - 1, all, rows);
    sheet->first = scroll->first;
    scroll->line = scroll->selects && all ? above + HEAD + scroll->row - scroll->first : UINT32_MAX;
    return print_shown(view, sheet, scroll->shown, look, out);
}

/* The rows, sorted, below so many lines. */
static int add_rows(const struct top_view *view, uint32_t above, const struct krait_table_look *look,
                    struct krait_buf *out)
{
    KRAIT_CLEANUP(krait_sheet_done) struct krait_sheet sheet = { 0 };
    struct krait_sheet_column chosen[COLUMNS_MOST];
    int rc = make_sheet(view, chosen, &sheet);
    if (!sheet.rows)
        krait_buf_str(out, nothing_text(view));
    return rc ? rc : add_table(view, &sheet, above, look, out);
}

static uint32_t lines_below(const struct top_view *view, uint32_t above)
{
    return view->height > above ? view->height - above : view->height > 0;
}

/* The clock, with bars on its right if there is room. */
static int add_clock(const struct top_view *view, uint32_t above, const struct krait_table_look *look,
                     struct krait_buf *out)
{
    KRAIT_AUTO_BUF bars = { 0 };
    uint32_t width = look->width ? look->width : TOP_WIDTH_USUAL;
    struct top_clock_size size = top_clock_size(width, lines_below(view, above));
    struct krait_table_look narrow = *look;
    struct top_view beside = *view;
    beside.picture = TOP_BARS;
    beside.to_now = !view->whole && !view->is_paused;
    beside.beside_clock = true;
    beside.scroll = NULL;
    beside.height = size.lines;
    narrow.width = top_clock_beside(size, width);
    int rc = narrow.width ? add_rows(&beside, 0, &narrow, &bars) : 0;
    rc = rc ? rc : top_clock_text(view, size, &bars, look, out);
    return rc ? rc : bars.failed ? -ENOMEM : 0;
}

static int add_stacks(const struct top_view *view, uint32_t above, const struct krait_table_look *look,
                      struct krait_buf *out)
{
    return top_stacks_text(view, lines_below(view, above), look, out);
}

/* Where a clock cannot be drawn. */
static void turn_to_bars(struct top_view *view, const struct krait_table_look *look,
                         struct krait_buf *heading)
{
    if (view->picture != TOP_CLOCK || top_clock_can_draw(look))
        return;
    view->picture = TOP_BARS;
    krait_width_wrap(heading,
                     "bars: the clock needs braille characters, which this terminal or locale does not have",
                     0, 2, look->width ? look->width : UINT32_MAX);
    krait_buf_char(heading, '\n');
}

int top_text(const struct top_view *wanted, const struct krait_table_look *look, struct krait_buf *out)
{
    static int (*const adds[])(const struct top_view *view, uint32_t above,
                               const struct krait_table_look *look, struct krait_buf *out) = {
        [TOP_TABLE] = add_rows, [TOP_STACKS] = add_stacks, [TOP_BARS] = add_rows, [TOP_CLOCK] = add_clock
    };
    struct top_view view = *wanted;
    if (view.scroll) { /* a picture without rows */
        view.scroll->line = UINT32_MAX;
        view.scroll->rows = 0;
    }
    KRAIT_AUTO_BUF heading = { 0 };
    add_command(&view, look, &heading);
    add_heading(&view, look, &heading);
    krait_buf_char(&heading, '\n');
    turn_to_bars(&view, look, &heading);
    shorten_heading(&view, &heading);
    krait_buf_add(out, heading.data, heading.len);
    krait_buf_char(out, '\n');
    int rc = adds[view.picture](&view, count_lines(&heading) + 1, look, out);
    return rc ? rc : out->failed || heading.failed ? -ENOMEM : 0;
}

/* -- for programs -- */

static void add_json_samples(const struct top_view *view, struct krait_buf *out)
{
    const struct krait_sums_rounds *now = rounds_of(view);
    krait_json_key_u64(out, "rate", view->rate);
    krait_json_key_u64(out, "time_ns", view->sums->all.ns);
    krait_json_key_u64(out, "samples", view->sums->all.rounds);
    krait_json_key_u64(out, "interval_ns", now->ns);
    krait_json_key_u64(out, "interval_samples", now->rounds);
    krait_json_key_u64(out, "interval_stacks", now->stacks);
    krait_json_key_u64(out, "interval_gil_held", now->gil);
    krait_json_key_u64(out, "interval_gc", now->gc);
    krait_json_key_u64(out, "not_read", view->sums->all.failures);
    krait_json_key_u64(out, "unseen_children", view->unseen.count);
    krait_json_key_u64(out, "unseen_children_cpu_ns", view->unseen.cpu_ns);
    krait_json_key_u64(out, "interval_unseen_children", view->last_unseen.count);
    krait_json_key_u64(out, "interval_unseen_children_cpu_ns", view->last_unseen.cpu_ns);
    krait_json_key_u64(out, "threads", view->threads);
}

static void add_json_figures(const struct top_view *view, struct krait_buf *out)
{
    const struct krait_live_figures now = top_figures(view), all = krait_live_figures_all(view->live);
    krait_json_key_u64(out, "time_ns", all.ns);
    krait_json_key_u64(out, "events", all.events);
    krait_json_key_u64(out, "interval_ns", now.ns);
    krait_json_key_u64(out, "interval_events", now.events);
    krait_json_key_u64(out, "interval_gil_wait_ns", now.gil_wait);
    krait_json_key_u64(out, "interval_gil_waits", now.gil_waits);
    krait_json_key_u64(out, "interval_gil_held_ns", now.gil_held);
    krait_json_key_u64(out, "interval_gc_ns", now.gc);
    krait_json_key_u64(out, "interval_steps", now.steps);
    krait_json_key_u64(out, "interval_longest_step_ns", now.longest);
    krait_json_key_u64(out, "interval_loop_lag_ns", now.lag);
    krait_json_key_u64(out, "interval_paused_ns", now.pauses);
    if (view->kernel)
        krait_json_key_u64(out, "interval_state_samples", now.looks);
    krait_json_key_u64(out, "dropped_functions", now.dropped);
    krait_json_key_u64(out, "lost", view->lost);
    krait_json_lost_events(out, view->lost);
    krait_json_key_u64(out, "not_recorded", view->failed);
    krait_json_key_u64(out, "stopped_recording", view->stopped);
    krait_json_key_u64(out, "threads", threads_of(view));
}

int top_json(const struct top_view *view, struct krait_buf *out)
{
    KRAIT_CLEANUP(krait_sheet_done) struct krait_sheet sheet = { 0 };
    struct krait_sheet_column chosen[COLUMNS_MOST];
    int rc = make_sheet(view, chosen, &sheet);
    krait_buf_char(out, '{');
    krait_json_key_u64(out, "pid", (uint64_t)view->pid);
    krait_json_key_text_or_null(out, "command", view->command);
    krait_json_key_text(out, "python", view->python);
    krait_json_key_bool(out, "exact", view->live != NULL);
    krait_json_key_u64(out, "processes", processes_of(view));
    krait_json_key_u64(out, "memory", view->memory);
    krait_json_key_u64(out, "cost_ns", view->cost_ns);
    if (view->live)
        add_json_figures(view, out);
    else
        add_json_samples(view, out);
    krait_json_key(out, view->by == TOP_BY_TASK ? "tasks" : "functions");
    rc = rc ? rc : krait_sheet_json(&sheet, view->limit, out);
    krait_buf_str(out, "}\n");
    return rc ? rc : out->failed ? -ENOMEM : 0;
}
