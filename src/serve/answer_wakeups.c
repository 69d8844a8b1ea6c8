/* SPDX-License-Identifier: Apache-2.0
 *
 * Wakeups of threads, and what leads from one thread to another: flows, and work for executors. Of a task also who woke
 * whom, and who waits for whom.
 */
#include "base/json.h"
#include "serve/serving.h"
#include "trace/flows.h"
#include "trace/importer.h"
#include "trace/tasks.h"
#include "trace/track.h"
#include "view/arrows.h"

#include <string.h>

enum { WAKEUPS = 2000, WAKEUPS_MAX = 20000 };
enum { LONG_NS = 100 * 1000 * 1000 }; /* wakeups of the kernel that take longer are cut */

struct wakeups {
    const struct krait_serving *serving;
    const struct krait_track *of;     /* NULL: all */
    struct krait_range shown, within; /* all of the request, and what of it is selected */
    uint64_t begin_ns, end_ns;        /* of the selection; it may be a moment */
    bool is_selection;
    uint32_t *tracks;        /* by task: that of its states, or KRAIT_NO_ID. NULL: `of` is no task */
    struct krait_map by_id;  /* of its process's tasks: to the track */
    uint32_t track;          /* whose states come */
    struct krait_map chains; /* of flows, that are selected */
    struct krait_arrows arrows;
};

static void wakeups_done(struct wakeups *w)
{
    free(w->tracks);
    krait_map_done(&w->by_id);
    krait_map_done(&w->chains);
    krait_arrows_done(&w->arrows);
}

/* Times are since the epoch. */
static int put_wakeup(struct wakeups *w, uint32_t from, uint64_t begin_ns, uint32_t to, uint64_t end_ns)
{
    return krait_arrows_add(&w->arrows, (struct krait_arrow){ begin_ns, end_ns, from, to, NULL });
}

/* ---- flows ---- */

static bool is_same_thread(const struct krait_track *a, const struct krait_track *b)
{
    return a->of == b->of && a->machine == b->machine && a->number == b->number &&
           strcmp(a->host, b->host) == 0;
}

/* In a task's step, the task's track; otherwise the thread's. */
static uint32_t track_of(const struct wakeups *w, uint32_t thread, uint32_t task)
{
    const struct krait_trace *trace = w->serving->trace;
    return w->tracks && task != KRAIT_NO_ID && w->tracks[task] != KRAIT_NO_ID
               ? w->tracks[task]
               : trace->threads[thread].first_track;
}

static bool is_own(const struct wakeups *w, uint32_t track)
{
    const struct krait_track *other = &w->serving->trace->tracks[track], *of = w->of;
    return !of || (is_same_thread(of, other) && (of->of == KRAIT_OF_THREAD || of->process == other->process));
}

static bool is_selected(const struct wakeups *w, uint64_t t_ns)
{
    return t_ns >= w->begin_ns && t_ns <= w->end_ns;
}

/* A place of the selected thread or task in the time, or work that it does meanwhile. */
static bool selects(const struct wakeups *w, const struct krait_flow *flow, uint32_t from, uint32_t to)
{
    bool is_doing = flow->is_work && flow->t_ns <= w->begin_ns && flow->end_ns >= w->end_ns;
    return (is_own(w, from) && (is_selected(w, flow->t_ns) || is_doing)) ||
           (is_own(w, to) && is_selected(w, flow->end_ns));
}

static int select_chain(void *ctx, const struct krait_flow *flow)
{
    struct wakeups *w = ctx;
    uint32_t from = track_of(w, flow->from, flow->from_task), to = track_of(w, flow->to, flow->to_task);
    return selects(w, flow, from, to) ? krait_map_put(&w->chains, flow->chain, 1) : 0;
}

static int add_flow(void *ctx, const struct krait_flow *flow)
{
    struct wakeups *w = ctx;
    uint32_t from = track_of(w, flow->from, flow->from_task), to = track_of(w, flow->to, flow->to_task);
    bool is_wanted =
        w->is_selection ? krait_map_get(&w->chains, flow->chain) != NULL : is_own(w, from) || is_own(w, to);
    return is_wanted && from != to && krait_flow_leads(flow)
               ? krait_arrows_add(&w->arrows,
                                  (struct krait_arrow){ flow->t_ns, flow->end_ns, from, to, flow->function })
               : 0;
}

/* Of a selection whole flows; otherwise those that overlap the range. */
static int add_flows(struct wakeups *w)
{
    const struct krait_trace *trace = w->serving->trace;
    const struct krait_range selected = { KRAIT_MAX(w->begin_ns, 1u) - 1, w->end_ns + 1 };
    int rc = w->is_selection ? krait_flows_each(trace, selected, select_chain, w) : 0;
    return rc ? rc : krait_flows_each(trace, w->shown, add_flow, w);
}

/* ---- of threads ---- */

static int add_wakeups(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct wakeups *w = ctx;
    const struct krait_track *tracks = w->serving->trace->tracks;
    for (uint32_t i = 0; i < batch->n; i++) {
        bool is_in = batch->end_ns[i] >= w->within.from_ns && batch->t_ns[i] < w->within.to_ns;
        bool is_wanted =
            is_in && (!w->of || is_same_thread(w->of, track) || is_same_thread(w->of, &tracks[batch->to[i]]));
        int rc = is_wanted ? put_wakeup(w, (uint32_t)(track - tracks), batch->t_ns[i], batch->to[i],
                                        batch->end_ns[i])
                           : 0;
        if (rc)
            return rc;
    }
    return 0;
}

/* A walk cuts wakeups at its range, so it begins earlier and ends later. Flows take any time; they are not read here. */
static int walk_wakeups(struct wakeups *w)
{
    const struct krait_trace *trace = w->serving->trace;
    KRAIT_AUTO_FREE uint32_t *tracks = calloc((size_t)trace->track_count + 1, sizeof(*tracks));
    uint32_t count = 0;
    if (!tracks)
        return -ENOMEM;
    for (uint32_t i = 0; i < trace->track_count; i++) {
        if (trace->tracks[i].kind == KRAIT_TRACK_FLOWS &&
            trace->tracks[i].importer != KRAIT_IMPORTER_krait_flows)
            tracks[count++] = i;
    }
    if (!count || w->within.from_ns >= w->within.to_ns)
        return 0;
    const struct krait_range walked = { w->within.from_ns - KRAIT_MIN(w->within.from_ns, (uint64_t)LONG_NS),
                                        w->within.to_ns + LONG_NS };
    krait_view_lock(w->serving->view);
    int rc = krait_tracks_walk(trace, tracks, count, walked, add_wakeups, w, NULL, 0);
    krait_view_unlock(w->serving->view);
    return rc;
}

/* ---- of tasks ---- */

static int find_tasks(struct wakeups *w)
{
    const struct krait_trace *trace = w->serving->trace;
    w->tracks = malloc(((size_t)trace->task_count + 1) * sizeof(*w->tracks));
    if (!w->tracks)
        return -ENOMEM;
    memset(w->tracks, 0xff, (size_t)trace->task_count * sizeof(*w->tracks));
    for (uint32_t i = 0; i < trace->track_count; i++) {
        const struct krait_track *track = &trace->tracks[i];
        if (track->of != KRAIT_OF_TASK || track->kind != KRAIT_TRACK_STATES)
            continue;
        w->tracks[track->key] = i;
        if (track->process == w->of->process && krait_map_put(&w->by_id, track->number, i))
            return -ENOMEM;
    }
    return 0;
}

static bool is_state(const struct wakeups *w, uint32_t name, enum krait_task_state state)
{
    return strcmp(krait_track_text(w->serving->trace, name), krait_task_state_names[state]) == 0;
}

/* A state of a task: `ready` says who woke it, `task` whom it waits for, and `running` which greenlet switched to it. */
static int add_state(void *ctx, const struct krait_tile_call *entry)
{
    struct wakeups *w = ctx;
    const struct krait_track *tracks = w->serving->trace->tracks, *of = w->of;
    const uint64_t *other = entry->value ? krait_map_get(&w->by_id, (uint64_t)entry->value) : NULL;
    uint64_t begin_ns = w->serving->origin_ns + entry->begin_ns,
             end_ns = w->serving->origin_ns + entry->end_ns;
    if (!other || (tracks[w->track].number != of->number && tracks[*other].number != of->number))
        return 0;
    if (is_state(w, entry->func, KRAIT_TASK_READY))
        return put_wakeup(w, (uint32_t)*other, begin_ns, w->track, end_ns);
    if (is_state(w, entry->func, KRAIT_TASK_RUNNING))
        return put_wakeup(w, (uint32_t)*other, begin_ns, w->track, begin_ns);
    if (is_state(w, entry->func, KRAIT_TASK_TASK))
        return put_wakeup(w, w->track, begin_ns, (uint32_t)*other, begin_ns);
    return 0;
}

/* From the index, not from the events: that takes all of the process's. */
static int add_states(struct wakeups *w)
{
    const struct krait_serving *serving = w->serving;
    const struct krait_range since = { w->within.from_ns - serving->origin_ns,
                                       w->within.to_ns - serving->origin_ns };
    int rc = 0;
    for (uint32_t i = 0; i < serving->trace->task_count && !rc && since.from_ns < since.to_ns; i++) {
        w->track = w->tracks[i];
        if (w->track != KRAIT_NO_ID && serving->trace->tracks[w->track].process == w->of->process)
            rc = krait_view_each(serving->view, w->track, since, add_state, w);
    }
    return rc;
}

/* ---- the answer ---- */

static int find_of(struct wakeups *w, const struct krait_request *request, struct krait_err *err)
{
    if (!krait_request_has(request, KRAIT_PARAM_track))
        return 0;
    uint64_t id = request->numbers[KRAIT_PARAM_track];
    const struct krait_trace *trace = w->serving->trace;
    w->of = id < trace->track_count ? &trace->tracks[id] : NULL;
    return w->of && (w->of->of == KRAIT_OF_THREAD || w->of->of == KRAIT_OF_TASK)
               ? 0
               : krait_err_set(err, -ENOENT, "there is no such track of a thread or a task");
}

static void find_ranges(struct wakeups *w, const struct krait_request *request)
{
    const uint64_t origin_ns = w->serving->origin_ns, most_ns = krait_view_length(w->serving->view) + 1;
    w->shown = w->within = krait_serving_range(w->serving, request);
    w->is_selection =
        krait_request_has(request, KRAIT_PARAM_begin) && krait_request_has(request, KRAIT_PARAM_end);
    if (w->is_selection) {
        w->begin_ns = origin_ns + KRAIT_MIN(request->numbers[KRAIT_PARAM_begin], most_ns);
        w->end_ns = origin_ns + KRAIT_MIN(request->numbers[KRAIT_PARAM_end], most_ns);
        w->within.from_ns = KRAIT_MAX(w->shown.from_ns, w->begin_ns);
        w->within.to_ns = KRAIT_MIN(w->shown.to_ns, w->end_ns + 1);
    }
    w->arrows.from_ns = w->shown.from_ns;
    w->arrows.ns = w->shown.to_ns - w->shown.from_ns;
    w->arrows.most =
        (uint32_t)KRAIT_MIN(krait_request_number(request, KRAIT_PARAM_limit, WAKEUPS), (uint64_t)WAKEUPS_MAX);
    if (krait_request_has(request, KRAIT_PARAM_columns))
        w->arrows.column_ns = krait_arrows_column(w->arrows.ns, request->numbers[KRAIT_PARAM_columns]);
}

static void put_answer(const struct wakeups *w, struct krait_buf *out)
{
    static const char *const columns[] = { "track", "at", "to", "until", "function" };
    const uint64_t origin_ns = w->serving->origin_ns;
    krait_serving_columns(out, columns, KRAIT_ARRAY_LEN(columns), "wakeups");
    for (uint32_t i = 0; i < w->arrows.count; i++) {
        const struct krait_arrow *arrow = &w->arrows.items[i];
        krait_json_item(out, "\n[");
        krait_buf_fmt(out, "%u,\"%llu\",%u,\"%llu\",", arrow->from,
                      (unsigned long long)(arrow->t_ns - origin_ns), arrow->to,
                      (unsigned long long)(arrow->end_ns - origin_ns));
        if (arrow->function)
            krait_json_cstr(out, arrow->function);
        else
            krait_buf_str(out, "null");
        krait_buf_char(out, ']');
    }
    krait_buf_char(out, ']');
    krait_json_key_u64(out, "more", w->arrows.more);
    krait_buf_str(out, "}\n");
}

int krait_answer_wakeups(struct krait_serving *serving, const struct krait_request *request,
                         struct krait_buf *out, struct krait_err *err)
{
    KRAIT_CLEANUP(wakeups_done) struct wakeups w = { .serving = serving };
    int rc = find_of(&w, request, err);
    if (rc)
        return rc;
    find_ranges(&w, request);
    bool is_task = w.of && w.of->of == KRAIT_OF_TASK;
    rc = is_task ? find_tasks(&w) : 0;
    rc = rc ? rc : add_flows(&w);
    rc = rc ? rc : is_task ? add_states(&w) : walk_wakeups(&w);
    put_answer(&w, out);
    return rc == -EAGAIN ? krait_err_set(err, rc, "the index is still being built")
           : rc          ? krait_err_set(err, rc, "out of memory")
                         : 0;
}
