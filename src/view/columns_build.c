/* SPDX-License-Identifier: Apache-2.0 */
#include "view/columns_build.h"

#include "base/array.h"

#include <string.h>

struct spans {
    struct krait_tile_call *items;
    uint64_t count;
};

struct krait_columns_build {
    struct krait_columns settled;
    struct krait_columns ended, open; /* slices in any order */
    struct krait_column_depths depths;
    struct krait_pyramid_build *pyramid; /* NULL: there are few */
    uint64_t in_pyramid;                 /* of the settled spans */
    uint64_t last_end;                   /* of these */
    /* Slices that only overlap, as where events were lost, do not come in the order of their ends: the pyramid is made anew. */
    bool is_disordered;
};

int krait_columns_build_new(struct krait_columns_build **out, uint8_t kind)
{
    struct krait_columns_build *build = calloc(1, sizeof(*build));
    if (!build)
        return -ENOMEM;
    build->settled.kind = build->ended.kind = build->open.kind = kind;
    *out = build;
    return 0;
}

static void drop_pyramid(struct krait_columns_build *build)
{
    krait_pyramid_build_free(build->pyramid);
    build->pyramid = NULL;
}

void krait_columns_build_free(struct krait_columns_build *build)
{
    if (!build)
        return;
    krait_columns_done(&build->settled);
    krait_columns_done(&build->ended);
    krait_columns_done(&build->open);
    drop_pyramid(build);
    free(build);
}

int krait_columns_build_add(struct krait_columns_build *build, const struct krait_trace *trace,
                            const struct krait_track *track, const struct krait_batch *batch,
                            uint64_t origin_ns)
{
    bool is_ordered = build->settled.kind != KRAIT_TRACK_SLICES;
    return krait_columns_add(is_ordered ? &build->settled : &build->ended, trace, track, batch, origin_ns);
}

int krait_columns_build_open(struct krait_columns_build *build, const struct krait_trace *trace,
                             const struct krait_track *track, const struct krait_batch *batch,
                             uint64_t origin_ns)
{
    return krait_columns_add(&build->open, trace, track, batch, origin_ns);
}

/* ---- order ---- */

static void spans_done(struct spans *spans)
{
    free(spans->items);
}

static void empty(struct krait_columns *columns)
{
    uint8_t kind = columns->kind;
    krait_columns_done(columns);
    columns->kind = kind;
}

static int add_spans(struct krait_columns *to, const struct krait_tile_call *spans, uint64_t count)
{
    int rc = 0;
    for (uint64_t i = 0; i < count && !rc; i++) {
        to->end_ns = KRAIT_MAX(to->end_ns, spans[i].end_ns);
        rc = krait_spans_add(&to->spans, &spans[i]);
    }
    return rc;
}

/* How many of the ended slices, by begin, are before all that is not settled. */
static uint64_t count_settled(const struct spans *ended, const struct spans *open)
{
    uint64_t first = UINT64_MAX, n = 0;
    for (uint64_t i = 0; i < open->count; i++)
        first = KRAIT_MIN(first, open->items[i].begin_ns);
    while (n < ended->count && ended->items[n].begin_ns < first && ended->items[n].end_ns <= first)
        n++;
    return n;
}

/* Settles what can be; the others stay in `ended`, in the order of begins. */
static int settle(struct krait_columns_build *build, const struct spans *open)
{
    KRAIT_CLEANUP(spans_done)
    struct spans ended = { krait_columns_unpack(&build->ended), build->ended.spans.count };
    if (!ended.items)
        return -ENOMEM;
    krait_columns_sort(ended.items, ended.count);
    uint64_t n = count_settled(&ended, open);
    krait_columns_give_depths(&build->depths, ended.items, n);
    int rc = add_spans(&build->settled, ended.items, n);
    empty(&build->ended);
    return rc ? rc : add_spans(&build->ended, ended.items + n, ended.count - n);
}

/* What is not settled, as it is now. */
static int unpack_rest(const struct krait_columns_build *build, const struct spans *open, struct spans *rest)
{
    uint64_t ended = build->ended.spans.count;
    struct krait_column_depths depths = build->depths;
    struct krait_tile_call *both = malloc((ended + open->count + 1) * sizeof(*both));
    KRAIT_AUTO_FREE struct krait_tile_call *first = krait_columns_unpack(&build->ended);
    rest->items = both;
    if (!both || !first)
        return -ENOMEM;
    memcpy(both, first, ended * sizeof(*both));
    memcpy(both + ended, open->items, open->count * sizeof(*both));
    rest->count = ended + open->count;
    if (build->settled.kind != KRAIT_TRACK_SLICES)
        return 0;
    krait_columns_sort(rest->items, rest->count);
    krait_columns_give_depths(&depths, rest->items, rest->count);
    return 0;
}

/* ---- pyramids ---- */

static int by_end(const void *a, const void *b)
{
    const struct krait_tile_call *x = a, *y = b;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* A pyramid needs them in the order of ends, which differs from that of begins if they nest. States do not overlap. */
static void sort_by_end(struct krait_tile_call *spans, uint64_t count, uint8_t kind)
{
    if (kind == KRAIT_TRACK_SLICES && count)
        qsort(spans, count, sizeof(*spans), by_end);
}

int krait_columns_pyramid(const struct krait_columns *columns, struct krait_pyramid **out)
{
    KRAIT_AUTO_FREE struct krait_tile_call *spans = krait_columns_unpack(columns);
    struct krait_pyramid_build *build;
    int rc = spans ? krait_pyramid_build_new(&build, 0) : -ENOMEM;
    if (rc)
        return rc;
    sort_by_end(spans, columns->spans.count, columns->kind);
    for (uint64_t i = 0; i < columns->spans.count; i++)
        krait_pyramid_add(build, &spans[i]);
    rc = krait_pyramid_finish_new(build, out);
    krait_pyramid_build_free(build);
    return rc;
}

/* Those that were settled since the last time. */
static int add_settled(struct krait_columns_build *build)
{
    const struct krait_spans *spans = &build->settled.spans;
    uint64_t count = spans->count - build->in_pyramid;
    KRAIT_AUTO_FREE struct krait_tile_call *added = malloc((count + 1) * sizeof(*added));
    struct krait_spans_reader reader;
    if (!added)
        return -ENOMEM;
    krait_spans_start_at(&reader, spans, build->in_pyramid);
    for (uint64_t i = 0; i < count; i++) {
        if (!krait_spans_next(&reader, &added[i]))
            return -ENOMEM;
    }
    sort_by_end(added, count, build->settled.kind);
    build->is_disordered |= count && added[0].end_ns < build->last_end;
    for (uint64_t i = 0; i < count && !build->is_disordered; i++)
        krait_pyramid_add(build->pyramid, &added[i]);
    build->in_pyramid = spans->count;
    build->last_end = count ? added[count - 1].end_ns : build->last_end;
    return 0;
}

static int add_rest(const struct krait_columns_build *build, struct spans *rest, struct krait_pyramid **out)
{
    struct krait_pyramid_build *copy = krait_pyramid_build_copy(build->pyramid);
    if (!copy)
        return -ENOMEM;
    for (uint64_t i = 0; i < rest->count; i++)
        krait_pyramid_add(copy, &rest->items[i]);
    int rc = krait_pyramid_finish_new(copy, out);
    krait_pyramid_build_free(copy);
    return rc;
}

static int pyramid_now(struct krait_columns_build *build, struct spans *rest,
                       const struct krait_columns *whole, struct krait_pyramid **out)
{
    int rc = build->pyramid || build->is_disordered ? 0 : krait_pyramid_build_new(&build->pyramid, 0);
    rc = rc || build->is_disordered ? rc : add_settled(build);
    sort_by_end(rest->items, rest->count, build->settled.kind);
    build->is_disordered |= rest->count && rest->items[0].end_ns < build->last_end;
    if (build->is_disordered)
        drop_pyramid(build);
    return rc ? rc : build->is_disordered ? krait_columns_pyramid(whole, out) : add_rest(build, rest, out);
}

/* ---- all ---- */

static int copy_settled(const struct krait_columns_build *build, struct krait_columns *out)
{
    const struct krait_columns *from = &build->settled;
    *out = (struct krait_columns){ .kind = from->kind, .end_ns = from->end_ns };
    if (krait_columns_have_spans(from->kind))
        return krait_spans_copy(&out->spans, &from->spans);
    if (!KRAIT_GROW(out->moments, out->cap, from->count))
        return -ENOMEM;
    if (from->count)
        memcpy(out->moments, from->moments, from->count * sizeof(*out->moments));
    out->count = from->count;
    return 0;
}

static int make_now(struct krait_columns_build *build, uint64_t small, struct krait_columns *out,
                    struct krait_pyramid **pyramid)
{
    KRAIT_CLEANUP(spans_done)
    struct spans open = { krait_columns_unpack(&build->open), build->open.spans.count };
    KRAIT_CLEANUP(spans_done) struct spans rest = { 0 };
    int rc = open.items ? 0 : -ENOMEM;
    rc = rc ? rc : settle(build, &open);
    rc = rc ? rc : unpack_rest(build, &open, &rest);
    rc = rc ? rc : copy_settled(build, out);
    rc = rc ? rc : add_spans(out, rest.items, rest.count);
    out->is_whole = !rc;
    if (!rc && out->spans.count && krait_columns_size(out) > small)
        rc = pyramid_now(build, &rest, out, pyramid);
    return rc;
}

int krait_columns_build_now(struct krait_columns_build *build, uint64_t small, struct krait_columns *out,
                            struct krait_pyramid **pyramid)
{
    int rc = make_now(build, small, out, pyramid);
    empty(&build->open);
    if (rc)
        krait_columns_done(out);
    return rc;
}
