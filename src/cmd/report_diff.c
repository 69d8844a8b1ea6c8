/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report NEW... --diff OLD...`: which functions' time changed, and whether that can be told from chance.
 *
 * Each folder is one recording, a repeat of the same work. krait compares on-CPU time if every recording has it,
 * because waits depend on other programs too; otherwise wall time.
 */
#include "cmd/report_diff.h"
#include "analysis/profile.h"
#include "base/array.h"
#include "base/json.h"
#include "cmd/cost_line.h"
#include "cmd/ending.h"
#include "cmd/omitted.h"
#include "cmd/state.h"

#include <math.h>
#include <string.h>

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
static void keep_missing(struct diff *d, const struct krait_trace *trace, struct krait_range range,
                         const char *damage, uint32_t recording)
{
    const char *path = path_of(d, recording);
    KRAIT_AUTO_BUF whose = { 0 };
    krait_ending_whose(&whose, path);
    krait_ending_notes(&d->missing, trace, range, damage, whose.data ? whose.data : "");
    krait_buf_str(&d->each, recording ? ",\n{" : "\n{");
    krait_json_key_text(&d->each, "side", recording < d->before ? "before" : "after");
    krait_json_key_text(&d->each, "dir", path);
    krait_report_json_missing(&d->each, trace, range, damage);
    krait_buf_char(&d->each, '}');
    d->governed += trace->omitted_count > 0 || krait_omitted_paused(trace);
}

static int read_profile(struct diff *d, struct krait_trace *trace, uint32_t recording, struct krait_err *err)
{
    const struct krait_select *select = &d->report->options->select;
    struct krait_wall *wall = NULL;
    struct krait_profile *profile = NULL;
    bool corrected;
    int rc = krait_cost_compensate(d->report->options->compensate, trace, &corrected, err);
    if (rc)
        return krait_err_prefix(err, rc, "%s", path_of(d, recording));
    rc = krait_select_some(select, trace, err);
    rc = rc || d->counts ? rc : krait_state_wall(&wall, trace, "report", err);
    bool clocked = wall && krait_wall_has_kernel(wall);
    struct krait_profile_options options = {
        .range = krait_select_range(select, trace),
        .by = d->report->by,
        .take_thread = krait_select_thread,
        .ctx = (void *)select,
        .corrected = corrected,
        .wall = clocked ? wall : NULL,
    };
    rc = rc ? rc : krait_profile_new(&profile, trace, &options, err);
    if (!rc && add_profile(d, profile, recording))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    if (!rc)
        keep_missing(d, trace, options.range, *trace->damage ? trace->damage : profile->damage, recording);
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
    rc = rc ? rc : krait_report_check_sort(d->report->options->sort, trace, err);
    rc = rc ? rc : read_profile(d, trace, recording, err);
    krait_trace_close(trace);
    return rc;
}

/* -- comparing -- */

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
        const double *numbers = d->rows[i].numbers[krait_diff_is_on_cpu(d)];
        d->changes[i] = change_of(d, numbers);
        for (uint32_t r = 0; r < d->recordings; r++)
            sums[r] += numbers[r];
    }
    settle_types(d);
    d->all = change_of(d, sums);
    d->all.certain = d->all.known && d->all.p <= 1 - KRAIT_COMPARE_CONFIDENCE;
    return krait_changes_mark(d->changes, d->count);
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
    int rc = krait_diff_print(d, order, shown);
    krait_report_note_limit(report, all, "row");
    krait_diff_note(d);
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
    if (o->select.within)
        return krait_err_set(err, -EINVAL, "--within does not go with --diff");
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
