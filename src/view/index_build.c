/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the index. Each builder takes the largest track of calls that nobody has taken; one builder takes all other
 * tracks, which need only one walk.
 */
#include "view/index_own.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/pipe.h"
#include "trace/kernel/kernel_tracks.h"
#include "view/cache.h"
#include "view/classes.h"

#include <string.h>

/* ---- calls ---- */

struct walking_calls {
    const struct krait_view *view;
    int (*fn)(void *ctx, const struct krait_tile_call *call);
    void *ctx;
};

static int hand_on(void *ctx, const struct krait_tile_call *call)
{
    const struct walking_calls *walking = ctx;
    struct krait_tile_call since = *call;
    since.begin_ns = krait_view_since(walking->view, call->begin_ns);
    since.end_ns = krait_view_since(walking->view, call->end_ns);
    return walking->fn(walking->ctx, &since);
}

int krait_view_walk_calls(const struct krait_view *view, uint32_t thread, struct krait_range range,
                          int (*fn)(void *ctx, const struct krait_tile_call *call), void *ctx)
{
    struct walking_calls walking = { view, fn, ctx };
    struct krait_tile_open open = { .fn = hand_on, .ctx = &walking };
    int rc = krait_trace_walk(view->trace, thread, range, krait_tile_on_batch, &open, NULL, 0);
    krait_tile_open_done(&open);
    return rc;
}

struct building_calls {
    struct krait_builder *builder;
    const struct krait_thread *thread;
    uint64_t told; /* bytes of progress */
};

/* The part of its bytes that a thread's walk has behind it at a time. */
static void tell_progress(struct krait_view *view, uint64_t bytes, uint64_t begin_ns, uint64_t end_ns,
                          uint64_t t_ns, uint64_t *told)
{
    uint64_t all = KRAIT_MAX(end_ns - begin_ns, 1ull);
    uint64_t part = t_ns > begin_ns ? KRAIT_MIN(t_ns - begin_ns, all) : 0;
    uint64_t now = (uint64_t)((double)bytes * (double)part / (double)all);
    if (now <= *told)
        return;
    __atomic_fetch_add(&view->done, now - *told, __ATOMIC_RELAXED);
    *told = now;
}

static int on_calls(void *ctx, const struct krait_call_batch *batch)
{
    struct building_calls *building = ctx;
    struct krait_view *view = building->builder->view;
    if (__atomic_load_n(&view->cancelled, __ATOMIC_RELAXED))
        return -ECANCELED;
    pthread_mutex_lock(&building->builder->lock);
    int rc = krait_pyramid_ops(building->builder->build, batch, view->origin_ns);
    pthread_mutex_unlock(&building->builder->lock);
    tell_progress(view, building->thread->bytes, building->thread->begin_ns, building->thread->end_ns,
                  batch->t_ns[batch->n - 1], &building->told);
    return rc;
}

static void grow_length(struct krait_view *view, uint64_t end)
{
    if (end > krait_view_length(view)) /* nobody else does */
        __atomic_store_n(&view->length_ns, end, __ATOMIC_RELAXED);
}

static void set_ready(struct krait_view *view, uint32_t track, uint64_t bytes)
{
    __atomic_store_n(&view->tracks[track].state, KRAIT_VIEW_READY, __ATOMIC_RELEASE);
    pthread_mutex_lock(&view->lock);
    view->bytes += bytes;
    pthread_mutex_unlock(&view->lock);
}

/* -- calls by two threads: one walks, the other builds -- */

enum { PASSED = 2048 };

/* A batch of calls on its way, without exceptions. */
struct passed {
    uint32_t n;
    bool has_left;
    uint64_t t_ns[PASSED];
    uint32_t func[PASSED], left[PASSED];
    uint8_t kind[PASSED];
};

static int use_passed(void *building, void *slot)
{
    const struct passed *passed = slot;
    const struct krait_call_batch batch = {
        .n = passed->n,
        .t_ns = passed->t_ns,
        .func = passed->func,
        .kind = passed->kind,
        .left = passed->has_left ? passed->left : NULL,
    };
    return on_calls(building, &batch);
}

static int pass_calls(void *pipe, const struct krait_call_batch *batch)
{
    int rc = 0;
    for (uint32_t at = 0; at < batch->n && !rc; at += PASSED) {
        struct passed *passed = krait_pipe_slot(pipe, &rc);
        if (!passed)
            break;
        uint32_t n = passed->n = KRAIT_MIN(batch->n - at, (uint32_t)PASSED);
        memcpy(passed->t_ns, batch->t_ns + at, n * sizeof(*passed->t_ns));
        memcpy(passed->func, batch->func + at, n * sizeof(*passed->func));
        memcpy(passed->kind, batch->kind + at, n * sizeof(*passed->kind));
        passed->has_left = batch->left != NULL;
        if (passed->has_left)
            memcpy(passed->left, batch->left + at, n * sizeof(*passed->left));
        krait_pipe_push(pipe);
    }
    return rc;
}

/* A track with half of the work would keep one processor busy and leave the others idle. */
static int walk_calls(struct krait_view *view, uint32_t thread, struct building_calls *building)
{
    struct krait_pipe *pipe = NULL;
    bool is_half = building->thread->bytes > view->work / 2;
    if (view->builders_max < 2 || !is_half ||
        krait_pipe_open(&pipe, sizeof(struct passed), use_passed, building))
        return krait_trace_walk_noting(view->trace, thread, on_calls, building, NULL, 0);
    int rc = krait_trace_walk_noting(view->trace, thread, pass_calls, pipe, NULL, 0);
    int used = krait_pipe_finish(pipe);
    krait_pipe_free(pipe, NULL);
    return rc ? rc : used;
}

/* -- calls of a recording that goes on -- */

/* The sums of the view before of a thread; NULL: none that begin at the same time. */
static struct krait_pyramid_build *take_build(struct krait_view *view, uint32_t thread)
{
    struct krait_view *before = view->before;
    if (!before || before->origin_ns != view->origin_ns || thread >= before->trace->thread_count)
        return NULL;
    const struct krait_thread *of = &before->trace->threads[thread];
    for (uint32_t i = of->first_track; i < of->first_track + of->track_count; i++) {
        struct krait_pyramid_build *build = before->tracks[i].build;
        before->tracks[i].build = NULL;
        if (build)
            return build;
    }
    return NULL;
}

/* Begins with the sums of the view before. Returns whether the thread's walk goes on from there. */
static bool begin_on(struct krait_view *view, uint32_t thread, struct krait_pyramid_build **build)
{
    uint32_t before = KRAIT_NO_ID;
    if (!krait_trace_can_walk_on(view->trace, thread, &before))
        return false;
    *build = before == KRAIT_NO_ID ? NULL : take_build(view, before);
    if (!*build)
        krait_trace_walk_anew(view->trace, thread);
    return true;
}

/* Adds what came since, makes the pyramid as of now, and keeps the sums if the next walk can go on from here. */
static int build_on(struct krait_builder *builder, struct krait_view_track *track,
                    struct building_calls *building, uint32_t thread)
{
    struct krait_view *view = builder->view;
    const struct krait_trace *trace = view->trace;
    uint64_t end_ns = trace->processes[trace->threads[thread].process].end_ns;
    bool is_noted = false;
    int rc = krait_trace_walk_on(view->trace, thread, on_calls, building, &is_noted);
    track->pyramid = rc ? NULL : calloc(1, sizeof(*track->pyramid));
    if (!rc && !track->pyramid)
        rc = -ENOMEM;
    pthread_mutex_lock(&builder->lock);
    rc = rc ? rc : krait_pyramid_now(builder->build, krait_view_since(view, end_ns), track->pyramid);
    if (!rc && is_noted) {
        track->build = builder->build;
        builder->build = NULL;
    }
    pthread_mutex_unlock(&builder->lock);
    if (rc) {
        free(track->pyramid);
        track->pyramid = NULL;
    }
    return rc;
}

static int build_anew(struct krait_builder *builder, struct krait_view_track *track,
                      struct building_calls *building, uint32_t thread)
{
    int rc = walk_calls(builder->view, thread, building);
    pthread_mutex_lock(&builder->lock);
    rc = rc ? rc : krait_pyramid_finish_new(builder->build, &track->pyramid);
    pthread_mutex_unlock(&builder->lock);
    return rc;
}

static int build_calls(struct krait_builder *builder, uint32_t at)
{
    struct krait_view *view = builder->view;
    struct krait_view_track *track = &view->tracks[at];
    uint32_t thread = view->trace->tracks[at].thread;
    struct building_calls building = { .builder = builder, .thread = &view->trace->threads[thread] };
    struct krait_pyramid_build *build = NULL;
    bool goes_on = begin_on(view, thread, &build);
    int rc = build ? 0 : krait_pyramid_build_new(&build, 0);
    if (rc)
        return rc;
    pthread_mutex_lock(&builder->lock);
    builder->build = build;
    builder->track = at;
    pthread_mutex_unlock(&builder->lock);
    __atomic_store_n(&track->state, KRAIT_VIEW_BUILDS, __ATOMIC_RELEASE);
    rc =
        goes_on ? build_on(builder, track, &building, thread) : build_anew(builder, track, &building, thread);
    pthread_mutex_lock(&builder->lock);
    build = builder->build;
    builder->build = NULL;
    pthread_mutex_unlock(&builder->lock);
    krait_pyramid_build_free(build);
    if (!rc)
        set_ready(view, at, krait_pyramid_size(track->pyramid));
    else
        __atomic_store_n(&track->state, KRAIT_VIEW_WAITS, __ATOMIC_RELEASE);
    return rc;
}

/* ---- all other tracks ---- */

static int know_texts_up_to(struct krait_view *view, uint32_t need)
{
    if (!KRAIT_GROW(view->texts, view->text_cap, need) || !KRAIT_GROW(view->text_hues, view->hue_cap, need))
        return -ENOMEM;
    for (; view->text_count < need; view->text_count++) {
        const char *text = krait_track_text(view->trace, view->text_count);
        view->texts[view->text_count] = text;
        view->text_hues[view->text_count] = krait_class_of(text);
    }
    return 0;
}

static int know_texts(struct krait_view *view, const struct krait_batch *batch)
{
    uint32_t need = view->text_count;
    for (uint32_t i = 0; i < batch->n; i++)
        need = KRAIT_MAX(need, batch->name[i] + 1);
    return know_texts_up_to(view, need);
}

struct building_others {
    struct krait_view *view;
    uint64_t told;
};

/* What is done with any batch before its entries are added. */
static int begin_batch(struct krait_view *view, const struct krait_batch *batch)
{
    if (__atomic_load_n(&view->cancelled, __ATOMIC_RELAXED))
        return -ECANCELED;
    if (!batch->name)
        return 0;
    pthread_mutex_lock(&view->lock);
    int rc = know_texts(view, batch);
    pthread_mutex_unlock(&view->lock);
    return rc;
}

static void tell_batch(struct building_others *building, const struct krait_batch *batch)
{
    struct krait_view *view = building->view;
    if (batch->n)
        tell_progress(view, view->others_work, 0, krait_view_length(view),
                      krait_view_since(view, batch->t_ns[batch->n - 1]), &building->told);
}

static int on_batch(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct building_others *building = ctx;
    struct krait_view *view = building->view;
    struct krait_columns *columns = view->tracks[track - view->trace->tracks].columns;
    int rc = begin_batch(view, batch);
    if (rc)
        return rc;
    pthread_mutex_lock(&view->lock);
    rc = krait_columns_add(columns, view->trace, track, batch, view->origin_ns);
    pthread_mutex_unlock(&view->lock);
    tell_batch(building, batch);
    return rc;
}

static int finish_other(struct krait_view *view, uint32_t at)
{
    struct krait_view_track *track = &view->tracks[at];
    pthread_mutex_lock(&view->lock);
    int rc = krait_columns_finish(track->columns);
    pthread_mutex_unlock(&view->lock);
    if (rc)
        return rc;
    grow_length(view, track->columns->end_ns);
    bool has_many = track->columns->spans.count && krait_columns_size(track->columns) > view->small;
    rc = has_many && !view->is_walk ? krait_columns_pyramid(track->columns, &track->pyramid) : 0;
    if (!rc)
        set_ready(view, at,
                  krait_columns_size(track->columns) +
                      (track->pyramid ? krait_pyramid_size(track->pyramid) : 0));
    return rc;
}

static int walk_others(struct krait_view *view, const uint32_t *tracks, uint32_t count)
{
    struct building_others building = { .view = view };
    return krait_tracks_walk(view->trace, tracks, count, KRAIT_RANGE_ALL, on_batch, &building, NULL, 0);
}

/* -- of a recording that goes on -- */

typedef int add_fn(struct krait_columns_build *build, const struct krait_trace *trace,
                   const struct krait_track *track, const struct krait_batch *batch, uint64_t origin_ns);

static int add_kept(struct building_others *building, const struct krait_track *track,
                    const struct krait_batch *batch, add_fn *add)
{
    struct krait_view *view = building->view;
    struct krait_columns_build *kept = view->tracks[track - view->trace->tracks].kept;
    int rc = begin_batch(view, batch);
    return rc ? rc : add(kept, view->trace, track, batch, view->origin_ns);
}

static int on_ended(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    tell_batch(ctx, batch);
    return add_kept(ctx, track, batch, krait_columns_build_add);
}

static int on_open(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    return add_kept(ctx, track, batch, krait_columns_build_open);
}

/* What a track is in all openings of the recording. */
static uint64_t place_of(const struct krait_track *track)
{
    bool runs_functions = strcmp(track->name, KRAIT_KERNEL_FUNCTIONS) == 0;
    return (uint64_t)track->key << 16 | (uint64_t)track->of << 8 | (uint64_t)track->kind << 1 |
           runs_functions;
}

/* Takes from the view before what its tracks have, if the walk goes on from there. Returns 0 or -ENOMEM. */
static int take_kept(struct krait_view *view, const uint32_t *tracks, uint32_t count)
{
    struct krait_view *before = view->before;
    KRAIT_CLEANUP(krait_map_done) struct krait_map places = { 0 };
    bool goes_on = before && before->walked && before->walked == krait_tracks_walked(view->trace) &&
                   before->origin_ns == view->origin_ns;
    int rc = 0;
    if (!goes_on) {
        krait_tracks_walk_anew(view->trace);
        return 0;
    }
    before->walked = 0;
    for (uint32_t i = 0; i < before->trace->track_count && !rc; i++)
        rc = before->tracks[i].kept ? krait_map_put(&places, place_of(&before->trace->tracks[i]), i) : 0;
    for (uint32_t i = 0; i < count && !rc; i++) {
        const uint64_t *at = krait_map_get(&places, place_of(&view->trace->tracks[tracks[i]]));
        if (!at)
            continue;
        view->tracks[tracks[i]].kept = before->tracks[*at].kept;
        before->tracks[*at].kept = NULL;
    }
    pthread_mutex_lock(&view->lock);
    rc = rc ? rc : know_texts_up_to(view, before->kept_texts);
    pthread_mutex_unlock(&view->lock);
    return rc;
}

static int begin_kept(struct krait_view *view, const uint32_t *tracks, uint32_t count)
{
    int rc = take_kept(view, tracks, count);
    for (uint32_t i = 0; i < count && !rc; i++) {
        struct krait_view_track *track = &view->tracks[tracks[i]];
        if (!track->kept)
            rc = krait_columns_build_new(&track->kept, track->columns->kind);
    }
    return rc;
}

static int finish_kept(struct krait_view *view, uint32_t at)
{
    struct krait_view_track *track = &view->tracks[at];
    struct krait_columns columns = { 0 };
    int rc = krait_columns_build_now(track->kept, view->small, &columns, &track->pyramid);
    if (rc)
        return rc;
    pthread_mutex_lock(&view->lock);
    *track->columns = columns;
    pthread_mutex_unlock(&view->lock);
    grow_length(view, columns.end_ns);
    set_ready(view, at,
              krait_columns_size(&columns) + (track->pyramid ? krait_pyramid_size(track->pyramid) : 0));
    return 0;
}

/* Adds what came since the view before. */
static int walk_on(struct krait_view *view, const uint32_t *tracks, uint32_t count)
{
    struct building_others building = { .view = view };
    int rc = begin_kept(view, tracks, count);
    rc = rc ? rc : krait_tracks_walk_on(view->trace, tracks, count, on_ended, on_open, &building);
    view->kept_texts = view->text_count; /* only this thread adds to them */
    return rc;
}

/* -- all -- */

/* Puts those that go on first; returns how many. */
static uint32_t sort_out(struct krait_view *view)
{
    uint32_t *tracks = view->others, goes_on = 0;
    for (uint32_t i = 0; i < view->other_count && !view->is_walk; i++) {
        if (!krait_track_goes_on(view->trace, &view->trace->tracks[tracks[i]]))
            continue;
        uint32_t track = tracks[i];
        tracks[i] = tracks[goes_on];
        tracks[goes_on++] = track;
    }
    return goes_on;
}

static int build_others(struct krait_view *view)
{
    const uint32_t *tracks = view->others, goes_on = sort_out(view);
    pthread_mutex_lock(&view->walks);
    int rc = walk_others(view, tracks + goes_on, view->other_count - goes_on);
    rc = rc || !goes_on ? rc : walk_on(view, tracks, goes_on); /* last: it keeps all names */
    pthread_mutex_unlock(&view->walks);
    for (uint32_t i = 0; i < view->other_count && !rc; i++)
        rc = __atomic_load_n(&view->cancelled, __ATOMIC_RELAXED) ? -ECANCELED
             : i < goes_on                                       ? finish_kept(view, tracks[i])
                                                                 : finish_other(view, tracks[i]);
    if (!rc && goes_on)
        view->walked = krait_tracks_walked(view->trace);
    return rc;
}

/* ---- builders ---- */

enum { NO_JOB = -1, OTHERS = -2 };

static int64_t take_job(struct krait_view *view, int rc)
{
    pthread_mutex_lock(&view->lock);
    view->rc = view->rc ? view->rc : rc;
    int64_t job = NO_JOB;
    if (!view->rc && view->other_count && !view->others_taken) {
        view->others_taken = true;
        job = OTHERS;
    } else if (!view->rc && view->next_job < view->job_count)
        job = view->jobs[view->next_job++];
    pthread_mutex_unlock(&view->lock);
    return job;
}

/* The last builder to end writes the index to the cache. */
static void end_builder(struct krait_view *view)
{
    pthread_mutex_lock(&view->lock);
    bool is_last = --view->building == 0, is_whole = !view->rc;
    if (is_last)
        view->took_ns = krait_clock_ns(CLOCK_MONOTONIC) - view->begun_ns;
    pthread_mutex_unlock(&view->lock);
    if (is_last && is_whole && view->has_cache)
        krait_cache_store(view);
    pthread_mutex_lock(&view->lock);
    view->running--;
    pthread_cond_broadcast(&view->ended);
    pthread_mutex_unlock(&view->lock);
}

static void *run(void *ctx)
{
    struct krait_builder *builder = ctx;
    struct krait_view *view = builder->view;
    int64_t job;
    int rc = 0;
    while ((job = take_job(view, rc)) != NO_JOB)
        rc = job == OTHERS ? build_others(view) : build_calls(builder, (uint32_t)job);
    end_builder(view);
    return NULL;
}

int krait_view_build(struct krait_view *view, unsigned threads, struct krait_err *err)
{
    uint64_t jobs = (uint64_t)view->job_count + (view->other_count ? 1 : 0);
    uint32_t count =
        (uint32_t)KRAIT_MIN(KRAIT_MIN((uint64_t)threads, jobs), (uint64_t)KRAIT_VIEW_THREADS_MAX);
    view->begun_ns = krait_clock_ns(CLOCK_MONOTONIC);
    view->builders_max = threads;
    for (uint32_t i = 0; i < count; i++) {
        struct krait_builder *builder = &view->builders[i];
        builder->view = view;
        builder->track = KRAIT_NO_ID;
        pthread_mutex_lock(&view->lock);
        int rc = pthread_mutex_init(&builder->lock, NULL);
        rc = rc ? rc : pthread_create(&builder->thread, NULL, run, builder);
        view->running += !rc;
        view->building += !rc;
        pthread_mutex_unlock(&view->lock);
        if (rc && !i)
            return krait_err_set(err, -rc, "cannot start a thread to build the index");
        if (rc)
            break;
        view->builder_count++;
    }
    return 0;
}
