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

/* What columns need besides the row. */
struct relatives {
    const struct report *report;
    struct krait_func_row function; /* of the cell that was got last */
};

static void name_cell(struct krait_table *table, const struct krait_sheet_spot *at)
{
    const struct krait_func *func = relative_func(((struct relatives *)at->sheet->of)->report, at->row);
    KRAIT_AUTO_BUF text = { 0 };
    size_t bright;
    krait_func_row_marked(&text, func, &bright);
    krait_table_cell(table, text.data ? text.data : "",
                     func->kind == KRAIT_FUNC_PYTHON ? KRAIT_STYLE_NONE : KRAIT_STYLE_C, bright);
}

static void where_cell(struct krait_table *table, const struct krait_sheet_spot *at)
{
    const struct krait_func *func = relative_func(((struct relatives *)at->sheet->of)->report, at->row);
    krait_cell_where(table, func->file, func->line);
}

static const struct krait_sheet_kind kind_function = { .put = name_cell, KRAIT_SHEET_FUNCTION },
                                     kind_where = { .put = where_cell };

static struct krait_sheet_cell get_function(void *of, const void *row, size_t arg)
{
    struct relatives *relatives = of;
    relatives->function = KRAIT_FUNC_ROW(relative_func(relatives->report, row));
    relatives->function.kind = relative_kind(relatives->report, row);
    return krait_sheet_object(&relatives->function);
}

static struct krait_sheet_cell get_holds(void *of, const void *row, size_t arg)
{
    return krait_sheet_number(relative_func(((struct relatives *)of)->report, row)->holds_dropped);
}

static struct krait_sheet_cell get_state(void *of, const void *row, size_t state)
{
    const struct krait_relative *relative = row;
    return krait_report_part(relative->wall->total_ns, state, relative->total_ns);
}

static struct krait_sheet_cell get_split(void *of, const void *row, size_t offset)
{
    return krait_sheet_object((const char *)((const struct krait_relative *)row)->wall + offset);
}

enum { ALWAYS = 0, OF_ROWS, OF_WALL, NEVER }; /* OF_ROWS: not of the function that was asked for */
enum { LAST = KRAIT_WALL_COUNT }; /* left out of a narrow table before any state is: LAST + 1 and on */
enum { SHORTEN = KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN };

#define PLACE KRAIT_SHEET_PLACE
#define NUMBER(title, key, kind, place, drop, beside, member) \
    {                                                         \
        { { title, 0, 0, drop },                              \
          key,                                                \
          kind,                                               \
          PLACE(place),                                       \
          krait_sheet_number_at,                              \
          offsetof(struct krait_relative, member) },          \
            beside, ALWAYS, ALWAYS, false                     \
    }
#define WALL(key, place, member)                                                     \
    {                                                                                \
        { { NULL, 0, 0, 0 }, key,       &krait_report_kind_wall,                     \
          PLACE(place),      get_split, offsetof(struct krait_wall_split, member) }, \
            0, NEVER, OF_WALL, false                                                 \
    }

static const struct report_column columns[] = {
    NUMBER("total", "total_ns", KRAIT_SHEET_NS, 3, 0, 0, total_ns),
    NUMBER("total%", NULL, KRAIT_SHEET_PERCENT, 0, 0, LAST + 1, total_ns),
    KRAIT_WALL_STATES(REPORT_STATE) NUMBER("self", "self_ns", KRAIT_SHEET_NS, 2, 0, LAST + 3, self_ns),
    { { { "calls", 0, 0, 0 },
        "calls",
        KRAIT_SHEET_COUNT,
        PLACE(1),
        krait_sheet_number_at,
        offsetof(struct krait_relative, calls) },
      LAST + 2,
      ALWAYS,
      ALWAYS,
      true },
    { { { "function", SHORTEN, 30, 0 }, "name", &kind_function, PLACE(0), get_function, 0 },
      0,
      ALWAYS,
      OF_ROWS,
      false },
    { { { "where", SHORTEN, 28, 1 }, NULL, &kind_where, 0, NULL, 0 }, LAST + 4, ALWAYS, NEVER, false },
    { KRAIT_SHEET_HOLDS(4, get_holds), 0, NEVER, OF_ROWS, false },
    WALL("wall_self_ns", 5, self_ns),
    WALL("wall_total_ns", 6, total_ns),
};
#undef WALL
#undef NUMBER
#undef PLACE

static void choose_columns(const struct report *report, const struct krait_relatives *relatives, bool of_rows,
                           struct report_columns *chosen)
{
    const struct krait_wall_split *wall = relatives->of.wall; /* NULL: it was not called */
    bool splits = of_rows ? report->wall != NULL : wall != NULL;
    unsigned present = 1U << ALWAYS | (unsigned)of_rows << OF_ROWS | (unsigned)splits << OF_WALL;
    krait_report_columns_choose(chosen, columns, KRAIT_ARRAY_LEN(columns), present, report,
                                wall ? wall->total_ns : NULL);
    for (uint32_t i = 0; i < chosen->count; i++) {
        if (chosen->items[i].kind == &kind_function)
            chosen->items[i].column.title = report->options->callers ? "caller" : "callee";
    }
}

/* --- the outputs --- */

/* The function that was asked for, as an object. */
static void json_asked(struct report *report, const struct krait_relatives *relatives)
{
    struct krait_buf *out = &report->out;
    struct report_columns numbers;
    choose_columns(report, relatives, false, &numbers);
    const struct krait_sheet sheet = { .columns = numbers.items, .column_count = numbers.count };
    krait_json_key_open(out, report->options->callers ? "callers_of" : "callees_of", '{');
    krait_json_key_text(out, "pattern", asked(report));
    krait_json_key_u64(out, "matched", relatives->matched);
    krait_sheet_members(&sheet, &relatives->of, out);
    krait_func_row_json_holds(out, relatives->holds_dropped);
    krait_buf_char(out, '}');
}

static int put_json(struct report *report, const struct krait_relatives *relatives,
                    const struct krait_sheet *sheet)
{
    krait_report_json_open(report, relatives->of.self_ns);
    if (relatives->of.wall)
        krait_report_json_gil(report, relatives->of.wall->total_ns);
    json_asked(report, relatives);
    krait_json_key(&report->out, "functions");
    int rc = krait_sheet_json(sheet, 0, &report->out);
    krait_report_json_close(report);
    return rc;
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
    uint32_t shown = report->limit ? KRAIT_MIN(report->limit, relatives->count) : relatives->count;
    struct report_columns chosen;
    choose_columns(report, relatives, true, &chosen);
    KRAIT_CLEANUP(krait_sheet_done)
    struct krait_sheet sheet = { .columns = chosen.items,
                                 .of = &(struct relatives){ .report = report },
                                 .column_count = chosen.count,
                                 .whole = relatives->of.total_ns,
                                 .lines = true };
    for (uint32_t i = 0; i < shown; i++)
        krait_sheet_keep(&sheet, &relatives->rows[i]);
    const uint64_t *wall_ns = relatives->of.wall ? relatives->of.wall->total_ns : NULL;
    int rc = report->format == REPORT_TABLE ? krait_report_put_table(report, &sheet, 0, "total time", wall_ns)
             : report->format == REPORT_CSV ? krait_sheet_csv(&sheet, 0, &report->out)
                                            : put_json(report, relatives, &sheet);
    note_function(report, relatives);
    if (report->format == REPORT_TABLE)
        note_overlap(report, relatives);
    krait_report_note_limit(report, relatives->count, "row");
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
