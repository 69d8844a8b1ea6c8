/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "serve/serving.h"
#include "trace/importer.h"
#include "view/classes.h"

#include <string.h>

enum { TILES_MAX = 256 }; /* of one answer */

#define P(name) (1u << KRAIT_PARAM_##name)

static int read_place(struct krait_view_query *query, const struct krait_request *request,
                      struct krait_err *err)
{
    int rc = krait_request_needs(request, P(level) | P(tile), err);
    const uint64_t *n = request->numbers;
    if (rc)
        return rc;
    if (n[KRAIT_PARAM_level] > KRAIT_WIRE_LEVEL_MAX ||
        n[KRAIT_PARAM_tile] >> (63 - KRAIT_WIRE_BINS_LOG2 - n[KRAIT_PARAM_level]))
        return krait_err_set(err, -EINVAL, "there is no such level or tile");
    *query = (struct krait_view_query){ .level = (uint8_t)n[KRAIT_PARAM_level], .tile = n[KRAIT_PARAM_tile] };
    return 0;
}

static int read_query(struct krait_view_query *query, const struct krait_request *request,
                      struct krait_err *err)
{
    int rc = read_place(query, request, err);
    rc = rc ? rc : krait_request_needs(request, P(track), err);
    if (rc)
        return rc;
    if (request->numbers[KRAIT_PARAM_track] >= UINT32_MAX)
        return krait_err_set(err, -EINVAL, "there is no such track");
    query->track = (uint32_t)request->numbers[KRAIT_PARAM_track];
    return 0;
}

int krait_answer_tile(struct krait_serving *serving, const struct krait_request *request,
                      struct krait_buf *out, struct krait_err *err)
{
    struct krait_view_query query;
    int rc = read_query(&query, request, err);
    rc = rc ? rc : krait_view_tile(serving->view, &query, out);
    return rc && !err->code ? krait_err_set(err, rc, "there is no such tile") : rc;
}

/* Appends a track's id, the length of its tile, and the tile. */
static int put_tile(struct krait_buf *out, struct krait_view *view, const struct krait_view_query *query)
{
    size_t at = out->len;
    uint32_t head[2] = { query->track, 0 };
    krait_buf_add(out, head, sizeof(head));
    int rc = krait_view_tile(view, query, out);
    if (rc || out->failed)
        return rc ? rc : -ENOMEM;
    head[1] = (uint32_t)(out->len - at - sizeof(head));
    memcpy(out->data + at, head, sizeof(head));
    return 0;
}

int krait_answer_tiles(struct krait_serving *serving, const struct krait_request *request,
                       struct krait_buf *out, struct krait_err *err)
{
    struct krait_view_query query;
    uint32_t count = 0;
    int rc = read_place(&query, request, err);
    rc = rc ? rc : krait_request_needs(request, P(tracks), err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < serving->trace->track_count && !rc; i++) {
        query.track = i;
        if (!krait_request_has_id(request, i))
            continue;
        rc = ++count > TILES_MAX ? krait_err_set(err, -EINVAL, "an answer has at most %d tiles", TILES_MAX)
                                 : put_tile(out, serving->view, &query);
    }
    return rc && !err->code ? krait_err_set(err, rc, "there is no such tile") : rc;
}

int krait_answer_bin(struct krait_serving *serving, const struct krait_request *request,
                     struct krait_buf *out, struct krait_err *err)
{
    struct krait_view_query query;
    struct krait_view_bin bin = { 0 };
    int rc = read_query(&query, request, err);
    rc = rc ? rc : krait_request_needs(request, P(bin) | P(depth), err);
    if (rc)
        return rc;
    uint64_t at = request->numbers[KRAIT_PARAM_bin], depth = request->numbers[KRAIT_PARAM_depth];
    if (at >= KRAIT_WIRE_BINS || depth > UINT32_MAX)
        return krait_err_set(err, -EINVAL, "there is no such bin");
    rc = krait_view_bin(serving->view, &query, (uint32_t)at, (uint32_t)depth, &bin);
    if (rc)
        return krait_err_set(err, rc, "there is no such bin");
    krait_buf_char(out, '{');
    krait_json_key_u64(out, "busy", bin.busy_ns);
    krait_json_key_u64(out, "count", bin.count);
    krait_json_key_u64(out, "longest", bin.longest_ns);
    krait_json_key_u64_or_null(out, "name", bin.name != KRAIT_NO_ID, bin.name);
    krait_buf_str(out, "}\n");
    return 0;
}

/* ---- several tracks together ---- */

struct busy {
    struct krait_serving *serving;
    uint64_t ns[KRAIT_WIRE_BINS], from_ns, bin_ns;
    uint32_t tracks;
    uint8_t flags;
};

static int add_state(void *ctx, const struct krait_tile_call *state)
{
    struct busy *busy = ctx;
    uint8_t class = krait_class_of(krait_view_text(busy->serving->view, state->func));
    if (krait_class_runs(class))
        krait_view_spread(busy->ns, (struct krait_range){ state->begin_ns, state->end_ns }, busy->from_ns,
                          busy->bin_ns);
    return 0;
}

static int add_track(struct busy *busy, const struct krait_view_query *query)
{
    const struct krait_track *track = &busy->serving->trace->tracks[query->track];
    const struct krait_range range = { busy->from_ns, busy->from_ns + KRAIT_WIRE_BINS * busy->bin_ns };
    bool is_thread = track->kind == KRAIT_TRACK_STATES && track->of == KRAIT_OF_THREAD &&
                     track->importer != KRAIT_IMPORTER_krait_lost;
    int rc = is_thread ? krait_view_each(busy->serving->view, query->track, range, add_state, busy)
                       : krait_view_busy(busy->serving->view, query, busy->ns, &busy->flags);
    busy->flags |= rc == -EAGAIN ? KRAIT_WIRE_UNFINISHED : 0;
    busy->tracks++;
    return rc == -EAGAIN ? 0 : rc;
}

static bool can_be_busy(const struct krait_track *track)
{
    return track->kind == KRAIT_TRACK_CALLS || track->kind == KRAIT_TRACK_STATES;
}

static void put_busy(struct krait_buf *out, const struct busy *busy)
{
    krait_buf_char(out, '{');
    krait_json_key_u64(out, "tracks", busy->tracks);
    krait_json_key_bool(out, "unfinished", busy->flags & KRAIT_WIRE_UNFINISHED);
    krait_json_key_open(out, "busy", '[');
    for (uint32_t i = 0; i < KRAIT_WIRE_BINS; i++) {
        krait_json_item(out, "");
        krait_buf_fmt(out, "%.6g", (double)busy->ns[i] / (double)busy->bin_ns);
    }
    krait_buf_str(out, "]}\n");
}

int krait_answer_busy(struct krait_serving *serving, const struct krait_request *request,
                      struct krait_buf *out, struct krait_err *err)
{
    struct krait_view_query query;
    int rc = read_place(&query, request, err);
    rc = rc ? rc : krait_request_needs(request, P(tracks), err);
    if (rc)
        return rc;
    struct busy busy = { .serving = serving, .bin_ns = (uint64_t)1 << query.level };
    busy.from_ns = query.tile << (query.level + KRAIT_WIRE_BINS_LOG2);
    for (uint32_t i = 0; i < serving->trace->track_count && !rc; i++) {
        query.track = i;
        if (can_be_busy(&serving->trace->tracks[i]) && krait_request_has_id(request, i))
            rc = add_track(&busy, &query);
    }
    if (!rc)
        put_busy(out, &busy);
    return rc && !err->code ? krait_err_set(err, rc, "there is no such tile") : rc;
}
