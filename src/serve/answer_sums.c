/* SPDX-License-Identifier: Apache-2.0
 *
 * States and system calls over a range of time and chosen tracks, as krait states has them: sums by name, and system
 * calls one by one.
 */
#include "base/array.h"
#include "base/json.h"
#include "base/map.h"
#include "serve/serving.h"

#include <string.h>

enum { SHORT_CELLS = 8, COLUMNS = 600, COLUMNS_MAX = 8192 };

/* What a request adds up; the origin is the view's. */
struct sums {
    struct krait_name_sums of;
    uint32_t track;
};

static void sums_done(struct sums *sums)
{
    krait_name_sums_done(&sums->of);
}

static int add_entry(void *ctx, const struct krait_tile_call *entry)
{
    struct sums *s = ctx;
    const struct krait_entry added = krait_serving_entry(entry);
    return krait_name_sums_add(&s->of, s->track, &added);
}

static bool is_of(const struct krait_track *track, enum krait_track_kind kind, const char *name)
{
    return track->kind == kind && (!name || strcmp(track->name, name) == 0);
}

static struct krait_range since_origin(const struct krait_serving *serving, struct krait_range range)
{
    return (struct krait_range){ range.from_ns - serving->origin_ns, range.to_ns - serving->origin_ns };
}

/* Entries of the tracks that the request means; *at is the one that is told of. */
static int each_entry(const struct krait_serving *serving, const struct krait_request *request,
                      enum krait_track_kind kind, const char *name, uint32_t *at,
                      int (*fn)(void *ctx, const struct krait_tile_call *entry), void *ctx,
                      struct krait_err *err)
{
    struct krait_range range = since_origin(serving, krait_serving_range(serving, request));
    int rc = 0;
    for (uint32_t i = 0; i < serving->trace->track_count && !rc; i++) {
        *at = i;
        if (is_of(&serving->trace->tracks[i], kind, name) && krait_serving_takes_track(serving, request, i))
            rc = krait_view_each(serving->view, i, range, fn, ctx);
    }
    return rc == -EAGAIN ? krait_err_set(err, rc, "the index is still being built")
           : rc          ? krait_err_set(err, rc, "out of memory")
                         : 0;
}

static void put_row(struct krait_buf *out, const uint64_t *numbers, size_t count)
{
    krait_json_item(out, "\n[");
    for (size_t i = 0; i < count; i++) {
        krait_buf_str(out, i ? "," : "");
        krait_json_u64(out, numbers[i]);
    }
    krait_buf_char(out, ']');
}

int krait_answer_states(struct krait_serving *serving, const struct krait_request *request,
                        struct krait_buf *out, struct krait_err *err)
{
    static const char *const columns[] = { "track", "name", "count", "ns", "longest" };
    KRAIT_CLEANUP(sums_done)
    struct sums sums = { .of = { .by_track = true,
                                 .range = since_origin(serving, krait_serving_range(serving, request)) } };
    int rc = each_entry(serving, request, KRAIT_TRACK_STATES, NULL, &sums.track, add_entry, &sums, err);
    krait_serving_columns(out, columns, KRAIT_ARRAY_LEN(columns), "rows");
    for (uint32_t i = 0; i < sums.of.count; i++) {
        const struct krait_name_sum *sum = &sums.of.items[i];
        const uint64_t numbers[] = { sum->track, sum->name, sum->count, sum->ns, sum->longest_ns };
        put_row(out, numbers, KRAIT_ARRAY_LEN(numbers));
    }
    krait_buf_str(out, "]}\n");
    return rc;
}

int krait_answer_syscalls(struct krait_serving *serving, const struct krait_request *request,
                          struct krait_buf *out, struct krait_err *err)
{
    static const char *const columns[] = { "name", "count", "errors", "ns", "longest",
                                           "min",  "p50",   "p90",    "p99" };
    KRAIT_CLEANUP(sums_done)
    struct sums sums = { .of.range = since_origin(serving, krait_serving_range(serving, request)) };
    int rc =
        each_entry(serving, request, KRAIT_TRACK_SLICES, "system calls", &sums.track, add_entry, &sums, err);
    krait_serving_columns(out, columns, KRAIT_ARRAY_LEN(columns), "rows");
    for (uint32_t i = 0; i < sums.of.count; i++) {
        const struct krait_name_sum *sum = &sums.of.items[i];
        const uint64_t numbers[] = { sum->name,
                                     sum->count,
                                     sum->errors,
                                     sum->ns,
                                     sum->longest_ns,
                                     sum->shortest_ns,
                                     krait_name_sum_quantile(sum, 0.5),
                                     krait_name_sum_quantile(sum, 0.9),
                                     krait_name_sum_quantile(sum, 0.99) };
        put_row(out, numbers, KRAIT_ARRAY_LEN(numbers));
    }
    krait_buf_str(out, "]}\n");
    return rc;
}

/* ---- how long system calls took over time ---- */

/* System calls that begin in one column and last about as long. */
struct cell {
    uint32_t column, bucket, track; /* track: of the longest */
    uint64_t count, errors, ns;
    struct krait_tile_call longest;
};

struct scatter {
    struct krait_range range;
    uint64_t columns;
    uint32_t track, name; /* name: KRAIT_NO_ID: all */
    struct cell *items;
    uint32_t count, cap;
    uint64_t total;
    struct krait_map index; /* column << 32 | bucket to item */
};

static void scatter_done(struct scatter *scatter)
{
    free(scatter->items);
    krait_map_done(&scatter->index);
}

/* So many to each doubling. */
static uint32_t bucket_of(uint64_t ns)
{
    if (ns < SHORT_CELLS)
        return (uint32_t)ns;
    uint32_t high = 63 - (uint32_t)__builtin_clzll(ns);
    return (high - 2) * SHORT_CELLS + (uint32_t)(ns >> (high - 3) & (SHORT_CELLS - 1));
}

static struct cell *cell_of(struct scatter *s, uint32_t column, uint32_t bucket)
{
    uint64_t key = (uint64_t)column << 32 | bucket;
    const uint64_t *known = krait_map_get(&s->index, key);
    if (known)
        return &s->items[*known];
    if (!KRAIT_GROW(s->items, s->cap, s->count + 1) || krait_map_put(&s->index, key, s->count))
        return NULL;
    s->items[s->count] = (struct cell){ .column = column, .bucket = bucket };
    return &s->items[s->count++];
}

static int add_point(void *ctx, const struct krait_tile_call *entry)
{
    struct scatter *s = ctx;
    if ((s->name != KRAIT_NO_ID && s->name != entry->func) || entry->value == KRAIT_NOT_RETURNED)
        return 0;
    uint64_t took = entry->end_ns - entry->begin_ns, at = KRAIT_MAX(entry->begin_ns, s->range.from_ns);
    double share =
        (double)(at - s->range.from_ns) / (double)KRAIT_MAX(s->range.to_ns - s->range.from_ns, 1ull);
    struct cell *cell = cell_of(s, (uint32_t)(share * (double)s->columns), bucket_of(took));
    if (!cell)
        return -ENOMEM;
    s->total++;
    cell->ns += took;
    cell->errors += krait_syscall_failed(entry->value);
    if (!cell->count++ || took > cell->longest.end_ns - cell->longest.begin_ns) {
        cell->longest = *entry;
        cell->track = s->track;
    }
    return 0;
}

static void put_cell(struct krait_buf *out, const struct cell *cell)
{
    krait_json_item(out, "\n[");
    krait_buf_fmt(out, "%u,%u,%llu,%llu,%llu,%u,%u,%u,\"%llu\",\"%llu\",%lld]", cell->column, cell->bucket,
                  (unsigned long long)cell->count, (unsigned long long)cell->errors,
                  (unsigned long long)cell->ns, cell->track, cell->longest.func, cell->longest.depth,
                  (unsigned long long)cell->longest.begin_ns, (unsigned long long)cell->longest.end_ns,
                  (long long)cell->longest.value);
}

int krait_answer_scatter(struct krait_serving *serving, const struct krait_request *request,
                         struct krait_buf *out, struct krait_err *err)
{
    const uint64_t none = KRAIT_NO_ID - 1;
    KRAIT_CLEANUP(scatter_done)
    struct scatter s = { .range = since_origin(serving, krait_serving_range(serving, request)),
                         .columns = krait_request_number(request, KRAIT_PARAM_columns, COLUMNS),
                         .name = KRAIT_NO_ID };
    if (krait_request_has(request, KRAIT_PARAM_name))
        s.name = (uint32_t)KRAIT_MIN(request->numbers[KRAIT_PARAM_name], none);
    s.columns = KRAIT_MAX(KRAIT_MIN(s.columns, (uint64_t)COLUMNS_MAX), 1ull);
    int rc = each_entry(serving, request, KRAIT_TRACK_SLICES, "system calls", &s.track, add_point, &s, err);
    krait_buf_char(out, '{');
    krait_json_key_u64(out, "total", s.total);
    krait_json_key_u64(out, "octave", SHORT_CELLS);
    krait_json_key_open(out, "columns", '[');
    krait_buf_str(out,
                  "\"column\",\"bucket\",\"count\",\"errors\",\"ns\",\"track\",\"name\",\"depth\",\"begin\","
                  "\"end\",\"returned\"]");
    krait_json_key_open(out, "cells", '[');
    for (uint32_t i = 0; i < s.count; i++)
        put_cell(out, &s.items[i]);
    krait_buf_str(out, "]}\n");
    return rc;
}
