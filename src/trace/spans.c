/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans in krait's own recordings as tracks of slices: those of the program (krait.span), imports and runs of the
 * garbage collector, in the thread in which they begin. A span of the program's that begins in a task's step is the
 * task's: spans of a thread's tasks cross, those of one task nest. Where they do not they have several lanes
 * (span_lanes.h). A task that has spans in several threads has lanes of each.
 *
 * A span may end in another thread. Finding the tracks therefore keeps the ends whose begin is not in their thread,
 * which are few. A span that has no end lasts to the end of its process.
 */
#include "base/array.h"
#include "base/buf.h"
#include "event/steps.h"
#include "trace/fields.h"
#include "trace/import.h"
#include "trace/span_lanes.h"
#include "trace/tasks.h"
#include "trace/thread_events.h"

#include <string.h>

enum { BATCH = 256, KINDS = KRAIT_COUNT_span_category };

static const char *const names[KINDS] = { [KRAIT_span_category_user] = "spans",
                                          [KRAIT_span_category_gc] = "gc",
                                          [KRAIT_span_category_import] = "imports" };

/* What tracks are found by: their key is the index. */
struct place {
    uint32_t thread, task, lane; /* the task: index among the trace's, KRAIT_NO_ID: of none */
    uint8_t kind;
};

/* In trace->impl->source. */
struct spans {
    struct place *places;
    uint32_t count, cap;
    struct away *away; /* by process */
    uint32_t processes;
};

/* What other threads than that of its begin tell of a span. */
struct told {
    uint64_t end_ns; /* 0: not told */
    uint32_t name;   /* KRAIT_NO_ID: as at its begin */
    char *fields;    /* of its end; NULL: none */
};

struct away {
    struct krait_map index; /* id to that of `told` */
    struct told *told;
    uint32_t count, cap;
};

static void away_done(struct away *away)
{
    for (uint32_t i = 0; i < away->count; i++)
        free(away->told[i].fields);
    free(away->told);
    krait_map_done(&away->index);
}

static const struct told *find_told(const struct away *away, uint64_t id)
{
    const uint64_t *index = away ? krait_map_get(&away->index, id) : NULL;
    return index ? &away->told[*index] : NULL;
}

/* NULL: memory is out. */
static struct told *add_told(struct away *away, uint64_t id)
{
    const uint64_t *index = krait_map_get(&away->index, id);
    if (index)
        return &away->told[*index];
    if (!KRAIT_GROW(away->told, away->cap, away->count + 1) || krait_map_put(&away->index, id, away->count))
        return NULL;
    away->told[away->count] = (struct told){ .name = KRAIT_NO_ID };
    return &away->told[away->count++];
}

/* -- reading a thread -- */

struct open {
    uint64_t id, begin_ns, end_ns; /* the last: 0 where this thread tells its end */
    char *fields;                  /* NULL: none */
    uint32_t name, owner;
    bool has_ended;
};

/* Spans of a lane that have ended. */
struct lane_batch {
    const struct krait_track *track;
    uint32_t n, cap;
    struct ended {
        uint64_t t_ns, end_ns;
        uint32_t name;
        char *fields; /* owned; NULL: none */
    } * ended;
};

/* The thread, for each kind, or a task. */
struct owner {
    uint32_t task; /* KRAIT_NO_ID: the thread */
    uint8_t kind;
    struct krait_span_lanes lanes;
    struct lane_batch **batches; /* by lane; NULL: nobody asked for it */
    uint32_t batch_cap;
};

struct reading {
    const struct krait_trace *trace;
    const struct krait_image *image;
    const struct krait_process *process;
    struct away *away;                   /* ends without a begin are noted there; NULL: it is complete */
    const struct away *known;            /* ... and are known from there */
    const struct krait_walking *walking; /* NULL: nothing is handed out */
    struct owner *owners;                /* the first are the thread's, by kind */
    uint32_t owner_count, owner_cap;
    struct krait_map owner_of; /* index of a task to that of the owner */
    struct krait_steps steps;  /* by the tasks' ids */
    struct krait_breaks breaks;
    struct open *open;                     /* by begin; from `first` on */
    uint32_t first, count, cap, elsewhere; /* the last: how many end elsewhere */
    uint64_t base;                         /* the number of open[0] */
    struct krait_map index;                /* id to the number of what is open */
};

static void batch_free(struct lane_batch *batch)
{
    for (uint32_t i = 0; batch && i < batch->n; i++)
        free(batch->ended[i].fields);
    if (batch)
        free(batch->ended);
    free(batch);
}

static void owner_done(struct owner *owner)
{
    for (uint32_t i = 0; i < owner->batch_cap; i++)
        batch_free(owner->batches[i]);
    free(owner->batches);
    krait_span_lanes_done(&owner->lanes);
}

static void reading_done(struct reading *r)
{
    for (uint32_t i = 0; i < r->owner_count; i++)
        owner_done(&r->owners[i]);
    for (uint32_t i = r->first; i < r->count; i++)
        free(r->open[i].fields);
    krait_map_done(&r->owner_of);
    krait_map_done(&r->index);
    free(r->owners);
    free(r->open);
}

/* Of the trace, a thread, and what the caller has set. */
static int reading_init(struct reading *r, const struct krait_trace *trace, uint32_t thread)
{
    r->trace = trace;
    r->image = krait_image_of(trace, thread);
    r->breaks = krait_breaks_from(trace, thread, 0);
    r->process = &trace->processes[trace->threads[thread].process];
    if (!KRAIT_GROW(r->owners, r->owner_cap, KINDS))
        return -ENOMEM;
    for (uint8_t kind = 0; kind < KINDS; kind++)
        r->owners[r->owner_count++] = (struct owner){ .task = KRAIT_NO_ID, .kind = kind };
    return 0;
}

/* Its index; KRAIT_NO_ID: memory is out. A task owns spans of the program's alone. */
static uint32_t owner_of(struct reading *r, uint32_t task, uint8_t kind)
{
    if (task == KRAIT_NO_ID)
        return kind;
    const uint64_t *known = krait_map_get(&r->owner_of, task);
    if (known)
        return (uint32_t)*known;
    if (!KRAIT_GROW(r->owners, r->owner_cap, r->owner_count + 1) ||
        krait_map_put(&r->owner_of, task, r->owner_count))
        return KRAIT_NO_ID;
    r->owners[r->owner_count] = (struct owner){ .task = task, .kind = kind };
    return r->owner_count++;
}

/* -- handing out -- */

static int flush(struct reading *r, struct lane_batch *batch)
{
    uint64_t t_ns[BATCH], end_ns[BATCH];
    uint32_t name[BATCH];
    static const int64_t value[BATCH];
    const char *text[BATCH];
    for (uint32_t i = 0; i < batch->n; i++) {
        const struct ended *ended = &batch->ended[i];
        t_ns[i] = ended->t_ns;
        end_ns[i] = ended->end_ns;
        name[i] = ended->name;
        text[i] = ended->fields ? ended->fields : "";
    }
    const struct krait_batch out = {
        .n = batch->n, .t_ns = t_ns, .end_ns = end_ns, .name = name, .value = value, .text = text
    };
    int rc = out.n ? r->walking->batch(r->walking->ctx, batch->track, &out) : 0;
    for (uint32_t i = 0; i < batch->n; i++)
        free(batch->ended[i].fields);
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
    if (!KRAIT_GROW(batch->ended, batch->cap, batch->n + 1))
        return -ENOMEM;
    batch->ended[batch->n] = (struct ended){ .t_ns = KRAIT_MAX(span->begin_ns, range->from_ns),
                                             .end_ns = KRAIT_MIN(end_ns, range->to_ns),
                                             .name = span->name,
                                             .fields = span->fields };
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
    struct owner *owner = &r->owners[ended.owner];
    int lane = krait_span_lanes_put(&owner->lanes, ended.begin_ns, end_ns, oldest_ns);
    struct lane_batch *batch = lane >= 0 && (uint32_t)lane < owner->batch_cap ? owner->batches[lane] : NULL;
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

/* {"a":1,"c":3} and {"a":2} are {"c":3,"a":2}. Nothing where they are not kept, or memory is out. */
static void add_fields(const struct reading *r, struct open *span, const char *fields)
{
    struct krait_buf both = { 0 };
    if (!r->walking || strlen(fields) <= strlen("{}"))
        return;
    if (!span->fields) {
        span->fields = strdup(fields);
    } else if (krait_fields_join_json(&both, span->fields, fields) == 0) {
        free(span->fields);
        span->fields = both.data;
    } else {
        krait_buf_done(&both);
    }
}

/* -- events -- */

/* The task whose step the thread is in: index among the trace's, or KRAIT_NO_ID. */
static uint32_t running_task(const struct reading *r)
{
    const uint64_t *task = krait_map_get(&r->image->tasks, krait_steps_top(&r->steps, 0));
    return task ? (uint32_t)*task : KRAIT_NO_ID;
}

static int on_begin(struct reading *r, uint64_t t_ns, const struct krait_payload_span_begin *event)
{
    const uint64_t *name = krait_map_get(&r->image->names, event->name);
    const struct told *told = find_told(r->known, event->id);
    if (event->category >= KINDS || !name) /* of a later version, or not defined */
        return 0;
    bool is_users = event->category == KRAIT_span_category_user;
    uint32_t owner = owner_of(r, is_users ? running_task(r) : KRAIT_NO_ID, event->category);
    if (owner == KRAIT_NO_ID || trim_index(r) || !KRAIT_GROW(r->open, r->cap, r->count + 1) ||
        krait_map_put(&r->index, event->id, r->base + r->count + 1))
        return -ENOMEM;
    bool is_elsewhere = told && told->end_ns >= t_ns;
    r->elsewhere += is_elsewhere;
    r->open[r->count++] =
        (struct open){ .id = event->id,
                       .begin_ns = t_ns,
                       .end_ns = is_elsewhere ? told->end_ns : 0,
                       .name = told && told->name != KRAIT_NO_ID ? told->name : (uint32_t)*name,
                       .owner = owner };
    add_fields(r, &r->open[r->count - 1], event->fields);
    if (is_elsewhere && told->fields)
        add_fields(r, &r->open[r->count - 1], told->fields);
    return 0;
}

/* NULL: it did not begin in this thread, or is not open any more. */
static struct open *find_open(struct reading *r, uint64_t id)
{
    const uint64_t *number = krait_map_get(&r->index, id);
    return number && *number ? &r->open[*number - 1 - r->base] : NULL;
}

static int note_end(struct away *away, uint64_t t_ns, const struct krait_payload_span_end *event)
{
    struct told *told = add_told(away, event->id);
    if (!told)
        return -ENOMEM;
    told->end_ns = t_ns;
    free(told->fields);
    told->fields = strlen(event->fields) > strlen("{}") ? strdup(event->fields) : NULL;
    return 0;
}

static int on_end(struct reading *r, uint64_t t_ns, const struct krait_payload_span_end *event)
{
    struct open *span = find_open(r, event->id);
    if (!span)
        return r->away ? note_end(r->away, t_ns, event) : 0;
    add_fields(r, span, event->fields);
    return end_open(r, span, t_ns);
}

static int on_rename(struct reading *r, const struct krait_payload_span_rename *event)
{
    const uint64_t *name = krait_map_get(&r->image->names, event->name);
    struct open *span = find_open(r, event->id);
    if (name && span)
        span->name = (uint32_t)*name;
    if (!name || span || !r->away)
        return 0;
    struct told *told = add_told(r->away, event->id);
    if (told)
        told->name = (uint32_t)*name;
    return told ? 0 : -ENOMEM;
}

static int on_event(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    struct reading *r = ctx;
    struct krait_payload_span_begin begin;
    struct krait_payload_span_end end;
    struct krait_payload_span_rename renamed;
    if (krait_breaks_pass(&r->breaks, t_ns))
        r->steps.depth = 0; /* those that the thread is in after a loss are stated */
    krait_steps_follow(&r->steps, id, payload);
    if (id == KRAIT_EVENT_task_run || id == KRAIT_EVENT_task_leave)
        return 0;
    int rc = end_elsewhere(r, t_ns);
    if (rc)
        return rc;
    if (id == KRAIT_EVENT_span_begin)
        return krait_read_span_begin(&payload, &begin) ? on_begin(r, t_ns, &begin) : 0;
    if (id == KRAIT_EVENT_span_rename)
        return krait_read_span_rename(&payload, &renamed) ? on_rename(r, &renamed) : 0;
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

static int read_thread(struct reading *r, uint32_t thread, struct krait_damage *damage)
{
    struct krait_thread_events events = { .fn = on_event, .ctx = r };
    krait_thread_events_want(&events, "span:");
    if (!krait_thread_events_may_be(&events, r->trace, thread))
        return 0;
    events.wanted[KRAIT_EVENT_task_run] = events.wanted[KRAIT_EVENT_task_leave] = true;
    int rc = krait_thread_events_read(&events, r->trace, thread, KRAIT_RANGE_ALL, damage);
    return rc ? rc : end_all(r, r->process->end_ns);
}

/* -- finding -- */

static void close_source(void *source)
{
    struct spans *spans = source;
    for (uint32_t i = 0; spans && i < spans->processes; i++)
        away_done(&spans->away[i]);
    if (spans)
        free(spans->away);
    if (spans)
        free(spans->places);
    free(spans);
}

/* `number`: which of the lanes that are named alike. */
static int add_track(struct krait_trace *trace, struct spans *spans, struct place place, uint32_t number)
{
    struct krait_track *track = krait_trace_add_thread_track(trace, place.thread, KRAIT_IMPORTER_krait_spans,
                                                             KRAIT_TRACK_SLICES, names[place.kind]);
    if (!track || !KRAIT_GROW(spans->places, spans->cap, spans->count + 1) ||
        (place.task != KRAIT_NO_ID && !krait_task_takes(trace, track, place.task)))
        return -ENOMEM;
    if (number)
        track->name = krait_arena_fmt(&trace->impl->arena, "%s %u", names[place.kind], number + 1);
    track->flags = trace->threads[place.thread].flags & KRAIT_TRACK_LOST;
    track->key = spans->count;
    spans->places[spans->count++] = place;
    return track->name ? 0 : -ENOMEM;
}

/* How many lanes each has that owns spans in a thread. */
struct lane_counts {
    struct lane_count {
        uint32_t task, lanes;
        uint8_t kind;
    } * items;
    uint32_t count;
};

struct finding {
    struct krait_trace *trace;
    struct spans *spans;
    struct lane_counts *counts; /* by thread */
    uint32_t *of_task;          /* by task: lanes that it has by now */
};

static void finding_done(struct finding *f)
{
    for (uint32_t i = 0; f->counts && i < f->trace->thread_count; i++)
        free(f->counts[i].items);
    free(f->counts);
    free(f->of_task);
}

static int keep_counts(struct lane_counts *counts, const struct reading *r)
{
    free(counts->items);
    counts->count = 0;
    counts->items = calloc((size_t)r->owner_count + 1, sizeof(*counts->items));
    for (uint32_t i = 0; counts->items && i < r->owner_count; i++) {
        const struct owner *owner = &r->owners[i];
        counts->items[counts->count++] = (struct lane_count){ owner->task, owner->lanes.count, owner->kind };
    }
    return counts->items ? 0 : -ENOMEM;
}

/* `known` or `away` is NULL. */
static int count_lanes(struct finding *f, uint32_t thread, const struct away *known, struct away *away)
{
    struct krait_damage ignored = { 0 };
    struct reading r = { .known = known, .away = away };
    int rc = reading_init(&r, f->trace, thread);
    if (!rc && r.image->names.len)
        rc = read_thread(&r, thread, &ignored);
    rc = rc ? rc : keep_counts(&f->counts[thread], &r);
    reading_done(&r);
    return rc;
}

static int add_tracks(struct finding *f, uint32_t thread)
{
    const struct lane_counts *counts = &f->counts[thread];
    int rc = 0;
    for (uint32_t i = 0; i < counts->count && !rc; i++) {
        const struct lane_count *of = &counts->items[i];
        uint32_t none = 0, *number = of->task == KRAIT_NO_ID ? &none : &f->of_task[of->task];
        for (uint32_t lane = 0; lane < of->lanes && !rc; lane++)
            rc = add_track(f->trace, f->spans, (struct place){ thread, of->task, lane, of->kind },
                           (*number)++);
    }
    return rc;
}

/* Once more where ends were found in other threads: what they end may come into other lanes then. */
static int find_lanes(struct krait_trace *trace, struct spans *spans)
{
    KRAIT_CLEANUP(finding_done)
    struct finding f = { .trace = trace,
                         .spans = spans,
                         .counts = calloc((size_t)trace->thread_count + 1, sizeof(*f.counts)),
                         .of_task = calloc((size_t)trace->task_count + 1, sizeof(*f.of_task)) };
    int rc = f.counts && f.of_task ? 0 : -ENOMEM;
    uint32_t n = 0;
    for (; n < trace->thread_count && krait_image_of(trace, n) && !rc; n++)
        rc = count_lanes(&f, n, NULL, &spans->away[trace->threads[n].process]);
    for (uint32_t i = 0; i < n && !rc; i++) {
        const struct away *away = &spans->away[trace->threads[i].process];
        rc = away->count ? count_lanes(&f, i, away, NULL) : 0;
        rc = rc ? rc : add_tracks(&f, i);
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

static int walk_thread(struct reading *r, uint32_t thread)
{
    struct krait_damage damage = r->walking->damage;
    int rc = read_thread(r, thread, &damage);
    for (uint32_t i = 0; i < r->owner_count; i++) {
        for (uint32_t lane = 0; lane < r->owners[i].batch_cap && !rc; lane++)
            rc = r->owners[i].batches[lane] ? flush(r, r->owners[i].batches[lane]) : 0;
    }
    return rc;
}

static int ask_for(struct reading *r, const struct krait_track *track, const struct place *place)
{
    uint32_t index = owner_of(r, place->task, place->kind);
    struct owner *owner = index == KRAIT_NO_ID ? NULL : &r->owners[index];
    struct lane_batch *batch = calloc(1, sizeof(*batch));
    if (!owner || !batch || !KRAIT_GROW_FILLED(owner->batches, owner->batch_cap, place->lane + 1, 0)) {
        free(batch);
        return -ENOMEM;
    }
    batch->track = track;
    owner->batches[place->lane] = batch;
    return 0;
}

/* Those of the same thread as the first, in one pass; they are taken out of the list. */
static int walk_some(const struct krait_trace *trace, const struct krait_track **tracks, uint32_t *count,
                     const struct krait_walking *walking)
{
    const struct spans *spans = trace->impl->source[KRAIT_IMPORTER_krait_spans];
    uint32_t thread = spans->places[tracks[0]->key].thread, left = 0;
    struct reading r = { .known = &spans->away[trace->threads[thread].process], .walking = walking };
    int rc = reading_init(&r, trace, thread);
    for (uint32_t i = 0; i < *count && !rc; i++) {
        const struct place *place = &spans->places[tracks[i]->key];
        if (place->thread == thread)
            rc = ask_for(&r, tracks[i], place);
        else
            tracks[left++] = tracks[i];
    }
    *count = left;
    rc = rc ? rc : walk_thread(&r, thread);
    reading_done(&r);
    return rc;
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

const struct krait_importer krait_importer_krait_spans = { .takes = krait_folder_is_kraits,
                                                           .kinds = 1 << KRAIT_TRACK_SLICES,
                                                           .tracks = find_tracks,
                                                           .walk = walk_track,
                                                           .walk_many = walk_tracks,
                                                           .close = close_source };
