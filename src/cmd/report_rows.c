/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report`: a profile's rows as a table, CSV or JSON.
 */
#include "base/csv.h"
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/report.h"

#include <string.h>

/* When a column is there. */
enum column_when {
    ALWAYS = 0,
    OF_RUNS,       /* rows are of functions: a run of a module or thread says nothing */
    OF_MANY_RUNS,  /* and there is a row with more runs than calls, or less */
    OF_CUTS,       /* and there is a row of which a run was cut */
    OF_RAISES,     /* and there is a row that an exception left */
    OF_EXCEPTIONS, /* exceptions were asked for */
    OF_PLACES,     /* rows have a file and line */
    OF_LINES,      /* rows are of lines that call */
    OF_PROCESSES,
    OF_SAMPLES, /* the recording is of samples */
    OF_WALL,    /* what threads did is known */
    OF_HOMES,   /* rows are grouped by the threads of an interval */
    NEVER,
};

/* What columns need besides the row. */
struct rows {
    const struct report *report;
    const struct homes *homes;
    struct krait_func_row function; /* of the cell that was got last */
    struct report_raised raised;    /* the same */
};

/* A profile for each group of threads, one after the other. Where threads are not grouped, all are in the first. */
struct homes {
    struct krait_profile *parts[KRAIT_HOMES];
    struct krait_profile all; /* their rows and sums */
    struct krait_buf labels[KRAIT_HOMES];
    uint32_t groups; /* that have rows */
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

static void name_cell(struct krait_table *table, const struct krait_sheet_spot *at)
{
    const struct report *report = ((const struct rows *)at->sheet->of)->report;
    if (report->by == KRAIT_BY_LINE)
        line_cell(table, at->row, report->trace);
    else
        thing_cell(table, at->row, report->by);
}

static void where_cell(struct krait_table *table, const struct krait_sheet_spot *at)
{
    const struct krait_profile_row *row = at->row;
    krait_cell_where(table, row->file, row->line);
}

static void command_cell(struct krait_table *table, const struct krait_sheet_spot *at)
{
    KRAIT_AUTO_BUF text = { 0 };
    krait_fmt_safe(&text, krait_fmt_command(at->cell.name));
    krait_table_cell(table, text.data ? text.data : "", KRAIT_STYLE_NONE, 0);
}

static void command_json(struct krait_buf *out, const struct krait_sheet_spot *at)
{
    krait_json_key_text(out, at->column->key, at->cell.name);
}

static void callee_heads(struct krait_buf *out, const struct krait_sheet_column *column)
{
    krait_buf_fmt(out, "%s_name,%s_module", column->key, column->key);
}

static void callee_csv(struct krait_buf *out, const struct krait_sheet_spot *at)
{
    const struct krait_func_row *callee = at->cell.object;
    krait_csv_cstr(out, callee->name);
    krait_buf_char(out, ',');
    krait_csv_cstr(out, callee->module);
}

/* An object of its own: the row's keys are the caller's. */
static void callee_json(struct krait_buf *out, const struct krait_sheet_spot *at)
{
    krait_json_key_open(out, at->column->key, '{');
    krait_sheet_function_json(out, at);
    krait_buf_char(out, '}');
}

static const struct krait_sheet_kind kind_function = { .put = name_cell, KRAIT_SHEET_FUNCTION },
                                     kind_where = { .put = where_cell },
                                     kind_command = { .put = command_cell, .json = command_json },
                                     kind_callee = { .heads = callee_heads,
                                                     .csv = callee_csv,
                                                     .json = callee_json };

/* The split is of the time that rows are sorted by. */
static bool splits_total(const struct report *report)
{
    return report->options->sort && strcmp(report->options->sort, "total") == 0;
}

static uint32_t count_of(const struct krait_profile *part)
{
    return part ? part->count : 0;
}

/* The group of a row: rows are in their order. */
static enum krait_home home_of(const struct homes *homes, const struct krait_profile_row *row)
{
    size_t index = (size_t)(row - homes->all.rows);
    unsigned home = 0;
    for (; home + 1 < KRAIT_HOMES && index >= count_of(homes->parts[home]); home++)
        index -= count_of(homes->parts[home]);
    return (enum krait_home)home;
}

#define GETTER(name) static struct krait_sheet_cell get_##name(void *of, const void *row, size_t arg)

GETTER(function)
{
    struct rows *rows = of;
    rows->function = KRAIT_FUNC_ROW((const struct krait_profile_row *)row);
    return krait_sheet_object(&rows->function);
}

GETTER(callee)
{
    struct rows *rows = of;
    rows->function =
        KRAIT_FUNC_ROW(&rows->report->trace->funcs[((const struct krait_profile_row *)row)->callee]);
    return krait_sheet_object(&rows->function);
}

GETTER(raised)
{
    const struct krait_profile_row *at = row;
    struct rows *rows = of;
    rows->raised = (struct report_raised){ .items = at->exceptions, .count = at->exception_count };
    return krait_sheet_object(&rows->raised);
}

GETTER(holds)
{
    return krait_sheet_number(((const struct krait_profile_row *)row)->holds_dropped);
}

GETTER(command)
{
    const struct rows *rows = of;
    return krait_sheet_name(
        rows->report->trace->processes[((const struct krait_profile_row *)row)->process].command);
}

GETTER(home)
{
    return krait_sheet_name(krait_report_home_word(home_of(((const struct rows *)of)->homes, row)));
}

/* How long runs took, unless all of them were cut. */
GETTER(took)
{
    const struct krait_profile_row *at = row;
    return at->runs > at->cut_runs ? krait_sheet_number_at(of, row, arg)
                                   : krait_sheet_number(KRAIT_SHEET_NONE);
}

GETTER(split)
{
    return krait_sheet_object((const char *)((const struct krait_profile_row *)row)->wall + arg);
}

GETTER(state)
{
    const struct krait_profile_row *at = row;
    bool total = splits_total(((const struct rows *)of)->report);
    return krait_report_part(total ? at->wall->total_ns : at->wall->self_ns, arg,
                             total ? at->total_ns : at->self_ns);
}

#undef GETTER

/* --- columns, in the order of tables --- */

/* In tables `shown`, in CSV and JSON `given`, at a place. */
#define TEXT(title, key, kind, flags, min, drop, get, shown, given)                                      \
    {                                                                                                    \
        { { title, KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, min, drop }, key, kind, flags, get, 0 }, 0, \
            shown, given, false                                                                          \
    }
#define NUMBER(title, key, kind, place, drop, get, member)                          \
    {                                                                               \
        { title, 0, 0, drop }, key, kind, KRAIT_SHEET_PLACE(place), get, OF(member) \
    }
#define NS(title, key, place, drop, when, member)                                                            \
    {                                                                                                        \
        NUMBER(title, key, KRAIT_SHEET_NS, place, drop, krait_sheet_number_at, member), 0, when, when, false \
    }
#define SHARE(title, drop, member)                                                                           \
    {                                                                                                        \
        NUMBER(title, NULL, KRAIT_SHEET_PERCENT, 0, drop, krait_sheet_number_at, member), 0, ALWAYS, ALWAYS, \
            false                                                                                            \
    }
#define COUNT(title, key, place, drop, beside, shown, member)                                             \
    {                                                                                                     \
        NUMBER(title, key, KRAIT_SHEET_COUNT, place, drop, krait_sheet_number_at, member), beside, shown, \
            ALWAYS, true                                                                                  \
    }
#define TOOK(title, key, place, drop, member)                                                       \
    {                                                                                               \
        NUMBER(title, key, KRAIT_SHEET_NS, place, drop, get_took, member), 0, OF_RUNS, ALWAYS, true \
    }
#define DATA(key, kind, place, get, arg, given)                                                      \
    {                                                                                                \
        { { NULL, 0, 0, 0 }, key, kind, KRAIT_SHEET_PLACE(place), get, arg }, 0, NEVER, given, false \
    }

/* Left out of a narrow table before any state is. */
#define AFTER_STATES(n) (KRAIT_WALL_COUNT + (n))

static const struct report_column columns[] = {
#define OF(member) offsetof(struct krait_profile_row, member)
#define WALL(key, place, member) \
    DATA(key, &krait_report_kind_wall, place, get_split, offsetof(struct krait_wall_split, member), OF_WALL)
    NS("self", "self_ns", 2, 0, ALWAYS, self_ns),
    NS("error", "self_error_ns", 12, AFTER_STATES(1), OF_SAMPLES, self_error_ns),
    SHARE("self%", AFTER_STATES(2), self_ns),
    KRAIT_WALL_STATES(REPORT_STATE) NS("total", "total_ns", 3, AFTER_STATES(4), ALWAYS, total_ns),
    SHARE("total%", AFTER_STATES(3), total_ns),
    COUNT("calls", "calls", 1, 0, AFTER_STATES(1), ALWAYS, calls),
    COUNT("runs", "runs", 9, AFTER_STATES(6), 0, OF_MANY_RUNS, runs),
    COUNT("cut", "cut_runs", 19, AFTER_STATES(6), 0, OF_CUTS, cut_runs),
    COUNT("raised", "raised", 10, AFTER_STATES(12), 0, OF_RAISES, raised),
    TOOK("mean", "mean_ns", 5, AFTER_STATES(5), mean_ns),
    TOOK("min", "min_ns", 4, AFTER_STATES(11), min_ns),
    TOOK("max", "max_ns", 6, AFTER_STATES(8), max_ns),
    TOOK("p50", "p50_ns", 7, AFTER_STATES(10), p50_ns),
    TOOK("p99", "p99_ns", 8, AFTER_STATES(9), p99_ns),
    TEXT("function", "name", &kind_function, KRAIT_SHEET_PLACE(0), 32, 0, get_function, ALWAYS, ALWAYS),
    TEXT("exceptions", "exceptions", &krait_report_kind_raised, KRAIT_SHEET_PLACE(11), 20, 0, get_raised,
         OF_EXCEPTIONS, ALWAYS),
    TEXT("command", "command", &kind_command, KRAIT_SHEET_NO_CSV | KRAIT_SHEET_PLACE(15), 16, 0, get_command,
         OF_PROCESSES, OF_PROCESSES),
    TEXT("where", NULL, &kind_where, 0, 28, AFTER_STATES(7), NULL, OF_PLACES, NEVER),
    DATA("callee", &kind_callee, 14, get_callee, 0, OF_LINES),
    DATA("threads", KRAIT_SHEET_NAME, 18, get_home, 0, OF_HOMES),
    WALL("wall_self_ns", 16, self_ns),
    WALL("wall_total_ns", 17, total_ns),
    { KRAIT_SHEET_HOLDS(13, get_holds), 0, NEVER, ALWAYS, false },
#undef WALL
#undef OF
};
#undef DATA
#undef TOOK
#undef COUNT
#undef SHARE
#undef NS
#undef NUMBER
#undef TEXT

/* --- order --- */

/* Numbers that tables show. */
static bool is_sortable(const struct krait_sheet_column *column)
{
    return column->column.title && (column->kind == KRAIT_SHEET_NS || column->kind == KRAIT_SHEET_COUNT ||
                                    column->kind == KRAIT_SHEET_PERCENT || column->kind == KRAIT_SHEET_PART);
}

/* The column that is called so, "self" for NULL; NULL: by name, from A. */
static const struct report_column *titled(const char *name)
{
    const char *title = name ? name : "self";
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(columns); i++) {
        if (is_sortable(&columns[i].column) && strcmp(columns[i].column.column.title, title) == 0)
            return &columns[i];
    }
    return NULL;
}

static const struct krait_sheet_column *sort_column(const char *name)
{
    const struct report_column *column = titled(name);
    return column ? &column->column : NULL;
}

int krait_report_check_sort_name(const char *name, struct krait_err *err)
{
    static const char by_name[] = "name";
    struct krait_sheet_no_column no = { .suggest = KRAIT_SUGGEST(name, strlen(name)) };
    if (strcmp(name, by_name) == 0 || titled(name))
        return 0;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(columns); i++) {
        if (is_sortable(&columns[i].column))
            krait_sheet_no_column_try(&no, columns[i].column.column.title);
    }
    krait_sheet_no_column_try(&no, by_name);
    return krait_sheet_no_column_set(&no, err);
}

/* 0 where the row has none of it. */
static uint64_t sort_number(const struct krait_profile_row *row, const struct krait_sheet_column *column)
{
    uint64_t number = column->kind == KRAIT_SHEET_PART ? 0 : column->get(NULL, row, column->arg).number;
    if (column->kind != KRAIT_SHEET_PART)
        return number == KRAIT_SHEET_NONE ? 0 : number;
    return row->wall ? row->wall->self_ns[column->arg] : 0;
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
    const struct krait_profile_row *x = a, *y = b;
    const struct krait_sheet_column *sort = ctx;
    if (sort) {
        uint64_t u = sort_number(x, sort), v = sort_number(y, sort);
        if (u != v)
            return u > v ? -1 : 1;
    }
    int order = strcmp(x->module, y->module);
    order = order ? order : strcmp(x->name, y->name);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* Samples tell three of the states. */
static bool is_of_samples(size_t state)
{
    return state == KRAIT_WALL_ON_CPU || state == KRAIT_WALL_GIL || state == KRAIT_WALL_OTHER;
}

int krait_report_check_sort(const char *name, const struct krait_trace *trace, struct krait_err *err)
{
    if (!name || strcmp(name, "name") == 0 || !trace->samples.rate || !titled(name)->of_calls)
        return 0;
    return krait_err_set(err, -ENODATA,
                         "--sort %s: samples have no such column; sort by self, total or name, or by one of "
                         "the states cpu, gil and other",
                         name);
}

/* What threads did can be sorted by where it is known. */
static int check_states(const struct report *report, struct krait_err *err)
{
    const char *name = report->options->sort;
    bool gil = report->wall && name && strcmp(name, "gil") == 0;
    bool kernel = report->wall && krait_wall_has_kernel(report->wall);
    bool sampled = report->wall && krait_wall_has_samples(report->wall) && !kernel;
    const struct krait_sheet_column *column = sort_column(name);
    if (gil || kernel || !column || column->kind != KRAIT_SHEET_PART ||
        (sampled && is_of_samples(column->arg)))
        return 0;
    return krait_err_set(err, -ENODATA, "--sort %s: %s", name,
                         sampled ? "samples know the states cpu, gil and other; record with --kernel"
                                 : "the trace has no thread states; record with --kernel or --sample");
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

static uint64_t cut_runs(const struct krait_profile *profile, uint32_t shown)
{
    uint64_t cut = 0;
    for (uint32_t i = 0; i < shown; i++)
        cut += profile->rows[i].cut_runs;
    return cut;
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
static void fit_column(const struct report *report, struct krait_sheet_column *from)
{
    static const char *const titles[] = { "function", "module", "file", "thread", "process", "line of call" };
    struct krait_column *column = &from->column;
    const char *sort = report->options->sort;
    if (sort && column->title && strcmp(column->title, sort) == 0)
        column->drop = 0;
    if (from->key && strcmp(from->key, "raised") == 0 && report->exception)
        column->drop = 0;
    if (from->kind != &kind_function)
        return;
    column->title = titles[report->by];
    column->min = report->by == KRAIT_BY_LINE ? LINE_MIN : report->wall ? NAME_MIN : column->min;
}

/* Columns of a group stand together, as they stand in the table of columns. */
enum column_group { FIRST, SECOND, REST, GROUPS };

/* A total time that is split stands at the left, with its split behind it. */
static enum column_group group_of(const struct report *report, const struct krait_sheet_column *column)
{
    bool is_time = column->kind == KRAIT_SHEET_NS || column->kind == KRAIT_SHEET_PERCENT;
    if (!report->wall || !splits_total(report))
        return FIRST;
    if (column->kind == KRAIT_SHEET_PART)
        return SECOND;
    return is_time && column->arg == offsetof(struct krait_profile_row, total_ns) ? FIRST : REST;
}

/* Which columns the sheet has. */
static void choose_columns(const struct report *report, const struct krait_profile *profile, uint32_t shown,
                           struct report_columns *chosen)
{
    bool functions = report->by == KRAIT_BY_FUNCTION || report->by == KRAIT_BY_LINE;
    unsigned present =
        1U << ALWAYS | (unsigned)functions << OF_RUNS |
        (unsigned)(functions && has_many_runs(profile, shown)) << OF_MANY_RUNS |
        (unsigned)(functions && cut_runs(profile, shown)) << OF_CUTS |
        (unsigned)(functions && has_raises(profile, shown)) << OF_RAISES |
        (unsigned)asks_for_exceptions(report) << OF_EXCEPTIONS | (unsigned)functions << OF_PLACES |
        (unsigned)(report->by == KRAIT_BY_LINE) << OF_LINES |
        (unsigned)(report->by == KRAIT_BY_PROCESS) << OF_PROCESSES |
        (unsigned)(report->trace->samples.rate != 0) << OF_SAMPLES |
        (unsigned)(report->wall != NULL) << OF_WALL | (unsigned)krait_report_has_homes(report) << OF_HOMES;
    struct report_columns all;
    krait_report_columns_choose(chosen, columns, KRAIT_ARRAY_LEN(columns), present, report,
                                wall_of(report, profile));
    memcpy(all.items, chosen->items, chosen->count * sizeof(all.items[0]));
    uint32_t n = 0;
    for (uint32_t i = 0; i < GROUPS * chosen->count; i++) {
        const struct krait_sheet_column *from = &all.items[i % chosen->count];
        if (group_of(report, from) != i / chosen->count)
            continue;
        chosen->items[n] = *from;
        fit_column(report, &chosen->items[n++]);
    }
}

void krait_report_note_samples(struct report *report)
{
    krait_profile_say_samples(&report->notes, report->trace);
    krait_buf_char(&report->notes, '\n');
}

/* What mean to p99 leave out. */
static void note_cuts(struct report *report, const struct krait_profile *profile, uint32_t shown)
{
    char count[KRAIT_FMT_SIZE];
    uint64_t cut = cut_runs(profile, shown);
    if (cut)
        krait_buf_fmt(
            &report->notes,
            "cut: the begin or the end of %s was not recorded, or is not in the chosen time; mean to "
            "p99 leave these out\n",
            krait_fmt_counted(count, cut, "run"));
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
        krait_buf_fmt(
            &report->notes,
            "runs: what was open already when recording, or the chosen time, began%s is a run and no call\n",
            profile->has_switches ? ", and what goes on when greenlets switch," : ",");
}

static int put_table(struct report *report, const struct krait_profile *profile,
                     const struct krait_sheet *sheet)
{
    if (report->trace->samples.rate)
        krait_report_note_samples(report);
    else if (report->by == KRAIT_BY_FUNCTION || report->by == KRAIT_BY_LINE) {
        note_runs(report, profile, sheet->rows);
        note_cuts(report, profile, sheet->rows);
    }
    return krait_report_put_table(report, sheet, 0,
                                  splits_total(report) ? "total time"
                                                       : "self time; with --sort total, of the total time",
                                  profile->wall_ns);
}

/* --- the outputs --- */

static int put_json(struct report *report, const struct krait_profile *profile,
                    const struct krait_sheet *sheet)
{
    krait_report_json_open(report, profile->self_ns);
    if (report->wall)
        krait_report_json_wall(&report->out, "wall_ns", profile->wall_ns);
    krait_report_json_gil(report, profile->wall_ns);
    krait_json_key(&report->out, "functions");
    int rc = krait_sheet_json(sheet, 0, &report->out);
    krait_report_json_close(report);
    return rc;
}

/* The label of a group stands above its first row. */
static const char *rule_of(void *of, const void *row)
{
    const struct homes *homes = ((const struct rows *)of)->homes;
    const struct krait_profile_row *at = row, *first = homes->all.rows;
    enum krait_home home = home_of(homes, at);
    bool is_first = at == first || home_of(homes, at - 1) != home;
    return is_first ? homes->labels[home].data : NULL;
}

static int put(struct report *report, const struct homes *homes, uint32_t shown)
{
    const struct krait_profile *profile = &homes->all;
    struct report_columns chosen;
    struct rows rows = { .report = report, .homes = homes };
    choose_columns(report, profile, shown, &chosen);
    KRAIT_CLEANUP(krait_sheet_done)
    struct krait_sheet sheet = { .columns = chosen.items,
                                 .of = &rows,
                                 .column_count = chosen.count,
                                 .whole = profile->self_ns,
                                 .lines = true,
                                 .rule = homes->groups > 1 ? rule_of : NULL };
    for (uint32_t i = 0; i < shown; i++)
        krait_sheet_keep(&sheet, &profile->rows[i]);
    return report->format == REPORT_TABLE ? put_table(report, profile, &sheet)
           : report->format == REPORT_CSV ? krait_sheet_csv(&sheet, 0, &report->out)
                                          : put_json(report, profile, &sheet);
}

static void homes_done(struct homes *homes)
{
    for (unsigned i = 0; i < KRAIT_HOMES; i++) {
        krait_profile_free(homes->parts[i]);
        krait_buf_done(&homes->labels[i]);
    }
    free(homes->all.rows);
}

static int profile_part(struct report *report, struct krait_profile **out, unsigned home,
                        struct krait_err *err)
{
    struct report_home of = { &report->options->select, (enum krait_home)home };
    bool grouped = krait_report_has_homes(report);
    struct krait_profile_options options = {
        .range = report->range,
        .ranges = &report->options->select.parts,
        .by = report->by,
        .take_thread = grouped ? krait_report_home_takes : krait_select_thread,
        .ctx = grouped ? (void *)&of : (void *)&report->options->select,
        .corrected = report->corrected,
        .wall = report->wall,
        .clock = report->clock,
    };
    int rc = krait_profile_new(out, report->trace, &options, err);
    if (rc)
        return rc;
    krait_report_keep_damage(report, (*out)->damage);
    if (report->filter || report->exception)
        filter_rows(*out, report);
    sort_rows(*out, report->options->sort);
    return 0;
}

/* Rows and sums of a part become those of all. */
static int add_part(struct homes *homes, const struct report *report, unsigned home)
{
    struct krait_profile *all = &homes->all;
    const struct krait_profile *part = homes->parts[home];
    size_t count = (size_t)all->count + part->count;
    struct krait_profile_row *rows = reallocarray(all->rows, count + 1, sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    all->rows = rows;
    if (part->count)
        memcpy(rows + all->count, part->rows, part->count * sizeof(*rows));
    all->count = (uint32_t)count;
    all->self_ns += part->self_ns;
    all->has_switches |= part->has_switches;
    for (unsigned i = 0; i < KRAIT_WALL_PARTS; i++)
        all->wall_ns[i] += part->wall_ns[i];
    homes->groups += part->count != 0;
    if (krait_report_has_homes(report))
        krait_report_home_label(&homes->labels[home], report, (enum krait_home)home);
    return homes->labels[home].failed ? -ENOMEM : 0;
}

int krait_report_rows(struct report *report, struct krait_err *err)
{
    KRAIT_CLEANUP(homes_done) struct homes homes = { .groups = 0 };
    unsigned parts = krait_report_has_homes(report) ? KRAIT_HOMES : 1;
    int rc = krait_report_check_sort(report->options->sort, report->trace, err);
    rc = rc ? rc : check_states(report, err);
    for (unsigned i = 0; i < parts && !rc; i++) {
        rc = profile_part(report, &homes.parts[i], i, err);
        if (!rc && add_part(&homes, report, i))
            rc = krait_err_set(err, -ENOMEM, "out of memory");
    }
    if (rc)
        return rc;
    const struct krait_profile *profile = &homes.all;
    uint32_t shown = report->limit ? KRAIT_MIN(report->limit, profile->count) : profile->count;
    krait_report_wall_heading(report, profile->wall_ns);
    rc = put(report, &homes, shown);
    if (homes.groups > 1 && report->format == REPORT_TABLE)
        krait_report_note_homes(report, true);
    krait_report_note_limit(report, profile->count, "row");
    if (!profile->count)
        krait_report_note_nothing(report);
    return rc ? krait_err_set(err, rc, "out of memory") : 0;
}
