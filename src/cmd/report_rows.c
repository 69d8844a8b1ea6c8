/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report`: a profile's rows as a table, CSV or JSON.
 */
#include "base/csv.h"
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/report.h"

#include <string.h>

/* When a column is in the table. */
enum column_when {
    ALWAYS = 0,
    OF_RUNS,       /* rows are of functions: a run of a module or thread says nothing */
    OF_MANY_RUNS,  /* and there is a row with more runs than calls, or less */
    OF_RAISES,     /* and there is a row that an exception left */
    OF_EXCEPTIONS, /* exceptions were asked for */
    OF_PLACES,     /* rows have a file and line */
    OF_PROCESSES,
    OF_SAMPLES, /* the recording is of samples */
};

/* --- cells --- */

static void thing_cell(struct krait_table *table, const struct krait_profile_row *row,
                       enum krait_profile_by by)
{
    static const char *const nameless[] = { "?", "(no module)", "(no file)", "?", "?" };
    KRAIT_AUTO_BUF text = { 0 };
    size_t bright = 0;
    bool is_func = by == KRAIT_BY_FUNCTION;
    if (!*row->name)
        krait_buf_str(&text, nameless[by]);
    else if (is_func)
        krait_func_row_label(&text, row->module, row->name, row->kind, &bright);
    else
        krait_func_row_label(&text, "", row->name, KRAIT_FUNC_PYTHON, &bright);
    krait_func_row_mark(&text, row->holds_dropped, &bright);
    krait_table_cell(table, text.data ? text.data : "",
                     row->kind == KRAIT_FUNC_PYTHON ? KRAIT_STYLE_NONE : KRAIT_STYLE_C, bright);
}

/* The file's name without its folders, and "<frozen importlib._bootstrap>" without its package. A package's
 * file does not say which it is, so its folder comes along: json/__init__.py */
static void add_short_file(struct krait_buf *out, const char *file)
{
    const char *dot = strrchr(file, '.');
    if (*file == '<' && dot) {
        krait_buf_char(out, '<');
        krait_fmt_safe(out, dot + 1);
        return;
    }
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    if (strcmp(name, "__init__.py") == 0 && slash > file) {
        for (name = slash; name > file && name[-1] != '/';)
            name--;
    }
    krait_fmt_safe(out, name);
}

/* "encoder.py:258 -> JSONEncoder.default": the line of the caller, and what it calls. */
static void line_cell(struct krait_table *table, const struct krait_profile_row *row,
                      const struct krait_trace *trace)
{
    const struct krait_func *callee = &trace->funcs[row->callee];
    KRAIT_AUTO_BUF text = { 0 };
    if (*row->name)
        add_short_file(&text, *row->file ? row->file : row->name);
    else
        krait_buf_str(&text, "(not from Python)");
    if (row->line)
        krait_buf_fmt(&text, ":%u", row->line);
    krait_buf_str(&text, " -> ");
    size_t kept = text.len, bright;
    bool bare = callee->kind == KRAIT_FUNC_PYTHON && *callee->name != '<'; /* <module> alone says nothing */
    krait_func_row_label(&text, bare ? "" : callee->module, callee->name, callee->kind, &bright);
    krait_func_row_mark(&text, row->holds_dropped, &bright);
    krait_table_cell(table, text.data ? text.data : "",
                     callee->kind == KRAIT_FUNC_PYTHON ? KRAIT_STYLE_NONE : KRAIT_STYLE_C, text.len - kept);
    krait_table_keep(table, kept);
}

static void name_cell(const struct report_spot *at, const struct report_column *column)
{
    if (at->report->by == KRAIT_BY_LINE)
        line_cell(at->table, at->row, at->report->trace);
    else
        thing_cell(at->table, at->row, at->report->by);
}

static void where_cell(const struct report_spot *at, const struct report_column *column)
{
    const struct krait_profile_row *row = at->row;
    krait_cell_where(at->table, row->file, row->line);
}

static void command_cell(const struct report_spot *at, const struct report_column *column)
{
    const struct krait_profile_row *row = at->row;
    KRAIT_AUTO_BUF text = { 0 };
    krait_fmt_safe(&text, krait_fmt_command(at->report->trace->processes[row->process].command));
    krait_table_cell(at->table, text.data ? text.data : "", KRAIT_STYLE_NONE, 0);
}

static void exceptions_cell(const struct report_spot *at, const struct report_column *column)
{
    const struct krait_profile_row *row = at->row;
    krait_report_raised_cell(at->table, row->exceptions, row->exception_count);
}

/* The split is of the time that rows are sorted by. */
static bool splits_total(const struct report *report)
{
    return report->options->sort && strcmp(report->options->sort, "total") == 0;
}

/* --- columns, in the order of tables --- */

#define TEXT(title, min, drop, add, when)                                                        \
    {                                                                                            \
        { title, KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, min, drop }, 0, NULL, 0, add, when, 0 \
    }
#define NS(title, key, place, drop, when, member)                                    \
    {                                                                                \
        { title, 0, 0, drop }, 0, key, place, krait_report_cell_ns, when, OF(member) \
    }
#define SHARE(title, drop, member)                                                     \
    {                                                                                  \
        { title, 0, 0, drop }, 0, NULL, 0, krait_report_cell_share, ALWAYS, OF(member) \
    }
#define COUNT(title, place, drop, beside, when, member)                                        \
    {                                                                                          \
        { title, 0, 0, drop }, beside, title, place, krait_report_cell_count, when, OF(member) \
    }
#define STATE(name, text, title, words) \
    { { title, 0, 0, 0 }, 0, NULL, 0, krait_report_cell_wall, ALWAYS, KRAIT_WALL_##name },

/* Left out of a narrow table before any state is. */
#define AFTER_STATES(n) (KRAIT_WALL_COUNT + (n))

static const struct report_column columns[] = {
#define OF(member) offsetof(struct krait_profile_row, member)
    NS("self", "self_ns", 1, 0, ALWAYS, self_ns),
    NS("error", NULL, 0, AFTER_STATES(1), OF_SAMPLES, self_error_ns),
    SHARE("self%", AFTER_STATES(2), self_ns),
    KRAIT_WALL_STATES(STATE) NS("total", "total_ns", 2, AFTER_STATES(4), ALWAYS, total_ns),
    SHARE("total%", AFTER_STATES(3), total_ns),
    COUNT("calls", 0, 0, AFTER_STATES(1), ALWAYS, calls),
    COUNT("runs", 8, AFTER_STATES(6), 0, OF_MANY_RUNS, runs),
    COUNT("raised", 9, AFTER_STATES(12), 0, OF_RAISES, raised),
    NS("mean", "mean_ns", 4, AFTER_STATES(5), OF_RUNS, mean_ns),
    NS("min", "min_ns", 3, AFTER_STATES(11), OF_RUNS, min_ns),
    NS("max", "max_ns", 5, AFTER_STATES(8), OF_RUNS, max_ns),
    NS("p50", "p50_ns", 6, AFTER_STATES(10), OF_RUNS, p50_ns),
    NS("p99", "p99_ns", 7, AFTER_STATES(9), OF_RUNS, p99_ns),
    TEXT("function", 32, 0, name_cell, ALWAYS),
    TEXT("exceptions", 20, 0, exceptions_cell, OF_EXCEPTIONS),
    TEXT("command", 16, 0, command_cell, OF_PROCESSES),
    TEXT("where", 28, AFTER_STATES(7), where_cell, OF_PLACES),
#undef OF
};
#undef STATE
#undef COUNT
#undef SHARE
#undef NS
#undef TEXT

/* --- order --- */

/* NULL: by name, from A. */
static const struct report_column *sort_column(const char *name)
{
    size_t i = 0;
    if (name && strcmp(name, "name") == 0)
        return NULL;
    while (strcmp(columns[i].column.title, name ? name : "self") != 0) /* options let no other word pass */
        i++;
    return &columns[i];
}

/* 0 where the row has none of it. */
static uint64_t sort_number(const struct krait_profile_row *row, const struct report_column *column)
{
    if (column->add != krait_report_cell_wall)
        return krait_report_number(row, column);
    return row->wall ? row->wall->self_ns[column->offset] : 0;
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
    const struct krait_profile_row *x = a, *y = b;
    const struct report_column *sort = ctx;
    if (sort) {
        uint64_t u = sort_number(x, sort), v = sort_number(y, sort);
        if (u != v)
            return u > v ? -1 : 1;
    }
    int order = strcmp(x->module, y->module);
    order = order ? order : strcmp(x->name, y->name);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* What threads did can be sorted by where it is known. */
static int check_sort(const struct report *report, struct krait_err *err)
{
    const char *name = report->options->sort;
    bool gil = report->wall && name && strcmp(name, "gil") == 0;
    bool known = gil || (report->wall && krait_wall_has_kernel(report->wall));
    const struct report_column *column = sort_column(name);
    if (known || !column || column->add != krait_report_cell_wall)
        return 0;
    return krait_err_set(err, -ENODATA, "--sort %s: the trace has no thread states; record with --kernel",
                         name);
}

static void sort_rows(struct krait_profile *profile, const char *by)
{
    qsort_r(profile->rows, profile->count, sizeof(*profile->rows), compare_rows, (void *)sort_column(by));
}

/* A line is meant by its caller and by what it calls alike. */
static bool is_meant(const struct krait_profile_row *row, const struct krait_trace *trace,
                     const struct krait_match *filter)
{
    if (krait_match_func(filter, row->module, row->name, row->file))
        return true;
    const struct krait_func *callee = row->callee == KRAIT_NO_ID ? NULL : &trace->funcs[row->callee];
    return callee && krait_match_func(filter, callee->module, callee->name, callee->file);
}

static void filter_rows(struct krait_profile *profile, const struct report *report)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < profile->count; i++) {
        struct krait_profile_row *row = &profile->rows[i];
        if (report->exception)
            row->exception_count = krait_report_raised_filter(row->exceptions, row->exception_count,
                                                              report->exception, &row->raised);
        if ((!report->filter || is_meant(row, report->trace, report->filter)) &&
            (!report->exception || row->raised))
            profile->rows[kept++] = *row;
    }
    profile->count = kept;
}

/* --- table --- */

enum {
    LINE_MIN = 40, /* columns that the line of a call and its callee have at least */
    NAME_MIN = 24, /* that a name has beside what threads did */
};

/* A generator runs more often than it is called; what was running when the recording began was not called. */
static bool has_many_runs(const struct krait_profile *profile, uint32_t shown)
{
    for (uint32_t i = 0; i < shown; i++) {
        if (profile->rows[i].runs != profile->rows[i].calls)
            return true;
    }
    return false;
}

static bool has_raises(const struct krait_profile *profile, uint32_t shown)
{
    for (uint32_t i = 0; i < shown; i++) {
        if (profile->rows[i].raised)
            return true;
    }
    return false;
}

static bool asks_for_exceptions(const struct report *report)
{
    return report->exception || (report->options->sort && strcmp(report->options->sort, "raised") == 0);
}

/* The time that a table splits, all of it; NULL: it splits none. */
static const uint64_t *wall_of(const struct report *report, const struct krait_profile *profile)
{
    return report->wall ? profile->wall_ns : NULL;
}

/* A column as it is in this table. The one that the order is by stays. */
static struct krait_column fit_column(const struct report *report, const struct krait_profile *profile,
                                      const struct report_column *from)
{
    static const char *const titles[] = { "function", "module", "file", "thread", "process", "line of call" };
    struct krait_column column = krait_report_column_fit(from, wall_of(report, profile));
    const char *sort = report->options->sort;
    if (sort && strcmp(column.title, sort) == 0)
        column.drop = 0;
    if (from->when == OF_RAISES && report->exception)
        column.drop = 0;
    if (from->add != name_cell)
        return column;
    column.title = titles[report->by];
    column.min = report->by == KRAIT_BY_LINE ? LINE_MIN : report->wall ? NAME_MIN : column.min;
    return column;
}

/* Columns of a group stand together, as they stand in the table of columns. */
enum column_group { FIRST, SECOND, REST, GROUPS };

/* A total time that is split stands at the left, with its split behind it. */
static enum column_group group_of(const struct report *report, const struct report_column *column)
{
    bool is_time = column->add == krait_report_cell_ns || column->add == krait_report_cell_share;
    if (!report->wall || !splits_total(report))
        return FIRST;
    if (column->add == krait_report_cell_wall)
        return SECOND;
    return is_time && column->offset == offsetof(struct krait_profile_row, total_ns) ? FIRST : REST;
}

/* Which columns there are, into `chosen`; returns how many. */
static uint32_t choose_columns(const struct report *report, const struct krait_profile *profile,
                               uint32_t shown, struct krait_column *mine, const struct report_column **chosen)
{
    bool functions = report->by == KRAIT_BY_FUNCTION || report->by == KRAIT_BY_LINE;
    unsigned present = 1U << ALWAYS | (unsigned)functions << OF_RUNS |
                       (unsigned)(functions && has_many_runs(profile, shown)) << OF_MANY_RUNS |
                       (unsigned)(functions && has_raises(profile, shown)) << OF_RAISES |
                       (unsigned)asks_for_exceptions(report) << OF_EXCEPTIONS |
                       (unsigned)(functions) << OF_PLACES |
                       (unsigned)(report->by == KRAIT_BY_PROCESS) << OF_PROCESSES |
                       (unsigned)(report->trace->samples.rate != 0) << OF_SAMPLES;
    const struct report_column *all[KRAIT_ARRAY_LEN(columns)];
    uint32_t count = krait_report_columns_choose(all, columns, KRAIT_ARRAY_LEN(columns), present, report,
                                                 wall_of(report, profile));
    uint32_t n = 0;
    for (uint32_t i = 0; i < GROUPS * count; i++) {
        if (group_of(report, all[i % count]) != i / count)
            continue;
        chosen[n] = all[i % count];
        mine[n] = fit_column(report, profile, chosen[n]);
        n++;
    }
    return n;
}

static void note_samples(struct report *report)
{
    const struct krait_trace_samples *samples = &report->trace->samples;
    char taken[KRAIT_FMT_SIZE], interval[KRAIT_FMT_SIZE];
    krait_buf_fmt(
        &report->notes,
        "estimates of %s, one each %s: calls are not counted; 19 of 20 times self is off by less than error\n",
        krait_fmt_counted(taken, samples->taken, "sample"), krait_fmt_ns(interval, samples->interval_ns));
}

/* Why runs are not calls. */
static void note_runs(struct report *report, const struct krait_profile *profile, uint32_t shown)
{
    bool resumed = false;
    for (uint32_t i = 0; i < shown; i++)
        resumed |= profile->rows[i].resumed;
    if (resumed)
        krait_buf_str(&report->notes,
                      "mean to p99 are of runs: a generator or coroutine runs from each resume to the "
                      "next yield\n");
    else if (has_many_runs(profile, shown))
        krait_buf_str(&report->notes,
                      "runs: what was open already when recording, or the chosen time, began, "
                      "and what goes on when greenlets switch, is a run and no call\n");
}

static int put_table(struct report *report, const struct krait_profile *profile, uint32_t shown)
{
    struct krait_column mine[KRAIT_ARRAY_LEN(columns)];
    const struct report_column *chosen[KRAIT_ARRAY_LEN(columns)];
    uint32_t count = choose_columns(report, profile, shown, mine, chosen);
    struct krait_table *table;
    if (krait_table_new(&table, mine, count))
        return -ENOMEM;
    for (uint32_t i = 0; i < shown; i++) {
        const struct krait_profile_row *row = &profile->rows[i];
        bool total = splits_total(report);
        const struct report_spot at = {
            .report = report,
            .table = table,
            .row = row,
            .whole = profile->self_ns,
            .wall_ns = !row->wall ? NULL
                       : total    ? row->wall->total_ns
                                  : row->wall->self_ns,
            .split_ns = total ? row->total_ns : row->self_ns,
        };
        krait_report_columns_cells(&at, chosen, count);
    }
    int rc = krait_table_print(table, &report->look, &report->out);
    if (report->trace->samples.rate)
        note_samples(report);
    else if (report->by == KRAIT_BY_FUNCTION || report->by == KRAIT_BY_LINE)
        note_runs(report, profile, shown);
    if (report->wall)
        krait_report_wall_note(report, table,
                               splits_total(report) ? "total time"
                                                    : "self time; with --sort total, of the total time");
    krait_table_free(table);
    return rc;
}

/* --- CSV and JSON --- */

static void csv_callee(struct krait_buf *out, const struct krait_func *callee)
{
    krait_buf_char(out, ',');
    krait_csv_cstr(out, callee->name);
    krait_buf_char(out, ',');
    krait_csv_cstr(out, callee->module);
}

/* What is called from the line, as an object of its own: the row's keys are the caller's. */
static void json_callee(struct krait_buf *out, const struct krait_func *callee)
{
    krait_json_key_open(out, "callee", '{');
    krait_func_row_json(out, KRAIT_FUNC_ROW(callee));
    krait_buf_char(out, '}');
}

static void put_csv(struct report *report, const struct krait_profile *profile, uint32_t shown)
{
    struct krait_buf *out = &report->out;
    bool lines = report->by == KRAIT_BY_LINE;
    krait_func_row_csv(out, NULL);
    krait_report_columns_csv(out, columns, KRAIT_ARRAY_LEN(columns), report, NULL);
    krait_buf_str(out, report->trace->samples.rate ? ",exceptions,self_error_ns" : ",exceptions");
    krait_func_row_csv_holds(out, NULL);
    krait_buf_str(out, lines ? ",callee_name,callee_module" : "");
    if (report->wall)
        krait_report_csv_split(out, NULL);
    krait_buf_char(out, '\n');
    for (uint32_t i = 0; i < shown; i++) {
        const struct krait_profile_row *row = &profile->rows[i];
        krait_func_row_csv(out, &KRAIT_FUNC_ROW(row));
        krait_report_columns_csv(out, columns, KRAIT_ARRAY_LEN(columns), report, row);
        krait_report_raised_csv(out, row->exceptions, row->exception_count);
        if (report->trace->samples.rate)
            krait_buf_fmt(out, ",%llu", (unsigned long long)row->self_error_ns);
        krait_func_row_csv_holds(out, &KRAIT_FUNC_ROW(row));
        if (lines)
            csv_callee(out, &report->trace->funcs[row->callee]);
        if (row->wall)
            krait_report_csv_split(out, row->wall);
        krait_buf_char(out, '\n');
    }
}

static void put_json(struct report *report, const struct krait_profile *profile, uint32_t shown)
{
    struct krait_buf *out = &report->out;
    krait_report_json_open(report, profile->self_ns);
    if (report->wall)
        krait_report_json_wall(out, "wall_ns", profile->wall_ns);
    krait_json_key_open(out, "functions", '[');
    for (uint32_t i = 0; i < shown; i++) {
        const struct krait_profile_row *row = &profile->rows[i];
        krait_json_item(out, "\n{");
        krait_func_row_json(out, KRAIT_FUNC_ROW(row));
        krait_report_columns_json(out, columns, KRAIT_ARRAY_LEN(columns), report, row);
        krait_report_raised_json(out, row->exceptions, row->exception_count);
        if (report->trace->samples.rate)
            krait_json_key_u64(out, "self_error_ns", row->self_error_ns);
        if (report->by == KRAIT_BY_LINE)
            json_callee(out, &report->trace->funcs[row->callee]);
        if (report->by == KRAIT_BY_PROCESS)
            krait_json_key_text(out, "command", report->trace->processes[row->process].command);
        if (row->wall)
            krait_report_json_split(out, row->wall);
        krait_func_row_json_holds(out, row->holds_dropped);
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, ']');
    krait_report_json_close(report);
}

int krait_report_rows(struct report *report, struct krait_err *err)
{
    struct krait_profile_options options = {
        .range = report->range,
        .ranges = &report->options->select.parts,
        .by = report->by,
        .take_thread = krait_select_thread,
        .ctx = (void *)&report->options->select,
        .corrected = report->corrected,
        .wall = report->wall,
        .clock = report->clock,
    };
    struct krait_profile *profile;
    int rc = check_sort(report, err);
    rc = rc ? rc : krait_profile_new(&profile, report->trace, &options, err);
    if (rc)
        return rc;
    krait_report_keep_damage(report, profile->damage);
    if (report->filter || report->exception)
        filter_rows(profile, report);
    sort_rows(profile, report->options->sort);
    uint32_t shown = report->limit ? KRAIT_MIN(report->limit, profile->count) : profile->count;
    krait_report_wall_heading(report, profile->wall_ns);
    if (report->format == REPORT_TABLE)
        rc = put_table(report, profile, shown);
    else if (report->format == REPORT_CSV)
        put_csv(report, profile, shown);
    else
        put_json(report, profile, shown);
    if (shown < profile->count && report->format == REPORT_TABLE)
        krait_report_note_more(report, profile->count - shown);
    if (!profile->count)
        krait_report_note_nothing(report);
    krait_profile_free(profile);
    return rc ? krait_err_set(err, rc, "out of memory") : 0;
}
