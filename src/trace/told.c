/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans and moments that a program tells afterwards, with their own times: krait.SpanExporter. The event says how long before
 * it each was.
 *
 *   span    ├────────┤                began_ago = 9, ended_ago = 0 where it is told at once
 *   events      │         ▲ told      ... here both are larger by the time that it waited in a batch
 *
 * Nobody knows which threads they were in, so the tracks are the process's. Those of a process are kept in the order of their
 * ends, as krait_span_lanes_put wants them. What began before the recording of its process is cut there; what ended before it is
 * left out.
 */
#include "base/array.h"
#include "base/buf.h"
#include "base/json.h"
#include "event/payload.h"
#include "trace/import.h"
#include "trace/instants.h"
#include "trace/span_lanes.h"
#include "trace/thread_events.h"

#include <string.h>

enum { BATCH = 256 };

struct item {
    uint64_t t_ns, end_ns;
    uint32_t process, lane, name;
    bool is_span;
    size_t text; /* in `texts`: fields of a span, text of an instant */
};

/* In trace->impl->source. */
struct told {
    struct item *items; /* by track: process, spans first, lane, end */
    uint32_t count, cap;
    struct krait_buf texts;
};

static void close_source(void *source)
{
    struct told *told = source;
    if (!told)
        return;
    krait_buf_done(&told->texts);
    free(told->items);
    free(told);
}

/* -- finding -- */

struct finding {
    const struct krait_trace *trace;
    struct told *told;
    const struct krait_image *image;
    uint32_t process, mark; /* the latter: the name of all moments */
    uint64_t first_ns;      /* of the process */
};

static uint64_t before(uint64_t t_ns, uint64_t ago)
{
    return t_ns - KRAIT_MIN(ago, t_ns);
}

static int add(struct finding *f, struct item item)
{
    struct told *told = f->told;
    if (item.end_ns < f->first_ns)
        return 0;
    if (!KRAIT_GROW(told->items, told->cap, told->count + 1) || told->texts.failed)
        return -ENOMEM;
    item.process = f->process;
    item.t_ns = KRAIT_MAX(item.t_ns, f->first_ns);
    told->items[told->count++] = item;
    return 0;
}

static int note_span(struct finding *f, uint64_t t_ns, const struct krait_payload_told_span *event)
{
    const uint64_t *name = krait_map_get(&f->image->names, event->name);
    size_t text = f->told->texts.len;
    bool has_fields = strcmp(event->fields, "{}") != 0;
    if (!name)
        return 0;
    krait_buf_add(&f->told->texts, has_fields ? event->fields : "",
                  has_fields ? strlen(event->fields) + 1 : 1);
    return add(f, (struct item){ .t_ns = before(t_ns, event->began_ago),
                                 .end_ns = before(t_ns, KRAIT_MIN(event->ended_ago, event->began_ago)),
                                 .name = (uint32_t)*name,
                                 .is_span = true,
                                 .text = text });
}

/* The text is that of krait.mark's. */
static int note_mark(struct finding *f, uint64_t t_ns, const struct krait_payload_told_mark *event)
{
    struct krait_buf *texts = &f->told->texts;
    size_t text = texts->len;
    krait_buf_str(texts, "{ text = ");
    krait_json_cstr(texts, event->text);
    krait_buf_str(texts, ", fields = ");
    krait_json_cstr(texts, event->fields);
    krait_buf_add(texts, " }", sizeof(" }"));
    uint64_t at_ns = before(t_ns, event->ago);
    return add(f, (struct item){ .t_ns = at_ns, .end_ns = at_ns, .name = f->mark, .text = text });
}

static int note(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    struct krait_payload_told_span span;
    struct krait_payload_told_mark mark;
    if (id == KRAIT_EVENT_told_span)
        return krait_read_told_span(&payload, &span) ? note_span(ctx, t_ns, &span) : 0;
    return krait_read_told_mark(&payload, &mark) ? note_mark(ctx, t_ns, &mark) : 0;
}

static int find_in_thread(struct finding *f, uint32_t thread)
{
    struct krait_damage ignored = { 0 };
    struct krait_thread_events events = { .fn = note, .ctx = f };
    f->process = f->trace->threads[thread].process;
    f->image = krait_image_of(f->trace, thread);
    f->first_ns = KRAIT_MAX(f->image->range.from_ns, f->trace->processes[f->process].begin_ns);
    krait_thread_events_want(&events, "told:");
    return krait_thread_events_may_be(&events, f->trace, thread)
               ? krait_thread_events_read(&events, f->trace, thread, KRAIT_RANGE_ALL, &ignored)
               : 0;
}

static int compare(const uint64_t *x, const uint64_t *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    }
    return 0;
}

/* The inner one of two that end together is first. */
static int by_end(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    const uint64_t of_x[] = { x->process, !x->is_span, x->end_ns, ~x->t_ns, x->text };
    const uint64_t of_y[] = { y->process, !y->is_span, y->end_ns, ~y->t_ns, y->text };
    return compare(of_x, of_y, KRAIT_ARRAY_LEN(of_x));
}

static int by_lane(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    const uint64_t of_x[] = { x->process, !x->is_span, x->lane };
    const uint64_t of_y[] = { y->process, !y->is_span, y->lane };
    int order = compare(of_x, of_y, KRAIT_ARRAY_LEN(of_x));
    return order ? order : by_end(a, b);
}

static bool is_same_track(const struct item *a, const struct item *b)
{
    return a->process == b->process && a->is_span == b->is_span && a->lane == b->lane;
}

/* `earliest_ns[i]`: the earliest begin from i on, so that lanes forget what nothing can cross. */
static int choose_lanes(struct told *told)
{
    KRAIT_AUTO_FREE uint64_t *earliest_ns = malloc(((size_t)told->count + 1) * sizeof(*earliest_ns));
    KRAIT_CLEANUP(krait_span_lanes_done) struct krait_span_lanes lanes = { 0 };
    uint32_t process = KRAIT_NO_ID;
    int lane = 0;
    for (uint32_t i = told->count; earliest_ns && i--;) {
        bool is_last = i + 1 == told->count || told->items[i + 1].process != told->items[i].process;
        earliest_ns[i] = KRAIT_MIN(told->items[i].t_ns, is_last ? UINT64_MAX : earliest_ns[i + 1]);
    }
    for (uint32_t i = 0; earliest_ns && i < told->count && lane >= 0; i++) {
        struct item *item = &told->items[i];
        if (item->process != process)
            krait_span_lanes_done(&lanes);
        process = item->process;
        lane = item->is_span ? krait_span_lanes_put(&lanes, item->t_ns, item->end_ns, earliest_ns[i]) : 0;
        item->lane = (uint32_t)lane;
    }
    return earliest_ns ? KRAIT_MIN(lane, 0) : -ENOMEM;
}

static uint32_t first_thread(const struct krait_trace *trace, uint32_t process)
{
    uint32_t i = 0;
    while (trace->threads[i].process != process)
        i++;
    return i;
}

static int add_track(struct krait_trace *trace, const struct item *item, uint32_t key)
{
    struct krait_track *track =
        krait_trace_add_thread_track(trace, first_thread(trace, item->process), KRAIT_IMPORTER_krait_told,
                                     item->is_span ? KRAIT_TRACK_SLICES : KRAIT_TRACK_INSTANTS,
                                     item->is_span ? "exported spans" : "exported events");
    if (!track)
        return -ENOMEM;
    if (item->lane)
        track->name = krait_arena_fmt(&trace->impl->arena, "%s %u", track->name, item->lane + 1);
    track->of = KRAIT_OF_PROCESS;
    track->thread = KRAIT_NO_ID;
    track->number = 0;
    track->thread_name = "";
    track->key = key;
    return track->name ? 0 : -ENOMEM;
}

static int find_tracks(struct krait_trace *trace, struct krait_err *err)
{
    struct told *told = calloc(1, sizeof(*told));
    struct finding f = { .trace = trace,
                         .told = told,
                         .mark = krait_trace_name(trace, krait_event_find(KRAIT_EVENT_user_mark)->name) };
    trace->impl->source[KRAIT_IMPORTER_krait_told] = told;
    int rc = told && f.mark != KRAIT_NO_ID ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < trace->thread_count && krait_image_of(trace, i) && !rc; i++)
        rc = find_in_thread(&f, i);
    if (rc || !told->count)
        return rc;
    qsort(told->items, told->count, sizeof(*told->items), by_end);
    rc = choose_lanes(told);
    qsort(told->items, told->count, sizeof(*told->items), by_lane);
    for (uint32_t i = 0; i < told->count && !rc; i++)
        rc = i && is_same_track(&told->items[i - 1], &told->items[i]) ? 0
                                                                      : add_track(trace, &told->items[i], i);
    return rc;
}

/* -- walking -- */

struct handing {
    const struct krait_track *track;
    const struct krait_walking *walking;
    uint32_t n, name[BATCH];
    uint64_t t_ns[BATCH], end_ns[BATCH];
    const char *text[BATCH];
};

static int flush(struct handing *h)
{
    static const int64_t value[BATCH];
    const struct krait_batch batch = {
        .n = h->n, .t_ns = h->t_ns, .end_ns = h->end_ns, .name = h->name, .value = value, .text = h->text
    };
    h->n = 0;
    return batch.n ? h->walking->batch(h->walking->ctx, h->track, &batch) : 0;
}

static int hand_out_span(struct handing *h, const struct item *item, const char *text)
{
    const struct krait_range *range = &h->walking->range;
    bool is_before = item->end_ns <= range->from_ns && item->t_ns < range->from_ns;
    if (is_before || item->t_ns >= range->to_ns)
        return 0;
    h->t_ns[h->n] = KRAIT_MAX(item->t_ns, range->from_ns);
    h->end_ns[h->n] = KRAIT_MIN(item->end_ns, range->to_ns);
    h->name[h->n] = item->name;
    h->text[h->n] = text;
    return ++h->n == BATCH ? flush(h) : 0;
}

static int walk_spans(const struct told *told, const struct krait_track *track,
                      const struct krait_walking *walking)
{
    KRAIT_AUTO_FREE struct handing *h = calloc(1, sizeof(*h));
    int rc = h ? 0 : -ENOMEM;
    if (h)
        *h = (struct handing){ .track = track, .walking = walking };
    for (uint32_t i = track->key; i < told->count && !rc; i++) {
        if (!is_same_track(&told->items[track->key], &told->items[i]))
            break;
        rc = hand_out_span(h, &told->items[i], told->texts.data + told->items[i].text);
    }
    return rc ? rc : flush(h);
}

static int walk_moments(const struct told *told, const struct krait_track *track,
                        const struct krait_walking *walking)
{
    KRAIT_AUTO_FREE struct krait_instants *instants = calloc(1, sizeof(*instants));
    int rc = instants ? 0 : -ENOMEM;
    if (!instants)
        return rc;
    instants->track = track;
    instants->walking = walking;
    for (uint32_t i = track->key; i < told->count && !rc; i++) {
        const struct item *item = &told->items[i];
        if (!is_same_track(&told->items[track->key], item))
            break;
        rc = krait_instants_add(instants, item->t_ns, item->name, told->texts.data + item->text);
    }
    rc = rc && rc != -ERANGE ? rc : krait_instants_flush(instants);
    krait_instants_done(instants);
    return rc;
}

static int walk_track(const struct krait_trace *trace, const struct krait_track *track,
                      const struct krait_walking *walking)
{
    const struct told *told = trace->impl->source[KRAIT_IMPORTER_krait_told];
    return track->kind == KRAIT_TRACK_SLICES ? walk_spans(told, track, walking)
                                             : walk_moments(told, track, walking);
}

const struct krait_importer krait_importer_krait_told = { .takes = krait_folder_is_kraits,
                                                          .kinds = 1 << KRAIT_TRACK_SLICES |
                                                                   1 << KRAIT_TRACK_INSTANTS,
                                                          .tracks = find_tracks,
                                                          .walk = walk_track,
                                                          .close = close_source };
