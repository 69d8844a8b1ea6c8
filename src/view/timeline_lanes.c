/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the lanes of a timeline, their order, and their calls.
 */
#include "base/array.h"
#include "trace/importer.h"
#include "trace/sample_runs.h"
#include "view/timeline_own.h"

#include <string.h>

/* Lanes of threads that are kept during the search: this many times the number that stays. */
enum { SPARE = 2 };

struct krait_timeline_grid krait_timeline_grid_of(const struct krait_timeline *timeline)
{
    uint32_t most =
        (timeline->width - KRAIT_TIMELINE_GUTTER - 2 * KRAIT_TIMELINE_MARGIN) / KRAIT_TIMELINE_BIN;
    uint64_t ns = timeline->range.to_ns - timeline->range.from_ns, bin_ns = (ns + most - 1) / most;
    return (struct krait_timeline_grid){ bin_ns, (uint32_t)((ns + bin_ns - 1) / bin_ns) };
}

bool krait_timeline_is_loss(const struct krait_track *track)
{
    return track->importer == KRAIT_IMPORTER_krait_lost;
}

/* ---- lanes ---- */

static void lane_done(struct krait_timeline_lane *lane)
{
    for (uint32_t i = 0; i < lane->part_count; i++) {
        krait_tile_done(&lane->parts[i].tile);
        free(lane->parts[i].bins);
    }
    free(lane->parts);
    krait_wall_track_done(&lane->states);
    *lane = (struct krait_timeline_lane){ 0 };
}

void krait_timeline_done(struct krait_timeline *timeline)
{
    for (uint32_t i = 0; i < timeline->lane_count; i++)
        lane_done(&timeline->lanes[i]);
    krait_arena_done(&timeline->said);
    free(timeline->lanes);
    timeline->lanes = NULL;
    timeline->lane_count = timeline->lane_cap = 0;
}

/* A new lane after the others; NULL if memory is out. */
static struct krait_timeline_lane *add_lane(struct krait_filling *f, uint8_t group, uint32_t group_id,
                                            uint32_t track)
{
    struct krait_timeline *timeline = f->timeline;
    if (!KRAIT_GROW(timeline->lanes, timeline->lane_cap, timeline->lane_count + 1))
        return NULL;
    struct krait_timeline_lane *lane = &timeline->lanes[timeline->lane_count++];
    *lane = (struct krait_timeline_lane){
        .group = group, .of = f->trace->tracks[track].of, .group_id = group_id, .track = track, .order = track
    };
    return lane;
}

struct krait_timeline_part *krait_timeline_add_part(struct krait_timeline_lane *lane, uint32_t track)
{
    if (!KRAIT_GROW(lane->parts, lane->part_cap, lane->part_count + 1))
        return NULL;
    struct krait_timeline_part *part = &lane->parts[lane->part_count++];
    *part = (struct krait_timeline_part){ .track = track };
    return part;
}

static bool is_thread(const struct krait_timeline_lane *lane)
{
    return lane->group < KRAIT_TIMELINE_CPUS && lane->of != KRAIT_OF_PROCESS;
}

static bool is_task(const struct krait_timeline_lane *lane)
{
    return lane->of == KRAIT_OF_TASK;
}

/* Adds a lane, if it is of a thread or a task. */
static void count_lane(struct krait_timeline_count *to, const struct krait_timeline_lane *lane)
{
    to->tasks += is_task(lane);
    to->threads += is_thread(lane) && !is_task(lane);
}

static int by_weight(const void *a, const void *b)
{
    const struct krait_timeline_lane *x = a, *y = b;
    int x_last = is_thread(x) + is_task(x), y_last = is_thread(y) + is_task(y);
    if (x_last != y_last)
        return x_last - y_last;
    if (x->weight != y->weight)
        return x->weight < y->weight ? 1 : -1;
    return (x->order > y->order) - (x->order < y->order);
}

static void sort_by_weight(struct krait_timeline *timeline)
{
    if (timeline->lane_count > 1)
        qsort(timeline->lanes, timeline->lane_count, sizeof(*timeline->lanes), by_weight);
}

static int by_order(const void *a, const void *b)
{
    const struct krait_timeline_lane *x = a, *y = b;
    return (x->order > y->order) - (x->order < y->order);
}

/* ---- recorded threads ---- */

static uint32_t calls_track(const struct krait_trace *trace, uint32_t thread)
{
    const struct krait_thread *t = &trace->threads[thread];
    for (uint32_t i = t->first_track; i < t->first_track + t->track_count; i++) {
        if (trace->tracks[i].kind == KRAIT_TRACK_CALLS)
            return i;
    }
    return KRAIT_NO_ID;
}

/* Keeps the heaviest lanes so far, so that memory does not grow with the number of threads. */
static void drop_spare(struct krait_filling *f, uint32_t spare)
{
    struct krait_timeline *timeline = f->timeline;
    uint32_t most = f->options->most;
    if (!most || timeline->lane_count <= (uint64_t)most * spare)
        return;
    sort_by_weight(timeline);
    for (; timeline->lane_count > most; timeline->lane_count--) {
        timeline->over_limit.threads++;
        lane_done(&timeline->lanes[timeline->lane_count - 1]);
    }
}

/* Whether a thread's other tracks have spans, marks or values in the range: 1, 0 or a negative errno. */
static int has_entries(struct krait_filling *f, uint32_t thread)
{
    const struct krait_thread *t = &f->trace->threads[thread];
    KRAIT_AUTO_FREE uint32_t *tracks = malloc(t->track_count * sizeof(*tracks));
    uint32_t n = 0;
    if (!tracks)
        return -ENOMEM;
    for (uint32_t i = t->first_track; i < t->first_track + t->track_count; i++) {
        uint8_t kind = f->trace->tracks[i].kind;
        if (kind == KRAIT_TRACK_SLICES || kind == KRAIT_TRACK_INSTANTS || kind == KRAIT_TRACK_COUNTER)
            tracks[n++] = i;
    }
    return krait_tracks_any(f->trace, tracks, n, f->timeline->range);
}

/* Samples count no calls, but tell how long a thread ran. */
static int weigh_calls(struct krait_timeline_lane *lane, const struct krait_filling *f, uint32_t thread,
                       const struct krait_tile *tile)
{
    lane->weight = tile->begun;
    return f->trace->threads[thread].flags & KRAIT_TRACK_SAMPLED
               ? krait_sample_runs_ran(f->trace, thread, f->timeline->range, &lane->weight)
               : 0;
}

static int add_calls(struct krait_filling *f, uint32_t thread)
{
    struct krait_timeline *timeline = f->timeline;
    const struct krait_tile_options options = { timeline->range, f->grid.bins, f->options->depths_max };
    struct krait_tile tile;
    uint32_t track = calls_track(f->trace, thread);
    if (track == KRAIT_NO_ID)
        return 0;
    int rc = krait_tile_make(&tile, f->trace, thread, &options, timeline->damage, sizeof(timeline->damage));
    bool has_calls = !rc && tile.deepest;
    if (!rc && !has_calls)
        rc = has_entries(f, thread);
    if (!has_calls && rc != 1) {
        krait_tile_done(&tile);
        return rc;
    }
    struct krait_timeline_lane *lane =
        add_lane(f, KRAIT_TIMELINE_PROCESS, f->trace->threads[thread].process, track);
    struct krait_timeline_part *part = lane ? krait_timeline_add_part(lane, track) : NULL;
    if (!part) {
        krait_tile_done(&tile);
        return -ENOMEM;
    }
    part->tile = tile;
    rc = weigh_calls(lane, f, thread, &tile);
    timeline->calls += lane->weight; /* of samples no number that is shown */
    if (tile.deepest > options.depths_max)
        timeline->deepest = KRAIT_MAX(timeline->deepest, tile.deepest);
    return rc;
}

static int add_recorded(struct krait_filling *f)
{
    int rc = 0;
    for (uint32_t i = 0; i < f->trace->thread_count && !rc; i++) {
        if (!f->options->take_thread(f->options->ctx, f->trace, i))
            continue;
        rc = add_calls(f, i);
        drop_spare(f, SPARE);
    }
    drop_spare(f, 1);
    return rc;
}

/* ---- tracks of other threads, of CPUs and of streams ---- */

bool krait_timeline_share_lane(const struct krait_track *a, const struct krait_track *b)
{
    return a->of == b->of && a->number == b->number && a->pid == b->pid && a->process == b->process &&
           (a->thread == b->thread || a->of == KRAIT_OF_TASK) && a->of != KRAIT_OF_GROUP &&
           a->of != KRAIT_OF_PROCESS;
}

/* Not the threads of the rest of the machine, if programs were recorded. */
static bool is_wanted(struct krait_filling *f, const struct krait_track *track)
{
    if (track->kind == KRAIT_TRACK_FLOWS || track->kind == KRAIT_TRACK_CALLS ||
        (track->of == KRAIT_OF_THREAD && track->thread != KRAIT_NO_ID))
        return false;
    return !krait_track_is_of_others(f->trace, track) &&
           f->options->take_track(f->options->ctx, f->trace, track);
}

static struct krait_timeline_lane *lane_for(struct krait_filling *f, uint32_t id)
{
    const struct krait_track *track = &f->trace->tracks[id];
    switch (track->of) {
    case KRAIT_OF_CPU:
        return add_lane(f, KRAIT_TIMELINE_CPUS, 0, id);
    case KRAIT_OF_GROUP:
        return add_lane(f, KRAIT_TIMELINE_EVENTS, 0, id);
    case KRAIT_OF_LANE:
        return add_lane(f, KRAIT_TIMELINE_LANES, 0, id);
    default:
        return track->process != KRAIT_NO_ID ? add_lane(f, KRAIT_TIMELINE_PROCESS, track->process, id)
                                             : add_lane(f, KRAIT_TIMELINE_KPROCESS, track->pid, id);
    }
}

static int add_others(struct krait_filling *f)
{
    uint32_t last = KRAIT_NO_ID;
    for (uint32_t i = 0; i < f->trace->track_count; i++) {
        const struct krait_track *track = &f->trace->tracks[i];
        if (!is_wanted(f, track))
            continue;
        if (last == KRAIT_NO_ID || !krait_timeline_share_lane(&f->trace->tracks[last], track)) {
            if (!lane_for(f, i))
                return -ENOMEM;
            last = i;
        }
        f->lane_of[i] = f->timeline->lane_count - 1;
    }
    return 0;
}

/* Whether a thread runs while it is in the state that a text names. */
static bool runs(struct krait_filling *f, uint32_t name)
{
    if (!KRAIT_GROW_FILLED(f->runs, f->runs_cap, name + 1, 0))
        return false;
    if (!f->runs[name]) {
        uint8_t class = krait_class_of(krait_track_text(f->trace, name));
        f->runs[name] = 1 + krait_class_runs(class);
    }
    return f->runs[name] == 2;
}

/* Of a thread without calls the time in which it ran; of a task all its time: it runs, is ready or waits. */
static int weigh(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct krait_filling *f = ctx;
    const struct krait_range *range = &f->timeline->range;
    struct krait_timeline_lane *lane = &f->timeline->lanes[f->lane_of[track - f->trace->tracks]];
    lane->is_absent &= !batch->n;
    for (uint32_t i = 0; i < batch->n && track->kind == KRAIT_TRACK_STATES; i++) {
        uint64_t begin_ns = KRAIT_MAX(batch->t_ns[i], range->from_ns),
                 end_ns = KRAIT_MIN(batch->end_ns[i], range->to_ns);
        if (end_ns > begin_ns && (is_task(lane) || runs(f, batch->name[i])))
            lane->weight += end_ns - begin_ns;
    }
    return 0;
}

/* Weighs tasks, or threads of processes known only from kernel events, and finds those that were not there in the range.
 * Unrecorded threads of a recorded process have no weight. */
static int weigh_lanes(struct krait_filling *f, bool tasks)
{
    uint32_t n = 0;
    KRAIT_AUTO_FREE uint32_t *tracks = malloc(KRAIT_MAX(f->trace->track_count, 1u) * sizeof(*tracks));
    if (!tracks)
        return -ENOMEM;
    for (uint32_t i = 0; i < f->trace->track_count; i++) {
        struct krait_timeline_lane *lane =
            f->lane_of[i] != KRAIT_NO_ID ? &f->timeline->lanes[f->lane_of[i]] : NULL;
        if (!lane || !is_thread(lane) || is_task(lane) != tasks ||
            (!tasks && lane->group != KRAIT_TIMELINE_KPROCESS))
            continue;
        lane->is_absent = true;
        tracks[n++] = i;
    }
    return n ? krait_tracks_walk(f->trace, tracks, n, f->timeline->range, weigh, f, NULL, 0) : 0;
}

static struct krait_timeline_count count_lanes(const struct krait_timeline *timeline)
{
    struct krait_timeline_count count = { 0 };
    for (uint32_t i = 0; i < timeline->lane_count; i++)
        count_lane(&count, &timeline->lanes[i]);
    return count;
}

static void drop_absent(struct krait_timeline *timeline)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < timeline->lane_count; i++) {
        if (timeline->lanes[i].is_absent)
            lane_done(&timeline->lanes[i]);
        else
            timeline->lanes[kept++] = timeline->lanes[i];
    }
    timeline->lane_count = kept;
}

static bool is_over(const struct krait_filling *f, struct krait_timeline_count count)
{
    return f->options->most && count.threads + count.tasks > f->options->most;
}

/* The threads and tasks with the most weight, and all other lanes. */
static int choose(struct krait_filling *f)
{
    struct krait_timeline *timeline = f->timeline;
    struct krait_timeline_count count = count_lanes(timeline);
    int rc = count.tasks ? weigh_lanes(f, true) : 0;
    if (!rc && (f->options->is_part || is_over(f, count)))
        rc = weigh_lanes(f, false);
    drop_absent(timeline); /* from here on f->lane_of is of no use */
    count = count_lanes(timeline);
    if (!rc && is_over(f, count))
        krait_timeline_keep(timeline, f->options->most + timeline->lane_count - count.threads - count.tasks);
    return rc;
}

/* ---- order ---- */

static bool shares_head(const struct krait_timeline_lane *a, const struct krait_timeline_lane *b)
{
    return a->group == b->group && a->group_id == b->group_id;
}

/* If several processes have only one drawn thread, they need no heads. `alone` is by lane. */
static uint32_t find_singles(const struct krait_timeline *timeline, bool *alone)
{
    uint32_t singles = 0;
    for (uint32_t i = 0; i < timeline->lane_count; i++) {
        const struct krait_timeline_lane *lane = &timeline->lanes[i];
        alone[i] = lane->group == KRAIT_TIMELINE_KPROCESS && (i == 0 || !shares_head(lane, lane - 1)) &&
                   (i + 1 == timeline->lane_count || !shares_head(lane, lane + 1));
        singles += alone[i];
    }
    return singles;
}

static int join_singles(struct krait_timeline *timeline)
{
    KRAIT_AUTO_FREE bool *alone = malloc(KRAIT_MAX(timeline->lane_count, 1u) * sizeof(*alone));
    if (!alone)
        return -ENOMEM;
    if (find_singles(timeline, alone) < 2)
        return 0;
    for (uint32_t i = 0; i < timeline->lane_count; i++) {
        if (alone[i]) {
            timeline->lanes[i].group = KRAIT_TIMELINE_THREADS;
            timeline->lanes[i].group_id = 0;
        }
    }
    return 0;
}

static uint32_t rank_of(const struct krait_timeline *timeline, const struct krait_timeline_lane *lane)
{
    bool first = lane->group == KRAIT_TIMELINE_CPUS && !timeline->trace->process_count;
    return lane->group == KRAIT_TIMELINE_LANES ? 0 : first ? 1 : 2u + lane->group;
}

struct place {
    uint32_t rank, group_id, order, lane;
};

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->group_id != y->group_id)
        return x->group_id < y->group_id ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* Lanes below one head are adjacent. */
static int arrange(struct krait_timeline *timeline)
{
    uint32_t n = timeline->lane_count;
    KRAIT_AUTO_FREE struct place *places = malloc(KRAIT_MAX(n, 1u) * sizeof(*places));
    struct krait_timeline_lane *lanes = malloc(KRAIT_MAX(n, 1u) * sizeof(*lanes));
    if (!places || !lanes) {
        free(lanes);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct krait_timeline_lane *lane = &timeline->lanes[i];
        places[i] = (struct place){ rank_of(timeline, lane), lane->group_id, lane->order, i };
    }
    qsort(places, n, sizeof(*places), by_place);
    for (uint32_t i = 0; i < n; i++) {
        lanes[i] = timeline->lanes[places[i].lane];
        lanes[i].order = i;
    }
    free(timeline->lanes);
    timeline->lanes = lanes;
    timeline->lane_cap = n;
    return 0;
}

void krait_timeline_keep(struct krait_timeline *timeline, uint32_t most)
{
    if (timeline->lane_count <= most)
        return;
    sort_by_weight(timeline);
    while (timeline->lane_count > most) {
        struct krait_timeline_lane *last = &timeline->lanes[--timeline->lane_count];
        count_lane(&timeline->over_limit, last);
        lane_done(last);
    }
    timeline->drawn = count_lanes(timeline);
    if (timeline->lane_count)
        qsort(timeline->lanes, timeline->lane_count, sizeof(*timeline->lanes), by_order);
}

int krait_timeline_find_lanes(struct krait_filling *f)
{
    int rc = add_recorded(f);
    rc = rc ? rc : add_others(f);
    rc = rc ? rc : choose(f);
    rc = rc ? rc : arrange(f->timeline);
    rc = rc ? rc : join_singles(f->timeline);
    rc = rc ? rc : arrange(f->timeline);
    f->timeline->drawn = count_lanes(f->timeline);
    return rc;
}
