/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/kernel_tracks.h"

#include "analysis/kernel_tracks_inside.h"
#include "analysis/own_threads.h"
#include "base/array.h"
#include "trace/kernel.h"

bool krait_kernel_tracks_has(const struct krait_track *track)
{
    return track->walk_many == krait_kernel_tracks_walk;
}

struct finding {
    struct krait_trace *trace;
    struct krait_kernel_events *events;
    const struct krait_kernel_states *states;
    struct krait_own_threads own;
    struct krait_kernel_watch watch;
    uint8_t *seen; /* by thread: bits */
    uint32_t seen_count;
    uint8_t flags; /* of all tracks */
    int rc;
};

/* What a thread was seen to do: without that it has no such track. */
enum { CALLS = 1 << 0, WAKES = 1 << 1 };

static void see(struct finding *f, uint32_t thread, uint8_t what)
{
    if (KRAIT_GROW_FILLED(f->seen, f->seen_count, thread + 1, 0))
        f->seen[thread] |= what;
    else
        f->rc = -ENOMEM;
}

static void on_begin(void *ctx, const struct krait_kernel_states *states)
{
}

static void on_change(void *ctx, const struct krait_kchange *change)
{
    if (change->thread->state == KRAIT_TS_WOKEN && change->thread->state_by)
        see(ctx, change->thread->state_by - 1, WAKES);
}

static void on_entered(void *ctx, const struct krait_kthread *thread, uint32_t was, int64_t ns)
{
    see(ctx, thread->index, CALLS);
}

static int add_track(struct finding *f, struct krait_track track, enum krait_track_kind kind,
                     const char *name, const char *unit)
{
    struct krait_track *added = krait_trace_add_track(f->trace);
    if (!added)
        return -ENOMEM;
    *added = track;
    added->kind = (uint8_t)kind;
    added->importer = KRAIT_IMPORTER_kernel;
    added->flags = f->flags;
    added->walk_many = krait_kernel_tracks_walk;
    added->host = krait_kernel_events_env(f->events, "hostname");
    added->name = name;
    added->unit = unit;
    return 0;
}

static int add_thread(struct finding *f, const struct krait_kthread *t)
{
    uint32_t thread = krait_own_thread_at(&f->own, t, UINT64_MAX);
    const struct krait_kprocess *process =
        t->process == KRAIT_NO_ID ? NULL : &f->states->processes[t->process];
    uint8_t seen = t->index < f->seen_count ? f->seen[t->index] : 0;
    const struct krait_track track = {
        .of = KRAIT_OF_THREAD,
        .process = thread == KRAIT_NO_ID ? thread : f->trace->threads[thread].process,
        .thread = thread,
        .number = (uint32_t)t->tid,
        .pid = process ? (uint32_t)process->pid : 0,
        .process_name = krait_arena_strdup(&f->trace->impl->arena, process ? process->name : ""),
        .thread_name = krait_arena_strdup(&f->trace->impl->arena, t->name),
        .key = t->index
    };
    int rc = track.process_name && track.thread_name ? 0 : -ENOMEM;
    rc = rc ? rc : add_track(f, track, KRAIT_TRACK_STATES, "state", "");
    if (seen & CALLS)
        rc = rc ? rc : add_track(f, track, KRAIT_TRACK_SLICES, "system calls", "");
    if (seen & WAKES)
        rc = rc ? rc : add_track(f, track, KRAIT_TRACK_FLOWS, "wake-ups", "");
    return rc;
}

static int add_cpu(struct finding *f, uint32_t cpu)
{
    const struct krait_track track = { .of = KRAIT_OF_CPU,
                                       .process = KRAIT_NO_ID,
                                       .thread = KRAIT_NO_ID,
                                       .number = cpu,
                                       .process_name = "",
                                       .thread_name = "",
                                       .key = cpu };
    int rc = add_track(f, track, KRAIT_TRACK_STATES, "threads", "");
    if (krait_kernel_events_has(f->events, KRAIT_KERNEL_EVENT_IRQ_BEGIN) ||
        krait_kernel_events_has(f->events, KRAIT_KERNEL_EVENT_IPI_BEGIN) ||
        krait_kernel_events_has(f->events, KRAIT_KERNEL_EVENT_SOFTIRQ_BEGIN))
        rc = rc ? rc : add_track(f, track, KRAIT_TRACK_SLICES, "interrupts", "");
    if (krait_kernel_events_has(f->events, KRAIT_KERNEL_EVENT_FREQUENCY))
        rc = rc ? rc : add_track(f, track, KRAIT_TRACK_COUNTER, "frequency", "kHz");
    return rc;
}

static void finding_done(struct finding *f)
{
    krait_own_threads_done(&f->own);
    free(f->seen);
}

static int add_all(struct krait_trace *trace, struct krait_kernel_events *events, struct krait_err *err)
{
    KRAIT_CLEANUP(finding_done) struct finding f = { .trace = trace, .events = events };
    const struct krait_kernel_options all = { .until_ns = UINT64_MAX, .watch = &f.watch };
    struct krait_kernel_states *states = NULL;
    f.flags = krait_kernel_events_lost(events) ? KRAIT_TRACK_LOST : 0;
    f.watch = (struct krait_kernel_watch){
        .ctx = &f, .begin = on_begin, .change = on_change, .entered = on_entered
    };
    int rc = krait_kernel_states_new(&states, events, &all, err);
    f.states = states;
    rc = rc ? rc : f.rc;
    rc = rc ? rc : krait_own_threads_init(&f.own, trace, states);
    for (uint32_t i = 0; !rc && i < states->thread_count; i++)
        rc = add_thread(&f, states->threads[i]);
    for (uint32_t i = 0; !rc && i < states->cpu_count; i++)
        rc = states->cpus[i].met ? add_cpu(&f, i) : 0;
    krait_kernel_states_free(states);
    return rc == -ENOMEM ? krait_err_set(err, rc, "out of memory") : rc;
}

int krait_kernel_tracks_add(struct krait_trace *trace, struct krait_err *err)
{
    struct krait_kernel_events *events;
    int rc = krait_tracks_find(trace, err);
    for (uint32_t i = 0; !rc && i < trace->track_count; i++) {
        if (krait_kernel_tracks_has(&trace->tracks[i]))
            return 0;
    }
    if (rc || !trace->has_kernel)
        return rc;
    rc = krait_trace_kernel(trace, &events, err);
    rc = rc ? rc : add_all(trace, events, err);
    krait_tracks_sort(trace);
    return rc;
}
