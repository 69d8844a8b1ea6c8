/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of `krait intervals`: what all intervals of a name are together, and each of them.
 */
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/ending.h"
#include "cmd/intervals.h"
#include "cmd/omitted.h"

#include <math.h>
#include <string.h>

const char *krait_intervals_name(const struct intervals *intervals, const struct krait_interval_row *row)
{
    return intervals->rules.items[row->rule].name;
}

const char *krait_intervals_key(const struct intervals_of *of, uint32_t key)
{
    return key == KRAIT_NO_ID ? NULL : of->found.keys.texts[key];
}

/* -- columns: of all together -- */

#define ROW(member) krait_sheet_number_at, offsetof(struct intervals_row, row.member)

static struct krait_sheet_cell get_rounded(void *of, const void *row, size_t offset)
{
    double ns = *(const double *)((const char *)row + offset);
    return krait_sheet_number((uint64_t)llround(ns));
}

static const struct krait_sheet_column row_columns[] = {
    { { "intervals", 0, 0, 0 }, "intervals", KRAIT_SHEET_COUNT, 0, ROW(count) },
    { { "total", 0, 0, 2 }, "total_ns", KRAIT_SHEET_NS, KRAIT_SHEET_DASH, ROW(total_ns) },
    { { "min", 0, 0, 5 }, "min_ns", KRAIT_SHEET_NS, KRAIT_SHEET_DASH, ROW(min_ns) },
    { { "mean", 0, 0, 1 },
      "mean_ns",
      KRAIT_SHEET_NS,
      KRAIT_SHEET_DASH,
      get_rounded,
      offsetof(struct intervals_row, row.mean_ns) },
    { { "median", 0, 0, 0 }, "median_ns", KRAIT_SHEET_NS, KRAIT_SHEET_DASH, ROW(median_ns) },
    { { "p90", 0, 0, 6 }, "p90_ns", KRAIT_SHEET_NS, KRAIT_SHEET_DASH, ROW(p90_ns) },
    { { "p99", 0, 0, 3 }, "p99_ns", KRAIT_SHEET_NS, KRAIT_SHEET_DASH, ROW(p99_ns) },
    { { "max", 0, 0, 0 }, "max_ns", KRAIT_SHEET_NS, KRAIT_SHEET_DASH, ROW(max_ns) },
    { { "std dev", 0, 0, 4 },
      "deviation_ns",
      KRAIT_SHEET_NS,
      KRAIT_SHEET_DASH,
      get_rounded,
      offsetof(struct intervals_row, row.deviation_ns) },
    { { "no stop", 0, 0, 0 },
      "no_stop",
      KRAIT_SHEET_COUNT,
      KRAIT_SHEET_QUIET | KRAIT_SHEET_DASH,
      ROW(no_stop) },
    { { "no start", 0, 0, 0 },
      "no_start",
      KRAIT_SHEET_COUNT,
      KRAIT_SHEET_QUIET | KRAIT_SHEET_DASH,
      ROW(no_start) },
    { { "no key", 0, 0, 0 }, "no_key", KRAIT_SHEET_COUNT, KRAIT_SHEET_QUIET | KRAIT_SHEET_DASH, ROW(no_key) },
    { { "starts", 0, 0, 0 }, "starts", KRAIT_SHEET_COUNT, KRAIT_SHEET_DATA, ROW(starts) },
    { { "stops", 0, 0, 0 }, "stops", KRAIT_SHEET_COUNT, KRAIT_SHEET_DATA, ROW(stops) },
    INTERVALS_NAME_COLUMNS(struct intervals_row, name, key),
};

#undef ROW

/* -- columns: of each -- */

/* An interval as a row. */
struct listed {
    uint64_t begin_ns, duration_ns; /* begin: after the trace's */
    struct intervals_place place;
    const char *end_thread, *end_process; /* NULL: the same as it begins in */
    uint64_t end_pid, end_tid;
    const struct krait_interval *interval;
};

#define NUMBER(member) krait_sheet_number_at, offsetof(struct listed, member)
#define NAME(member)   krait_sheet_name_at, offsetof(struct listed, member)

static const struct krait_sheet_column list_columns[] = {
    { { "begin", 0, 0, 0 }, "begin_ns", KRAIT_SHEET_TIME, 0, NUMBER(begin_ns) },
    { { "duration", 0, 0, 0 }, "duration_ns", KRAIT_SHEET_NS, 0, NUMBER(duration_ns) },
    INTERVALS_PLACE_COLUMNS(struct listed),
    { { "ends in", KRAIT_COLUMN_LEFT, 0, 2 },
      "end_thread",
      KRAIT_SHEET_NAME,
      KRAIT_SHEET_DASH | KRAIT_SHEET_QUIET,
      NAME(end_thread) },
    { { "in process", KRAIT_COLUMN_LEFT, 0, 6 },
      "end_process",
      KRAIT_SHEET_NAME,
      KRAIT_SHEET_DASH | KRAIT_SHEET_QUIET,
      NAME(end_process) },
    { { "in pid", 0, 0, 3 },
      "end_pid",
      KRAIT_SHEET_NUMBER,
      KRAIT_SHEET_DASH | KRAIT_SHEET_QUIET,
      NUMBER(end_pid) },
    { { NULL, 0, 0, 0 }, "end_tid", KRAIT_SHEET_NUMBER, KRAIT_SHEET_DATA, NUMBER(end_tid) },
};

#undef NUMBER
#undef NAME

const struct krait_track *krait_intervals_track(const struct intervals_of *of, uint32_t track)
{
    static const struct krait_track none = { .of = KRAIT_OF_GROUP, .name = "", .process_name = "" };
    return track == KRAIT_NO_ID ? &none : &of->trace->tracks[track];
}

/* The thread of a task's spans; NULL: the track is none's that was recorded. */
static const struct krait_thread *thread_of(const struct intervals_of *of, const struct krait_track *track)
{
    bool is_tasks = track->of == KRAIT_OF_TASK && track->thread != KRAIT_NO_ID;
    return is_tasks ? &of->trace->threads[track->thread] : NULL;
}

/* A track's thread, or a stream's own name. */
static const char *thread_name(const struct intervals_of *of, const struct krait_track *track)
{
    const struct krait_thread *thread = thread_of(of, track);
    return thread ? thread->name : track->of == KRAIT_OF_THREAD ? track->thread_name : track->name;
}

struct intervals_place krait_intervals_place(const struct intervals_of *of, const struct krait_track *track,
                                             const char *name, uint32_t key)
{
    const struct krait_thread *thread = thread_of(of, track);
    return (struct intervals_place){
        .pid = track->pid ? track->pid : KRAIT_SHEET_NONE,
        .tid = thread                         ? thread->tid
               : track->of == KRAIT_OF_THREAD ? track->number
                                              : KRAIT_SHEET_NONE,
        .name = name,
        .key = krait_intervals_key(of, key),
        .process = track->process_name,
        .thread = thread_name(of, track),
    };
}

static struct listed listed_of(const struct intervals *intervals, const struct krait_interval *interval)
{
    const struct intervals_of *of = &intervals->of;
    const struct krait_track *begin = krait_intervals_track(of, interval->begin_track),
                             *end = krait_intervals_track(of, interval->end_track);
    const char *name = krait_intervals_name(intervals, &of->found.rows[interval->row]);
    struct intervals_place in = krait_intervals_place(of, end, name, interval->key);
    bool is_same = begin == end, is_in_process = is_same || in.pid == begin->pid;
    return (struct listed){
        .begin_ns = interval->begin_ns - KRAIT_MIN(of->zero_ns, interval->begin_ns),
        .duration_ns = interval->end_ns - interval->begin_ns,
        .place = krait_intervals_place(of, begin, name, interval->key),
        .end_thread = is_same ? NULL : in.thread,
        .end_tid = is_same ? KRAIT_SHEET_NONE : in.tid,
        .end_process = is_in_process ? NULL : in.process,
        .end_pid = is_in_process ? KRAIT_SHEET_NONE : in.pid,
        .interval = interval,
    };
}

/* -- columns: of states that follow each other -- */

struct transition {
    uint64_t count, share; /* millionths of all that leave `from` */
    const char *name, *from, *to;
};

#define NUMBER(member) krait_sheet_number_at, offsetof(struct transition, member)
#define NAME(member)   krait_sheet_name_at, offsetof(struct transition, member)

static const struct krait_sheet_column transition_columns[] = {
    { { "times", 0, 0, 0 }, "count", KRAIT_SHEET_COUNT, 0, NUMBER(count) },
    { { "share", 0, 0, 0 }, "share", KRAIT_SHEET_SHARE, 0, NUMBER(share) },
    { { "from", KRAIT_COLUMN_LEFT, 0, 0 }, "from", KRAIT_SHEET_NAME, 0, NAME(from) },
    { { "to", KRAIT_COLUMN_LEFT, 0, 0 }, "to", KRAIT_SHEET_NAME, 0, NAME(to) },
    { { "name", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 8, 0 }, "name", KRAIT_SHEET_NAME, 0, NAME(name) },
};

#undef NUMBER
#undef NAME

static uint64_t share_of(const struct krait_intervals *found, const struct krait_transition *of)
{
    enum { MILLION = 1000000 };
    uint64_t all = 0;
    for (uint32_t i = 0; i < found->transition_count; i++) {
        const struct krait_transition *other = &found->transitions[i];
        all += other->rule == of->rule && other->from == of->from ? other->count : 0;
    }
    return (uint64_t)((unsigned __int128)of->count * MILLION / all);
}

/* -- output -- */

void krait_intervals_note_missing(struct intervals *intervals, const struct intervals_of *of,
                                  const char *whose)
{
    krait_ending_notes_without_kernel(&intervals->notes, of->trace,
                                      krait_select_range(&intervals->options->select, of->trace), of->damage,
                                      whose);
    if (of->found.of_kernel)
        krait_ending_note_kernel_lost(&intervals->notes, of->trace, krait_trace_kernel_lost(of->trace),
                                      "intervals and values that they told are missing");
    if (of->found.given_up)
        krait_buf_fmt(&intervals->notes, "warning: %s", whose);
    krait_intervals_note_given_up(&intervals->notes, &of->found);
}

void krait_intervals_json_open(struct intervals *intervals, const struct intervals_of *of)
{
    struct krait_buf *out = &intervals->out;
    krait_buf_char(out, '{');
    krait_json_key_u64(out, "begin_ns", of->zero_ns);
    krait_json_key_u64(out, "messages", of->found.messages);
    krait_json_key_u64(out, "given_up", of->found.given_up);
}

void krait_intervals_json_close(struct intervals *intervals, const struct intervals_of *of)
{
    krait_omitted_json(&intervals->out, of->trace);
    krait_json_key_text_or_null(&intervals->out, "damage", of->damage);
    krait_buf_char(&intervals->out, '}');
}

/* The first rows of the table, which are plotted. */
static int keep_shown(struct intervals *intervals, const struct krait_sheet *sheet)
{
    uint32_t most = intervals->plot_limit, rows = most ? KRAIT_MIN(most, sheet->rows) : sheet->rows, name = 0;
    struct krait_arena *arena = &intervals->rules.arena;
    intervals->shown = krait_arena_alloc(arena, ((size_t)rows + 1) * sizeof(*intervals->shown));
    while (strcmp(sheet->columns[name].key, "name") != 0)
        name++;
    bool has_keys = name + 1 < sheet->column_count;
    for (uint32_t i = 0; intervals->shown && i < rows; i++) {
        const struct krait_sheet_cell *cells = sheet->cells + (size_t)i * sheet->column_count + name;
        intervals->shown[i] = (struct intervals_label){ cells[0].name, has_keys ? cells[1].name : NULL };
    }
    intervals->shown_count = rows;
    return intervals->shown ? 0 : -ENOMEM;
}

int krait_intervals_print(struct intervals *intervals, struct krait_sheet *sheet, const char *sort,
                          const char *key)
{
    struct krait_buf *out = &intervals->out;
    struct krait_err *err = intervals->err;
    sort = intervals->options->sort ? intervals->options->sort : sort;
    int rc = sheet->failed ? -ENOMEM : sort ? krait_sheet_sort(sheet, sort, err) : 0;
    if (!rc && intervals->options->csv)
        rc = krait_sheet_csv(sheet, intervals->limit, out);
    else if (!rc && intervals->options->json)
        krait_json_key(out, key);
    if (!rc && intervals->options->json)
        rc = krait_sheet_json(sheet, intervals->limit, out);
    if (!rc && !intervals->options->json && !intervals->options->csv) {
        krait_sheet_note_limit(&intervals->notes, intervals->limit, sheet->rows, "row");
        if (out->len && sheet->rows)
            krait_buf_char(out, '\n');
        rc = krait_sheet_table(sheet, intervals->limit, &intervals->look, out);
    }
    if (!rc && intervals->options->plot)
        rc = keep_shown(intervals, sheet);
    return rc == -ENOMEM ? krait_err_set(err, rc, "out of memory") : rc;
}

/* Whether rows have keys: of --by key, or states. */
static bool have_keys(const struct intervals *intervals)
{
    bool have = false;
    for (uint32_t i = 0; i < intervals->rules.count; i++) {
        const struct krait_interval_rule *rule = &intervals->rules.items[i];
        have |= !rule->is_hidden &&
                (rule->kind == KRAIT_RULE_STATES || (rule->by_key && rule->kind != KRAIT_RULE_SIGNAL));
    }
    return have;
}

struct krait_sheet krait_intervals_sheet(struct intervals *intervals)
{
    struct krait_sheet_column *own = krait_arena_alloc(&intervals->rules.arena, sizeof(row_columns));
    struct krait_sheet sheet = { .columns = own ? own : row_columns,
                                 .column_count = KRAIT_ARRAY_LEN(row_columns) - !have_keys(intervals),
                                 .failed = !own };
    if (own) {
        memcpy(own, row_columns, sizeof(row_columns));
        krait_intervals_head_key(intervals, own, KRAIT_ARRAY_LEN(row_columns));
    }
    return sheet;
}

int krait_intervals_table(struct intervals *intervals)
{
    const struct krait_intervals *found = &intervals->of.found;
    KRAIT_CLEANUP(krait_sheet_done) struct krait_sheet sheet = krait_intervals_sheet(intervals);
    for (uint32_t i = 0; i < found->row_count; i++) {
        const struct krait_interval_row *row = &found->rows[i];
        bool is_empty =
            row->key != KRAIT_NO_ID && !(row->starts || row->stops || row->no_start || row->no_key);
        if (is_empty) /* a state that became another one */
            continue;
        krait_sheet_add(
            &sheet, &(struct intervals_row){ found->rows[i], krait_intervals_name(intervals, &found->rows[i]),
                                             krait_intervals_key(&intervals->of, found->rows[i].key) });
    }
    return krait_intervals_print(intervals, &sheet,
                                 intervals->options->select.analyses.count ? "name,total_ns" : NULL, "rows");
}

uint32_t krait_intervals_shown(const struct intervals *intervals)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < intervals->rules.count; i++)
        count += !intervals->rules.items[i].is_hidden;
    return count;
}

uint32_t krait_intervals_of_kind(const struct intervals *intervals, enum krait_rule_kind kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < intervals->rules.count; i++)
        count += intervals->rules.items[i].kind == kind && !intervals->rules.items[i].is_hidden;
    return count;
}

/* The fields of segments (intervals.h), each a column. */
struct list_fields {
    const struct krait_intervals *found;
    const char **names;
    struct krait_sheet_column *columns;
    uint32_t count;
};

static struct krait_sheet_cell get_field(void *of, const void *row, size_t number)
{
    const struct list_fields *fields = of;
    const struct listed *listed = row;
    return krait_sheet_name(krait_interval_field(fields->found, listed->interval, fields->names[number]));
}

static int add_field(struct krait_arena *arena, struct list_fields *fields, const char *name)
{
    uint32_t n = fields->count;
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(fields->names[i], name) == 0)
            return 0;
    }
    const char *key = krait_arena_fmt(arena, "field.%s", name);
    fields->names[n] = name;
    fields->columns[KRAIT_ARRAY_LEN(list_columns) + n] =
        (struct krait_sheet_column){ { name, KRAIT_COLUMN_LEFT, 0, 6 },    key,       KRAIT_SHEET_NAME,
                                     KRAIT_SHEET_DASH | KRAIT_SHEET_QUIET, get_field, n };
    fields->count++;
    return key ? 0 : -ENOMEM;
}

/* All columns of the list: those of fields are called field.NAME, since others may have that name. */
static int add_field_columns(struct intervals *intervals, struct list_fields *fields)
{
    struct krait_arena *arena = &intervals->rules.arena;
    size_t most = 0;
    int rc = 0;
    for (uint32_t i = 0; i < intervals->rules.count; i++) {
        for (const char *const *at = intervals->rules.items[i].fields; at && *at; at++)
            most++;
    }
    fields->names = krait_arena_alloc(arena, (most + 1) * sizeof(*fields->names));
    fields->columns = krait_arena_alloc(arena, sizeof(list_columns) + most * sizeof(*fields->columns));
    if (!fields->names || !fields->columns)
        return -ENOMEM;
    memcpy(fields->columns, list_columns, sizeof(list_columns));
    krait_intervals_head_key(intervals, fields->columns, KRAIT_ARRAY_LEN(list_columns));
    for (uint32_t i = 0; i < intervals->rules.count && !rc; i++) {
        bool is_shown = !intervals->rules.items[i].is_hidden;
        for (const char *const *at = intervals->rules.items[i].fields; at && *at && is_shown && !rc; at++)
            rc = add_field(arena, fields, *at);
    }
    return rc;
}

int krait_intervals_list(struct intervals *intervals)
{
    struct list_fields fields = { .found = &intervals->of.found };
    if (add_field_columns(intervals, &fields))
        return krait_err_set(intervals->err, -ENOMEM, "out of memory");
    KRAIT_CLEANUP(krait_sheet_done)
    struct krait_sheet sheet = { .columns = fields.columns,
                                 .of = &fields,
                                 .column_count = (uint32_t)KRAIT_ARRAY_LEN(list_columns) + fields.count };
    for (size_t i = 0; i < intervals->of.found.count && !sheet.failed; i++) {
        const struct listed listed = listed_of(intervals, &intervals->of.found.items[i]);
        krait_sheet_add(&sheet, &listed);
    }
    return krait_intervals_print(intervals, &sheet, "begin_ns", "list");
}

int krait_intervals_transitions(struct intervals *intervals)
{
    const struct krait_intervals *found = &intervals->of.found;
    KRAIT_CLEANUP(krait_sheet_done)
    struct krait_sheet sheet = { .columns = transition_columns,
                                 .column_count = KRAIT_ARRAY_LEN(transition_columns) };
    for (uint32_t i = 0; i < found->transition_count; i++) {
        const struct krait_transition *of = &found->transitions[i];
        krait_sheet_add(&sheet, &(struct transition){ .count = of->count,
                                                      .share = share_of(found, of),
                                                      .name = intervals->rules.items[of->rule].name,
                                                      .from = krait_intervals_key(&intervals->of, of->from),
                                                      .to = krait_intervals_key(&intervals->of, of->to) });
    }
    return krait_intervals_print(intervals, &sheet, "count", "transitions");
}
