/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/grid.h"

#include "base/array.h"
#include "base/json.h"

struct krait_grid_cell {
    uint32_t column, bucket;
    uint64_t count, errors, ns;
    struct krait_grid_point longest;
};

void krait_grid_done(struct krait_grid *grid)
{
    free(grid->cells);
    krait_map_done(&grid->index);
}

uint64_t krait_grid_columns(uint64_t wanted)
{
    return KRAIT_MAX(KRAIT_MIN(wanted, (uint64_t)KRAIT_GRID_COLUMNS_MAX), 1ull);
}

static uint32_t bucket_of(uint64_t ns)
{
    if (ns < KRAIT_GRID_OCTAVE)
        return (uint32_t)ns;
    uint32_t high = 63 - (uint32_t)__builtin_clzll(ns);
    return (high - 2) * KRAIT_GRID_OCTAVE + (uint32_t)(ns >> (high - 3) & (KRAIT_GRID_OCTAVE - 1));
}

static struct krait_grid_cell *cell_of(struct krait_grid *grid, uint32_t column, uint32_t bucket)
{
    uint64_t key = (uint64_t)column << 32 | bucket;
    const uint64_t *known = krait_map_get(&grid->index, key);
    if (known)
        return &grid->cells[*known];
    if (!KRAIT_GROW(grid->cells, grid->cap, grid->count + 1) || krait_map_put(&grid->index, key, grid->count))
        return NULL;
    grid->cells[grid->count] = (struct krait_grid_cell){ .column = column, .bucket = bucket };
    return &grid->cells[grid->count++];
}

int krait_grid_add(struct krait_grid *grid, const struct krait_grid_point *point)
{
    const struct krait_range *range = &grid->range;
    uint64_t took = point->end_ns - point->begin_ns, at = KRAIT_MAX(point->begin_ns, range->from_ns);
    double share = (double)(at - range->from_ns) / (double)KRAIT_MAX(range->to_ns - range->from_ns, 1ull);
    struct krait_grid_cell *cell = cell_of(grid, (uint32_t)(share * (double)grid->columns), bucket_of(took));
    if (!cell)
        return -ENOMEM;
    grid->total++;
    cell->ns += took;
    cell->errors += point->failed;
    if (!cell->count++ || took > cell->longest.end_ns - cell->longest.begin_ns)
        cell->longest = *point;
    return 0;
}

/* Each column's name, the form of its number, and the number's field. Times need more than 53 bits, so they are
 * texts. */
#define CELL_COLUMNS(X)                    \
    X(column, "%lld", column)              \
    X(bucket, "%lld", bucket)              \
    X(count, "%lld", count)                \
    X(errors, "%lld", errors)              \
    X(ns, "%lld", ns)                      \
    X(track, "%lld", longest.track)        \
    X(name, "%lld", longest.name)          \
    X(depth, "%lld", longest.depth)        \
    X(begin, "\"%lld\"", longest.begin_ns) \
    X(end, "\"%lld\"", longest.end_ns)     \
    X(returned, "%lld", longest.value)

static void put_cell(struct krait_buf *out, const struct krait_grid_cell *cell)
{
    krait_json_item(out, "\n[");
#define X(column, how, number) \
    krait_json_item(out, "");  \
    krait_buf_fmt(out, how, (long long)cell->number);
    CELL_COLUMNS(X)
#undef X
    krait_buf_char(out, ']');
}

void krait_grid_put(struct krait_buf *out, const struct krait_grid *grid)
{
#define X(column, how, number) #column,
    static const char *const columns[] = { CELL_COLUMNS(X) };
#undef X
    krait_json_key_u64(out, "total", grid->total);
    krait_json_key_u64(out, "octave", KRAIT_GRID_OCTAVE);
    krait_json_key_texts(out, "columns", columns, KRAIT_ARRAY_LEN(columns));
    krait_json_key_open(out, "cells", '[');
    for (uint32_t i = 0; i < grid->count; i++)
        put_cell(out, &grid->cells[i]);
    krait_buf_char(out, ']');
}
