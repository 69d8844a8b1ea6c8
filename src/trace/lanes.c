/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/lanes.h"

#include "base/array.h"
#include "trace/importer.h"

enum { BATCH = 1024 };

/* In trace->impl->source. */
struct added {
    struct krait_lanes lanes;
    uint32_t *ids; /* by their names: the trace's; KRAIT_NO_ID: not asked for yet */
};

void krait_lanes_done(struct krait_lanes *lanes)
{
    for (uint32_t i = 0; i < lanes->count; i++)
        free(lanes->tracks[i].entries);
    free(lanes->tracks);
    krait_strtab_done(&lanes->names);
    krait_arena_done(&lanes->arena);
    *lanes = (struct krait_lanes){ 0 };
}

struct krait_lane_track *krait_lanes_add(struct krait_lanes *lanes, const struct krait_lane_track *track)
{
    struct krait_lane_track own = *track;
    own.title = krait_arena_strdup(&lanes->arena, track->title);
    own.name = krait_arena_strdup(&lanes->arena, track->name);
    own.unit = krait_arena_strdup(&lanes->arena, track->unit ? track->unit : "");
    own.entries = NULL;
    own.count = own.cap = 0;
    if (!own.title || !own.name || !own.unit || !KRAIT_GROW(lanes->tracks, lanes->cap, lanes->count + 1))
        return NULL;
    lanes->lanes = KRAIT_MAX(lanes->lanes, own.lane + 1);
    lanes->tracks[lanes->count] = own;
    return &lanes->tracks[lanes->count++];
}

int krait_lane_track_add(struct krait_lane_track *track, const struct krait_lane_entry *entry)
{
    if (track->count > INT32_MAX)
        return -EFBIG;
    if (!KRAIT_GROW(track->entries, track->cap, track->count + 1))
        return -ENOMEM;
    track->entries[track->count++] = *entry;
    return 0;
}

/* -- as tracks of a trace -- */

static void close_source(void *source)
{
    struct added *added = source;
    if (!added)
        return;
    krait_lanes_done(&added->lanes);
    free(added->ids);
    free(added);
}

static int add_tracks(struct krait_trace *trace, const struct krait_lanes *lanes)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        const struct krait_lane_track *from = &lanes->tracks[i];
        struct krait_track *track = krait_trace_add_track(trace);
        if (!track)
            return -ENOMEM;
        track->kind = from->kind;
        track->of = KRAIT_OF_LANE;
        track->importer = KRAIT_IMPORTER_lanes;
        track->number = from->lane;
        track->thread_name = from->title;
        track->key = i;
        track->name = from->name;
        track->unit = from->unit;
        track->parts = from->parts;
    }
    return 0;
}

int krait_trace_add_lanes(struct krait_trace *trace, struct krait_lanes *lanes)
{
    struct added *added = calloc(1, sizeof(*added));
    uint32_t names = lanes->names.len;
    uint32_t *ids = malloc(((size_t)names + 1) * sizeof(*ids));
    if (!added || !ids) {
        free(added);
        free(ids);
        krait_lanes_done(lanes);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < names; i++)
        ids[i] = KRAIT_NO_ID;
    *added = (struct added){ *lanes, ids };
    *lanes = (struct krait_lanes){ 0 };
    trace->impl->source[KRAIT_IMPORTER_lanes] = added;
    return add_tracks(trace, &added->lanes);
}

uint32_t krait_trace_recorded_tracks(const struct krait_trace *trace)
{
    uint32_t count = trace->track_count;
    while (count && trace->tracks[count - 1].importer == KRAIT_IMPORTER_lanes)
        count--;
    return count;
}

/* -- walking -- */

struct reading {
    const struct krait_trace *trace;
    const struct krait_track *track;
    const struct krait_walking *walking;
    struct added *added;
    uint32_t n;
    uint64_t t_ns[BATCH], end_ns[BATCH];
    uint32_t name[BATCH];
    int64_t value[BATCH];
};

static int flush(struct reading *r)
{
    bool is_counter = r->track->kind == KRAIT_TRACK_COUNTER;
    const struct krait_batch out = { .n = r->n,
                                     .t_ns = r->t_ns,
                                     .end_ns = is_counter ? NULL : r->end_ns,
                                     .name = is_counter ? NULL : r->name,
                                     .value = r->value };
    r->n = 0;
    return out.n ? r->walking->batch(r->walking->ctx, r->track, &out) : 0;
}

static int hand_out(struct reading *r, uint64_t begin_ns, const struct krait_lane_entry *entry)
{
    uint32_t *id = r->track->kind == KRAIT_TRACK_COUNTER ? NULL : &r->added->ids[entry->name];
    if (id && *id == KRAIT_NO_ID)
        *id = krait_trace_name(r->trace, r->added->lanes.names.texts[entry->name]);
    if (id && *id == KRAIT_NO_ID)
        return -ENOMEM;
    r->t_ns[r->n] = begin_ns;
    r->end_ns[r->n] = KRAIT_MIN(entry->end_ns, r->walking->range.to_ns);
    r->name[r->n] = id ? *id : 0;
    r->value[r->n] = id ? 0 : entry->value;
    return ++r->n == BATCH ? flush(r) : 0;
}

/* A value holds until the next: the last one in front of the range is the first in it. */
static int walk_values(struct reading *r, const struct krait_lane_track *from)
{
    const struct krait_range *range = &r->walking->range;
    uint32_t i =
        (uint32_t)KRAIT_PARTITION_POINT(at, from->count, from->entries[at].begin_ns < range->from_ns);
    bool has_before = i && (i == from->count || from->entries[i].begin_ns > range->from_ns);
    int rc = has_before ? hand_out(r, range->from_ns, &from->entries[i - 1]) : 0;
    for (; i < from->count && from->entries[i].begin_ns < range->to_ns && !rc; i++)
        rc = hand_out(r, from->entries[i].begin_ns, &from->entries[i]);
    return rc;
}

/* What touches the range is cut at its edges. */
static int walk_spans(struct reading *r, const struct krait_lane_track *from)
{
    const struct krait_range *range = &r->walking->range;
    int rc = 0;
    for (uint32_t i = 0; i < from->count && !rc; i++) {
        const struct krait_lane_entry *entry = &from->entries[i];
        bool is_before = entry->end_ns <= range->from_ns && entry->begin_ns < range->from_ns;
        if (!is_before && entry->begin_ns < range->to_ns)
            rc = hand_out(r, KRAIT_MAX(entry->begin_ns, range->from_ns), entry);
    }
    return rc;
}

static int walk_track(const struct krait_trace *trace, const struct krait_track *track,
                      const struct krait_walking *walking)
{
    struct added *added = trace->impl->source[KRAIT_IMPORTER_lanes];
    const struct krait_lane_track *from = &added->lanes.tracks[track->key];
    KRAIT_AUTO_FREE struct reading *r = calloc(1, sizeof(*r));
    if (!r)
        return -ENOMEM;
    r->trace = trace;
    r->track = track;
    r->walking = walking;
    r->added = added;
    int rc = track->kind == KRAIT_TRACK_COUNTER ? walk_values(r, from) : walk_spans(r, from);
    return rc ? rc : flush(r);
}

static bool takes(const struct krait_folder *folder)
{
    return false;
}

const struct krait_importer krait_importer_lanes = { .takes = takes,
                                                     .walk = walk_track,
                                                     .close = close_source };
