/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/top.h"
#include "view/width.h"

#include <string.h>

enum { MILLION = 1000000 };

/* -- columns -- */

static const struct krait_sums_rounds *rounds_of(const struct top_view *view)
{
    return view->whole ? &view->sums->all : &view->sums->last;
}

enum { OWN, TOTAL, DESCENDANTS };

static struct krait_sheet_cell get_share(void *of, const void *row, size_t which)
{
    const struct krait_sum *sum = &((const struct top_row *)row)->shown;
    uint64_t rounds = rounds_of(of)->rounds;
    const uint64_t counts[] = {
        [OWN] = sum->own, [TOTAL] = sum->total, [DESCENDANTS] = sum->total - sum->own
    };
    return krait_sheet_number(counts[which] * MILLION / KRAIT_MAX(rounds, 1u));
}

/* A reading stands for the time from one to the next. */
static struct krait_sheet_cell get_time(void *of, const void *row, size_t which)
{
    const struct top_view *view = of;
    const struct krait_sums_rounds *all = &view->sums->all;
    const struct krait_sum *sum = &((const struct top_row *)row)->all;
    double each = (double)all->ns / (double)KRAIT_MAX(all->rounds, 1u);
    return krait_sheet_number((uint64_t)((double)(which == OWN ? sum->own : sum->total) * each));
}

static struct krait_sheet_cell get_line(void *of, const void *row, size_t unused)
{
    int32_t line = ((const struct top_row *)row)->place->line;
    return krait_sheet_number(line > 0 ? (uint64_t)line : KRAIT_SHEET_NONE);
}

static struct krait_sheet_cell get_text(void *of, const void *row, size_t offset)
{
    const struct krait_sums_place *place = ((const struct top_row *)row)->place;
    return krait_sheet_name_at(of, place, offset);
}

enum { PROCESS, THREAD };

static struct krait_sheet_cell get_id(void *of, const void *row, size_t which)
{
    const struct krait_sums_thread *thread = ((const struct top_row *)row)->thread;
    pid_t id = which == PROCESS ? thread->pid : thread->tid;
    return krait_sheet_number(id > 0 ? (uint64_t)id : KRAIT_SHEET_NONE);
}

static struct krait_sheet_cell get_thread_name(void *of, const void *row, size_t unused)
{
    return krait_sheet_name(((const struct top_row *)row)->thread->name);
}

#define LEFT (KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN)

#define NAME_OF(member) 0, get_text, offsetof(struct krait_sums_place, member)

static const struct krait_sheet_column columns[] = {
    { { "own", 0, 0, 0 }, "own", KRAIT_SHEET_SHARE, KRAIT_SHEET_DASH, get_share, OWN },
    { { "total", 0, 0, 0 }, "total", KRAIT_SHEET_SHARE, KRAIT_SHEET_DASH, get_share, TOTAL },
    { { "own time", 0, 0, 1 }, "own_ns", KRAIT_SHEET_NS, KRAIT_SHEET_DASH, get_time, OWN },
    { { "total time", 0, 0, 2 }, "total_ns", KRAIT_SHEET_NS, KRAIT_SHEET_DASH, get_time, TOTAL },
    { { "function", LEFT, 16, 0 }, "function", KRAIT_SHEET_NAME, NAME_OF(name) },
    { { "line", 0, 0, 3 }, "line", KRAIT_SHEET_NUMBER, KRAIT_SHEET_DASH, get_line, 0 },
    { { "file", LEFT, 12, 0 }, "file", KRAIT_SHEET_NAME, NAME_OF(file) },
};

/* The table that the tool of 2005 printed. */
static const struct krait_sheet_column classic_columns[] = {
    { { "function", LEFT, 16, 0 }, "function", KRAIT_SHEET_NAME, NAME_OF(name) },
    { { "total time", 0, 0, 0 }, "total_ns", KRAIT_SHEET_NS, KRAIT_SHEET_DASH, get_time, TOTAL },
    { { "%", 0, 0, 0 }, "total", KRAIT_SHEET_SHARE, 0, get_share, TOTAL },
    { { "descendants", 0, 0, 1 }, "descendants", KRAIT_SHEET_SHARE, 0, get_share, DESCENDANTS },
    { { "itself", 0, 0, 0 }, "own", KRAIT_SHEET_SHARE, 0, get_share, OWN },
    { { "own time", 0, 0, 0 }, "own_ns", KRAIT_SHEET_NS, KRAIT_SHEET_DATA, get_time, OWN },
    { { "file", LEFT, 12, 0 }, "file", KRAIT_SHEET_NAME, NAME_OF(file) },
    { { "line", 0, 0, 2 }, "line", KRAIT_SHEET_NUMBER, KRAIT_SHEET_DASH, get_line, 0 },
};

/* Before the others, where rows are of one. */
static const struct krait_sheet_column process_column = {
    { "process", 0, 0, 0 }, "process", KRAIT_SHEET_NUMBER, KRAIT_SHEET_DASH, get_id, PROCESS
};
static const struct krait_sheet_column thread_columns[] = {
    { { "thread", 0, 0, 0 }, "thread", KRAIT_SHEET_NUMBER, KRAIT_SHEET_DASH, get_id, THREAD },
    { { "name", LEFT, 8, 1 }, "thread_name", KRAIT_SHEET_NAME, KRAIT_SHEET_DASH, get_thread_name, 0 },
};

int top_check_sort(const char *key, struct krait_err *err)
{
    struct krait_sheet sheet = { .columns = columns, .column_count = KRAIT_ARRAY_LEN(columns) };
    return krait_sheet_sort(&sheet, key, err);
}

const char *top_next_sort(const char *sort)
{
    static const char *const keys[] = { "own", "total", "own_ns", "total_ns" };
    size_t next = 0;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(keys); i++)
        next = strcmp(sort, keys[i]) == 0 ? (i + 1) % KRAIT_ARRAY_LEN(keys) : next;
    return keys[next];
}

enum { COLUMNS_MOST = 16 };

static void add_columns(struct krait_sheet_column *to, uint32_t *count, const struct krait_sheet_column *from,
                        size_t n)
{
    memcpy(to + *count, from, n * sizeof(*from));
    *count += (uint32_t)n;
}

static uint32_t choose_columns(const struct top_view *view, struct krait_sheet_column *to)
{
    uint32_t count = 0;
    if (view->by == TOP_BY_PROCESS || (view->by == TOP_BY_THREAD && top_process_count(view->processes) > 1))
        add_columns(to, &count, &process_column, 1);
    if (view->by == TOP_BY_THREAD)
        add_columns(to, &count, thread_columns, KRAIT_ARRAY_LEN(thread_columns));
    if (view->classic)
        add_columns(to, &count, classic_columns, KRAIT_ARRAY_LEN(classic_columns));
    else
        add_columns(to, &count, columns, KRAIT_ARRAY_LEN(columns));
    return count;
}

static int make_sheet(const struct top_view *view, struct krait_sheet_column *chosen,
                      struct krait_sheet *sheet)
{
    KRAIT_AUTO_FREE struct top_row *rows = NULL;
    uint32_t count;
    int rc = top_rows(view, &rows, &count);
    *sheet = (struct krait_sheet){ .columns = chosen,
                                   .of = (void *)view,
                                   .column_count = choose_columns(view, chosen) };
    for (uint32_t i = 0; i < count && !rc; i++)
        krait_sheet_add(sheet, &rows[i]);
    return rc || sheet->failed ? -ENOMEM : krait_sheet_sort(sheet, view->sort, NULL);
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
    uint32_t processes = top_process_count(view->processes);
    krait_fmt_safe(&safe, view->command ? view->command : "");
    if (processes > 1)
        krait_buf_fmt(out, "%s of ", krait_fmt_counted(count, processes, "process"));
    else
        krait_buf_str(out, "process ");
    krait_buf_fmt(out, "%d%s%s: ", view->pid, *view->python ? ", Python " : "", view->python);
    uint32_t taken = (uint32_t)(out->len - before);
    uint32_t room = look->width > taken + COMMAND_LEAST ? look->width - taken : COMMAND_LEAST;
    const char *command = safe.data ? krait_fmt_command(safe.data) : "";
    if (look->width)
        krait_width_shorten(out, command, room, look->utf8);
    else
        krait_buf_str(out, command);
    krait_buf_char(out, '\n');
    out->failed |= safe.failed;
}

static void add_rounds(const struct top_view *view, const struct krait_table_look *look,
                       struct krait_buf *out)
{
    const struct krait_sums_rounds *now = rounds_of(view), *all = &view->sums->all;
    char text[KRAIT_FMT_SIZE], count[KRAIT_FMT_SIZE];
    KRAIT_AUTO_BUF line = { 0 };
    krait_buf_fmt(&line, "%s, %s", krait_fmt_ns(text, all->ns),
                  krait_fmt_counted(count, all->rounds, "sample"));
    if (view->cpu >= 0)
        krait_buf_fmt(&line, ", CPU %.0f%%", view->cpu * 100);
    krait_buf_fmt(&line, ", GIL held %s", krait_fmt_share(text, now->gil, now->rounds));
    krait_buf_fmt(&line, ", %s, %.1f counted",
                  krait_fmt_counted(count, top_thread_count(view->processes), "thread"),
                  (double)now->stacks / (double)KRAIT_MAX(now->rounds, 1u));
    if (view->memory)
        krait_buf_fmt(&line, ", memory %s", krait_fmt_bytes(text, view->memory));
    if (all->failures)
        krait_buf_fmt(&line, ", not read %s",
                      krait_fmt_share(text, all->failures, all->failures + all->stacks));
    if (view->cpu >= 0)
        krait_buf_fmt(&line, "; krait itself CPU %.1f%%", view->own_cpu * 100);
    if (view->filter) {
        krait_buf_str(&line, "; only ");
        krait_fmt_safe(&line, view->filter);
    }
    krait_width_wrap(out, line.data ? line.data : "", 0, 2, look->width ? look->width : UINT32_MAX);
    out->failed |= line.failed;
}

static const char *nothing_text(const struct top_view *view)
{
    if (!top_process_count(view->processes) && !view->sums->all.stacks)
        return "no Python runs yet\n";
    return view->match && view->sums->all.stacks ? "no function that was met is one of these\n"
                                                 : "no thread ran Python code at any sample\n";
}

int top_text(const struct top_view *view, const struct krait_table_look *look, struct krait_buf *out)
{
    KRAIT_CLEANUP(krait_sheet_done) struct krait_sheet sheet = { 0 };
    struct krait_sheet_column chosen[COLUMNS_MOST];
    int rc = make_sheet(view, chosen, &sheet);
    add_command(view, look, out);
    add_rounds(view, look, out);
    krait_buf_str(out, "\n\n");
    if (!sheet.rows)
        krait_buf_str(out, nothing_text(view));
    rc = rc ? rc : krait_sheet_table(&sheet, view->limit, look, out);
    return rc ? rc : out->failed ? -ENOMEM : 0;
}

/* -- for programs -- */

int top_json(const struct top_view *view, struct krait_buf *out)
{
    KRAIT_CLEANUP(krait_sheet_done) struct krait_sheet sheet = { 0 };
    const struct krait_sums_rounds *now = rounds_of(view);
    struct krait_sheet_column chosen[COLUMNS_MOST];
    int rc = make_sheet(view, chosen, &sheet);
    krait_buf_char(out, '{');
    krait_json_key_u64(out, "pid", (uint64_t)view->pid);
    krait_json_key_text_or_null(out, "command", view->command);
    krait_json_key_text(out, "python", view->python);
    krait_json_key_u64(out, "processes", top_process_count(view->processes));
    krait_json_key_u64(out, "memory", view->memory);
    krait_json_key_u64(out, "rate", view->rate);
    krait_json_key_u64(out, "time_ns", view->sums->all.ns);
    krait_json_key_u64(out, "samples", view->sums->all.rounds);
    krait_json_key_u64(out, "interval_samples", now->rounds);
    krait_json_key_u64(out, "interval_stacks", now->stacks);
    krait_json_key_u64(out, "interval_gil_held", now->gil);
    krait_json_key_u64(out, "not_read", view->sums->all.failures);
    krait_json_key_u64(out, "threads", top_thread_count(view->processes));
    krait_json_key(out, "functions");
    rc = rc ? rc : krait_sheet_json(&sheet, view->limit, out);
    krait_buf_str(out, "}\n");
    return rc ? rc : out->failed ? -ENOMEM : 0;
}
