/* SPDX-License-Identifier: Apache-2.0 */
#include "view/index_own.h"

#include "base/array.h"
#include "base/clock.h"
#include "trace/kernel/kernel_list.h"
#include "view/cache.h"
#include "view/classes.h"

#include <string.h>

enum {
    OTHERS_WORK = 1 << 20
}; /* bytes that it is taken to be at least: the model does not count other tracers' files */

/* ---- opening ---- */

struct sized {
    uint64_t bytes;
    uint32_t track;
};

static int by_bytes(const void *a, const void *b)
{
    const struct sized *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->track < y->track ? -1 : 1;
}

static int plan_calls(struct krait_view *view)
{
    const struct krait_trace *trace = view->trace;
    KRAIT_AUTO_FREE struct sized *sized = malloc(KRAIT_MAX(trace->track_count, 1u) * sizeof(*sized));
    if (!sized)
        return -ENOMEM;
    for (uint32_t i = 0; i < trace->track_count; i++) {
        const struct krait_track *track = &trace->tracks[i];
        uint64_t bytes = track->kind == KRAIT_TRACK_CALLS ? trace->threads[track->thread].bytes : 0;
        bool is_small = bytes && bytes <= view->small;
        if (track->kind != KRAIT_TRACK_CALLS || is_small || view->is_walk)
            continue;
        view->tracks[i].state = KRAIT_VIEW_WAITS;
        view->work += bytes;
        sized[view->job_count++] = (struct sized){ bytes, i };
    }
    if (view->job_count)
        qsort(sized, view->job_count, sizeof(*sized), by_bytes);
    for (uint32_t i = 0; i < view->job_count; i++)
        view->jobs[i] = sized[i].track;
    return 0;
}

static int plan_others(struct krait_view *view)
{
    const struct krait_trace *trace = view->trace;
    for (uint32_t i = 0; i < trace->track_count; i++) {
        const struct krait_track *track = &trace->tracks[i];
        if (track->kind == KRAIT_TRACK_CALLS)
            continue;
        struct krait_view_track *at = &view->tracks[i];
        at->state = track->kind == KRAIT_TRACK_FLOWS ? KRAIT_VIEW_READY : KRAIT_VIEW_WAITS;
        if (track->kind == KRAIT_TRACK_FLOWS)
            continue;
        at->columns = calloc(1, sizeof(*at->columns));
        if (!at->columns)
            return -ENOMEM;
        at->columns->kind = track->kind;
        view->others[view->other_count++] = i;
    }
    return 0;
}

static int plan(struct krait_view *view, struct krait_err *err)
{
    struct krait_trace *trace = view->trace;
    size_t count = KRAIT_MAX(trace->track_count, 1u);
    view->tracks = calloc(count, sizeof(*view->tracks));
    view->jobs = calloc(count, sizeof(*view->jobs));
    view->others = calloc(count, sizeof(*view->others));
    view->func_hues = krait_hues_of_funcs(trace);
    if (!view->tracks || !view->jobs || !view->others || !view->func_hues || plan_calls(view) ||
        plan_others(view))
        return krait_err_set(err, -ENOMEM, "out of memory");
    uint64_t calls = view->work;
    uint64_t others = trace->bytes - KRAIT_MIN(calls, trace->bytes);
    view->others_work = view->other_count ? KRAIT_MAX(others, (uint64_t)OTHERS_WORK) : 0;
    view->work = calls + view->others_work;
    return 0;
}

static int copy_paths(struct krait_view *view, const struct krait_view_options *options)
{
    view->paths = calloc(options->path_count + 1, sizeof(*view->paths));
    if (!view->paths)
        return -ENOMEM;
    for (; view->path_count < options->path_count; view->path_count++) {
        view->paths[view->path_count] = strdup(options->paths[view->path_count]);
        if (!view->paths[view->path_count])
            return -ENOMEM;
    }
    return 0;
}

/* Returns 0 if a file was opened, -ENOENT if there is none, or -ENOMEM. */
static int open_cache(struct krait_view *view, const struct krait_view_options *options, uint32_t *place)
{
    bool wants = !(options->flags & (KRAIT_VIEW_WALK | KRAIT_VIEW_NO_CACHE)) && options->path_count;
    view->has_cache = wants && krait_cache_identity(options, view->identity) == 0;
    uint64_t begin_ns = krait_clock_ns(CLOCK_MONOTONIC);
    int rc = view->has_cache ? krait_cache_open(view, place) : -ENOENT;
    view->took_ns = krait_clock_ns(CLOCK_MONOTONIC) - begin_ns;
    return rc;
}

static int load(struct krait_view *view)
{
    view->begun_ns = krait_clock_ns(CLOCK_MONOTONIC);
    int rc = krait_cache_load(view);
    view->took_ns += krait_clock_ns(CLOCK_MONOTONIC) - view->begun_ns;
    return rc;
}

static int build(struct krait_view *view, unsigned threads, struct krait_err *err)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return krait_view_build(view, threads ? threads : (unsigned)KRAIT_MAX(processors, 1), err);
}

/* The end of the last thing that is known before anything is indexed. */
static uint64_t first_length(const struct krait_view *view)
{
    uint64_t end_ns = KRAIT_MAX(view->trace->end_ns, krait_kernel_last(view->trace));
    return krait_view_since(view, KRAIT_MAX(end_ns, view->origin_ns));
}

static struct krait_view *new_view(struct krait_trace *trace, const struct krait_view_options *options)
{
    struct krait_view *view = calloc(1, sizeof(*view));
    if (!view)
        return NULL;
    view->trace = trace;
    view->small = options->small ? options->small : KRAIT_VIEW_SMALL;
    view->is_walk = options->flags & KRAIT_VIEW_WALK;
    view->before = options->before;
    pthread_mutex_init(&view->lock, NULL);
    pthread_mutex_init(&view->walks, NULL);
    pthread_cond_init(&view->ended, NULL);
    if (!copy_paths(view, options))
        return view;
    krait_view_close(view);
    return NULL;
}

static int find_tracks(struct krait_view *view, struct krait_err *err)
{
    int rc = krait_tracks_find(view->trace, err);
    if (rc)
        return rc;
    view->origin_ns = krait_trace_zero(view->trace);
    view->length_ns = first_length(view);
    return plan(view, err);
}

/* Returns -ESTALE if the cache file turns out not to be valid. */
static int fill(struct krait_view *view, const struct krait_view_options *options, uint32_t *place,
                struct krait_err *err)
{
    int cached = open_cache(view, options, place);
    int rc = cached == -ENOMEM ? krait_err_set(err, cached, "out of memory") : find_tracks(view, err);
    if (!rc && !cached)
        rc = load(view);
    if (rc)
        return rc == -ENOMEM ? krait_err_set(err, rc, "out of memory") : rc;
    view->has_cache &= cached && (view->job_count || view->other_count); /* else there is nothing to store */
    return cached || view->other_count ? build(view, options->threads, err) : 0;
}

int krait_view_open(struct krait_view **out, struct krait_trace *trace,
                    const struct krait_view_options *options, struct krait_err *err)
{
    struct krait_view *view;
    uint32_t place = 0;
    int rc;
    do {
        view = new_view(trace, options);
        rc = view ? fill(view, options, &place, err) : krait_err_set(err, -ENOMEM, "out of memory");
        if (rc)
            krait_view_close(view);
        if (rc == -ESTALE)
            krait_kernel_lists_forget(trace);
    } while (rc == -ESTALE);
    if (!rc)
        *out = view;
    return rc;
}

void krait_view_close(struct krait_view *view)
{
    if (!view)
        return;
    krait_view_cancel(view);
    for (uint32_t i = 0; i < view->builder_count; i++) {
        pthread_join(view->builders[i].thread, NULL);
        pthread_mutex_destroy(&view->builders[i].lock);
    }
    for (uint32_t i = 0; view->tracks && i < view->trace->track_count; i++) {
        struct krait_view_track *track = &view->tracks[i];
        if (track->pyramid)
            krait_pyramid_done(track->pyramid);
        free(track->pyramid);
        if (track->columns)
            krait_columns_done(track->columns);
        free(track->columns);
        krait_pyramid_build_free(track->build);
        krait_columns_build_free(track->kept);
    }
    pthread_mutex_destroy(&view->lock);
    pthread_mutex_destroy(&view->walks);
    pthread_cond_destroy(&view->ended);
    free(view->tracks);
    free(view->jobs);
    free(view->others);
    free(view->func_hues);
    free(view->texts);
    free(view->text_hues);
    for (size_t i = 0; i < view->path_count; i++)
        free(view->paths[i]);
    free(view->paths);
    krait_cache_done(view);
    free(view);
}

/* ---- what is told of it ---- */

uint64_t krait_view_origin(const struct krait_view *view)
{
    return view->origin_ns;
}

uint64_t krait_view_length(struct krait_view *view)
{
    return __atomic_load_n(&view->length_ns, __ATOMIC_RELAXED);
}

void krait_view_lock(struct krait_view *view)
{
    pthread_mutex_lock(&view->walks);
}

void krait_view_unlock(struct krait_view *view)
{
    pthread_mutex_unlock(&view->walks);
}

void krait_view_progress(struct krait_view *view, struct krait_view_progress *out)
{
    uint64_t done = __atomic_load_n(&view->done, __ATOMIC_RELAXED);
    pthread_mutex_lock(&view->lock);
    bool is_done = !view->running;
    double share = view->work ? KRAIT_MIN((double)done / (double)view->work, 0.999) : 0;
    *out = (struct krait_view_progress){
        .share = is_done && !view->rc ? 1 : share,
        .is_done = is_done,
        .is_cached = view->mapped != NULL,
        .rc = view->rc,
        .bytes = view->bytes,
        .took_ns = is_done ? view->took_ns : krait_clock_ns(CLOCK_MONOTONIC) - view->begun_ns,
    };
    pthread_mutex_unlock(&view->lock);
}

int krait_view_wait(struct krait_view *view)
{
    pthread_mutex_lock(&view->lock);
    while (view->running)
        pthread_cond_wait(&view->ended, &view->lock);
    int rc = view->rc;
    pthread_mutex_unlock(&view->lock);
    return rc;
}

void krait_view_cancel(struct krait_view *view)
{
    __atomic_store_n(&view->cancelled, true, __ATOMIC_RELAXED);
}

uint32_t krait_view_text_count(struct krait_view *view)
{
    pthread_mutex_lock(&view->lock);
    uint32_t count = view->text_count;
    pthread_mutex_unlock(&view->lock);
    return count;
}

const char *krait_view_text(struct krait_view *view, uint32_t id)
{
    pthread_mutex_lock(&view->lock);
    const char *text = id < view->text_count ? view->texts[id] : "";
    pthread_mutex_unlock(&view->lock);
    return text;
}
