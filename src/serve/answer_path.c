/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernel's events show besides states: the critical path of a thread over a range, as in krait path
 * --segments.
 */
#include "analysis/critical_path.h"
#include "base/json.h"
#include "serve/running.h"
#include "serve/serving.h"
#include "trace/kernel/kernel.h"
#include "trace/track.h"

#include <string.h>

#define P(name) (1u << KRAIT_PARAM_##name)

static const struct krait_track *thread_track(const struct krait_serving *serving,
                                              const struct krait_request *request, struct krait_err *err)
{
    uint64_t id = request->numbers[KRAIT_PARAM_track];
    const struct krait_track *track = id < serving->trace->track_count ? &serving->trace->tracks[id] : NULL;
    if (track && track->of == KRAIT_OF_THREAD)
        return track;
    krait_err_set(err, -ENOENT, "there is no such track of a thread");
    return NULL;
}

/* Names are untrusted, and may be NULL. */
static void put_name(struct krait_buf *out, const char *name)
{
    if (name)
        krait_json_cstr(out, name);
    else
        krait_buf_str(out, "null");
}

/* ---- the critical path ---- */

static const char *name_of(const struct krait_own_threads *own, const struct krait_kthread *thread)
{
    const char *recorded = krait_own_thread_name(own, thread);
    return recorded ? recorded : thread->name;
}

/* The sources of names while a path is written. */
struct path_names {
    struct krait_own_threads own;
    uint32_t *tracks; /* by the kernel's thread: its states' track, or KRAIT_NO_ID */
};

static void path_names_done(struct path_names *names)
{
    krait_own_threads_done(&names->own);
    free(names->tracks);
}

static int path_names_init(struct path_names *names, const struct krait_trace *trace, uint32_t machine,
                           const struct krait_kernel_states *states)
{
    if (krait_own_threads_init(&names->own, trace, states))
        return -ENOMEM;
    names->tracks = malloc(((size_t)states->thread_count + 1) * sizeof(*names->tracks));
    if (!names->tracks)
        return -ENOMEM;
    memset(names->tracks, 0xff, (size_t)states->thread_count * sizeof(*names->tracks));
    for (uint32_t i = 0; i < trace->track_count; i++) {
        const struct krait_track *track = &trace->tracks[i];
        if (krait_kernel_is_thread_states(track) && track->machine == machine &&
            track->key < states->thread_count)
            names->tracks[track->key] = i;
    }
    return 0;
}

static void put_track(struct krait_buf *out, const struct path_names *names,
                      const struct krait_kthread *thread)
{
    uint32_t track = thread ? names->tracks[thread->index] : KRAIT_NO_ID;
    krait_buf_fmt(out, track == KRAIT_NO_ID ? "null" : "%u", track);
}

/* Each column's name, and the function that writes it. */
#define SEGMENT_COLUMNS(X)                                                                             \
    X(begin, put_time(out, serving, s->begin_ns))                                                      \
    X(end, put_time(out, serving, s->end_ns))                                                          \
    X(kind, krait_json_cstr(out, kinds[s->kind]))                                                      \
    X(depth, krait_json_u64(out, s->depth))                                                            \
    X(tid, krait_buf_fmt(out, "%d", thread->tid))                                                      \
    X(name, put_name(out, name_of(&names->own, thread)))                                               \
    X(syscall, put_name(out, s->call == KRAIT_NO_ID ? NULL : states->calls.texts[s->call]))            \
    X(device, put_name(out, s->device == KRAIT_NO_ID ? NULL : krait_kernel_device(states, s->device))) \
    X(by_tid, krait_buf_fmt(out, by ? "%d" : "null", by ? by->tid : 0))                                \
    X(by_name, put_name(out, by ? name_of(&names->own, by) : NULL))                                    \
    X(track, put_track(out, names, thread))                                                            \
    X(by_track, put_track(out, names, by))

static void put_time(struct krait_buf *out, const struct krait_serving *serving, int64_t t_ns)
{
    krait_buf_fmt(out, "\"%lld\"", (long long)(t_ns - (int64_t)serving->origin_ns));
}

static void put_segment(struct krait_buf *out, const struct krait_serving *serving,
                        const struct krait_critical_path *path, const struct path_names *names,
                        const struct krait_path_segment *s)
{
    static const char *const kinds[] = {
#define X(name, text) text,
        KRAIT_PATH_KINDS(X)
#undef X
    };
    const struct krait_kernel_states *states = path->states;
    const struct krait_kthread *thread = states->threads[s->thread];
    const struct krait_competitor *had = s->had_count ? &path->had[s->had] : NULL;
    const struct krait_kthread *by = krait_kernel_cause(states, krait_competitors_longest(had, s->had_count));
    krait_json_item(out, "\n[");
#define X(column, put)        \
    krait_json_item(out, ""); \
    put;
    SEGMENT_COLUMNS(X)
#undef X
    krait_buf_char(out, ']');
}

static int put_path(struct krait_buf *out, const struct krait_serving *serving, uint32_t machine,
                    const struct krait_critical_path *path)
{
#define X(column, put) #column,
    static const char *const columns[] = { SEGMENT_COLUMNS(X) };
#undef X
    KRAIT_CLEANUP(path_names_done) struct path_names names = { 0 };
    if (path_names_init(&names, serving->trace, machine, path->states))
        return -ENOMEM;
    krait_buf_char(out, '{');
    krait_json_key_u64(out, "tid", (uint64_t)path->states->threads[path->thread]->tid);
    krait_json_key_u64(out, "forgotten", path->forgotten_ns);
    krait_json_key_texts(out, "columns", columns, KRAIT_ARRAY_LEN(columns));
    krait_json_key_open(out, "segments", '[');
    for (uint32_t i = 0; i < path->count; i++)
        put_segment(out, serving, path, &names, &path->segments[i]);
    krait_buf_str(out, "]}\n");
    return 0;
}

/* The kernel's id of a track's thread, which may have another id in its namespace. */
static int kernels_number(const struct krait_serving *serving, const struct krait_track *track,
                          uint64_t from_ns, int32_t *tid, struct krait_err *err)
{
    const struct krait_kernel_known *known;
    *tid = (int32_t)track->number;
    if (track->thread == KRAIT_NO_ID)
        return 0;
    int rc = krait_trace_kernel_known(serving->trace, &known, err);
    const struct krait_kthread *found = rc ? NULL : krait_own_threads_life(&known->own, *tid, from_ns);
    *tid = found ? found->tid : *tid;
    return rc;
}

/* How far a path is, for its progress: the kernel's events are read from the first one to the end of the range. */
struct told {
    int64_t told_ns, end_ns;
    double bytes_ns; /* of the trace, for each nanosecond of that time */
};

static bool tell(void *ctx, int64_t ns)
{
    struct told *told = ctx;
    int64_t now_ns = KRAIT_MIN(ns, told->end_ns);
    double bytes = now_ns > told->told_ns ? (double)(now_ns - told->told_ns) * told->bytes_ns : 0;
    told->told_ns = KRAIT_MAX(told->told_ns, now_ns);
    return krait_running_progress(NULL, (uint64_t)bytes);
}

static struct told told_of(const struct krait_serving *serving, int64_t first_ns, struct krait_range range)
{
    int64_t end_ns = (int64_t)KRAIT_MIN(range.to_ns, krait_kernel_last(serving->trace));
    return (struct told){ .told_ns = first_ns,
                          .end_ns = end_ns,
                          .bytes_ns =
                              (double)serving->trace->bytes / (double)KRAIT_MAX(end_ns - first_ns, 1) };
}

static int follow(struct krait_critical_path **path, const struct krait_serving *serving,
                  const struct krait_track *track, struct krait_range range, struct krait_err *err)
{
    struct krait_kernel_events *events = NULL;
    struct krait_gil_holders *gil = NULL;
    struct krait_path_options options = { 0 };
    struct told told;
    int rc = krait_trace_kernel_of(serving->trace, track->machine, &events, err);
    rc = rc ? rc : kernels_number(serving, track, range.from_ns, &options.tid, err);
    if (!rc && krait_gil_holders_new(&gil, serving->trace))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    if (!rc) {
        uint64_t first = (uint64_t)KRAIT_MAX(krait_kernel_events_first(events), 0);
        options.from_ns = range.from_ns > first ? range.from_ns - first : 0;
        options.to_ns = range.to_ns > first ? range.to_ns - first : 0;
        options.gil = gil;
        told = told_of(serving, (int64_t)first, range);
        options.goes_on = tell;
        options.ctx = &told;
        rc = krait_critical_path_new(path, events, &options, err);
    }
    krait_gil_holders_free(gil);
    return rc == -ESRCH || rc == -ENODATA ? -ENOENT : rc;
}

int krait_answer_path(struct krait_serving *serving, const struct krait_request *request,
                      struct krait_buf *out, struct krait_err *err)
{
    struct krait_critical_path *path = NULL;
    int rc = krait_request_needs(request, P(track), err);
    const struct krait_track *track = rc ? NULL : thread_track(serving, request, err);
    if (!track)
        return rc ? rc : err->code;
    if (!serving->trace->has_kernel)
        return krait_err_set(err, -ENOENT,
                             "the kernel was not recorded; record it with krait record --kernel");
    krait_view_lock(serving->view);
    rc = follow(&path, serving, track, krait_serving_range(serving, request), err);
    krait_view_unlock(serving->view);
    if (!rc && put_path(out, serving, track->machine, path))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    krait_critical_path_free(path);
    return rc;
}
