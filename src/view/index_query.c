/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers queries: from the index if it is complete, from its present part while it is built, and for small threads by
 * a walk.
 */
#include "trace/importer.h"
#include "view/index_own.h"

struct answer {
    struct krait_view *view;
    const struct krait_track *track;
    struct krait_view_track *index;
    uint32_t id; /* of the track */
    unsigned shift;
    uint64_t from_ns;
    uint32_t bins, depths;
    uint8_t flags; /* enum krait_wire_flags */
    struct krait_tile tile;
};

static int start(struct answer *answer, struct krait_view *view, const struct krait_view_query *query)
{
    *answer = (struct answer){ .view = view, .id = query->track, .shift = query->level };
    if (query->track >= view->trace->track_count || query->level > KRAIT_WIRE_LEVEL_MAX ||
        query->tile >= (uint64_t)1 << (63 - KRAIT_WIRE_BINS_LOG2 - query->level))
        return -EINVAL;
    answer->from_ns = query->tile << (query->level + KRAIT_WIRE_BINS_LOG2);
    answer->track = &view->trace->tracks[query->track];
    answer->index = &view->tracks[query->track];
    answer->bins = KRAIT_WIRE_BINS;
    answer->depths = KRAIT_WIRE_DEPTHS;
    krait_tile_init(&answer->tile, answer->from_ns, (uint64_t)1 << answer->shift, answer->bins,
                    answer->depths);
    return 0;
}

/* ---- calls ---- */

struct telling {
    struct krait_tile *tile;
    uint64_t under_ns, begin_ns;
};

/* A call that is open at the range's begin began before it, so it is not a short call of the tile. */
static int tell_short(void *ctx, const struct krait_tile_call *call)
{
    const struct telling *telling = ctx;
    if (call->depth >= KRAIT_PYRAMID_DEPTHS)
        return krait_tile_add(telling->tile, call);
    bool began_before =
        call->begin == KRAIT_OP_LIVE && telling->begin_ns && call->begin_ns <= telling->begin_ns;
    return call->end_ns - call->begin_ns >= telling->under_ns || began_before
               ? 0
               : krait_tile_add(telling->tile, call);
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

/* For krait_pyramid_short. The walk goes beyond the tile by the length of the calls, so that it reaches their ends. */
static int tell_calls(void *ctx, uint64_t from_ns, uint64_t to_ns, uint64_t under_ns, struct krait_tile *tile)
{
    const struct answer *answer = ctx;
    uint64_t before = from_ns > under_ns ? from_ns - under_ns : 0;
    struct telling telling = { tile, under_ns, before };
    struct krait_range range = { before ? answer->view->origin_ns + before : 0,
                                 sum(answer->view->origin_ns, sum(to_ns, under_ns)) };
    return krait_view_walk_calls(answer->view, answer->track->thread, range, tell_short, &telling);
}

static int tell_columns(void *ctx, uint64_t from_ns, uint64_t to_ns, uint64_t under_ns,
                        struct krait_tile *tile)
{
    const struct answer *answer = ctx;
    return krait_columns_tell(answer->index->columns, from_ns, to_ns, under_ns, tile);
}

static int add_any(void *tile, const struct krait_tile_call *call)
{
    return krait_tile_add(tile, call);
}

/* Answers for the track that a builder is working on; -EAGAIN: it is not working on it any more, or not yet. */
static int peek(struct answer *answer)
{
    int rc = -EAGAIN;
    for (uint32_t i = 0; i < answer->view->builder_count && rc == -EAGAIN; i++) {
        struct krait_builder *builder = &answer->view->builders[i];
        pthread_mutex_lock(&builder->lock);
        if (builder->build && builder->track == answer->id)
            rc = krait_pyramid_peek(krait_pyramid_so_far(builder->build), &answer->tile, answer->from_ns,
                                    answer->shift, answer->bins, answer->depths);
        pthread_mutex_unlock(&builder->lock);
    }
    return rc;
}

static int from_pyramid(struct answer *answer)
{
    const struct krait_pyramid_short small = { answer->track->kind == KRAIT_TRACK_CALLS ? tell_calls
                                                                                        : tell_columns,
                                               answer };
    return krait_pyramid_tile(answer->index->pyramid, &small, &answer->tile, answer->from_ns, answer->shift,
                              answer->bins, answer->depths);
}

static uint8_t state_of(const struct answer *answer)
{
    return __atomic_load_n(&answer->index->state, __ATOMIC_ACQUIRE);
}

static int answer_calls(struct answer *answer)
{
    uint8_t state = state_of(answer);
    int rc = state == KRAIT_VIEW_BUILDS ? peek(answer) : -EAGAIN;
    if (rc == -EAGAIN)
        state = state_of(answer);
    if (state == KRAIT_VIEW_WALKED)
        return krait_view_walk_calls(answer->view, answer->track->thread, KRAIT_RANGE_ALL, add_any,
                                     &answer->tile);
    if (state == KRAIT_VIEW_READY)
        return from_pyramid(answer);
    answer->flags |= KRAIT_WIRE_UNFINISHED;
    return rc == -EAGAIN ? 0 : rc;
}

/* ---- the others ---- */

static int answer_spans(struct answer *answer)
{
    uint64_t to_ns = answer->from_ns + ((uint64_t)answer->bins << answer->shift);
    if (state_of(answer) == KRAIT_VIEW_READY && answer->index->pyramid)
        return from_pyramid(answer);
    return krait_columns_tell(answer->index->columns, answer->from_ns, to_ns, UINT64_MAX, &answer->tile);
}

/* ---- losses ---- */

static int find_any(void *found, const struct krait_tile_call *entry)
{
    *(bool *)found = true;
    return 1;
}

/* The track with a thread's losses belongs to the importer that knows them. */
static bool has_lost(const struct answer *answer, uint64_t to_ns)
{
    const struct krait_trace *trace = answer->view->trace;
    const struct krait_thread *thread = &trace->threads[answer->track->thread];
    const struct krait_range range = { answer->from_ns, to_ns };
    bool found = false;
    for (uint32_t i = thread->first_track; i < thread->first_track + thread->track_count; i++) {
        const struct krait_view_track *index = &answer->view->tracks[i];
        if (trace->tracks[i].importer == KRAIT_IMPORTER_krait_lost && index->columns &&
            __atomic_load_n(&index->state, __ATOMIC_ACQUIRE) == KRAIT_VIEW_READY)
            krait_columns_each(index->columns, range, find_any, &found);
    }
    return found;
}

/* ---- all ---- */

static void put(struct answer *answer, const struct krait_view_query *query, struct krait_buf *out)
{
    struct krait_view *view = answer->view;
    const struct krait_columns *columns = answer->index->columns;
    struct krait_wire_mark marks[KRAIT_WIRE_BINS];
    struct krait_wire_counter counters[KRAIT_WIRE_BINS];
    uint8_t kind = answer->track->kind;
    uint64_t to_ns = answer->from_ns + ((uint64_t)KRAIT_WIRE_BINS << answer->shift);
    bool has_gaps = kind == KRAIT_TRACK_CALLS && has_lost(answer, to_ns);
    struct krait_wire_tile wire = {
        .tile = query->tile,
        .kind = kind,
        .level = query->level,
        .flags = (uint8_t)(answer->flags | (has_gaps ? KRAIT_WIRE_LOST : 0)),
        .calls = &answer->tile,
        .marks = marks,
        .hues = kind == KRAIT_TRACK_CALLS ? view->func_hues : view->text_hues,
        .hue_count = kind == KRAIT_TRACK_CALLS ? view->trace->func_count : view->text_count,
    };
    if (kind == KRAIT_TRACK_INSTANTS)
        wire.mark_count = krait_columns_marks(columns, answer->from_ns, answer->shift, marks);
    if (kind == KRAIT_TRACK_COUNTER) {
        krait_columns_counters(columns, answer->from_ns, answer->shift, counters);
        wire.counters = counters;
    }
    krait_wire_put(out, &wire);
}

static int fill(struct answer *answer)
{
    switch (answer->track->kind) {
    case KRAIT_TRACK_CALLS:
        return answer_calls(answer);
    case KRAIT_TRACK_SLICES:
    case KRAIT_TRACK_STATES:
        return answer_spans(answer);
    default:
        return 0;
    }
}

/* The view's lock protects the columns of tracks other than calls, while they are built, and the texts' hues. */
static int fill_and_then(struct answer *answer,
                         void (*then)(struct answer *answer, const void *in, void *out), const void *in,
                         void *out)
{
    bool locks = answer->track->kind != KRAIT_TRACK_CALLS;
    if (locks) {
        pthread_mutex_lock(&answer->view->lock);
        answer->flags |= state_of(answer) == KRAIT_VIEW_READY ? 0 : KRAIT_WIRE_UNFINISHED;
    }
    int rc = fill(answer);
    if (!rc)
        then(answer, in, out);
    if (locks)
        pthread_mutex_unlock(&answer->view->lock);
    krait_tile_done(&answer->tile);
    return rc;
}

static void put_tile(struct answer *answer, const void *query, void *out)
{
    put(answer, query, out);
}

int krait_view_tile(struct krait_view *view, const struct krait_view_query *query, struct krait_buf *out)
{
    struct answer answer;
    int rc = start(&answer, view, query);
    rc = rc ? rc : fill_and_then(&answer, put_tile, query, out);
    return rc ? rc : out->failed ? -ENOMEM : 0;
}

struct place {
    uint32_t bin, depth;
};

static void put_bin(struct answer *answer, const void *in, void *to)
{
    const struct place *place = in;
    const struct krait_tile_bin *bin = NULL;
    struct krait_view_bin *out = to;
    if (place->depth < answer->tile.depths)
        bin = krait_tile_cell(&answer->tile, place->depth, place->bin);
    *out = (struct krait_view_bin){ .name = KRAIT_NO_ID, .flags = answer->flags };
    if (!bin || krait_tile_bin_is_empty(bin))
        return;
    out->busy_ns = bin->busy_ns;
    out->longest_ns = bin->longest_ns;
    out->count = bin->count;
    out->name = bin->func;
}

int krait_view_bin(struct krait_view *view, const struct krait_view_query *query, uint32_t bin,
                   uint32_t depth, struct krait_view_bin *out)
{
    struct answer answer;
    const struct place place = { bin, depth };
    int rc = start(&answer, view, query);
    if (rc || bin >= KRAIT_WIRE_BINS || depth >= KRAIT_WIRE_DEPTHS)
        return rc ? rc : -EINVAL;
    return fill_and_then(&answer, put_bin, &place, out);
}

/* ---- sums of several tracks ---- */

struct busy {
    uint64_t *ns;
    uint8_t *flags;
};

static void add_long(uint64_t *ns, const struct krait_tile *tile, const struct krait_tile_call *call)
{
    krait_view_spread(ns, (struct krait_range){ call->begin_ns, call->end_ns }, tile->from_ns, tile->bin_ns);
}

static void add_busy(struct answer *answer, const void *in, void *out)
{
    const struct busy *busy = out;
    const struct krait_tile *tile = &answer->tile;
    *busy->flags |= answer->flags;
    for (uint32_t i = 0; i < tile->bins && tile->depths; i++)
        busy->ns[i] += krait_tile_cell(tile, 0, i)->busy_ns;
    for (uint32_t i = 0; i < tile->call_count; i++) {
        if (tile->calls[i].depth == 0)
            add_long(busy->ns, tile, &tile->calls[i]);
    }
}

int krait_view_busy(struct krait_view *view, const struct krait_view_query *query, uint64_t *ns,
                    uint8_t *flags)
{
    struct answer answer;
    struct busy busy = { ns, flags };
    int rc = start(&answer, view, query);
    answer.depths = 1; /* only the outermost are needed */
    if (!rc)
        krait_tile_init(&answer.tile, answer.from_ns, (uint64_t)1 << answer.shift, answer.bins,
                        answer.depths);
    return rc ? rc : fill_and_then(&answer, add_busy, NULL, &busy);
}

void krait_view_spread(uint64_t *ns, struct krait_range range, uint64_t from_ns, uint64_t bin_ns)
{
    uint64_t end_ns = from_ns + KRAIT_WIRE_BINS * bin_ns;
    uint64_t at = KRAIT_MAX(range.from_ns, from_ns), to = KRAIT_MIN(range.to_ns, end_ns);
    while (at < to) {
        uint64_t bin = (at - from_ns) / bin_ns, until = KRAIT_MIN(from_ns + (bin + 1) * bin_ns, to);
        ns[bin] += until - at;
        at = until;
    }
}

/* ---- single entries ---- */

static void take_tile(struct answer *answer, const void *in, void *out)
{
    struct krait_tile *tile = out;
    *tile = answer->tile;
    answer->tile = (struct krait_tile){ 0 };
}

int krait_view_at(struct krait_view *view, uint32_t track, uint64_t at_ns, struct krait_tile *out)
{
    struct answer answer = { .view = view, .id = track, .from_ns = at_ns, .bins = 1, .depths = UINT32_MAX };
    *out = (struct krait_tile){ 0 };
    if (track >= view->trace->track_count || at_ns >= KRAIT_PYRAMID_TIME_MAX)
        return -EINVAL;
    answer.track = &view->trace->tracks[track];
    answer.index = &view->tracks[track];
    krait_tile_init(&answer.tile, at_ns, 1, 1, answer.depths);
    int rc = fill_and_then(&answer, take_tile, NULL, out);
    return rc || !(answer.flags & KRAIT_WIRE_UNFINISHED) ? rc : -EAGAIN;
}

int krait_view_each(struct krait_view *view, uint32_t track, struct krait_range range,
                    int (*fn)(void *ctx, const struct krait_tile_call *entry), void *ctx)
{
    if (track >= view->trace->track_count || view->trace->tracks[track].kind == KRAIT_TRACK_CALLS)
        return -EINVAL;
    if (__atomic_load_n(&view->tracks[track].state, __ATOMIC_ACQUIRE) != KRAIT_VIEW_READY)
        return -EAGAIN;
    const struct krait_columns *columns = view->tracks[track].columns; /* flows have none */
    return columns ? krait_columns_each(columns, range, fn, ctx) : 0;
}

uint8_t krait_view_func_hue(const struct krait_view *view, uint32_t func)
{
    return func < view->trace->func_count ? view->func_hues[func] : 0;
}
