/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report --by span`: how long the spans of each name took: those of krait.span, imports, runs of the garbage
 * collector, calls whose arguments were recorded. With --key, of each name and value of a field.
 */
#include "analysis/trigger.h"
#include "base/array.h"
#include "base/spread.h"
#include "cmd/report.h"
#include "cmd/sheet.h"
#include "trace/fields.h"
#include "trace/importer.h"

#include <string.h>

struct row {
    uint64_t count, total_ns, mean_ns, min_ns, p50_ns, p99_ns, max_ns;
    const char *name, *kind, *key; /* the last: with --key; NULL: it has none */
    struct krait_spread spread;
};

struct spans {
    struct report *report;
    struct krait_map index; /* kind and name to the row */
    struct row *rows;
    uint32_t count, cap;
    struct krait_strtab keys; /* rows keep its texts */
    struct krait_task_keys tasks;
};

static void spans_done(struct spans *spans)
{
    for (uint32_t i = 0; i < spans->count; i++)
        krait_spread_done(&spans->rows[i].spread);
    krait_map_done(&spans->index);
    krait_strtab_done(&spans->keys);
    krait_task_keys_done(&spans->tasks);
    free(spans->rows);
}

/* -- columns -- */

#define OF(member) krait_sheet_number_at, offsetof(struct row, member)
#define TIME(title, key, member, flags, drop)                         \
    {                                                                 \
        { title, 0, 0, drop }, key, KRAIT_SHEET_NS, flags, OF(member) \
    }

static const struct krait_sheet_column columns[] = {
    { { "spans", 0, 0, 0 }, "spans", KRAIT_SHEET_COUNT, 0, OF(count) },
    TIME("total", "total_ns", total_ns, 0, 0),
    TIME("mean", "mean_ns", mean_ns, 0, 0),
    TIME("min", "min_ns", min_ns, 0, 2),
    TIME("p50", "p50_ns", p50_ns, 0, 1),
    TIME("p99", "p99_ns", p99_ns, 0, 1),
    TIME("max", "max_ns", max_ns, 0, 0),
    { { "kind", KRAIT_COLUMN_LEFT, 0, 3 },
      "kind",
      KRAIT_SHEET_NAME,
      0,
      krait_sheet_name_at,
      offsetof(struct row, kind) },
    { { "span", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 24, 0 },
      "name",
      KRAIT_SHEET_NAME,
      0,
      krait_sheet_name_at,
      offsetof(struct row, name) },
    /* The last: without --key there is none; it has that name. */
    { { "key", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 4, 0 },
      "key",
      KRAIT_SHEET_NAME,
      KRAIT_SHEET_DASH | KRAIT_SHEET_BOUND,
      krait_sheet_name_at,
      offsetof(struct row, key) },
};

#undef TIME
#undef OF

/* -- rows -- */

/* Tracks of a kind are named after it: "spans", "spans 2". */
const char *krait_report_span_kind(const struct krait_track *track)
{
    static const char *const kinds[][2] = { { "spans", "span" },
                                            { "exported spans", "span" },
                                            { "imports", "import" },
                                            { "gc", "gc" },
                                            { "arguments", "call" } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(kinds); i++) {
        if (strncmp(track->name, kinds[i][0], strlen(kinds[i][0])) == 0)
            return kinds[i][1];
    }
    return "";
}

/* The value of the field of --key; NULL: it has none. */
static const char *key_of(struct spans *spans, const struct krait_trigger_slice *slice)
{
    const char *key = spans->report->options->key;
    KRAIT_AUTO_BUF text = { 0 };
    if (!key || !krait_trigger_get_slice(&spans->tasks, slice, key, &text))
        return NULL;
    uint32_t id = krait_strtab_add(&spans->keys, text.data ? text.data : "", text.len);
    return id == KRAIT_NO_ID ? NULL : spans->keys.texts[id];
}

static struct row *row_of(struct spans *spans, const char *kind, uint32_t name, const char *key)
{
    uint64_t hash = krait_hash_bytes(kind, strlen(kind)) << 32 | name;
    hash = key ? krait_hash_u64(hash ^ (uintptr_t)key) : hash;
    const uint64_t *known = krait_map_get(&spans->index, hash);
    if (known)
        return &spans->rows[*known];
    if (!KRAIT_GROW(spans->rows, spans->cap, spans->count + 1) ||
        krait_map_put(&spans->index, hash, spans->count))
        return NULL;
    spans->rows[spans->count] =
        (struct row){ .kind = kind, .name = krait_track_text(spans->report->trace, name), .key = key };
    return &spans->rows[spans->count++];
}

static int add_batch(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct spans *spans = ctx;
    const char *kind = krait_report_span_kind(track);
    int rc = 0;
    for (uint32_t i = 0; i < batch->n && !rc; i++) {
        bool is_in;
        uint64_t ns = krait_ranges_overlap(&spans->report->options->select.parts, batch->t_ns[i],
                                           batch->end_ns[i], &is_in);
        if (!is_in)
            continue;
        const struct krait_trigger_slice slice = { track,
                                                   krait_track_text(spans->report->trace, batch->name[i]),
                                                   batch->text ? batch->text[i] : "", batch->t_ns[i],
                                                   KRAIT_NO_ID };
        const char *key = key_of(spans, &slice);
        struct row *row = row_of(spans, kind, batch->name[i], key);
        rc = row ? krait_spread_add(&row->spread, ns) : -ENOMEM;
    }
    return rc;
}

bool krait_report_is_spans(const struct report *report, uint32_t index)
{
    const struct krait_track *track = &report->trace->tracks[index];
    bool has_spans = track->kind == KRAIT_TRACK_SLICES && (track->importer == KRAIT_IMPORTER_krait_spans ||
                                                           track->importer == KRAIT_IMPORTER_krait_told ||
                                                           track->importer == KRAIT_IMPORTER_krait_args);
    return has_spans && krait_select_place((void *)&report->options->select, report->trace, track);
}

static int takes(void *ctx, uint32_t index)
{
    const struct spans *spans = ctx;
    return krait_report_is_spans(spans->report, index);
}

static void sum_up(struct row *row)
{
    row->count = row->spread.count;
    row->total_ns = row->spread.sum;
    row->mean_ns = row->count ? row->total_ns / row->count : 0;
    row->min_ns = row->spread.min;
    row->max_ns = row->spread.max;
    row->p50_ns = krait_spread_quantile(&row->spread, 0.5);
    row->p99_ns = krait_spread_quantile(&row->spread, 0.99);
}

/* By the words that --sort has for tables of functions. */
static int sort(const struct spans *spans, struct krait_sheet *sheet, struct krait_err *err)
{
    const char *by = spans->report->options->sort;
    return krait_sheet_sort(sheet, !by ? "total" : strcmp(by, "calls") == 0 ? "spans" : by, err);
}

int krait_report_spans(struct report *report, struct krait_trace *trace, struct krait_err *err)
{
    KRAIT_CLEANUP(spans_done) struct spans spans = { .report = report, .tasks = { .trace = trace } };
    const char *key = report->options->key;
    struct krait_sheet_column own[KRAIT_ARRAY_LEN(columns)];
    memcpy(own, columns, sizeof(own));
    if (key)
        own[KRAIT_ARRAY_LEN(own) - 1].column.title = key;
    KRAIT_CLEANUP(krait_sheet_done)
    struct krait_sheet sheet = { .columns = own, .of = &spans, .column_count = KRAIT_ARRAY_LEN(own) - !key };
    int rc = krait_tracks_find_kinds(trace, 1 << KRAIT_TRACK_SLICES, err);
    if (rc)
        return rc;
    report->zero_ns = krait_trace_zero(trace);
    report->range = krait_select_range(&report->options->select, trace);
    rc = krait_report_walk_tracks(report, report->range, takes, add_batch, &spans);
    rc = rc || !spans.tasks.failed ? rc : -ENOMEM;
    for (uint32_t i = 0; i < spans.count && !rc; i++) {
        sum_up(&spans.rows[i]);
        krait_sheet_add(&sheet, &spans.rows[i]);
    }
    rc = rc ? rc : sort(&spans, &sheet, err);
    rc = rc ? rc : krait_report_sheet(report, &sheet, "spans");
    return rc == -ENOMEM ? krait_err_set(err, rc, "out of memory") : rc;
}
