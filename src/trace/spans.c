/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans in krait's own recordings as tracks of slices: those of the program (krait.span), imports and runs of the
 * garbage collector, in the thread in which they begin. Where they do not nest they have several lanes (span_lanes.h).
 *
 * A span may end in another thread. Finding the tracks therefore keeps the ends whose begin is not in their thread,
 * which are few. A span that has no end lasts to the end of its process.
 */
#include "base/array.h"
#include "event/payload.h"
#include "trace/import.h"
#include "trace/span_lanes.h"
#include "trace/thread_events.h"

#include <string.h>

enum { BATCH = 512, KINDS = KRAIT_COUNT_span_category };

static const char *const names[KINDS] = { [KRAIT_span_category_user] = "spans",
                                          [KRAIT_span_category_gc] = "gc",
                                          [KRAIT_span_category_import] = "imports" };

/* What tracks are found by: their key is the index. */
struct place {
    uint32_t thread, lane;
    uint8_t kind;
};

/* In trace->impl->source. */
struct spans {
    struct place *places;
    uint32_t count, cap;
    struct krait_map *away; /* by process: id to the end that another thread tells */
    uint32_t processes;
};

/* -- reading a thread -- */

struct open {
    uint64_t id, begin_ns, end_ns; /* the last: 0 where this thread tells its end */
    char *fields;                  /* NULL: none */
    uint32_t name;
    uint8_t kind;
    bool has_ended;
};

struct lane_batch {
    const struct krait_track *track; /* NULL: nobody asked for it */
    uint32_t n;
    uint64_t t_ns[BATCH], end_ns[BATCH];
    uint32_t name[BATCH];
    int64_t value[BATCH];
    char *fields[BATCH];     /* owned; NULL: none */
    const char *text[BATCH]; /* the same, or "" */
};

struct reading {
    const struct krait_image *image;
    struct krait_map *away;              /* ends without a begin are noted there; NULL: it is complete */
    const struct krait_map *known;       /* ... and are known from there */
    const struct krait_walking *walking; /* NULL: nothing is handed out */
    struct lane_batch *batches[KINDS][KRAIT_SPAN_LANES];
    struct krait_span_lanes lanes[KINDS];
    struct open *open;                     /* by begin; from `first` on */
    uint32_t first, count, cap, elsewhere; /* the last: how many end elsewhere */
    uint64_t base;                         /* the number of open[0] */
    struct krait_map index;                /* id to the number of what is open */
};

static void reading_done(struct reading *r)
{
    for (int kind = 0; kind < KINDS; kind++)
        krait_span_lanes_done(&r->lanes[kind]);
    for (uint32_t i = r->first; i < r->count; i++)
        free(r->open[i].fields);
    krait_map_done(&r->index);
    free(r->open);
}

static int flush(struct reading *r, struct lane_batch *batch)
{
    const struct krait_batch out = { .n = batch->n,
                                     .t_ns = batch->t_ns,
                                     .end_ns = batch->end_ns,
                                     .name = batch->name,
                                     .value = batch->value,
                                     .text = batch->text };
    int rc = out.n ? r->walking->batch(r->walking->ctx, batch->track, &out) : 0;
    for (uint32_t i = 0; i < batch->n; i++)
        free(batch->fields[i]);
    batch->n = 0;
    return rc;
}

/* The span's fields are the batch's from now on. */
static int hand_out(struct reading *r, struct open *span, uint64_t end_ns, struct lane_batch *batch)
{
    const struct krait_range *range = &r->walking->range;
    bool is_before = end_ns <= range->from_ns && span->begin_ns < range->from_ns;
    if (is_before || span->begin_ns >= range->to_ns)
        return 0;
    batch->t_ns[batch->n] = KRAIT_MAX(span->begin_ns, range->from_ns);
    batch->end_ns[batch->n] = KRAIT_MIN(end_ns, range->to_ns);
    batch->name[batch->n] = span->name;
    batch->value[batch->n] = 0;
    batch->fields[batch->n] = span->fields;
    batch->text[batch->n] = span->fields ? span->fields : "";
    span->fields = NULL;
    return ++batch->n == BATCH ? flush(r, batch) : 0;
}

/* Those at the front that have ended make room. */
static void trim(struct reading *r)
{
    while (r->first < r->count && r->open[r->first].has_ended)
        r->first++;
    if (2 * r->first < r->count)
        return;
    memmove(r->open, r->open + r->first, (r->count - r->first) * sizeof(*r->open));
    r->base += r->first;
    r->count -= r->first;
    r->first = 0;
}

/* What has ended goes out of the index, too. */
static int trim_index(struct reading *r)
{
    enum { SOME = 1024 };
    if (r->index.len < SOME || r->index.len < 4ull * (r->count - r->first))
        return 0;
    krait_map_done(&r->index);
    int rc = 0;
    for (uint32_t i = r->first; i < r->count && !rc; i++)
        rc = r->open[i].has_ended ? 0 : krait_map_put(&r->index, r->open[i].id, r->base + i + 1);
    return rc;
}

static int end_open(struct reading *r, struct open *span, uint64_t end_ns)
{
    struct open ended = *span;
    span->has_ended = true;
    span->fields = NULL;
    r->elsewhere -= ended.end_ns != 0;
    krait_map_put(&r->index, ended.id, 0);
    trim(r);
    end_ns = KRAIT_MAX(end_ns, ended.begin_ns);
    uint64_t oldest_ns = r->count ? KRAIT_MIN(r->open[r->first].begin_ns, ended.begin_ns) : end_ns;
    int lane = krait_span_lanes_put(&r->lanes[ended.kind], ended.begin_ns, end_ns, oldest_ns);
    struct lane_batch *batch = r->walking && lane >= 0 ? r->batches[ended.kind][lane] : NULL;
    int rc = batch ? hand_out(r, &ended, end_ns, batch) : KRAIT_MIN(lane, 0);
    free(ended.fields);
    return rc;
}

/* Spans that ended in other threads meanwhile, the earliest first. */
static int end_elsewhere(struct reading *r, uint64_t until_ns)
{
    int rc = 0;
    while (r->elsewhere && !rc) {
        struct open *next = NULL;
        for (uint32_t i = r->first; i < r->count; i++) {
            struct open *span = &r->open[i];
            if (!span->has_ended && span->end_ns && span->end_ns <= until_ns &&
                (!next || span->end_ns <= next->end_ns))
                next = span;
        }
        if (!next)
            break;
        rc = end_open(r, next, next->end_ns);
    }
    return rc;
}

/* {"a":1} and {"b":2} are {"a":1,"b":2}. Nothing where they are not kept, or memory is out. */
static void add_fields(const struct reading *r, struct open *span, const char *fields)
{
    size_t had = span->fields ? strlen(span->fields) : 0, n = strlen(fields);
    if (!r->walking || n <= strlen("{}"))
        return;
    char *both = realloc(span->fields, had + n + 1);
    if (!both)
        return;
    memcpy(both + (had ? had - 1 : 0), fields, n + 1);
    if (had)
        both[had - 1] = ',';
    span->fields = both;
}

static int on_begin(struct reading *r, uint64_t t_ns, const struct krait_payload_span_begin *event)
{
    const uint64_t *name = krait_map_get(&r->image->names, event->name);
    const uint64_t *end_ns = r->known ? krait_map_get(r->known, event->id) : NULL;
    if (event->category >= KINDS || !name) /* of a later version, or not defined */
        return 0;
    if (trim_index(r) || !KRAIT_GROW(r->open, r->cap, r->count + 1) ||
        krait_map_put(&r->index, event->id, r->base + r->count + 1))
        return -ENOMEM;
    bool is_elsewhere = end_ns && *end_ns >= t_ns;
    r->elsewhere += is_elsewhere;
    r->open[r->count++] = (struct open){ .id = event->id,
                                         .begin_ns = t_ns,
                                         .end_ns = is_elsewhere ? *end_ns : 0,
                                         .name = (uint32_t)*name,
                                         .kind = event->category };
    add_fields(r, &r->open[r->count - 1], event->fields);
    return 0;
}

static int on_end(struct reading *r, uint64_t t_ns, const struct krait_payload_span_end *event)
{
    const uint64_t *number = krait_map_get(&r->index, event->id);
    if (!number || !*number)
        return r->away ? krait_map_put(r->away, event->id, t_ns) : 0;
    struct open *span = &r->open[*number - 1 - r->base];
    add_fields(r, span, event->fields);
    return end_open(r, span, t_ns);
}

static int on_event(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    struct reading *r = ctx;
    struct krait_payload_span_begin begin;
    struct krait_payload_span_end end;
    int rc = end_elsewhere(r, t_ns);
    if (rc)
        return rc;
    if (id == KRAIT_EVENT_span_begin)
        return krait_read_span_begin(&payload, &begin) ? on_begin(r, t_ns, &begin) : 0;
    return krait_read_span_end(&payload, &end) ? on_end(r, t_ns, &end) : 0;
}

/* The innermost first. */
static int end_all(struct reading *r, uint64_t end_ns)
{
    int rc = end_elsewhere(r, UINT64_MAX);
    while (r->count && !rc) {
        struct open *last = &r->open[r->count - 1];
        if (last->has_ended)
            r->count--;
        else
            rc = end_open(r, last, end_ns);
    }
    return rc;
}

static int read_thread(struct reading *r, const struct krait_trace *trace, uint32_t thread,
                       struct krait_damage *damage)
{
    struct krait_thread_events events = { .fn = on_event, .ctx = r };
    krait_thread_events_want(&events, "span:");
    int rc = krait_thread_events_read(&events, trace, thread, 0, damage);
    return rc ? rc : end_all(r, trace->processes[trace->threads[thread].process].end_ns);
}

/* -- finding -- */

static bool takes(const struct krait_folder *folder)
{
    return krait_folder_is_kraits(folder);
}

static void close_source(void *source)
{
    struct spans *spans = source;
    for (uint32_t i = 0; spans && i < spans->processes; i++)
        krait_map_done(&spans->away[i]);
    if (spans)
        free(spans->away);
    if (spans)
        free(spans->places);
    free(spans);
}

static int add_track(struct krait_trace *trace, struct spans *spans, struct place place)
{
    struct krait_track *track = krait_trace_add_thread_track(trace, place.thread, KRAIT_IMPORTER_krait_spans,
                                                             KRAIT_TRACK_SLICES, names[place.kind]);
    if (!track || !KRAIT_GROW(spans->places, spans->cap, spans->count + 1))
        return -ENOMEM;
    if (place.lane)
        track->name = krait_arena_fmt(&trace->impl->arena, "%s %u", names[place.kind], place.lane + 1);
    track->flags = trace->threads[place.thread].flags & KRAIT_TRACK_LOST;
    track->key = spans->count;
    spans->places[spans->count++] = place;
    return track->name ? 0 : -ENOMEM;
}

/* How many lanes a thread has of each kind. */
struct lane_counts {
    uint32_t of[KINDS];
};

/* `known` or `away` is NULL. */
static int count_lanes(struct krait_trace *trace, uint32_t thread, const struct krait_map *known,
                       struct krait_map *away, struct lane_counts *counts)
{
    struct krait_damage ignored = { 0 };
    struct reading r = { .image = krait_image_of(trace, thread), .known = known, .away = away };
    int rc = r.image->names.len ? read_thread(&r, trace, thread, &ignored) : 0;
    for (int kind = 0; kind < KINDS; kind++)
        counts->of[kind] = r.lanes[kind].count;
    reading_done(&r);
    return rc;
}

static int add_tracks(struct krait_trace *trace, struct spans *spans, uint32_t thread,
                      const struct lane_counts *counts)
{
    int rc = 0;
    for (uint8_t kind = 0; kind < KINDS; kind++) {
        for (uint32_t lane = 0; lane < counts->of[kind] && !rc; lane++)
            rc = add_track(trace, spans, (struct place){ thread, lane, kind });
    }
    return rc;
}

/* Once more where ends were found in other threads: what they end may come into other lanes then. */
static int find_lanes(struct krait_trace *trace, struct spans *spans)
{
    KRAIT_AUTO_FREE struct lane_counts *counts = calloc((size_t)trace->thread_count + 1, sizeof(*counts));
    int rc = counts ? 0 : -ENOMEM;
    uint32_t n = 0;
    for (; n < trace->thread_count && krait_image_of(trace, n) && !rc; n++)
        rc = count_lanes(trace, n, NULL, &spans->away[trace->threads[n].process], &counts[n]);
    for (uint32_t i = 0; i < n && !rc; i++) {
        const struct krait_map *away = &spans->away[trace->threads[i].process];
        rc = away->len ? count_lanes(trace, i, away, NULL, &counts[i]) : 0;
        rc = rc ? rc : add_tracks(trace, spans, i, &counts[i]);
    }
    return rc;
}

static int find_tracks(struct krait_trace *trace, struct krait_err *err)
{
    struct spans *spans = calloc(1, sizeof(*spans));
    trace->impl->source[KRAIT_IMPORTER_krait_spans] = spans;
    if (spans)
        spans->away = calloc((size_t)trace->process_count + 1, sizeof(*spans->away));
    if (!spans || !spans->away)
        return -ENOMEM;
    spans->processes = trace->process_count;
    return find_lanes(trace, spans);
}

/* -- walking -- */

static int walk_thread(const struct krait_trace *trace, struct reading *r, uint32_t thread)
{
    struct krait_damage damage = r->walking->damage;
    int rc = read_thread(r, trace, thread, &damage);
    for (int kind = 0; kind < KINDS; kind++) {
        for (uint32_t lane = 0; lane < KRAIT_SPAN_LANES; lane++) {
            struct lane_batch *batch = r->batches[kind][lane];
            int flushed = batch ? flush(r, batch) : 0;
            rc = rc ? rc : flushed;
            free(batch);
        }
    }
    reading_done(r);
    return rc;
}

/* Those of the same thread as the first, in one pass; they are taken out of the list. */
static int walk_some(const struct krait_trace *trace, const struct krait_track **tracks, uint32_t *count,
                     const struct krait_walking *walking)
{
    const struct spans *spans = trace->impl->source[KRAIT_IMPORTER_krait_spans];
    uint32_t thread = spans->places[tracks[0]->key].thread, left = 0;
    struct reading r = { .image = krait_image_of(trace, thread),
                         .known = &spans->away[trace->threads[thread].process],
                         .walking = walking };
    int rc = 0;
    for (uint32_t i = 0; i < *count; i++) {
        const struct place *place = &spans->places[tracks[i]->key];
        if (place->thread != thread) {
            tracks[left++] = tracks[i];
            continue;
        }
        struct lane_batch *batch = calloc(1, sizeof(*batch));
        rc = batch ? rc : -ENOMEM;
        if (batch)
            batch->track = tracks[i];
        r.batches[place->kind][place->lane] = batch;
    }
    *count = left;
    int walked = walk_thread(trace, &r, thread);
    return rc ? rc : walked;
}

static int walk_tracks(const struct krait_trace *trace, const struct krait_track *const *tracks,
                       uint32_t count, const struct krait_walking *walking)
{
    KRAIT_AUTO_FREE const struct krait_track **left = calloc((size_t)count + 1, sizeof(*left));
    int rc = left ? 0 : -ENOMEM;
    for (uint32_t i = 0; left && i < count; i++)
        left[i] = tracks[i];
    while (count && !rc)
        rc = walk_some(trace, left, &count, walking);
    return rc;
}

static int walk_track(const struct krait_trace *trace, const struct krait_track *track,
                      const struct krait_walking *walking)
{
    return walk_tracks(trace, &track, 1, walking);
}

const struct krait_importer krait_importer_krait_spans = { .takes = takes,
                                                           .kinds = 1 << KRAIT_TRACK_SLICES,
                                                           .tracks = find_tracks,
                                                           .walk = walk_track,
                                                           .walk_many = walk_tracks,
                                                           .close = close_source };
