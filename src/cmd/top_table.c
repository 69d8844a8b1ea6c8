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

static const struct krait_sum *sum_of(const struct top_view *view, const struct krait_sums_row *row)
{
    return view->whole ? &row->all : &row->last;
}

enum { OWN, TOTAL, DESCENDANTS };

static struct krait_sheet_cell get_share(void *of, const void *row, size_t which)
{
    const struct krait_sum *sum = sum_of(of, row);
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
    const struct krait_sum *sum = &((const struct krait_sums_row *)row)->all;
    double each = (double)all->ns / (double)KRAIT_MAX(all->rounds, 1u);
    return krait_sheet_number((uint64_t)((double)(which == OWN ? sum->own : sum->total) * each));
}

static struct krait_sheet_cell get_line(void *of, const void *row, size_t unused)
{
    int32_t line = ((const struct krait_sums_row *)row)->line;
    return krait_sheet_number(line > 0 ? (uint64_t)line : KRAIT_SHEET_NONE);
}

#define LEFT (KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN)

static const struct krait_sheet_column columns[] = {
    { { "own", 0, 0, 0 }, "own", KRAIT_SHEET_SHARE, KRAIT_SHEET_DASH, get_share, OWN },
    { { "total", 0, 0, 0 }, "total", KRAIT_SHEET_SHARE, KRAIT_SHEET_DASH, get_share, TOTAL },
    { { "own time", 0, 0, 1 }, "own_ns", KRAIT_SHEET_NS, KRAIT_SHEET_DASH, get_time, OWN },
    { { "total time", 0, 0, 2 }, "total_ns", KRAIT_SHEET_NS, KRAIT_SHEET_DASH, get_time, TOTAL },
    { { "function", LEFT, 16, 0 },
      "function",
      KRAIT_SHEET_NAME,
      0,
      krait_sheet_name_at,
      offsetof(struct krait_sums_row, name) },
    { { "line", 0, 0, 3 }, "line", KRAIT_SHEET_NUMBER, KRAIT_SHEET_DASH, get_line, 0 },
    { { "file", LEFT, 12, 0 },
      "file",
      KRAIT_SHEET_NAME,
      0,
      krait_sheet_name_at,
      offsetof(struct krait_sums_row, file) },
};

/* The table that the tool of 2005 printed. */
static const struct krait_sheet_column classic_columns[] = {
    { { "function", LEFT, 16, 0 },
      "function",
      KRAIT_SHEET_NAME,
      0,
      krait_sheet_name_at,
      offsetof(struct krait_sums_row, name) },
    { { "total time", 0, 0, 0 }, "total_ns", KRAIT_SHEET_NS, KRAIT_SHEET_DASH, get_time, TOTAL },
    { { "%", 0, 0, 0 }, "total", KRAIT_SHEET_SHARE, 0, get_share, TOTAL },
    { { "descendants", 0, 0, 1 }, "descendants", KRAIT_SHEET_SHARE, 0, get_share, DESCENDANTS },
    { { "itself", 0, 0, 0 }, "own", KRAIT_SHEET_SHARE, 0, get_share, OWN },
    { { "own time", 0, 0, 0 }, "own_ns", KRAIT_SHEET_NS, KRAIT_SHEET_DATA, get_time, OWN },
    { { "file", LEFT, 12, 0 },
      "file",
      KRAIT_SHEET_NAME,
      0,
      krait_sheet_name_at,
      offsetof(struct krait_sums_row, file) },
    { { "line", 0, 0, 2 }, "line", KRAIT_SHEET_NUMBER, KRAIT_SHEET_DASH, get_line, 0 },
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

static int make_sheet(const struct top_view *view, struct krait_sheet *sheet)
{
    *sheet = (struct krait_sheet){ .columns = columns,
                                   .of = (void *)view,
                                   .column_count = KRAIT_ARRAY_LEN(columns) };
    if (view->classic) {
        sheet->columns = classic_columns;
        sheet->column_count = KRAIT_ARRAY_LEN(classic_columns);
    }
    for (uint32_t i = 0; i < view->sums->count; i++) {
        if (view->sums->rows[i].all.total)
            krait_sheet_add(sheet, &view->sums->rows[i]);
    }
    return sheet->failed ? -ENOMEM : krait_sheet_sort(sheet, view->sort, NULL);
}

/* -- for people -- */

static void add_command(const struct top_view *view, const struct krait_table_look *look,
                        struct krait_buf *out)
{
    enum { COMMAND_LEAST = 10 };
    KRAIT_AUTO_BUF safe = { 0 };
    size_t before = out->len;
    krait_fmt_safe(&safe, view->command ? view->command : "");
    krait_buf_fmt(out, "process %d, Python %s: ", view->remote->pid, view->remote->version);
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
    const struct krait_sums_rounds *now = rounds_of(view);
    char ns[KRAIT_FMT_SIZE], count[KRAIT_FMT_SIZE], threads[KRAIT_FMT_SIZE], share[KRAIT_FMT_SIZE];
    KRAIT_AUTO_BUF line = { 0 };
    krait_buf_fmt(&line, "%s, %s", krait_fmt_ns(ns, view->sums->all.ns),
                  krait_fmt_counted(count, view->sums->all.rounds, "sample"));
    if (view->cpu >= 0)
        krait_buf_fmt(&line, ", CPU %.0f%%", view->cpu * 100);
    krait_buf_fmt(&line, ", GIL held %s", krait_fmt_share(share, now->gil, now->rounds));
    krait_buf_fmt(&line, ", %s, %.1f counted", krait_fmt_counted(threads, view->threads, "thread"),
                  (double)now->threads / (double)KRAIT_MAX(now->rounds, 1u));
    if (view->sums->all.failures)
        krait_buf_fmt(&line, ", not read %s",
                      krait_fmt_share(share, view->sums->all.failures,
                                      view->sums->all.failures + view->sums->all.threads));
    krait_width_wrap(out, line.data ? line.data : "", 0, 2, look->width ? look->width : UINT32_MAX);
    out->failed |= line.failed;
}

int top_text(const struct top_view *view, const struct krait_table_look *look, struct krait_buf *out)
{
    KRAIT_CLEANUP(krait_sheet_done) struct krait_sheet sheet = { 0 };
    int rc = make_sheet(view, &sheet);
    add_command(view, look, out);
    add_rounds(view, look, out);
    krait_buf_str(out, sheet.rows ? "\n\n" : "\n\nno thread ran Python code at any sample\n");
    rc = rc ? rc : krait_sheet_table(&sheet, view->limit, look, out);
    return rc ? rc : out->failed ? -ENOMEM : 0;
}

/* -- for programs -- */

int top_json(const struct top_view *view, struct krait_buf *out)
{
    KRAIT_CLEANUP(krait_sheet_done) struct krait_sheet sheet = { 0 };
    const struct krait_sums_rounds *now = rounds_of(view);
    int rc = make_sheet(view, &sheet);
    krait_buf_char(out, '{');
    krait_json_key_u64(out, "pid", (uint64_t)view->remote->pid);
    krait_json_key_text_or_null(out, "command", view->command);
    krait_json_key_text(out, "python", view->remote->version);
    krait_json_key_u64(out, "rate", view->rate);
    krait_json_key_u64(out, "time_ns", view->sums->all.ns);
    krait_json_key_u64(out, "samples", view->sums->all.rounds);
    krait_json_key_u64(out, "interval_samples", now->rounds);
    krait_json_key_u64(out, "interval_stacks", now->threads);
    krait_json_key_u64(out, "interval_gil_held", now->gil);
    krait_json_key_u64(out, "not_read", view->sums->all.failures);
    krait_json_key_u64(out, "threads", view->threads);
    krait_json_key(out, "functions");
    rc = rc ? rc : krait_sheet_json(&sheet, view->limit, out);
    krait_buf_str(out, "}\n");
    return rc ? rc : out->failed ? -ENOMEM : 0;
}
