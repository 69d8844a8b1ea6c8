/* SPDX-License-Identifier: Apache-2.0
 *
 * In whatever threads and processes the places are. Tracks do not have flows between two places in one thread.
 */
#include "trace/flows.h"

#include "base/array.h"
#include "event/payload.h"
#include "event/steps.h"
#include "event/works.h"
#include "trace/import.h"
#include "trace/thread_events.h"

enum { BATCH = 1024 };

/* A place that an id passes. Of a link: a span that begins, or another one that names it. */
struct passing {
    uint64_t id, t_ns;
    uint32_t thread, task;
    const char *function;
    uint8_t kind; /* enum krait_flow_kind */
    bool is_linking, is_start;
};

/* In trace->impl->source. */
struct flows {
    struct krait_flow *items; /* by `from`, then by end */
    uint32_t *by_begin;       /* their indices */
    uint32_t count;
};

static void close_source(void *source)
{
    struct flows *flows = source;
    if (flows) {
        free(flows->items);
        free(flows->by_begin);
    }
    free(flows);
}

/* -- finding -- */

struct finding {
    struct passing *items;
    uint32_t count, cap, thread, process;
    const char *host;
    const struct krait_image *image;
    const struct krait_trace *trace;
    struct krait_steps steps;
    struct krait_breaks breaks;
};

static uint32_t task_now(const struct finding *f)
{
    const uint64_t *task = krait_map_get(&f->image->tasks, krait_steps_top(&f->steps, 0));
    return task ? (uint32_t)*task : KRAIT_NO_ID;
}

static enum krait_flow_kind kind_of(uint32_t event)
{
    if (event == KRAIT_EVENT_link_from || event == KRAIT_EVENT_link_to)
        return KRAIT_FLOW_LINK;
    return event == KRAIT_EVENT_user_flow ? KRAIT_FLOW_USER : KRAIT_FLOW_WORK;
}

/* What work calls, of events that tell; `payload` is behind the id. Returns 0 or -ENOMEM. */
static int read_function(const struct finding *f, uint32_t event, struct krait_cursor *payload,
                         const char **function)
{
    uint32_t code = 0;
    char label[512];
    bool tells = event == KRAIT_EVENT_work_submit || event == KRAIT_EVENT_work_start ||
                 event == KRAIT_EVENT_work_done || event == KRAIT_EVENT_work_result;
    if (!tells || !krait_read_bytes(payload, &code, sizeof(code)) || !code)
        return 0;
    const char *text = krait_image_code_text(f->trace, f->image, code, label, sizeof(label));
    uint32_t name = text ? krait_trace_name(f->trace, text) : KRAIT_NO_ID;
    *function = name == KRAIT_NO_ID ? NULL : krait_track_text(f->trace, name);
    return text && !*function ? -ENOMEM : 0;
}

/* All these events begin with an id. */
static int note_passing(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    struct finding *f = ctx;
    struct krait_payload_user_flow flow;
    enum krait_flow_kind kind = kind_of(id);
    if (krait_breaks_pass(&f->breaks, t_ns))
        f->steps.depth = 0;
    if (id == KRAIT_EVENT_task_run || id == KRAIT_EVENT_task_leave) {
        krait_steps_follow(&f->steps, id, payload);
        return 0;
    }
    const char *function = NULL;
    if (!krait_read_user_flow(&payload, &flow))
        return 0;
    if (read_function(f, id, &payload, &function))
        return -ENOMEM;
    if (!KRAIT_GROW(f->items, f->cap, f->count + 1))
        return -ENOMEM;
    uint64_t key = kind == KRAIT_FLOW_WORK ? krait_work_key(f->host, f->process, flow.id) : flow.id;
    f->items[f->count++] = (struct passing){ .id = key,
                                             .t_ns = t_ns,
                                             .thread = f->thread,
                                             .task = task_now(f),
                                             .function = function,
                                             .kind = (uint8_t)kind,
                                             .is_linking = id == KRAIT_EVENT_link_to,
                                             .is_start = id == KRAIT_EVENT_work_start };
    return 0;
}

static int find_in_thread(struct finding *f, const struct krait_trace *trace, uint32_t thread)
{
    struct krait_damage ignored = { 0 };
    struct krait_thread_events events = { .fn = note_passing, .ctx = f };
    f->trace = trace;
    f->thread = thread;
    f->process = trace->threads[thread].process;
    f->host = trace->processes[f->process].host;
    f->image = krait_image_of(trace, thread);
    f->steps.depth = 0;
    f->breaks = krait_breaks_from(trace, thread, 0);
    events.wanted[KRAIT_EVENT_user_flow] = true;
    krait_thread_events_want(&events, "work:");
    krait_thread_events_want(&events, "link:");
    if (!krait_thread_events_may_be(&events, trace, thread))
        return 0;
    events.wanted[KRAIT_EVENT_task_run] = events.wanted[KRAIT_EVENT_task_leave] = true;
    return krait_thread_events_read(&events, trace, thread, KRAIT_RANGE_ALL, &ignored);
}

static int by_id(const void *a, const void *b)
{
    const struct passing *x = a, *y = b;
    const uint64_t of_x[] = { x->kind, x->id, x->is_linking, x->t_ns, x->thread };
    const uint64_t of_y[] = { y->kind, y->id, y->is_linking, y->t_ns, y->thread };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(of_x); i++) {
        if (of_x[i] != of_y[i])
            return of_x[i] < of_y[i] ? -1 : 1;
    }
    return 0;
}

static int by_thread(const void *a, const void *b)
{
    const struct krait_flow *x = a, *y = b;
    const uint64_t of_x[] = { x->from, x->end_ns, x->t_ns }, of_y[] = { y->from, y->end_ns, y->t_ns };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(of_x); i++) {
        if (of_x[i] != of_y[i])
            return of_x[i] < of_y[i] ? -1 : 1;
    }
    return 0;
}

static int by_begin(const void *a, const void *b, void *items)
{
    const struct krait_flow *x = (struct krait_flow *)items + *(const uint32_t *)a;
    const struct krait_flow *y = (struct krait_flow *)items + *(const uint32_t *)b;
    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns ? -1 : 1;
    return (x > y) - (x < y);
}

static int order_by_begin(struct flows *flows)
{
    flows->by_begin = malloc(((size_t)flows->count + 1) * sizeof(*flows->by_begin));
    if (!flows->by_begin)
        return -ENOMEM;
    for (uint32_t i = 0; i < flows->count; i++)
        flows->by_begin[i] = i;
    qsort_r(flows->by_begin, flows->count, sizeof(*flows->by_begin), by_begin, flows->items);
    return 0;
}

static bool is_of_one_id(const struct passing *at, const struct passing *next)
{
    return at->id == next->id && at->kind == next->kind;
}

/* What is passed on goes from each place to the next; links all lead from the span that they name. */
static bool is_flow(const struct passing *at, const struct passing *next)
{
    bool is_in_order =
        at->kind != KRAIT_FLOW_LINK || (!at->is_linking && next->is_linking && at->t_ns <= next->t_ns);
    return is_of_one_id(at, next) && is_in_order;
}

static int join(struct flows *flows, const struct finding *f)
{
    if (f->count)
        qsort(f->items, f->count, sizeof(*f->items), by_id);
    flows->items = calloc((size_t)f->count + 1, sizeof(*flows->items));
    if (!flows->items)
        return -ENOMEM;
    const struct passing *at = f->items;
    uint32_t chain = 0;
    for (uint32_t i = 1; i < f->count; i++) {
        const struct passing *next = &f->items[i];
        chain += at->kind == KRAIT_FLOW_LINK || !is_of_one_id(at, next);
        if (is_flow(at, next))
            flows->items[flows->count++] =
                (struct krait_flow){ .t_ns = at->t_ns,
                                     .end_ns = next->t_ns,
                                     .from = at->thread,
                                     .to = next->thread,
                                     .from_task = at->task,
                                     .to_task = next->task,
                                     .function = at->function ? at->function : next->function,
                                     .chain = chain,
                                     .is_work = at->is_start,
                                     .kind = at->kind };
        if (!next->is_linking || !is_of_one_id(at, next))
            at = next;
    }
    qsort(flows->items, flows->count, sizeof(*flows->items), by_thread);
    return order_by_begin(flows);
}

static int add_tracks(struct krait_trace *trace, const struct flows *flows)
{
    uint32_t last = KRAIT_NO_ID; /* thread that has a track */
    for (uint32_t i = 0; i < flows->count; i++) {
        uint32_t from = flows->items[i].from;
        if (from == last || from == flows->items[i].to)
            continue;
        last = from;
        struct krait_track *track =
            krait_trace_add_thread_track(trace, from, KRAIT_IMPORTER_krait_flows, KRAIT_TRACK_FLOWS, "flows");
        if (!track)
            return -ENOMEM;
        track->flags = trace->threads[from].flags & KRAIT_TRACK_LOST;
        track->key = i; /* its first flow */
    }
    return 0;
}

static int find_tracks(struct krait_trace *trace, struct krait_err *err)
{
    struct flows *flows = calloc(1, sizeof(*flows));
    struct finding f = { 0 };
    trace->impl->source[KRAIT_IMPORTER_krait_flows] = flows;
    int rc = flows ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < trace->thread_count && krait_image_of(trace, i) && !rc; i++)
        rc = find_in_thread(&f, trace, i);
    rc = rc ? rc : join(flows, &f);
    free(f.items);
    return rc ? rc : add_tracks(trace, flows);
}

/* -- walking -- */

static bool is_in(const struct krait_flow *flow, const struct krait_range *range)
{
    return flow->end_ns > range->from_ns && flow->t_ns < range->to_ns;
}

int krait_flows_each(const struct krait_trace *trace, struct krait_range range,
                     int (*fn)(void *ctx, const struct krait_flow *flow), void *ctx)
{
    const struct flows *flows = trace->impl->source[KRAIT_IMPORTER_krait_flows];
    int rc = 0;
    for (uint32_t i = 0; flows && i < flows->count && !rc; i++) {
        const struct krait_flow *flow = &flows->items[flows->by_begin[i]];
        if (flow->t_ns >= range.to_ns)
            break;
        rc = is_in(flow, &range) ? fn(ctx, flow) : 0;
    }
    return rc;
}

struct handing {
    const struct krait_track *track;
    const struct krait_walking *walking;
    uint32_t n, name[BATCH], to[BATCH];
    uint64_t t_ns[BATCH], end_ns[BATCH];
};

static int flush(struct handing *h)
{
    const struct krait_batch batch = {
        .n = h->n, .t_ns = h->t_ns, .end_ns = h->end_ns, .name = h->name, .to = h->to
    };
    h->n = 0;
    return batch.n ? h->walking->batch(h->walking->ctx, h->track, &batch) : 0;
}

/* A thread's first track is that of its calls or stands at its place. */
static int hand_out(struct handing *h, const struct krait_trace *trace, const struct krait_flow *flow,
                    uint32_t name)
{
    const struct krait_range *range = &h->walking->range;
    if (flow->from == flow->to || !is_in(flow, range))
        return 0;
    h->name[h->n] = name;
    h->to[h->n] = trace->threads[flow->to].first_track;
    h->t_ns[h->n] = KRAIT_MAX(flow->t_ns, range->from_ns);
    h->end_ns[h->n] = KRAIT_MIN(flow->end_ns, range->to_ns);
    return ++h->n == BATCH ? flush(h) : 0;
}

static int walk_track(const struct krait_trace *trace, const struct krait_track *track,
                      const struct krait_walking *walking)
{
    const struct flows *flows = trace->impl->source[KRAIT_IMPORTER_krait_flows];
    KRAIT_AUTO_FREE struct handing *h = calloc(1, sizeof(*h));
    const uint32_t names[] = { [KRAIT_FLOW_USER] = krait_trace_name(trace, "flow"),
                               [KRAIT_FLOW_WORK] = krait_trace_name(trace, "work"),
                               [KRAIT_FLOW_LINK] = krait_trace_name(trace, KRAIT_FLOW_LINK_NAME) };
    uint32_t from = flows->items[track->key].from;
    if (!h || names[KRAIT_FLOW_USER] == KRAIT_NO_ID || names[KRAIT_FLOW_WORK] == KRAIT_NO_ID ||
        names[KRAIT_FLOW_LINK] == KRAIT_NO_ID)
        return -ENOMEM;
    h->track = track;
    h->walking = walking;
    int rc = 0;
    for (uint32_t i = track->key; i < flows->count && flows->items[i].from == from && !rc; i++)
        rc = hand_out(h, trace, &flows->items[i], names[flows->items[i].kind]);
    return rc ? rc : flush(h);
}

const struct krait_importer krait_importer_krait_flows = { .takes = krait_folder_is_kraits,
                                                           .kinds = 1 << KRAIT_TRACK_FLOWS,
                                                           .tracks = find_tracks,
                                                           .walk = walk_track,
                                                           .close = close_source };
