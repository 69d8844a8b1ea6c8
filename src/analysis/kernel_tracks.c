/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/kernel_tracks.h"

#include "analysis/own_threads.h"
#include "trace/importer.h"
#include "trace/kernel.h"

#include <string.h>

enum { BATCH = 1024, MOST_NESTED = 16 };

static const char *const state_names[KRAIT_TS_COUNT] = {
#define X(name, text, title, drop) [KRAIT_TS_##name] = text,
    KRAIT_THREAD_STATES(X)
#undef X
};

struct walk {
    const struct krait_trace *trace;
    const struct krait_track *track;
    const struct krait_walking *walking;
    const struct krait_kernel_states *states; /* once they run */
    struct krait_kernel_watch watch;
    uint32_t n;
    uint64_t t_ns[BATCH], end_ns[BATCH];
    uint32_t name[BATCH];
    int64_t value[BATCH];
    struct open {
        uint64_t begin_ns;
        uint32_t name;
        const struct krait_kthread *thread; /* that has the CPU; NULL: none */
    } open[MOST_NESTED];                    /* that go on, from the outermost inwards */
    uint32_t depth;
    bool done;
    int rc;
};

/* -- batches -- */

static void keep_rc(struct walk *w, int rc)
{
    w->rc = w->rc ? w->rc : rc;
    w->done = w->watch.done = w->rc;
}

static void flush(struct walk *w)
{
    bool counts = w->track->kind == KRAIT_TRACK_COUNTER;
    const struct krait_batch batch = { .n = w->n,
                                       .t_ns = w->t_ns,
                                       .end_ns = counts ? NULL : w->end_ns,
                                       .name = counts ? NULL : w->name,
                                       .value = w->value };
    w->n = 0;
    if (batch.n && !w->rc)
        keep_rc(w, w->walking->batch(w->walking->ctx, w->track, &batch));
}

static void add(struct walk *w, uint64_t begin_ns, uint64_t end_ns, uint32_t name, int64_t value)
{
    w->t_ns[w->n] = begin_ns;
    w->end_ns[w->n] = end_ns;
    w->name[w->n] = name;
    w->value[w->n] = value;
    if (++w->n == BATCH)
        flush(w);
}

static uint32_t name_of(struct walk *w, const char *text)
{
    uint32_t name = krait_trace_name(w->trace, text);
    if (name == KRAIT_NO_ID)
        keep_rc(w, -ENOMEM);
    return name;
}

/* -- threads -- */

/* The machine splits a state where its CPU's frequency changes; it stays one here, but for where a batch ends. */
static void on_state(void *ctx, const struct krait_kchange *change)
{
    struct walk *w = ctx;
    const struct krait_kthread *by = krait_kernel_cause(w->states, change->was_by);
    uint64_t begin_ns = (uint64_t)change->since_ns, end_ns = (uint64_t)change->ns;
    uint32_t last = w->n - 1;
    if (change->thread->index != w->track->key || end_ns <= begin_ns || change->was == KRAIT_TS_GONE)
        return;
    uint32_t name = name_of(w, state_names[change->was]);
    if (w->n && w->end_ns[last] == begin_ns && w->name[last] == name && w->value[last] == (by ? by->tid : 0))
        w->end_ns[last] = end_ns;
    else
        add(w, begin_ns, end_ns, name, by ? by->tid : 0);
}

static void ignore_change(void *ctx, const struct krait_kchange *change)
{
}

static void open_call(struct walk *w, const struct krait_kthread *t, int64_t ns)
{
    if (t->call != KRAIT_NO_ID)
        w->open[w->depth++] =
            (struct open){ .begin_ns = (uint64_t)ns, .name = name_of(w, w->states->calls.texts[t->call]) };
}

/* A call that another follows had an end that was lost: it is left out. */
static void on_entered(void *ctx, const struct krait_kthread *t, uint32_t was, int64_t ns)
{
    struct walk *w = ctx;
    if (t->index != w->track->key)
        return;
    w->depth = 0;
    open_call(w, t, ns);
}

static void on_left(void *ctx, const struct krait_kthread *t, bool own, int64_t ret, int64_t ns)
{
    struct walk *w = ctx;
    if (t->index != w->track->key)
        return;
    if (own && w->depth)
        add(w, w->open[0].begin_ns, (uint64_t)ns, w->open[0].name, ret);
    w->depth = 0;
}

/* -- CPUs -- */

static void end_run(struct walk *w, uint64_t ns)
{
    const struct krait_kthread *t = w->open[0].thread;
    if (t && ns > w->open[0].begin_ns)
        add(w, w->open[0].begin_ns, ns, name_of(w, t->name), t->tid);
    w->open[0].thread = NULL;
}

static void begin_run(struct walk *w, const struct krait_kthread *t, uint64_t ns)
{
    end_run(w, ns);
    w->open[0] = (struct open){ .begin_ns = ns, .thread = t };
}

static void on_run(void *ctx, const struct krait_kchange *change)
{
    struct walk *w = ctx;
    bool ran = krait_thread_runs((enum krait_thread_state)change->was);
    bool runs = krait_thread_runs((enum krait_thread_state)change->thread->state);
    if (ran && !runs && w->open[0].thread == change->thread)
        end_run(w, (uint64_t)change->ns);
    else if (runs && !ran && change->cpu && change->cpu->number == w->track->key)
        begin_run(w, change->thread, (uint64_t)change->ns);
}

/* What goes on when the range begins. */
static void on_begin(void *ctx, const struct krait_kernel_states *states)
{
    struct walk *w = ctx;
    bool of_cpu = w->track->of == KRAIT_OF_CPU;
    w->states = states;
    const struct krait_kthread *t = NULL;
    if (of_cpu && w->track->key < states->cpu_count)
        t = states->cpus[w->track->key].current;
    else if (!of_cpu && w->track->key < states->thread_count)
        t = states->threads[w->track->key];
    if (!t)
        return;
    if (of_cpu && krait_thread_runs((enum krait_thread_state)t->state))
        begin_run(w, t, (uint64_t)states->begin_ns);
    else if (!of_cpu && w->track->kind == KRAIT_TRACK_SLICES && t->call_counts)
        open_call(w, t, states->begin_ns);
}

static int walk_states(struct walk *w, struct krait_kernel_events *events,
                       const struct krait_kernel_options *options)
{
    struct krait_kernel_states *states = NULL;
    struct krait_err ignored;
    int rc = krait_kernel_states_new(&states, events, options, &ignored);
    if (!rc && w->track->of == KRAIT_OF_CPU)
        end_run(w, (uint64_t)states->end_ns);
    flush(w);
    krait_kernel_states_free(states);
    return w->rc ? w->rc : rc == -ENODATA ? 0 : rc; /* there is nothing in that time */
}

/* -- what single events tell -- */

static void on_frequency(void *ctx, const struct krait_kernel_event *ev)
{
    struct walk *w = ctx;
    int64_t cpu = krait_kernel_event_has(ev, 1) ? krait_kernel_event_int(ev, 1) : ev->cpu;
    if (cpu == w->track->key && (uint64_t)ev->ns >= w->walking->range.from_ns)
        add(w, (uint64_t)ev->ns, 0, 0, krait_kernel_event_int(ev, 0));
}

static void on_irq_begin(void *ctx, const struct krait_kernel_event *ev)
{
    struct walk *w = ctx;
    bool soft = ev->cls->kind == KRAIT_KERNEL_EVENT_SOFTIRQ_BEGIN;
    bool named = ev->cls->kind == KRAIT_KERNEL_EVENT_IRQ_BEGIN && krait_kernel_event_has(ev, 1);
    char text[64];
    size_t n = 0;
    const char *name = named ? krait_kernel_event_text(ev, 1, &n) : "";
    if (ev->cpu != w->track->key || w->depth == MOST_NESTED)
        return;
    if (soft)
        snprintf(text, sizeof(text), "softirq %lld", (long long)krait_kernel_event_int(ev, 0));
    else
        snprintf(text, sizeof(text), "%.*s", (int)strnlen(name, n), name);
    w->open[w->depth++] = (struct open){ .begin_ns = KRAIT_MAX((uint64_t)ev->ns, w->walking->range.from_ns),
                                         .name = name_of(w, *text ? text : "interrupt") };
}

static void on_irq_end(void *ctx, const struct krait_kernel_event *ev)
{
    struct walk *w = ctx;
    if (ev->cpu != w->track->key || !w->depth)
        return;
    const struct open *open = &w->open[--w->depth];
    if ((uint64_t)ev->ns > w->walking->range.from_ns)
        add(w, open->begin_ns, (uint64_t)ev->ns, open->name, 0);
}

/* Where events were lost, an end may be among them. */
static void on_lost(void *ctx, const struct krait_kernel_event *ev)
{
    struct walk *w = ctx;
    if (ev->cpu == w->track->key)
        w->depth = 0;
}

static void ignore_time(void *ctx, int64_t ns)
{
}

static int walk_events(struct walk *w, struct krait_kernel_events *events,
                       const struct krait_kernel_options *options)
{
    struct krait_kernel_event_walk walk = {
        .ctx = w, .until_ns = options->until_ns, .done = &w->done, .begin = ignore_time, .from = ignore_time
    };
    if (w->track->kind == KRAIT_TRACK_COUNTER)
        walk.handlers[KRAIT_KERNEL_EVENT_FREQUENCY] = on_frequency;
    else {
        walk.handlers[KRAIT_KERNEL_EVENT_IRQ_BEGIN] = walk.handlers[KRAIT_KERNEL_EVENT_IPI_BEGIN] =
            walk.handlers[KRAIT_KERNEL_EVENT_SOFTIRQ_BEGIN] = on_irq_begin;
        walk.handlers[KRAIT_KERNEL_EVENT_IRQ_END] = walk.handlers[KRAIT_KERNEL_EVENT_SOFTIRQ_END] =
            on_irq_end;
        walk.handlers[KRAIT_KERNEL_EVENT_LOST] = on_lost;
    }
    int rc = krait_kernel_events_walk(events, &walk);
    flush(w);
    return w->rc ? w->rc : rc;
}

/* -- */

static uint64_t after(uint64_t ns, int64_t first)
{
    return ns == UINT64_MAX ? ns : ns > (uint64_t)first ? ns - (uint64_t)first : 0;
}

static int walk_track(const struct krait_trace *trace, const struct krait_track *track,
                      const struct krait_walking *walking)
{
    struct krait_kernel_events *events;
    int rc = krait_trace_kernel(trace, &events, NULL);
    struct walk *w = rc ? NULL : calloc(1, sizeof(*w));
    if (!w)
        return rc ? rc : -ENOMEM;
    bool of_events = track->of == KRAIT_OF_CPU && track->kind != KRAIT_TRACK_STATES;
    int64_t first = krait_kernel_events_first(events);
    w->trace = trace;
    w->track = track;
    w->walking = walking;
    w->watch = (struct krait_kernel_watch){ .ctx = w, .begin = on_begin, .change = ignore_change };
    if (track->kind == KRAIT_TRACK_SLICES) {
        w->watch.entered = on_entered;
        w->watch.left = on_left;
    } else
        w->watch.change = track->of == KRAIT_OF_CPU ? on_run : on_state;
    const struct krait_kernel_options options = { .from_ns = after(walking->range.from_ns, first),
                                                  .until_ns = after(walking->range.to_ns, first),
                                                  .watch = &w->watch };
    rc = (of_events ? walk_events : walk_states)(w, events, &options);
    struct krait_damage damage = walking->damage;
    if (krait_kernel_events_damage(events)->code)
        krait_damage_say(&damage, "%s", krait_kernel_events_damage(events)->text);
    free(w);
    return rc;
}

/* -- finding them -- */

static int add_track(struct krait_trace *trace, struct krait_track track)
{
    struct krait_track *added = krait_trace_add_track(trace);
    if (!added)
        return -ENOMEM;
    *added = track;
    added->importer = KRAIT_IMPORTER_kernel;
    added->walk = walk_track;
    added->unit = track.unit ? track.unit : "";
    return 0;
}

static int add_thread(struct krait_trace *trace, const struct krait_own_threads *own,
                      const struct krait_kthread *t)
{
    uint32_t thread = krait_own_thread_at(own, t, UINT64_MAX);
    struct krait_track track = { .of = KRAIT_OF_THREAD,
                                 .process = thread == KRAIT_NO_ID ? thread : trace->threads[thread].process,
                                 .thread = thread,
                                 .number = (uint32_t)t->tid,
                                 .key = t->index };
    track.kind = KRAIT_TRACK_STATES;
    track.name = "state";
    int rc = add_track(trace, track);
    track.kind = KRAIT_TRACK_SLICES;
    track.name = "system calls";
    return rc ? rc : add_track(trace, track);
}

static int add_cpu(struct krait_trace *trace, uint32_t cpu, bool has_frequency)
{
    struct krait_track track = {
        .of = KRAIT_OF_CPU, .process = KRAIT_NO_ID, .thread = KRAIT_NO_ID, .number = cpu, .key = cpu
    };
    track.kind = KRAIT_TRACK_STATES;
    track.name = "threads";
    int rc = add_track(trace, track);
    track.kind = KRAIT_TRACK_SLICES;
    track.name = "interrupts";
    rc = rc ? rc : add_track(trace, track);
    track.kind = KRAIT_TRACK_COUNTER;
    track.name = "frequency";
    track.unit = "kHz";
    return rc || !has_frequency ? rc : add_track(trace, track);
}

static int add_all(struct krait_trace *trace, struct krait_kernel_events *events, struct krait_err *err)
{
    const struct krait_kernel_options all = { .until_ns = UINT64_MAX };
    KRAIT_CLEANUP(krait_own_threads_done) struct krait_own_threads own = { 0 };
    struct krait_kernel_states *states = NULL;
    bool has_frequency = krait_kernel_events_has(events, KRAIT_KERNEL_EVENT_FREQUENCY);
    int rc = krait_kernel_states_new(&states, events, &all, err);
    rc = rc ? rc : krait_own_threads_init(&own, trace, states);
    for (uint32_t i = 0; !rc && i < states->thread_count; i++)
        rc = add_thread(trace, &own, states->threads[i]);
    for (uint32_t i = 0; !rc && i < states->cpu_count; i++)
        rc = states->cpus[i].met ? add_cpu(trace, i, has_frequency) : 0;
    krait_kernel_states_free(states);
    return rc == -ENOMEM ? krait_err_set(err, rc, "out of memory") : rc;
}

int krait_kernel_tracks_add(struct krait_trace *trace, struct krait_err *err)
{
    struct krait_kernel_events *events;
    int rc = krait_tracks_find(trace, err);
    for (uint32_t i = 0; !rc && i < trace->track_count; i++) {
        if (trace->tracks[i].walk == walk_track)
            return 0;
    }
    if (rc || !trace->has_kernel)
        return rc;
    rc = krait_trace_kernel(trace, &events, err);
    rc = rc ? rc : add_all(trace, events, err);
    krait_tracks_sort(trace);
    return rc;
}
