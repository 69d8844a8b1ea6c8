/* SPDX-License-Identifier: Apache-2.0
 *
 * Wakeups of threads, and what leads from one thread to another: flows, and work for executors. Of a task also who woke
 * whom, and who waits for whom.
 */
#include "base/json.h"
#include "serve/serving.h"
#include "trace/flows.h"
#include "trace/tasks.h"
#include "trace/track.h"

#include <string.h>

enum { WAKEUPS = 2000, WAKEUPS_MAX = 20000 };

struct wakeups {
    struct krait_buf *out;
    const struct krait_serving *serving;
    const struct krait_track *of; /* NULL: all */
    uint64_t left, more;
};

/* Times are since the origin. */
static void put_wakeup(struct wakeups *w, uint32_t from, uint64_t begin_ns, uint32_t to, uint64_t end_ns)
{
    if (!w->left) {
        w->more++;
        return;
    }
    w->left--;
    krait_json_item(w->out, "\n[");
    krait_buf_fmt(w->out, "%u,\"%llu\",%u,\"%llu\"]", from, (unsigned long long)begin_ns, to,
                  (unsigned long long)end_ns);
}

/* ---- of threads ---- */

static bool is_same_thread(const struct krait_track *a, const struct krait_track *b)
{
    return a->of == b->of && a->machine == b->machine && a->number == b->number &&
           strcmp(a->host, b->host) == 0;
}

static int add_wakeups(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct wakeups *w = ctx;
    const struct krait_track *tracks = w->serving->trace->tracks;
    for (uint32_t i = 0; i < batch->n; i++) {
        if (!w->of || is_same_thread(w->of, track) || is_same_thread(w->of, &tracks[batch->to[i]]))
            put_wakeup(w, (uint32_t)(track - tracks), batch->t_ns[i] - w->serving->origin_ns, batch->to[i],
                       batch->end_ns[i] - w->serving->origin_ns);
    }
    return 0;
}

static int walk_wakeups(struct wakeups *w, struct krait_range range)
{
    const struct krait_trace *trace = w->serving->trace;
    KRAIT_AUTO_FREE uint32_t *tracks = calloc((size_t)trace->track_count + 1, sizeof(*tracks));
    uint32_t count = 0;
    if (!tracks)
        return -ENOMEM;
    for (uint32_t i = 0; i < trace->track_count; i++) {
        if (trace->tracks[i].kind == KRAIT_TRACK_FLOWS)
            tracks[count++] = i;
    }
    if (!count)
        return 0;
    krait_view_lock(w->serving->view);
    int rc = krait_tracks_walk(trace, tracks, count, range, add_wakeups, w, NULL, 0);
    krait_view_unlock(w->serving->view);
    return rc;
}

/* ---- of tasks ---- */

struct of_task {
    struct wakeups *w;
    uint32_t *tracks;       /* of states, by the task's index in the trace; KRAIT_NO_ID: it has none */
    struct krait_map by_id; /* of its process's tasks: to the track */
    uint32_t track;         /* whose states come */
};

static void of_task_done(struct of_task *t)
{
    free(t->tracks);
    krait_map_done(&t->by_id);
}

static int find_tasks(struct of_task *t)
{
    const struct krait_trace *trace = t->w->serving->trace;
    t->tracks = malloc(((size_t)trace->task_count + 1) * sizeof(*t->tracks));
    if (!t->tracks)
        return -ENOMEM;
    memset(t->tracks, 0xff, (size_t)trace->task_count * sizeof(*t->tracks));
    for (uint32_t i = 0; i < trace->track_count; i++) {
        const struct krait_track *track = &trace->tracks[i];
        if (track->of != KRAIT_OF_TASK || track->kind != KRAIT_TRACK_STATES)
            continue;
        t->tracks[track->key] = i;
        if (track->process == t->w->of->process && krait_map_put(&t->by_id, track->number, i))
            return -ENOMEM;
    }
    return 0;
}

static bool is_state(const struct of_task *t, uint32_t name, enum krait_task_state state)
{
    return strcmp(krait_track_text(t->w->serving->trace, name), krait_task_state_names[state]) == 0;
}

/* A state of a task: `ready` says who woke it, `task` whom it waits for, and `running` which greenlet switched to it. */
static int add_state(void *ctx, const struct krait_tile_call *entry)
{
    struct of_task *t = ctx;
    const struct krait_track *tracks = t->w->serving->trace->tracks, *of = t->w->of;
    const uint64_t *other = entry->value ? krait_map_get(&t->by_id, (uint64_t)entry->value) : NULL;
    if (!other || (tracks[t->track].number != of->number && tracks[*other].number != of->number))
        return 0;
    if (is_state(t, entry->func, KRAIT_TASK_READY))
        put_wakeup(t->w, (uint32_t)*other, entry->begin_ns, t->track, entry->end_ns);
    else if (is_state(t, entry->func, KRAIT_TASK_RUNNING))
        put_wakeup(t->w, (uint32_t)*other, entry->begin_ns, t->track, entry->begin_ns);
    else if (is_state(t, entry->func, KRAIT_TASK_TASK))
        put_wakeup(t->w, t->track, entry->begin_ns, (uint32_t)*other, entry->begin_ns);
    return 0;
}

/* In a task's step, the task's track; otherwise the thread's. */
static uint32_t track_of(const struct of_task *t, uint32_t thread, uint32_t task)
{
    const struct krait_trace *trace = t->w->serving->trace;
    return task != KRAIT_NO_ID && t->tracks[task] != KRAIT_NO_ID ? t->tracks[task]
                                                                 : trace->threads[thread].first_track;
}

static int add_flow(void *ctx, const struct krait_flow *flow)
{
    struct of_task *t = ctx;
    const uint64_t origin_ns = t->w->serving->origin_ns;
    const uint64_t *own = krait_map_get(&t->by_id, t->w->of->number);
    uint32_t from = track_of(t, flow->from, flow->from_task), to = track_of(t, flow->to, flow->to_task);
    if (own && (from == *own || to == *own))
        put_wakeup(t->w, from, flow->t_ns - origin_ns, to, flow->end_ns - origin_ns);
    return 0;
}

/* From the index, not from the events: that takes all of the process's. */
static int add_task(struct wakeups *w, struct krait_range range)
{
    KRAIT_CLEANUP(of_task_done) struct of_task t = { .w = w };
    const struct krait_serving *serving = w->serving;
    const struct krait_range since = { range.from_ns - serving->origin_ns, range.to_ns - serving->origin_ns };
    int rc = find_tasks(&t);
    for (uint32_t i = 0; i < serving->trace->task_count && !rc; i++) {
        t.track = t.tracks[i];
        if (t.track != KRAIT_NO_ID && serving->trace->tracks[t.track].process == w->of->process)
            rc = krait_view_each(serving->view, t.track, since, add_state, &t);
    }
    return rc ? rc : krait_flows_each(serving->trace, range, add_flow, &t);
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

int krait_answer_wakeups(struct krait_serving *serving, const struct krait_request *request,
                         struct krait_buf *out, struct krait_err *err)
{
    static const char *const columns[] = { "track", "at", "to", "until" };
    struct wakeups w = { .out = out, .serving = serving };
    w.left = KRAIT_MIN(krait_request_number(request, KRAIT_PARAM_limit, WAKEUPS), (uint64_t)WAKEUPS_MAX);
    int rc = find_of(&w, request, err);
    if (rc)
        return rc;
    krait_serving_columns(out, columns, KRAIT_ARRAY_LEN(columns), "wakeups");
    struct krait_range range = krait_serving_range(serving, request);
    rc = w.of && w.of->of == KRAIT_OF_TASK ? add_task(&w, range) : walk_wakeups(&w, range);
    krait_buf_char(out, ']');
    krait_json_key_u64(out, "more", w.more);
    krait_buf_str(out, "}\n");
    return rc == -EAGAIN ? krait_err_set(err, rc, "the index is still being built")
           : rc          ? krait_err_set(err, rc, "out of memory")
                         : 0;
}
