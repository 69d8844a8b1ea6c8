/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report --callers` and `--callees`: who called some functions, and what they called.
 */
#include "analysis/relatives.h"
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/report.h"

/* --- the functions --- */

static const char *asked(const struct report *report)
{
    return report->options->callers ? report->options->callers : report->options->callees;
}

/* A caller that is none: the function is its thread's outermost. */
static const char *relative_kind(const struct report *report, const struct krait_relative *row)
{
    return row->func == KRAIT_NO_ID ? "thread" : krait_func_row_kind(report->trace->funcs[row->func].kind);
}

static const struct krait_func *relative_func(const struct report *report, const struct krait_relative *row)
{
    static const struct krait_func outside = { .name = "(thread)", .module = "", .file = "" };
    return row->func == KRAIT_NO_ID ? &outside : &report->trace->funcs[row->func];
}

/* --- columns --- */

static void name_cell(const struct report_spot *at, const struct report_column *column)
{
    const struct krait_func *func = relative_func(at->report, at->row);
    KRAIT_AUTO_BUF text = { 0 };
    size_t bright;
    krait_func_row_marked(&text, func, &bright);
    krait_table_cell(at->table, text.data ? text.data : "",
                     func->kind == KRAIT_FUNC_PYTHON ? KRAIT_STYLE_NONE : KRAIT_STYLE_C, bright);
}

static void where_cell(const struct report_spot *at, const struct report_column *column)
{
    const struct krait_func *func = relative_func(at->report, at->row);
    krait_cell_where(at->table, func->file, func->line);
}

enum { ALWAYS = 0 };
enum { LAST = KRAIT_WALL_COUNT }; /* left out of a narrow table before any state is: LAST + 1 and on */
enum { SHORTEN = KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN };

static const struct report_column columns[] = {
#define OF(member) ALWAYS, offsetof(struct krait_relative, member)
#define X(name, text, title, words) \
    { { title, 0, 0, 0 }, 0, NULL, 0, krait_report_cell_wall, ALWAYS, KRAIT_WALL_##name },
    { { "total", 0, 0, 0 }, 0, "total_ns", 2, krait_report_cell_ns, OF(total_ns) },
    { { "total%", 0, 0, 0 }, LAST + 1, NULL, 0, krait_report_cell_share, OF(total_ns) },
    KRAIT_WALL_STATES(X){ { "self", 0, 0, 0 }, LAST + 3, "self_ns", 1, krait_report_cell_ns, OF(self_ns) },
    { { "calls", 0, 0, 0 }, LAST + 2, "calls", 0, krait_report_cell_count, OF(calls) },
    { { "function", SHORTEN, 30, 0 }, 0, NULL, 0, name_cell, ALWAYS, 0 },
    { { "where", SHORTEN, 28, 1 }, LAST + 4, NULL, 0, where_cell, ALWAYS, 0 },
#undef X
#undef OF
};

/* --- the outputs --- */

static int put_relatives_table(struct report *report, const struct krait_relatives *relatives, uint32_t shown)
{
    enum { MOST = KRAIT_ARRAY_LEN(columns) };
    const struct krait_relative *of = &relatives->of;
    const uint64_t *wall_ns = of->wall ? of->wall->total_ns : NULL;
    const struct report_column *chosen[MOST];
    struct krait_column mine[MOST];
    struct krait_table *table;
    uint32_t count = krait_report_columns_choose(chosen, columns, MOST, 1U << ALWAYS, report, wall_ns);
    for (uint32_t i = 0; i < count; i++) {
        mine[i] = krait_report_column_fit(chosen[i], wall_ns);
        if (chosen[i]->add == name_cell)
            mine[i].title = report->options->callers ? "caller" : "callee";
    }
    if (krait_table_new(&table, mine, count))
        return -ENOMEM;
    for (uint32_t i = 0; i < shown; i++) {
        const struct krait_relative *row = &relatives->rows[i];
        const struct report_spot at = { .report = report,
                                        .table = table,
                                        .row = row,
                                        .whole = of->total_ns,
                                        .wall_ns = row->wall ? row->wall->total_ns : NULL,
                                        .split_ns = row->total_ns };
        krait_report_columns_cells(&at, chosen, count);
    }
    int rc = krait_table_print(table, &report->look, &report->out);
    if (of->wall)
        krait_report_wall_note(report, table, "total time");
    krait_table_free(table);
    return rc;
}

static void relative_numbers(struct krait_buf *out, const struct report *report,
                             const struct krait_relative *row)
{
    krait_report_columns_json(out, columns, KRAIT_ARRAY_LEN(columns), report, row);
    if (row->wall)
        krait_report_json_split(out, row->wall);
}

static struct krait_func_row func_row(const struct report *report, const struct krait_relative *relative)
{
    struct krait_func_row row = KRAIT_FUNC_ROW(relative_func(report, relative));
    row.kind = relative_kind(report, relative);
    return row;
}

static void put_relatives_json(struct report *report, const struct krait_relatives *relatives, uint32_t shown)
{
    struct krait_buf *out = &report->out;
    krait_report_json_open(report, relatives->of.self_ns);
    krait_json_key_open(out, report->options->callers ? "callers_of" : "callees_of", '{');
    krait_json_key_text(out, "pattern", asked(report));
    krait_json_key_u64(out, "matched", relatives->matched);
    relative_numbers(out, report, &relatives->of);
    krait_func_row_json_holds(out, relatives->holds_dropped);
    krait_buf_char(out, '}');
    krait_json_key_open(out, "functions", '[');
    for (uint32_t i = 0; i < shown; i++) {
        struct krait_func_row row = func_row(report, &relatives->rows[i]);
        krait_json_item(out, "\n{");
        krait_func_row_json(out, row);
        relative_numbers(out, report, &relatives->rows[i]);
        krait_func_row_json_holds(out, row.holds_dropped);
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, ']');
    krait_report_json_close(report);
}

static void put_relatives_csv(struct report *report, const struct krait_relatives *relatives, uint32_t shown)
{
    struct krait_buf *out = &report->out;
    krait_func_row_csv(out, NULL);
    krait_report_columns_csv(out, columns, KRAIT_ARRAY_LEN(columns), report, NULL);
    krait_func_row_csv_holds(out, NULL);
    if (report->wall)
        krait_report_csv_split(out, NULL);
    krait_buf_char(out, '\n');
    for (uint32_t i = 0; i < shown; i++) {
        const struct krait_relative *row = &relatives->rows[i];
        struct krait_func_row func = func_row(report, row);
        krait_func_row_csv(out, &func);
        krait_report_columns_csv(out, columns, KRAIT_ARRAY_LEN(columns), report, row);
        krait_func_row_csv_holds(out, &func);
        if (row->wall)
            krait_report_csv_split(out, row->wall);
        krait_buf_char(out, '\n');
    }
}

/* The function itself, in a note: its times are what the shares are of. */
static void note_function(struct report *report, const struct krait_relatives *relatives)
{
    char self[KRAIT_FMT_SIZE], total[KRAIT_FMT_SIZE], calls[KRAIT_FMT_SIZE];
    struct krait_buf *notes = &report->notes;
    krait_fmt_safe(notes, asked(report));
    if (relatives->matched != 1)
        krait_buf_fmt(notes, " (%u functions)", relatives->matched);
    krait_buf_str(notes, relatives->holds_dropped ? KRAIT_HOLDS_DROPPED : "");
    krait_buf_fmt(notes, ": total %s, self %s", krait_fmt_ns(total, relatives->of.total_ns),
                  krait_fmt_ns(self, relatives->of.self_ns));
    if (!report->trace->samples.rate)
        krait_buf_fmt(notes, ", %s", krait_fmt_counted(calls, relatives->of.calls, "call"));
    krait_buf_char(notes, '\n');
}

/* A function's total counts recursion once; that of its rows does not, where one's call is inside another's. */
static void note_overlap(struct report *report, const struct krait_relatives *relatives)
{
    uint64_t sum = 0, total = relatives->of.total_ns;
    for (uint32_t i = 0; i < relatives->count; i++)
        sum += relatives->rows[i].total_ns;
    if (!total || sum <= total + total / 100)
        return;
    krait_buf_fmt(
        &report->notes,
        "total%% adds up to %.0f%%: in a recursion, the time of an inner call counts in its own row "
        "and in that of the call around it\n",
        100.0 * (double)sum / (double)total);
}

static int put_relatives(struct report *report, const struct krait_relatives *relatives)
{
    int rc = 0;
    uint32_t shown = report->limit ? KRAIT_MIN(report->limit, relatives->count) : relatives->count;
    if (report->format == REPORT_TABLE)
        rc = put_relatives_table(report, relatives, shown);
    else if (report->format == REPORT_JSON)
        put_relatives_json(report, relatives, shown);
    else
        put_relatives_csv(report, relatives, shown);
    note_function(report, relatives);
    if (report->format == REPORT_TABLE)
        note_overlap(report, relatives);
    if (shown < relatives->count)
        krait_report_note_more(report, relatives->count - shown);
    return rc;
}

int krait_report_relatives(struct report *report, struct krait_err *err)
{
    KRAIT_AUTO_FREE bool *wanted = calloc((size_t)report->trace->func_count + 1, sizeof(*wanted));
    if (!wanted)
        return krait_err_set(err, -ENOMEM, "out of memory");
    int rc = krait_match_mark(wanted, report->trace, report->asked, err);
    if (rc)
        return rc;
    struct krait_calltree *tree;
    rc = krait_report_tree_new(&tree, report, err);
    if (rc)
        return rc;
    struct krait_relatives *relatives = NULL;
    rc = krait_relatives_new(&relatives, tree, report->trace, wanted,
                             report->options->callers ? KRAIT_CALLERS : KRAIT_CALLEES);
    if (tree->split)
        krait_report_wall_heading(report, tree->wall_ns[0]);
    rc = rc ? rc : put_relatives(report, relatives);
    krait_relatives_free(relatives);
    krait_calltree_free(tree);
    return rc ? krait_err_set(err, rc, "out of memory") : 0;
}
