/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report NEW... --diff OLD...`: which functions' time changed, and whether that can be told from chance.
 *
 * Each folder is one recording, a repeat of the same work. What is compared is time on the CPU where each of
 * them tells it, for what a program waits for is other programs' affair too; else wall time.
 */
#include "analysis/compare.h"
#include "analysis/profile.h"
#include "base/array.h"
#include "base/csv.h"
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/ending.h"
#include "cmd/omitted.h"
#include "cmd/report.h"
#include "cmd/state.h"

#include <math.h>
#include <string.h>

/* By enum krait_profile_by, those that krait_report_check_diff lets through. */
static const char *const rows_are[] = { "function", "module", "file" };

/* A function, or what else is compared, in all recordings. */
struct diff_row {
    const char *name, *module, *file;
    uint32_t line;
    enum krait_func_kind kind;
    bool holds_dropped;              /* in a recording of either side */
    uint32_t first_type, type_count; /* of diff.types, once they are sorted */
    double *numbers[2];              /* by recording, those of --diff first: wall time or calls; on CPU */
};

/* Exceptions of one type that left a function. */
struct diff_type {
    uint32_t row;
    const char *type;
    double numbers[2]; /* before and after: sums, then means */
};

struct diff {
    struct report *report;
    char **paths; /* of the recordings after */
    struct krait_strtab keys;
    struct krait_arena texts;
    struct diff_row *rows; /* by id of its key */
    uint32_t count, cap;
    struct krait_change *changes; /* by row */
    struct krait_change all;
    uint32_t before, recordings; /* those of --diff, and all */
    uint32_t clocked;            /* how many tell the time on CPU */
    uint32_t governed;           /* where --max-overhead left functions out */
    struct krait_buf missing;    /* what is missing from which, as notes */
    struct krait_buf each;       /* and for programs, with commas between */
    size_t offset, split_offset; /* of the number in krait_profile_row and krait_wall_split */
    bool counts;                 /* it is calls, or exceptions */
    bool raised;                 /* it is exceptions */
    struct krait_strtab type_names;
    struct krait_map type_of; /* row and name to the place in `types` */
    struct diff_type *types;  /* by row, the greatest change first */
    uint32_t type_count, type_cap;
};

/* -- reading -- */

static struct diff_row *add_row(struct diff *d, const struct krait_profile_row *row)
{
    KRAIT_AUTO_BUF key = { 0 };
    bool of_file = d->report->by == KRAIT_BY_FILE;
    krait_buf_fmt(&key, "%d\n%s\n%s", of_file ? 0 : (int)row->kind, row->module, row->name);
    uint32_t id = key.failed ? KRAIT_NO_ID : krait_strtab_add(&d->keys, key.data, key.len);
    if (id == KRAIT_NO_ID || id < d->count)
        return id == KRAIT_NO_ID ? NULL : &d->rows[id];
    if (!KRAIT_GROW(d->rows, d->cap, d->count + 1))
        return NULL;
    struct diff_row *new = &d->rows[d->count++];
    *new = (struct diff_row){ .name = krait_arena_strdup(&d->texts, row->name),
                              .module = krait_arena_strdup(&d->texts, row->module),
                              .file = krait_arena_strdup(&d->texts, row->file),
                              .line = row->line,
                              .kind = row->kind };
    for (int i = 0; i < 2; i++)
        new->numbers[i] = krait_arena_alloc(&d->texts, d->recordings * sizeof(*new->numbers[i]));
    return new->name &&new->module &&new->file &&new->numbers[0] && new->numbers[1] ? new : NULL;
}

static struct diff_type *type_at(struct diff *d, uint32_t row, const char *name)
{
    uint32_t id = krait_strtab_add(&d->type_names, name, strlen(name));
    uint64_t key = (uint64_t)row << 32 | id, *known = krait_map_get(&d->type_of, key);
    if (known)
        return &d->types[*known];
    if (id == KRAIT_NO_ID || !KRAIT_GROW(d->types, d->type_cap, d->type_count + 1) ||
        krait_map_put(&d->type_of, key, d->type_count))
        return NULL;
    d->types[d->type_count] = (struct diff_type){ .row = row, .type = d->type_names.texts[id] };
    return &d->types[d->type_count++];
}

static int add_types(struct diff *d, const struct krait_profile_row *row, uint32_t to, uint32_t recording)
{
    for (uint32_t i = 0; i < row->exception_count; i++) {
        struct diff_type *type = type_at(d, to, row->exceptions[i].type);
        if (!type)
            return -ENOMEM;
        type->numbers[recording >= d->before] += (double)row->exceptions[i].count;
    }
    return 0;
}

/* Of exceptions, only those that are meant, and what none left is not compared. */
static bool is_compared(const struct diff *d, struct krait_profile_row *row)
{
    const struct krait_match *filter = d->report->filter;
    if (d->report->exception)
        row->exception_count = krait_report_raised_filter(row->exceptions, row->exception_count,
                                                          d->report->exception, &row->raised);
    return (!filter || krait_match_func(filter, row->module, row->name, row->file)) &&
           (!d->raised || row->raised);
}

/* Functions of one name, as lambdas of a module, are one. */
static int add_profile(struct diff *d, const struct krait_profile *profile, uint32_t recording)
{
    for (uint32_t i = 0; i < profile->count; i++) {
        struct krait_profile_row *row = &profile->rows[i];
        if (!is_compared(d, row))
            continue;
        struct diff_row *to = add_row(d, row);
        if (!to || (d->raised && add_types(d, row, (uint32_t)(to - d->rows), recording)))
            return -ENOMEM;
        to->holds_dropped |= row->holds_dropped;
        to->numbers[0][recording] += (double)*(const uint64_t *)((const char *)row + d->offset);
        if (row->wall && !d->counts)
            to->numbers[1][recording] +=
                (double)((const uint64_t *)((const char *)row->wall + d->split_offset))[KRAIT_WALL_ON_CPU];
    }
    return 0;
}

static const char *path_of(const struct diff *d, uint32_t recording)
{
    return recording < d->before ? d->report->options->diff.items[recording]
                                 : d->paths[recording - d->before];
}

/* What is missing from a recording may be why it differs. */
static void keep_missing(struct diff *d, const struct krait_trace *trace, const char *damage,
                         uint32_t recording)
{
    const char *path = path_of(d, recording);
    KRAIT_AUTO_BUF whose = { 0 };
    krait_ending_whose(&whose, path);
    krait_ending_notes(&d->missing, trace, damage, whose.data ? whose.data : "");
    krait_buf_str(&d->each, recording ? ",\n{" : "\n{");
    krait_json_key_text(&d->each, "side", recording < d->before ? "before" : "after");
    krait_json_key_text(&d->each, "dir", path);
    krait_report_json_missing(&d->each, trace, damage);
    krait_buf_char(&d->each, '}');
    d->governed += trace->omitted_count > 0 || krait_omitted_paused(trace);
}

static int read_profile(struct diff *d, struct krait_trace *trace, uint32_t recording, struct krait_err *err)
{
    const struct krait_select *select = &d->report->options->select;
    struct krait_wall *wall = NULL;
    struct krait_profile *profile = NULL;
    int rc = krait_select_some(select, trace, err);
    rc = rc || d->counts ? rc : krait_state_wall(&wall, trace, "report", err);
    bool clocked = wall && krait_wall_has_kernel(wall);
    struct krait_profile_options options = {
        .range = krait_select_range(select, trace),
        .by = d->report->by,
        .take_thread = krait_select_thread,
        .ctx = (void *)select,
        .wall = clocked ? wall : NULL,
    };
    rc = rc ? rc : krait_profile_new(&profile, trace, &options, err);
    if (!rc && add_profile(d, profile, recording))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    if (!rc)
        keep_missing(d, trace, *trace->damage ? trace->damage : profile->damage, recording);
    d->clocked += clocked;
    krait_profile_free(profile);
    krait_wall_free(wall);
    return rc;
}

static int read_recording(struct diff *d, uint32_t recording, struct krait_err *err)
{
    struct krait_trace *trace = NULL;
    const char *path = path_of(d, recording);
    int rc = krait_trace_open(&trace, &path, 1, KRAIT_NEEDS_CALLS, err);
    if (!rc && krait_trace_find_holders(trace))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    rc = rc ? rc : read_profile(d, trace, recording, err);
    krait_trace_close(trace);
    return rc;
}

/* -- comparing -- */

static bool is_on_cpu(const struct diff *d)
{
    return !d->counts && d->clocked == d->recordings;
}

static struct krait_change change_of(const struct diff *d, const double *numbers)
{
    return krait_change_of(numbers, d->before, numbers + d->before, d->recordings - d->before);
}

/* What is certain first, then by the size of the change. */
static int compare_rows(const void *a, const void *b, void *ctx)
{
    const struct diff *d = ctx;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    double x = fabs(d->changes[i].after - d->changes[i].before),
           y = fabs(d->changes[j].after - d->changes[j].before);
    int certain = d->changes[j].certain - d->changes[i].certain;
    int order = strcmp(d->rows[i].module, d->rows[j].module);
    order = order ? order : strcmp(d->rows[i].name, d->rows[j].name);
    return certain ? certain : x != y ? (x < y) - (x > y) : order ? order : (i > j) - (i < j);
}

/* Of total times, which hold each other, there is no sum, nor of exceptions, which leave one function after another. */
static bool has_sum(const struct diff *d)
{
    return !d->raised && d->offset != offsetof(struct krait_profile_row, total_ns);
}

static int compare_types(const void *a, const void *b)
{
    const struct diff_type *x = a, *y = b;
    double u = fabs(x->numbers[1] - x->numbers[0]), v = fabs(y->numbers[1] - y->numbers[0]);
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return u != v ? (u < v) - (u > v) : strcmp(x->type, y->type);
}

/* Sums become means, and rows know which are theirs. */
static void settle_types(struct diff *d)
{
    for (uint32_t i = 0; i < d->type_count; i++) {
        d->types[i].numbers[0] /= d->before;
        d->types[i].numbers[1] /= d->recordings - d->before;
    }
    if (d->type_count)
        qsort(d->types, d->type_count, sizeof(*d->types), compare_types);
    for (uint32_t i = 0; i < d->type_count; i++) {
        struct diff_row *row = &d->rows[d->types[i].row];
        if (!row->type_count++)
            row->first_type = i;
    }
}

static int compare_all(struct diff *d)
{
    KRAIT_AUTO_FREE double *sums = calloc((size_t)d->recordings + 1, sizeof(*sums));
    d->changes = calloc((size_t)d->count + 1, sizeof(*d->changes));
    if (!sums || !d->changes)
        return -ENOMEM;
    for (uint32_t i = 0; i < d->count; i++) {
        const double *numbers = d->rows[i].numbers[is_on_cpu(d)];
        d->changes[i] = change_of(d, numbers);
        for (uint32_t r = 0; r < d->recordings; r++)
            sums[r] += numbers[r];
    }
    settle_types(d);
    d->all = change_of(d, sums);
    d->all.certain = d->all.known && d->all.p <= 1 - KRAIT_COMPARE_CONFIDENCE;
    return krait_changes_mark(d->changes, d->count);
}

/* -- the table -- */

static const char *number_text(const struct diff *d, char buf[KRAIT_FMT_SIZE], double x)
{
    uint64_t n = (uint64_t)llround(fabs(x));
    return d->counts ? krait_fmt_count(buf, n) : krait_fmt_ns(buf, n);
}

static void number_cell(const struct diff *d, struct krait_table *table, double x, const char *sign,
                        enum krait_style style)
{
    char text[KRAIT_FMT_SIZE], both[KRAIT_FMT_SIZE + 8];
    if (!d->counts) {
        krait_cell_change_ns(table, sign, (uint64_t)llround(fabs(x)), style);
        return;
    }
    snprintf(both, sizeof(both), "%s%s", sign, number_text(d, text, x));
    krait_table_cell(table, both, style, 0);
}

static const char *sign_of(double x)
{
    return x > 0 ? "+" : x < 0 ? "-" : "";
}

static void share_cell(struct krait_table *table, const struct krait_change *c)
{
    char text[KRAIT_FMT_SIZE];
    double change = c->after - c->before;
    if (c->before <= 0)
        snprintf(text, sizeof(text), change > 0 ? "new" : "-");
    else if (c->after <= 0)
        snprintf(text, sizeof(text), "gone");
    else
        snprintf(text, sizeof(text), "%+.1f%%", 100 * change / c->before);
    krait_table_cell(table, text, KRAIT_STYLE_NONE, 0);
}

/* "KeyError 1 -> 3, ValueError 2 -> 0": what changed most first. */
static void types_text(const struct diff *d, struct krait_buf *text, uint32_t row)
{
    char before[KRAIT_FMT_SIZE], after[KRAIT_FMT_SIZE];
    for (uint32_t i = 0; i < d->rows[row].type_count; i++) {
        const struct diff_type *type = &d->types[d->rows[row].first_type + i];
        krait_buf_str(text, i ? ", " : "");
        krait_fmt_safe(text, type->type);
        krait_buf_fmt(text, " %s -> %s", number_text(d, before, type->numbers[0]),
                      number_text(d, after, type->numbers[1]));
    }
}

static void row_cells(const struct diff *d, struct krait_table *table, uint32_t row)
{
    const struct krait_change *c = &d->changes[row];
    double change = c->after - c->before;
    enum krait_style style = !c->certain ? KRAIT_STYLE_NONE : change > 0 ? KRAIT_STYLE_HOT : KRAIT_STYLE_BOLD;
    KRAIT_AUTO_BUF name = { 0 };
    size_t bright = 0;
    number_cell(d, table, c->before, "", KRAIT_STYLE_NONE);
    number_cell(d, table, c->after, "", KRAIT_STYLE_NONE);
    number_cell(d, table, change, sign_of(change), style);
    if (d->all.known) {
        number_cell(d, table, (c->high - c->low) / 2, "", KRAIT_STYLE_DIM);
        krait_table_cell(table, c->certain ? "yes" : "no", style, 0);
    }
    share_cell(table, c);
    krait_func_row_label(&name, d->report->by == KRAIT_BY_FUNCTION ? d->rows[row].module : "",
                         d->rows[row].name, d->rows[row].kind, &bright);
    krait_func_row_mark(&name, d->rows[row].holds_dropped, &bright);
    krait_table_cell(table, name.data ? name.data : "",
                     d->rows[row].kind == KRAIT_FUNC_PYTHON ? KRAIT_STYLE_NONE : KRAIT_STYLE_C, bright);
    if (!d->raised)
        return;
    krait_buf_clear(&name);
    types_text(d, &name, row);
    krait_table_cell(table, name.len ? name.data : "", KRAIT_STYLE_NONE, 0);
}

static int put_table(const struct diff *d, const uint32_t *order, uint32_t shown)
{
    static const struct krait_column columns[] = {
        { "before", 0, 0, 2 },
        { "after", 0, 0, 0 },
        { "change", 0, 0, 0 },
        { "+/-", 0, 0, 1 },
        { "beyond chance", 0, 0, 0 },
        { "change%", 0, 0, 3 },
        { "function", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 24, 0 },
        { "exceptions", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 14, 0 },
    };
    enum { COUNT = KRAIT_ARRAY_LEN(columns), MARGIN = 3, ROW = COUNT - 2, TYPES = COUNT - 1 };
    struct krait_column used[COUNT];
    uint32_t n = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        bool of_margin = i == MARGIN || i == MARGIN + 1;
        if ((d->all.known || !of_margin) && (d->raised || i != TYPES))
            used[n++] = columns[i];
        if (i == ROW)
            used[n - 1].title = rows_are[d->report->by];
    }
    struct krait_table *table;
    if (krait_table_new(&table, used, n))
        return -ENOMEM;
    for (uint32_t i = 0; i < shown; i++)
        row_cells(d, table, order[i]);
    int rc = krait_table_print(table, &d->report->look, &d->report->out);
    krait_table_free(table);
    return rc;
}

/* -- for programs -- */

static const char *measure(const struct diff *d)
{
    return d->raised ? "raised" : d->counts ? "calls" : is_on_cpu(d) ? "on_cpu_ns" : "wall_ns";
}

static void json_number(struct krait_buf *out, const char *key, double x, bool known)
{
    krait_json_key(out, key);
    if (known)
        krait_buf_fmt(out, "%.1f", x);
    else
        krait_buf_str(out, "null");
}

static void json_change(struct krait_buf *out, const struct krait_change *c)
{
    json_number(out, "before", c->before, true);
    json_number(out, "after", c->after, true);
    json_number(out, "change", c->after - c->before, true);
    json_number(out, "low", c->low, c->known);
    json_number(out, "high", c->high, c->known);
    if (c->known)
        krait_json_key_bool(out, "certain", c->certain);
    else
        krait_json_key_null(out, "certain");
}

static void json_each(struct krait_buf *out, const char *key, const double *numbers, uint32_t count)
{
    krait_json_key(out, key);
    for (uint32_t i = 0; i < count; i++)
        krait_buf_fmt(out, "%s%.0f", i ? "," : "[", numbers[i]);
    krait_buf_char(out, ']');
}

static void json_types(const struct diff *d, struct krait_buf *out, const struct diff_row *row)
{
    krait_json_key_open(out, "exceptions", '{');
    for (uint32_t i = 0; i < row->type_count; i++) {
        const struct diff_type *type = &d->types[row->first_type + i];
        krait_json_key_open(out, type->type, '{');
        json_number(out, "before", type->numbers[0], true);
        json_number(out, "after", type->numbers[1], true);
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, '}');
}

static void put_json(const struct diff *d, const uint32_t *order, uint32_t shown)
{
    struct krait_buf *out = &d->report->out;
    krait_buf_char(out, '{');
    krait_json_key_text(out, "measure", measure(d));
    krait_json_key_u64(out, "recordings_before", d->before);
    krait_json_key_u64(out, "recordings_after", d->recordings - d->before);
    krait_json_key(out, "confidence");
    krait_buf_fmt(out, "%g", KRAIT_COMPARE_CONFIDENCE);
    if (has_sum(d)) {
        krait_json_key_open(out, "all", '{');
        json_change(out, &d->all);
        krait_buf_char(out, '}');
    }
    krait_json_key_open(out, "functions", '[');
    for (uint32_t i = 0; i < shown; i++) {
        const struct diff_row *row = &d->rows[order[i]];
        const double *numbers = row->numbers[is_on_cpu(d)];
        krait_json_item(out, "\n{");
        krait_func_row_json(out, row->name, row->module, row->file, row->line,
                            krait_func_row_kind(row->kind));
        json_change(out, &d->changes[order[i]]);
        if (d->raised)
            json_types(d, out, row);
        json_each(out, "each_before", numbers, d->before);
        json_each(out, "each_after", numbers + d->before, d->recordings - d->before);
        krait_func_row_json_holds(out, row->holds_dropped);
        krait_buf_char(out, '}');
    }
    krait_buf_str(out, "],\"recordings\":[");
    krait_buf_add(out, d->each.data, d->each.len);
    krait_buf_str(out, "]}\n");
    out->failed |= d->each.failed;
}

static void csv_types(const struct diff *d, struct krait_buf *out, uint32_t row)
{
    KRAIT_AUTO_BUF text = { 0 };
    types_text(d, &text, row);
    krait_buf_char(out, ',');
    krait_csv_cstr(out, text.data ? text.data : "");
    out->failed |= text.failed;
}

static void put_csv(const struct diff *d, const uint32_t *order, uint32_t shown)
{
    struct krait_buf *out = &d->report->out;
    krait_buf_str(out, KRAIT_FUNC_ROW_CSV
                  ",measure,before,after,change,low,high,certain" KRAIT_FUNC_ROW_CSV_HOLDS);
    krait_buf_str(out, d->raised ? ",exceptions\n" : "\n");
    for (uint32_t i = 0; i < shown; i++) {
        const struct diff_row *row = &d->rows[order[i]];
        const struct krait_change *c = &d->changes[order[i]];
        krait_func_row_csv(out, row->name, row->module, row->file, row->line, krait_func_row_kind(row->kind));
        krait_buf_fmt(out, ",%s,%.1f,%.1f,%.1f", measure(d), c->before, c->after, c->after - c->before);
        if (c->known)
            krait_buf_fmt(out, ",%.1f,%.1f,%s", c->low, c->high, c->certain ? "true" : "false");
        else
            krait_buf_str(out, ",,,");
        krait_func_row_csv_holds(out, row->holds_dropped);
        if (d->raised)
            csv_types(d, out, order[i]);
        krait_buf_char(out, '\n');
    }
}

/* -- in words -- */

static void say_recordings(const struct diff *d, struct krait_buf *notes)
{
    char before[KRAIT_FMT_SIZE], after[KRAIT_FMT_SIZE];
    krait_buf_fmt(notes, "%s before, %s after; ", krait_fmt_counted(before, d->before, "recording"),
                  krait_fmt_counted(after, d->recordings - d->before, "recording"));
    if (d->raised)
        krait_buf_str(notes, "how often exceptions left each is compared\n");
    else if (d->counts)
        krait_buf_str(notes, "calls of each are compared\n");
    else if (is_on_cpu(d))
        krait_buf_str(notes, "time on the CPU is compared\n");
    else
        krait_buf_fmt(notes,
                      "wall time is compared, waits and all: time on the CPU is told by %u of %u "
                      "(krait record --kernel)\n",
                      d->clocked, d->recordings);
}

static const char *thing(const struct diff *d)
{
    return d->counts ? "calls" : is_on_cpu(d) ? "time on the CPU" : "wall time of all threads";
}

static void say_all(const struct diff *d, struct krait_buf *notes)
{
    char a[KRAIT_FMT_SIZE], b[KRAIT_FMT_SIZE], c[KRAIT_FMT_SIZE];
    double change = d->all.after - d->all.before;
    krait_buf_fmt(notes, "in all%s: %s %s before and %s after, ", d->report->filter ? " that match" : "",
                  thing(d), number_text(d, a, d->all.before), number_text(d, b, d->all.after));
    if (change == 0)
        krait_buf_str(notes, "the same");
    else
        krait_buf_fmt(notes, "%s %s", number_text(d, c, change), change > 0 ? "more" : "less");
    if (change != 0 && d->all.before > 0)
        krait_buf_fmt(notes, " (%+.1f%%)", 100 * change / d->all.before);
    if (d->all.known && change != 0)
        krait_buf_fmt(notes, "; with %.0f%% confidence the change is between %s%s and %s%s%s",
                      100 * KRAIT_COMPARE_CONFIDENCE, sign_of(d->all.low), number_text(d, a, d->all.low),
                      sign_of(d->all.high), number_text(d, b, d->all.high),
                      d->all.certain ? "" : ": it may be chance");
    krait_buf_char(notes, '\n');
}

static void say_functions(const struct diff *d, struct krait_buf *notes)
{
    char compared[KRAIT_FMT_SIZE], certain[KRAIT_FMT_SIZE];
    const char *row = rows_are[d->report->by];
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->count; i++)
        n += d->changes[i].certain;
    if (!d->all.known)
        krait_buf_str(notes,
                      "one recording cannot tell a change from chance: record each side several times, as in "
                      "krait report new1 new2 new3 --diff old1 --diff old2 --diff old3\n");
    else if (!n)
        krait_buf_fmt(notes, "of %s, none changed beyond chance; more recordings tell smaller changes\n",
                      krait_fmt_counted(compared, d->count, row));
    else
        krait_buf_fmt(notes, "of %s, %s changed beyond chance\n", krait_fmt_counted(compared, d->count, row),
                      krait_fmt_count(certain, n));
    if (d->all.known && d->count > 1 && d->report->format == REPORT_TABLE)
        krait_buf_fmt(
            notes,
            "beyond chance: of many %ss some change by chance alone, so each is judged among all %u; a "
            "change larger than its +/- may be 'no', and one 'yes' in twenty is chance still\n",
            row, d->count);
    if (d->governed)
        krait_buf_str(
            notes,
            "some recordings were made with --max-overhead, which dropped functions or paused: changes may "
            "come from that\n");
}

static void say(const struct diff *d)
{
    struct krait_buf *notes = &d->report->notes;
    if (!d->count && d->raised && !d->report->exception) {
        krait_buf_str(notes, "no function was left by an exception\n");
    } else if (!d->count) {
        krait_report_note_nothing(d->report);
    } else {
        say_recordings(d, notes);
        if (has_sum(d))
            say_all(d, notes);
        say_functions(d, notes);
    }
    krait_buf_add(notes, d->missing.data, d->missing.len);
    notes->failed |= d->missing.failed;
}

/* -- the verb's part -- */

static uint32_t *order_rows(const struct diff *d, uint32_t *changed)
{
    uint32_t *order = calloc((size_t)d->count + 1, sizeof(*order));
    *changed = 0;
    for (uint32_t i = 0; order && i < d->count; i++) {
        order[i] = i;
        *changed += d->changes[i].after != d->changes[i].before;
    }
    if (order)
        qsort_r(order, d->count, sizeof(*order), compare_rows, (void *)d);
    return order;
}

static int put_diff(struct diff *d)
{
    struct report *report = d->report;
    uint32_t changed;
    KRAIT_AUTO_FREE uint32_t *order = compare_all(d) ? NULL : order_rows(d, &changed);
    if (!order)
        return -ENOMEM;
    uint32_t all = report->format == REPORT_TABLE ? changed : d->count;
    uint32_t shown = report->limit ? KRAIT_MIN(report->limit, all) : all;
    int rc = 0;
    if (report->format == REPORT_TABLE)
        rc = shown ? put_table(d, order, shown) : 0;
    else if (report->format == REPORT_JSON)
        put_json(d, order, shown);
    else
        put_csv(d, order, shown);
    if (shown < all && report->format == REPORT_TABLE)
        krait_report_note_more(report, all - shown);
    say(d);
    return rc;
}

static void choose_number(struct diff *d)
{
    const char *sort = d->report->options->sort;
    bool total = sort && strcmp(sort, "total") == 0;
    d->raised = d->report->exception || (sort && strcmp(sort, "raised") == 0);
    d->counts = d->raised || (sort && strcmp(sort, "calls") == 0);
    d->offset = d->raised   ? offsetof(struct krait_profile_row, raised)
                : d->counts ? offsetof(struct krait_profile_row, calls)
                : total     ? offsetof(struct krait_profile_row, total_ns)
                            : offsetof(struct krait_profile_row, self_ns);
    d->split_offset =
        total ? offsetof(struct krait_wall_split, total_ns) : offsetof(struct krait_wall_split, self_ns);
}

int krait_report_diff(struct report *report, char **paths, size_t count, struct krait_err *err)
{
    size_t before = report->options->diff.count;
    struct diff d = {
        .report = report, .paths = paths, .before = (uint32_t)before, .recordings = (uint32_t)(before + count)
    };
    int rc = 0;
    choose_number(&d);
    for (uint32_t i = 0; i < d.recordings && !rc; i++)
        rc = read_recording(&d, i, err);
    if (!rc && (put_diff(&d) || report->out.failed))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    krait_strtab_done(&d.keys);
    krait_arena_done(&d.texts);
    krait_buf_done(&d.missing);
    krait_buf_done(&d.each);
    krait_strtab_done(&d.type_names);
    krait_map_done(&d.type_of);
    free(d.types);
    free(d.rows);
    free(d.changes);
    return rc;
}

int krait_report_check_diff(const struct report_options *o, struct krait_err *err)
{
    static const char *const numbers[] = { "self", "total", "calls", "raised" };
    bool fits = !o->sort;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(numbers) && !fits; i++)
        fits = strcmp(o->sort, numbers[i]) == 0;
    if (o->tree || o->callers || o->callees || o->why || o->cycles)
        return krait_err_set(err, -EINVAL,
                             "--diff is for tables of functions, without --tree, --callers, --callees, --why "
                             "and --cycles");
    if (!fits || (o->exception && o->sort && strcmp(o->sort, "raised") != 0))
        return krait_err_set(err, -EINVAL, "--diff compares --sort %s, not %s",
                             o->exception ? "raised with --exception" : "self, total, calls or raised",
                             o->sort);
    if (o->by && strcmp(o->by, "function") != 0 && strcmp(o->by, "module") != 0 && strcmp(o->by, "file") != 0)
        return krait_err_set(err, -EINVAL,
                             "--diff goes with --by function, module or file: recordings have no threads, "
                             "processes or lines in common");
    return 0;
}
