/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report --by line`: how long each line was the current one of the innermost Python function, by samples.
 */
#include "analysis/sampled_lines.h"
#include "base/arena.h"
#include "base/fmt.h"
#include "cmd/report.h"
#include "cmd/sheet.h"
#include "cmd/state.h"

#include <string.h>

/* A line with its texts. */
struct row {
    uint64_t self_ns, error_ns, line, states_ns[KRAIT_SAMPLE_UNKNOWN];
    const char *function, *name, *module, *file, *where;
};

static struct krait_sheet_cell get_part(void *of, const void *row, size_t state)
{
    const struct row *line = row;
    return krait_report_part(line->states_ns, state, line->self_ns);
}

#define OF(member) offsetof(struct row, member)
#define NS(title, key, flags, drop, member)                                                  \
    {                                                                                        \
        { title, 0, 0, drop }, key, KRAIT_SHEET_NS, flags, krait_sheet_number_at, OF(member) \
    }
/* A share for people, a time for programs. */
#define PART(title, key, flags, state)                                                                       \
    { { title, 0, 0, 2 }, NULL, KRAIT_SHEET_PART, flags, get_part, state },                                  \
    {                                                                                                        \
        { key, 0, 0, 0 }, key, KRAIT_SHEET_NS, KRAIT_SHEET_DATA, krait_sheet_number_at, OF(states_ns[state]) \
    }
#define DATA(key, kind, get, member)                                   \
    {                                                                  \
        { key, 0, 0, 0 }, key, kind, KRAIT_SHEET_DATA, get, OF(member) \
    }
#define TEXT(title, min, drop, member)                                                             \
    {                                                                                              \
        { title, KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, min, drop }, NULL, KRAIT_SHEET_NAME, 0, \
            krait_sheet_name_at, OF(member)                                                        \
    }

static const struct krait_sheet_column columns[] = {
    NS("self", "self_ns", 0, 0, self_ns),
    NS("error", "self_error_ns", 0, 5, error_ns),
    { { "self%", 0, 0, 1 }, NULL, KRAIT_SHEET_PERCENT, 0, krait_sheet_number_at, OF(self_ns) },
    PART("cpu", "cpu_ns", 0, KRAIT_SAMPLE_RUNS),
    PART("gil", "gil_ns", KRAIT_SHEET_QUIET, KRAIT_SAMPLE_GIL),
    PART("other", "other_ns", KRAIT_SHEET_QUIET, KRAIT_SAMPLE_BLOCKED),
    TEXT("function", 24, 0, function),
    TEXT("where", 24, 0, where),
    DATA("name", KRAIT_SHEET_NAME, krait_sheet_name_at, name),
    DATA("module", KRAIT_SHEET_NAME, krait_sheet_name_at, module),
    DATA("file", KRAIT_SHEET_NAME, krait_sheet_name_at, file),
    DATA("line", KRAIT_SHEET_NUMBER, krait_sheet_number_at, line),
};

#undef TEXT
#undef DATA
#undef PART
#undef NS
#undef OF

static int check(const struct krait_trace *trace, struct krait_err *err)
{
    if (trace->samples.rate)
        return 0;
    return krait_err_set(
        err, -ENODATA,
        "--by line: only samples have the lines that were executed; record with --sample. --by "
        "line-of-call shows the lines that call functions, of a recording made with --call-sites");
}

/* Returns 0 or -ENOMEM. */
static int make_row(struct row *row, struct krait_arena *arena, const struct krait_trace *trace,
                    const struct krait_sampled_line *line)
{
    const struct krait_func *func = &trace->funcs[line->func];
    size_t bright;
    KRAIT_AUTO_BUF label = { 0 };
    KRAIT_AUTO_BUF where = { 0 };
    krait_func_row_marked(&label, func, &bright);
    krait_fmt_safe(&where, func->file);
    if (line->line)
        krait_buf_fmt(&where, ":%u", line->line);
    *row = (struct row){ .self_ns = line->self_ns,
                         .error_ns = line->error_ns,
                         .line = line->line ? line->line : KRAIT_SHEET_NONE,
                         .function = krait_arena_strdup(arena, label.data ? label.data : ""),
                         .name = func->name,
                         .module = func->module,
                         .file = func->file,
                         .where = krait_arena_strdup(arena, where.data ? where.data : "") };
    for (uint32_t i = 0; i < KRAIT_SAMPLE_UNKNOWN; i++)
        row->states_ns[i] = line->ns[i];
    return row->function && row->where ? 0 : -ENOMEM;
}

static int add_rows(struct krait_sheet *sheet, struct krait_arena *arena, const struct krait_trace *trace,
                    const struct krait_sampled_lines *lines)
{
    int rc = 0;
    for (uint32_t i = 0; i < lines->count && !rc; i++) {
        struct row row;
        rc = make_row(&row, arena, trace, &lines->items[i]);
        if (!rc)
            krait_sheet_add(sheet, &row);
    }
    return rc || !sheet->failed ? rc : -ENOMEM;
}

/* A narrow table leaves out the state with the least time first. */
static void order_states(struct krait_sheet_column own[KRAIT_ARRAY_LEN(columns)],
                         const struct krait_sampled_lines *lines)
{
    uint64_t ns[KRAIT_SAMPLE_UNKNOWN] = { 0 };
    for (uint32_t i = 0; i < lines->count; i++) {
        for (uint32_t state = 0; state < KRAIT_SAMPLE_UNKNOWN; state++)
            ns[state] += lines->items[i].ns[state];
    }
    memcpy(own, columns, sizeof(columns));
    for (uint32_t i = 0; i < KRAIT_ARRAY_LEN(columns); i++) {
        for (uint32_t state = 0; own[i].kind == KRAIT_SHEET_PART && state < KRAIT_SAMPLE_UNKNOWN; state++)
            own[i].column.drop += ns[state] > ns[own[i].arg];
    }
}

int krait_report_lines(struct report *report, struct krait_trace *trace, struct krait_err *err)
{
    KRAIT_CLEANUP(krait_sampled_lines_done) struct krait_sampled_lines lines = { 0 };
    KRAIT_CLEANUP(krait_arena_done) struct krait_arena arena = { 0 };
    struct krait_sheet_column own[KRAIT_ARRAY_LEN(columns)];
    KRAIT_CLEANUP(krait_sheet_done)
    struct krait_sheet sheet = { .columns = own, .column_count = KRAIT_ARRAY_LEN(own) };
    const struct report_options *o = report->options;
    int rc = check(trace, err);
    rc = rc ? rc : krait_select_some(&o->select, trace, err);
    if (rc)
        return rc;
    report->zero_ns = krait_trace_zero(trace);
    report->range = krait_select_range(&o->select, trace);
    const struct krait_sampled_lines_options options = { .range = report->range,
                                                         .ranges = &o->select.parts,
                                                         .take_thread = krait_select_thread,
                                                         .ctx = (void *)&o->select };
    rc = krait_sampled_lines_make(&lines, trace, &options);
    order_states(own, &lines);
    krait_report_keep_damage(report, lines.damage);
    sheet.whole = lines.self_ns;
    rc = rc ? rc : add_rows(&sheet, &arena, trace, &lines);
    rc = rc ? rc : krait_sheet_sort(&sheet, o->sort ? o->sort : "self_ns", err);
    if (!rc && report->format == REPORT_TABLE)
        krait_report_note_samples(report);
    rc = rc ? rc : krait_report_sheet(report, &sheet, "lines");
    if (!rc && report->format == REPORT_TABLE && sheet.rows)
        krait_buf_fmt(&report->notes, "%s\n", krait_state_of_samples);
    return rc == -ENOMEM ? krait_err_set(err, rc, "out of memory") : rc;
}
