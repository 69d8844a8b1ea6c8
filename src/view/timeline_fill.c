/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills the lanes of a timeline with everything except calls.
 */
#include "base/array.h"
#include "trace/importer.h"
#include "trace/mark_says.h"
#include "view/columns.h"
#include "view/timeline_own.h"

#include <string.h>

/* ---- parts ---- */

static int rank_of(const struct krait_track *track)
{
    static const int ranks[] = {
        [KRAIT_TRACK_STATES] = 0, [KRAIT_TRACK_INSTANTS] = 1, [KRAIT_TRACK_CALLS] = 2,
        [KRAIT_TRACK_SLICES] = 3, [KRAIT_TRACK_COUNTER] = 4,  [KRAIT_TRACK_FLOWS] = 5
    };
    return ranks[track->kind];
}

static bool has_bins(const struct krait_track *track)
{
    return track->kind == KRAIT_TRACK_INSTANTS || track->kind == KRAIT_TRACK_COUNTER;
}

/* The states of a recorded thread come from all sources together (analysis/wall.h), if there are any. */
static bool is_part(const struct krait_timeline_lane *lane, const struct krait_track *track)
{
    bool is_state = track->kind == KRAIT_TRACK_STATES && !krait_timeline_is_loss(track);
    return track->kind != KRAIT_TRACK_CALLS && track->kind != KRAIT_TRACK_FLOWS &&
           !(is_state && lane->states.items);
}

/* Sorts them from top to bottom. */
static void sort_parts(const struct krait_filling *f, struct krait_timeline_lane *lane)
{
    const struct krait_track *tracks = f->trace->tracks;
    for (uint32_t i = 1; i < lane->part_count; i++) {
        struct krait_timeline_part part = lane->parts[i];
        uint32_t at = i;
        for (; at && rank_of(&tracks[lane->parts[at - 1].track]) > rank_of(&tracks[part.track]); at--)
            lane->parts[at] = lane->parts[at - 1];
        lane->parts[at] = part;
    }
}

static int start_part(struct krait_filling *f, struct krait_timeline_lane *lane, uint32_t id)
{
    struct krait_timeline_part *part = krait_timeline_add_part(lane, id);
    const struct krait_track *track = &f->trace->tracks[id];
    if (!part)
        return -ENOMEM;
    krait_tile_init(&part->tile, f->timeline->range.from_ns, f->grid.bin_ns, f->grid.bins, KRAIT_WIRE_DEPTHS);
    f->columns[id].kind = track->kind;
    if (!has_bins(track))
        return 0;
    part->bins = calloc(f->grid.bins, sizeof(*part->bins));
    return part->bins ? 0 : -ENOMEM;
}

/* Tracks of one thread or CPU are adjacent. */
static int start_parts(struct krait_filling *f, uint32_t index)
{
    struct krait_timeline_lane *lane = &f->timeline->lanes[index];
    const struct krait_track *tracks = f->trace->tracks, *own = &tracks[lane->track];
    uint32_t at = lane->track;
    int rc = 0;
    if (own->of == KRAIT_OF_THREAD && own->thread != KRAIT_NO_ID)
        at = f->trace->threads[own->thread].first_track;
    for (uint32_t first = at; at < f->trace->track_count && !rc; at++) {
        if (at != first && !krait_timeline_share_lane(own, &tracks[at]))
            break;
        if (is_part(lane, &tracks[at]))
            rc = start_part(f, lane, at);
    }
    sort_parts(f, lane);
    for (uint32_t i = 0; i < lane->part_count; i++) {
        uint32_t id = lane->parts[i].track;
        f->lane_of[id] = index;
        f->part_of[id] = tracks[id].kind == KRAIT_TRACK_CALLS ? KRAIT_NO_ID : i; /* the lane has the calls */
    }
    return rc;
}

static int start_lane(struct krait_filling *f, uint32_t index)
{
    struct krait_timeline_lane *lane = &f->timeline->lanes[index];
    const struct krait_track *track = &f->trace->tracks[lane->track];
    bool is_recorded = track->of == KRAIT_OF_THREAD && track->thread != KRAIT_NO_ID;
    int rc = 0;
    if (is_recorded && f->options->wall && lane->group == KRAIT_TIMELINE_PROCESS)
        rc = krait_wall_track_new(&lane->states, f->options->wall, track->thread);
    return rc ? rc : start_parts(f, index);
}

/* ---- entries ---- */

static uint32_t bin_of(const struct krait_filling *f, uint64_t t_ns)
{
    uint64_t since = t_ns - KRAIT_MIN(f->timeline->range.from_ns, t_ns);
    return (uint32_t)KRAIT_MIN(since / f->grid.bin_ns, f->grid.bins - 1ull);
}

static int add_states(struct krait_timeline_part *part, const struct krait_batch *batch)
{
    int rc = 0;
    for (uint32_t i = 0; i < batch->n && !rc; i++) {
        const struct krait_tile_call state = { .begin_ns = batch->t_ns[i],
                                               .end_ns = batch->end_ns[i],
                                               .func = batch->name[i] };
        rc = krait_tile_add(&part->tile, &state);
    }
    return rc;
}

/* The most serious one is shown; of several, the first. */
static int take_mark(const struct krait_filling *f, struct krait_timeline_bin *bin, const char *name,
                     const char *text)
{
    enum { MOST = 400 }; /* bytes of a text */
    enum krait_mark_level level = krait_mark_level(name, text);
    if (bin->says && level <= bin->mark_level)
        return 0;
    KRAIT_AUTO_BUF says = { 0 };
    krait_mark_says(&says, name, text);
    bin->mark_level = (uint8_t)level;
    bin->says = says.failed ? NULL
                            : krait_arena_strndup(&f->timeline->said, says.len ? says.data : "",
                                                  KRAIT_MIN(says.len, (size_t)MOST));
    return bin->says ? 0 : -ENOMEM;
}

static int add_instants(const struct krait_filling *f, struct krait_timeline_part *part,
                        const struct krait_track *track, const struct krait_batch *batch)
{
    for (uint32_t i = 0; i < batch->n; i++) {
        struct krait_timeline_bin *bin = &part->bins[bin_of(f, batch->t_ns[i])];
        const char *name = krait_track_text(f->trace, batch->name[i]);
        if (krait_marks_also(track, name))
            continue;
        if (!bin->count++)
            bin->name = batch->name[i];
        if (take_mark(f, bin, name, batch->text ? batch->text[i] : ""))
            return -ENOMEM;
    }
    return 0;
}

static void add_values(const struct krait_filling *f, struct krait_timeline_part *part,
                       const struct krait_batch *batch)
{
    for (uint32_t i = 0; i < batch->n; i++) {
        struct krait_timeline_bin *bin = &part->bins[bin_of(f, batch->t_ns[i])];
        int64_t value = batch->value[i];
        bin->least = bin->known ? KRAIT_MIN(bin->least, value) : value;
        bin->most = bin->known ? KRAIT_MAX(bin->most, value) : value;
        bin->last = value;
        bin->known = true;
    }
}

static int on_batch(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct krait_filling *f = ctx;
    uint32_t id = (uint32_t)(track - f->trace->tracks);
    struct krait_timeline_part *part = &f->timeline->lanes[f->lane_of[id]].parts[f->part_of[id]];
    switch (track->kind) {
    case KRAIT_TRACK_STATES:
        return add_states(part, batch);
    case KRAIT_TRACK_SLICES:
        return krait_columns_add(&f->columns[id], f->trace, track, batch, f->timeline->range.from_ns);
    case KRAIT_TRACK_INSTANTS:
        return add_instants(f, part, track, batch);
    default:
        add_values(f, part, batch);
        return 0;
    }
}

/* Depths are known only after the last one. */
static int finish_slices(struct krait_filling *f, struct krait_timeline_part *part)
{
    struct krait_columns *columns = &f->columns[part->track];
    uint64_t origin_ns = f->timeline->range.from_ns, count = columns->spans.count;
    int rc = krait_columns_finish(columns);
    KRAIT_AUTO_FREE struct krait_tile_call *slices = rc ? NULL : krait_columns_unpack(columns);
    krait_columns_done(columns);
    rc = slices ? 0 : -ENOMEM;
    for (uint64_t i = 0; i < count && !rc; i++) {
        slices[i].begin_ns += origin_ns;
        slices[i].end_ns += origin_ns;
        rc = krait_tile_add(&part->tile, &slices[i]);
    }
    return rc;
}

/* A value holds until the next one. */
static void finish_values(const struct krait_filling *f, struct krait_timeline_part *part)
{
    for (uint32_t i = 1; i < f->grid.bins; i++) {
        struct krait_timeline_bin *bin = &part->bins[i], *before = bin - 1;
        if (!before->known)
            continue;
        if (!bin->known)
            *bin = (struct krait_timeline_bin){ .least = before->last,
                                                .most = before->last,
                                                .last = before->last };
        bin->least = KRAIT_MIN(bin->least, before->last);
        bin->most = KRAIT_MAX(bin->most, before->last);
        bin->known = true;
    }
}

static int finish_part(struct krait_filling *f, struct krait_timeline_part *part)
{
    switch (f->trace->tracks[part->track].kind) {
    case KRAIT_TRACK_SLICES:
        return finish_slices(f, part);
    case KRAIT_TRACK_COUNTER:
        finish_values(f, part);
        return 0;
    default:
        return 0;
    }
}

/* ---- all ---- */

static int note_end(void *to_ns, const struct krait_track *track, const struct krait_batch *batch)
{
    uint64_t *end = to_ns;
    bool has_ends = track->of == KRAIT_OF_LANE && batch->end_ns;
    if (batch->n)
        *end = KRAIT_MAX(*end, (has_ends ? batch->end_ns : batch->t_ns)[batch->n - 1] + 1);
    return 0;
}

int krait_timeline_find_end(struct krait_timeline *timeline, const struct krait_trace *trace, uint64_t *to_ns)
{
    int rc = 0;
    for (uint32_t i = 0; i < trace->track_count && !rc; i++) {
        if (trace->tracks[i].of == KRAIT_OF_GROUP || trace->tracks[i].of == KRAIT_OF_LANE)
            rc = krait_track_walk(trace, i, KRAIT_RANGE_ALL, note_end, to_ns, timeline->damage,
                                  sizeof(timeline->damage));
    }
    return rc == -ENOMEM ? rc : 0;
}

/* In one pass, if the source allows it. */
static int walk_parts(struct krait_filling *f)
{
    struct krait_timeline *timeline = f->timeline;
    uint32_t n = 0;
    KRAIT_AUTO_FREE uint32_t *tracks = malloc(KRAIT_MAX(f->trace->track_count, 1u) * sizeof(*tracks));
    if (!tracks)
        return -ENOMEM;
    for (uint32_t i = 0; i < f->trace->track_count; i++) {
        if (f->part_of[i] != KRAIT_NO_ID)
            tracks[n++] = i;
    }
    int rc = krait_tracks_walk(f->trace, tracks, n, timeline->range, on_batch, f, timeline->damage,
                               sizeof(timeline->damage));
    for (uint32_t i = 0; i < n && !rc; i++)
        rc = finish_part(f, &timeline->lanes[f->lane_of[tracks[i]]].parts[f->part_of[tracks[i]]]);
    return rc;
}

static void filling_done(struct krait_filling *f)
{
    for (uint32_t i = 0; f->columns && i < f->trace->track_count; i++)
        krait_columns_done(&f->columns[i]);
    free(f->columns);
    free(f->lane_of);
    free(f->part_of);
    free(f->runs);
}

static int start(struct krait_filling *f)
{
    size_t n = KRAIT_MAX(f->trace->track_count, 1u);
    f->columns = calloc(n, sizeof(*f->columns));
    f->lane_of = malloc(n * sizeof(*f->lane_of));
    f->part_of = malloc(n * sizeof(*f->part_of));
    if (!f->columns || !f->lane_of || !f->part_of)
        return -ENOMEM;
    memset(f->lane_of, 0xff, n * sizeof(*f->lane_of));
    memset(f->part_of, 0xff, n * sizeof(*f->part_of));
    return 0;
}

int krait_timeline_fill(struct krait_timeline *timeline, struct krait_trace *trace,
                        const struct krait_timeline_options *options, struct krait_err *err)
{
    timeline->trace = trace;
    int rc = krait_tracks_find(trace, err);
    if (rc)
        return rc;
    KRAIT_CLEANUP(filling_done)
    struct krait_filling f = {
        .timeline = timeline, .trace = trace, .options = options, .grid = krait_timeline_grid_of(timeline)
    };
    rc = start(&f);
    rc = rc ? rc : krait_timeline_find_lanes(&f);
    for (uint32_t i = 0; i < timeline->lane_count && !rc; i++)
        rc = start_lane(&f, i);
    rc = rc ? rc : walk_parts(&f);
    return rc ? krait_err_set(err, rc, "out of memory") : 0;
}
