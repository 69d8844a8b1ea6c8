/* SPDX-License-Identifier: Apache-2.0 */
#include "view/columns.h"

#include "base/array.h"
#include "trace/importer.h"
#include "trace/mark_says.h"
#include "view/pyramid.h"

#include <math.h>
#include <string.h>

enum { LEVEL_SHIFT = 32 };             /* of an instant's value */
#define LISTED_ONLY ((int64_t)1 << 40) /* in it: no lane draws it as a mark */

static bool has_moments(uint8_t kind)
{
    return kind == KRAIT_TRACK_INSTANTS || kind == KRAIT_TRACK_COUNTER;
}

static uint64_t since(uint64_t t_ns, uint64_t origin_ns)
{
    int64_t behind = (int64_t)(t_ns - origin_ns);
    return behind > 0 ? KRAIT_MIN((uint64_t)behind, KRAIT_PYRAMID_TIME_MAX) : 0;
}

static int add_spans(struct krait_columns *columns, const struct krait_batch *batch, uint64_t origin_ns)
{
    int rc = 0;
    for (uint32_t i = 0; i < batch->n && !rc; i++) {
        uint64_t begin = since(batch->t_ns[i], origin_ns);
        uint64_t end = KRAIT_MAX(begin, since(batch->end_ns[i], origin_ns));
        const struct krait_tile_call span = { .begin_ns = begin,
                                              .end_ns = end,
                                              .value = batch->value ? batch->value[i] : 0,
                                              .func = batch->name[i] };
        columns->end_ns = KRAIT_MAX(columns->end_ns, end);
        rc = krait_spans_add(&columns->spans, &span);
    }
    return rc;
}

static int64_t value_of(const struct krait_columns *columns, const struct krait_trace *trace,
                        const struct krait_track *track, const struct krait_batch *batch, uint32_t i)
{
    if (columns->kind == KRAIT_TRACK_COUNTER)
        return batch->value[i];
    const char *name = krait_track_text(trace, batch->name[i]), *text = batch->text ? batch->text[i] : "";
    return (int64_t)batch->name[i] | (int64_t)krait_mark_level(name, text) << LEVEL_SHIFT |
           (krait_marks_also(track, name) ? LISTED_ONLY : 0);
}

static void add_moments(struct krait_columns *columns, const struct krait_trace *trace,
                        const struct krait_track *track, const struct krait_batch *batch, uint64_t origin_ns)
{
    for (uint32_t i = 0; i < batch->n; i++) {
        if (columns->kind == KRAIT_TRACK_INSTANTS &&
            !krait_marks_take(track, krait_track_text(trace, batch->name[i])))
            continue;
        columns->end_ns = KRAIT_MAX(columns->end_ns, since(batch->t_ns[i], origin_ns)); /* never back */
        columns->moments[columns->count++] =
            (struct krait_column_moment){ columns->end_ns, value_of(columns, trace, track, batch, i) };
    }
}

int krait_columns_add(struct krait_columns *columns, const struct krait_trace *trace,
                      const struct krait_track *track, const struct krait_batch *batch, uint64_t origin_ns)
{
    if (krait_columns_have_spans(columns->kind))
        return add_spans(columns, batch, origin_ns);
    if (has_moments(columns->kind)) {
        if (!KRAIT_GROW(columns->moments, columns->cap, columns->count + batch->n))
            return -ENOMEM;
        add_moments(columns, trace, track, batch, origin_ns);
    }
    return 0;
}

/* If several begin at the same time, the enclosing one comes first. */
static int by_begin(const void *a, const void *b)
{
    const struct krait_tile_call *x = a, *y = b;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

void krait_columns_sort(struct krait_tile_call *spans, uint64_t count)
{
    if (count)
        qsort(spans, count, sizeof(*spans), by_begin);
}

/* A slice is one deeper than the slice that encloses it. Slices that only overlap are drawn below each other too. */
void krait_columns_give_depths(struct krait_column_depths *depths, struct krait_tile_call *spans,
                               uint64_t count)
{
    uint32_t open = depths->open;
    for (uint64_t i = 0; i < count; i++) {
        while (open && depths->ends[open - 1] <= spans[i].begin_ns)
            open--;
        spans[i].depth = open;
        depths->ends[open] = spans[i].end_ns;
        open += open + 1 < KRAIT_WIRE_DEPTHS;
    }
    depths->open = open;
}

struct krait_tile_call *krait_columns_unpack(const struct krait_columns *columns)
{
    struct krait_tile_call *spans = malloc(KRAIT_MAX(columns->spans.count, 1ull) * sizeof(*spans));
    struct krait_spans_reader reader;
    krait_spans_start(&reader, &columns->spans);
    for (uint64_t i = 0; spans && i < columns->spans.count; i++) {
        if (!krait_spans_next(&reader, &spans[i])) /* the mapped file has changed */
            spans[i] = (struct krait_tile_call){ 0 };
    }
    return spans;
}

static int order(struct krait_columns *columns)
{
    KRAIT_AUTO_FREE struct krait_tile_call *spans = krait_columns_unpack(columns);
    uint64_t count = columns->spans.count;
    int rc = spans ? 0 : -ENOMEM;
    if (rc)
        return rc;
    struct krait_column_depths depths = { .open = 0 };
    krait_columns_sort(spans, count);
    krait_columns_give_depths(&depths, spans, count);
    krait_spans_done(&columns->spans);
    for (uint64_t i = 0; i < count && !rc; i++)
        rc = krait_spans_add(&columns->spans, &spans[i]);
    return rc;
}

int krait_columns_finish(struct krait_columns *columns)
{
    int rc = columns->kind == KRAIT_TRACK_SLICES ? order(columns) : 0;
    krait_spans_trim(&columns->spans);
    columns->is_whole = !rc;
    return rc;
}

void krait_columns_done(struct krait_columns *columns)
{
    krait_spans_done(&columns->spans);
    if (!columns->is_mapped)
        free(columns->moments);
    *columns = (struct krait_columns){ 0 };
}

size_t krait_columns_size(const struct krait_columns *columns)
{
    return krait_spans_size(&columns->spans) + columns->count * sizeof(*columns->moments);
}

/* ---- asking ---- */

static uint32_t first_moment(const struct krait_columns *columns, uint64_t t_ns)
{
    return (uint32_t)KRAIT_PARTITION_POINT(i, columns->count, columns->moments[i].t_ns < t_ns);
}

int krait_columns_tell(const struct krait_columns *columns, uint64_t from_ns, uint64_t to_ns,
                       uint64_t under_ns, struct krait_tile *tile)
{
    struct krait_spans_reader reader;
    struct krait_tile_call span;
    int rc = 0;
    if (columns->kind == KRAIT_TRACK_SLICES && !columns->is_whole)
        return 0;
    krait_spans_seek(&reader, &columns->spans, from_ns > under_ns ? from_ns - under_ns : 0);
    while (!rc && krait_spans_next(&reader, &span) && span.begin_ns < to_ns) {
        if (span.end_ns - span.begin_ns < under_ns)
            rc = krait_tile_add(tile, &span);
    }
    return rc;
}

static int each_span(const struct krait_columns *columns, struct krait_range range,
                     int (*fn)(void *ctx, const struct krait_tile_call *entry), void *ctx)
{
    struct krait_spans_reader reader;
    struct krait_tile_call span;
    int rc = 0;
    if (columns->kind == KRAIT_TRACK_SLICES && !columns->is_whole)
        return 0;
    /* Only the last state before the range can reach into it, but any slice before it can. */
    krait_spans_seek(&reader, &columns->spans, columns->kind == KRAIT_TRACK_STATES ? range.from_ns : 0);
    while (!rc && krait_spans_next(&reader, &span) && span.begin_ns < range.to_ns) {
        if (span.end_ns > range.from_ns || span.begin_ns >= range.from_ns)
            rc = fn(ctx, &span);
    }
    return rc;
}

static int each_moment(const struct krait_columns *columns, struct krait_range range,
                       int (*fn)(void *ctx, const struct krait_tile_call *entry), void *ctx)
{
    int rc = 0;
    for (uint32_t i = first_moment(columns, range.from_ns);
         i < columns->count && columns->moments[i].t_ns < range.to_ns && !rc; i++) {
        const struct krait_tile_call entry = { .begin_ns = columns->moments[i].t_ns,
                                               .end_ns = columns->moments[i].t_ns,
                                               .value = !(columns->moments[i].value & LISTED_ONLY),
                                               .func = (uint32_t)columns->moments[i].value };
        rc = fn(ctx, &entry);
    }
    return rc;
}

/* A value lasts until the next one, so the first may have begun before the range. */
static int each_value(const struct krait_columns *columns, struct krait_range range,
                      int (*fn)(void *ctx, const struct krait_tile_call *entry), void *ctx)
{
    uint32_t at = first_moment(columns, range.from_ns);
    bool begins_there = at < columns->count && columns->moments[at].t_ns == range.from_ns;
    int rc = 0;
    for (at -= at && !begins_there; at < columns->count && columns->moments[at].t_ns < range.to_ns && !rc;
         at++) {
        const struct krait_tile_call entry = {
            .begin_ns = columns->moments[at].t_ns,
            .end_ns = at + 1 < columns->count ? columns->moments[at + 1].t_ns : UINT64_MAX,
            .value = columns->moments[at].value,
        };
        rc = fn(ctx, &entry);
    }
    return rc;
}

int krait_columns_each(const struct krait_columns *columns, struct krait_range range,
                       int (*fn)(void *ctx, const struct krait_tile_call *entry), void *ctx)
{
    if (krait_columns_have_spans(columns->kind))
        return each_span(columns, range, fn, ctx);
    return columns->kind == KRAIT_TRACK_INSTANTS  ? each_moment(columns, range, fn, ctx)
           : columns->kind == KRAIT_TRACK_COUNTER ? each_value(columns, range, fn, ctx)
                                                  : 0;
}

bool krait_columns_has_name(const struct krait_column_moment *moment, uint32_t names)
{
    return moment->value >= 0 && (uint32_t)moment->value < names &&
           (moment->value & ~LISTED_ONLY) >> LEVEL_SHIFT < KRAIT_MARK_LEVELS;
}

/* Those from `at` to `end` that lanes draw: the first, how many, and the most serious one. */
static struct krait_wire_mark sum_marks(const struct krait_columns *columns, uint32_t bin, uint32_t at,
                                        uint32_t end)
{
    struct krait_wire_mark sum = { .bin = bin };
    for (; at < end; at++) {
        int64_t value = columns->moments[at].value;
        if (value & LISTED_ONLY)
            continue;
        if (!sum.count++)
            sum.name = (uint32_t)value;
        sum.level = KRAIT_MAX(sum.level, (uint32_t)(value >> LEVEL_SHIFT));
    }
    return sum;
}

uint32_t krait_columns_marks(const struct krait_columns *columns, uint64_t from_ns, unsigned shift,
                             struct krait_wire_mark marks[KRAIT_WIRE_BINS])
{
    uint32_t count = 0, at = first_moment(columns, from_ns);
    for (uint32_t bin = 0; bin < KRAIT_WIRE_BINS && at < columns->count; bin++) {
        uint64_t end_ns = from_ns + ((uint64_t)(bin + 1) << shift);
        uint32_t next = columns->moments[at].t_ns < end_ns ? first_moment(columns, end_ns) : at;
        marks[count] = sum_marks(columns, bin, at, next);
        count += marks[count].count > 0;
        at = next;
    }
    return count;
}

void krait_columns_counters(const struct krait_columns *columns, uint64_t from_ns, unsigned shift,
                            struct krait_wire_counter bins[KRAIT_WIRE_BINS])
{
    uint32_t at = first_moment(columns, from_ns);
    double last = at ? (double)columns->moments[at - 1].value : NAN;
    for (uint32_t bin = 0; bin < KRAIT_WIRE_BINS; bin++) {
        uint64_t begin_ns = from_ns + ((uint64_t)bin << shift), end_ns = begin_ns + ((uint64_t)1 << shift);
        bool changes_first = at < columns->count && columns->moments[at].t_ns == begin_ns;
        struct krait_wire_counter value = { NAN, NAN, NAN };
        if (!changes_first)
            value = (struct krait_wire_counter){ last, last, last };
        for (; at < columns->count && columns->moments[at].t_ns < end_ns; at++) {
            last = (double)columns->moments[at].value;
            value = (struct krait_wire_counter){ fmin(value.min, last), fmax(value.max, last), last };
        }
        bins[bin] = value;
    }
}
