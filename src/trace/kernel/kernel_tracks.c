/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel_tracks.h"

#include "trace/kernel/kernel.h"

struct finding {
    struct krait_trace *trace;
    struct krait_kernel_events *events;
    const struct krait_kernel_known *known;
    uint32_t *recorded; /* by the kernel's process: the trace's that it is, plus 1 */
    uint8_t flags;      /* of all tracks; the same */
    uint8_t importer;
    uint32_t machine;
};

static int add_track(struct finding *f, struct krait_track track, enum krait_track_kind kind,
                     const char *name, const char *unit)
{
    struct krait_track *added = krait_trace_add_track(f->trace);
    if (!added)
        return -ENOMEM;
    *added = track;
    added->kind = (uint8_t)kind;
    added->importer = f->importer;
    added->flags = f->flags;
    added->machine = f->machine;
    added->host = krait_kernel_events_env(f->events, "hostname");
    added->name = name;
    added->unit = unit;
    return 0;
}

/* Which processes recorded themselves: so their other threads, which run no Python, are found beside those that do. */
static int find_processes(struct finding *f)
{
    const struct krait_kernel_states *states = f->known->states;
    f->recorded = calloc((size_t)states->process_count + 1, sizeof(*f->recorded));
    for (uint32_t i = 0; i < states->thread_count && f->recorded; i++) {
        const struct krait_kthread *t = states->threads[i];
        uint32_t thread = krait_own_thread_at(&f->known->own, t, UINT64_MAX);
        if (thread != KRAIT_NO_ID && t->process != KRAIT_NO_ID)
            f->recorded[t->process] = f->trace->threads[thread].process + 1;
    }
    return f->recorded ? 0 : -ENOMEM;
}

static uint32_t process_of(const struct finding *f, const struct krait_kthread *t, uint32_t thread)
{
    if (thread != KRAIT_NO_ID)
        return f->trace->threads[thread].process;
    bool is_known = t->process != KRAIT_NO_ID && f->recorded[t->process];
    return is_known ? f->recorded[t->process] - 1 : KRAIT_NO_ID;
}

bool krait_kernel_is_thread_states(const struct krait_track *track)
{
    return track->importer == KRAIT_IMPORTER_kernel && track->of == KRAIT_OF_THREAD &&
           track->kind == KRAIT_TRACK_STATES;
}

/* In the place of a thread; false: memory is out. */
static bool place_in(struct finding *f, const struct krait_kthread *t, struct krait_track *track)
{
    uint32_t thread = krait_own_thread_at(&f->known->own, t, UINT64_MAX);
    const struct krait_kprocess *process =
        t->process == KRAIT_NO_ID ? NULL : &f->known->states->processes[t->process];
    *track = (struct krait_track){ .of = KRAIT_OF_THREAD,
                                   .process = process_of(f, t, thread),
                                   .thread = thread,
                                   .number = (uint32_t)t->tid,
                                   .pid = process ? (uint32_t)process->pid : 0,
                                   .process_name = krait_arena_strdup(&f->trace->impl->arena,
                                                                      process ? process->name : ""),
                                   .thread_name = krait_arena_strdup(&f->trace->impl->arena, t->name),
                                   .key = t->index };
    return track->process_name && track->thread_name;
}

static int add_thread(struct finding *f, const struct krait_kthread *t)
{
    struct krait_track track;
    int rc = place_in(f, t, &track) ? 0 : -ENOMEM;
    rc = rc ? rc : add_track(f, track, KRAIT_TRACK_STATES, "state", "");
    if (t->makes_calls)
        rc = rc ? rc : add_track(f, track, KRAIT_TRACK_SLICES, KRAIT_KERNEL_CALLS, "");
    if (t->runs_functions)
        rc = rc ? rc : add_track(f, track, KRAIT_TRACK_SLICES, KRAIT_KERNEL_FUNCTIONS, "");
    if (t->wakes)
        rc = rc ? rc : add_track(f, track, KRAIT_TRACK_FLOWS, "wake-ups", "");
    return rc;
}

static int add_said(struct finding *f, const struct krait_kthread *t)
{
    struct krait_track track;
    if (!t->says)
        return 0;
    return place_in(f, t, &track) ? add_track(f, track, KRAIT_TRACK_INSTANTS, "marks", "") : -ENOMEM;
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
    if (f->known->states->cpus[cpu].khz) /* an event said it; its class alone says nothing */
        rc = rc ? rc : add_track(f, track, KRAIT_TRACK_COUNTER, "frequency", "kHz");
    return rc;
}

/* What is known of threads, which costs a run over all events. */
static int know(struct finding *f, struct krait_err *err)
{
    int rc = krait_trace_kernel_known_of(f->trace, f->machine, &f->known, err);
    if (rc)
        return rc;
    f->flags = krait_kernel_events_lost(f->events) ? KRAIT_TRACK_LOST : 0;
    return find_processes(f);
}

static int find_all(struct finding *f, struct krait_err *err)
{
    int rc = know(f, err);
    if (rc)
        return rc;
    const struct krait_kernel_states *states = f->known->states;
    for (uint32_t i = 0; !rc && i < states->thread_count; i++)
        rc = add_thread(f, states->threads[i]);
    for (uint32_t i = 0; !rc && i < states->cpu_count; i++)
        rc = states->cpus[i].met ? add_cpu(f, i) : 0;
    return rc;
}

static int find_said(struct finding *f, struct krait_err *err)
{
    if (!krait_kernel_events_has(f->events, KRAIT_KERNEL_EVENT_MARK))
        return 0;
    int rc = know(f, err);
    for (uint32_t i = 0; !rc && i < f->known->states->thread_count; i++)
        rc = add_said(f, f->known->states->threads[i]);
    return rc;
}

typedef int find_fn(struct finding *f, struct krait_err *err);

static int find_on(struct krait_trace *trace, enum krait_importer_id importer, uint32_t machine, find_fn *of,
                   struct krait_err *err)
{
    struct finding f = { .trace = trace, .importer = (uint8_t)importer, .machine = machine };
    struct krait_damage damage = { trace->damage, sizeof(trace->damage) };
    struct krait_err why = { 0 };
    int rc = krait_trace_kernel_of(trace, machine, &f.events, &why);
    rc = rc ? rc : of(&f, &why);
    free(f.recorded);
    bool is_damaged = f.events && krait_kernel_events_damage(f.events)->code;
    if (rc && rc != -ENOMEM && (rc != -ENODATA || is_damaged))
        krait_damage_say(&damage, "%s", why.text);
    return rc == -ENOMEM ? krait_err_set(err, rc, "out of memory") : 0;
}

static int find(struct krait_trace *trace, enum krait_importer_id importer, find_fn *of,
                struct krait_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < krait_kernel_machines(trace) && !rc; i++)
        rc = find_on(trace, importer, i, of, err);
    return rc;
}

int krait_kernel_tracks_find(struct krait_trace *trace, struct krait_err *err)
{
    return find(trace, KRAIT_IMPORTER_kernel, find_all, err);
}

int krait_kernel_said_find(struct krait_trace *trace, struct krait_err *err)
{
    return find(trace, KRAIT_IMPORTER_kernel_said, find_said, err);
}
