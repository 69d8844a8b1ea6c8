/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding a trace's tracks, and walking them: one, or several in as few passes as their importers need.
 */
#include "trace/importer.h"
#include "trace/kernel/kernel.h"

#include <limits.h>

/* -- finding -- */

static int add_calls(struct krait_trace *trace)
{
    for (uint32_t i = 0; i < trace->thread_count; i++) {
        const struct krait_thread *thread = &trace->threads[i];
        struct krait_track *track =
            krait_trace_add_thread_track(trace, i, thread->importer, KRAIT_TRACK_CALLS, "calls");
        if (!track)
            return -ENOMEM;
        track->flags = thread->flags;
    }
    return 0;
}

/* A task may run in several threads. */
static uint32_t thread_first(const struct krait_track *track)
{
    return track->of == KRAIT_OF_TASK ? KRAIT_NO_ID : track->thread;
}

/* The tree's order: by process, of threads by thread, of tasks by task; then CPUs, groups. */
static int by_place(const void *a, const void *b)
{
    const struct krait_track *x = a, *y = b;
    const uint32_t of_x[] = { x->process, x->machine, x->of,       x->pid, thread_first(x),
                              x->number,  x->kind,    x->importer, x->key };
    const uint32_t of_y[] = { y->process, y->machine, y->of,       y->pid, thread_first(y),
                              y->number,  y->kind,    y->importer, y->key };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(of_x); i++) {
        if (of_x[i] != of_y[i])
            return of_x[i] < of_y[i] ? -1 : 1;
    }
    return 0;
}

/* What the trace knows of a track's process and thread goes before what its importer has found. */
static void know_place(const struct krait_trace *trace, struct krait_track *track)
{
    const struct krait_process *process =
        track->process == KRAIT_NO_ID ? NULL : &trace->processes[track->process];
    const struct krait_thread *thread = track->thread == KRAIT_NO_ID ? NULL : &trace->threads[track->thread];
    if (process) {
        track->pid = process->pid;
        track->process_name = process->name;
        track->host = *process->host ? process->host : track->host;
    }
    if (thread && *thread->name && track->of != KRAIT_OF_TASK)
        track->thread_name = thread->name;
}

static void sort_tracks(struct krait_trace *trace)
{
    for (uint32_t i = 0; i < trace->thread_count; i++)
        trace->threads[i].track_count = 0;
    for (uint32_t i = 0; i < trace->track_count; i++)
        know_place(trace, &trace->tracks[i]);
    if (trace->track_count)
        qsort(trace->tracks, trace->track_count, sizeof(*trace->tracks), by_place);
    for (uint32_t i = trace->track_count; i--;) {
        const struct krait_track *track = &trace->tracks[i];
        if (track->of != KRAIT_OF_THREAD || track->thread == KRAIT_NO_ID)
            continue;
        struct krait_thread *thread = &trace->threads[track->thread];
        thread->first_track = i;
        thread->track_count++;
    }
}

int krait_tracks_find_kinds(struct krait_trace *trace, unsigned kinds, struct krait_err *err)
{
    struct krait_trace_impl *impl = trace->impl;
    int rc = impl->has_calls ? 0 : add_calls(trace);
    impl->has_calls = true;
    for (uint32_t i = 0; i < KRAIT_IMPORTERS && !rc; i++) {
        if (!(krait_importers[i]->kinds & kinds) || impl->has_tracks >> i & 1)
            continue;
        rc = krait_importers[i]->tracks(trace, err);
        impl->has_tracks |= 1u << i;
    }
    if (!rc)
        sort_tracks(trace);
    return rc == -ENOMEM ? krait_err_set(err, rc, "out of memory") : rc;
}

int krait_tracks_find(struct krait_trace *trace, struct krait_err *err)
{
    return krait_tracks_find_kinds(trace, UINT_MAX, err);
}

void krait_tracks_forget(struct krait_trace *trace, uint32_t importers)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < trace->track_count; i++) {
        if (!(importers >> trace->tracks[i].importer & 1))
            trace->tracks[kept++] = trace->tracks[i];
    }
    trace->track_count = kept;
    trace->impl->has_tracks &= ~importers;
}

/* -- walking -- */

struct handing {
    const struct krait_track *track;
    krait_batch_fn *fn;
    void *ctx;
};

static int hand_out_calls(void *ctx, const struct krait_call_batch *ops)
{
    const struct handing *handing = ctx;
    const struct krait_batch batch = { .n = ops->n, .t_ns = ops->t_ns, .calls = ops };
    return handing->fn(handing->ctx, handing->track, &batch);
}

static int walk_one(const struct krait_trace *trace, const struct krait_track *track,
                    const struct krait_walking *walking)
{
    struct handing handing = { track, walking->batch, walking->ctx };
    if (track->kind != KRAIT_TRACK_CALLS)
        return krait_importers[track->importer]->walk(trace, track, walking);
    return krait_trace_walk(trace, track->thread, walking->range, hand_out_calls, &handing,
                            walking->damage.text, walking->damage.size);
}

/* Those of one importer: in one pass where it can. */
static int walk_source(const struct krait_trace *trace, const struct krait_track *const *tracks,
                       uint32_t count, const struct krait_walking *walking)
{
    const struct krait_importer *importer = krait_importers[tracks[0]->importer];
    if (importer->walk_many)
        return importer->walk_many(trace, tracks, count, walking);
    int rc = 0;
    for (uint32_t i = 0; i < count && !rc; i++)
        rc = walk_one(trace, tracks[i], walking);
    return rc;
}

int krait_tracks_walk(const struct krait_trace *trace, const uint32_t *tracks, uint32_t count,
                      struct krait_range range, krait_batch_fn *fn, void *ctx, char *damage, size_t size)
{
    const struct krait_walking walking = {
        .range = range, .ctx = ctx, .batch = fn, .damage = { damage, size }
    };
    KRAIT_AUTO_FREE const struct krait_track **own = calloc((size_t)count + 1, sizeof(*own));
    int rc = own ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        if (tracks[i] >= trace->track_count)
            return -EINVAL;
    }
    for (uint32_t source = 0; source < KRAIT_IMPORTERS && range.from_ns < range.to_ns && !rc; source++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (trace->tracks[tracks[i]].importer == source)
                own[n++] = &trace->tracks[tracks[i]];
        }
        rc = n ? walk_source(trace, own, n, &walking) : 0;
    }
    return rc;
}

bool krait_track_goes_on(const struct krait_trace *trace, const struct krait_track *track)
{
    return krait_importers[track->importer]->walk_on && track->kind != KRAIT_TRACK_FLOWS &&
           krait_kernel_goes_on(trace);
}

int krait_tracks_walk_on(const struct krait_trace *trace, const uint32_t *tracks, uint32_t count,
                         krait_batch_fn *fn, krait_batch_fn *now, void *ctx)
{
    const struct krait_walking walking = { .range = KRAIT_RANGE_ALL, .ctx = ctx, .batch = fn, .now = now };
    KRAIT_AUTO_FREE const struct krait_track **own = calloc((size_t)count + 1, sizeof(*own));
    if (!own)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        own[i] = &trace->tracks[tracks[i]];
    return count ? krait_importers[own[0]->importer]->walk_on(trace, own, count, &walking) : 0;
}

uint64_t krait_tracks_walked(const struct krait_trace *trace)
{
    return krait_kernel_walked(trace);
}

void krait_tracks_walk_anew(const struct krait_trace *trace)
{
    krait_kernel_walk_anew(trace);
}

int krait_track_walk(const struct krait_trace *trace, uint32_t track, struct krait_range range,
                     krait_batch_fn *fn, void *ctx, char *damage, size_t size)
{
    return krait_tracks_walk(trace, &track, 1, range, fn, ctx, damage, size);
}

static int stop_at_one(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    const struct krait_trace *trace = ctx;
    for (uint32_t i = 0; i < batch->n; i++) {
        if (track->kind != KRAIT_TRACK_INSTANTS ||
            krait_marks_take(track, krait_track_text(trace, batch->name[i])))
            return 1;
    }
    return 0;
}

int krait_tracks_any(const struct krait_trace *trace, const uint32_t *tracks, uint32_t count,
                     struct krait_range range)
{
    return count ? krait_tracks_walk(trace, tracks, count, range, stop_at_one, (void *)trace, NULL, 0) : 0;
}
