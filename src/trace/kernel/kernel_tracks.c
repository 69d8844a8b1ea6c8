/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel_tracks.h"

#include "trace/kernel/kernel_list.h"

struct finding {
    struct krait_trace *trace;
    struct krait_kernel_events *events;
    const struct krait_kernel_list *list;
    uint8_t flags; /* of all tracks; the same */
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

bool krait_kernel_is_thread_states(const struct krait_track *track)
{
    return track->importer == KRAIT_IMPORTER_kernel && track->of == KRAIT_OF_THREAD &&
           track->kind == KRAIT_TRACK_STATES;
}

/* In the place of a thread, which is the list's at `index`. */
static struct krait_track place_of(const struct krait_kernel_listed_thread *t, uint32_t index)
{
    return (struct krait_track){ .of = KRAIT_OF_THREAD,
                                 .process = t->process,
                                 .thread = t->thread,
                                 .number = t->tid,
                                 .pid = t->pid,
                                 .process_name = t->process_name,
                                 .thread_name = t->name,
                                 .key = index };
}

static int add_thread(struct finding *f, const struct krait_kernel_listed_thread *t, uint32_t index)
{
    const struct krait_track track = place_of(t, index);
    int rc = add_track(f, track, KRAIT_TRACK_STATES, "state", "");
    if (t->makes_calls)
        rc = rc ? rc : add_track(f, track, KRAIT_TRACK_SLICES, KRAIT_KERNEL_CALLS, "");
    if (t->runs_functions)
        rc = rc ? rc : add_track(f, track, KRAIT_TRACK_SLICES, KRAIT_KERNEL_FUNCTIONS, "");
    if (t->wakes)
        rc = rc ? rc : add_track(f, track, KRAIT_TRACK_FLOWS, "wake-ups", "");
    return rc;
}

static int add_cpu(struct finding *f, const struct krait_kernel_listed_cpu *cpu)
{
    const struct krait_track track = { .of = KRAIT_OF_CPU,
                                       .process = KRAIT_NO_ID,
                                       .thread = KRAIT_NO_ID,
                                       .number = cpu->number,
                                       .process_name = "",
                                       .thread_name = "",
                                       .key = cpu->number };
    int rc = add_track(f, track, KRAIT_TRACK_STATES, "threads", "");
    if (krait_kernel_events_has(f->events, KRAIT_KERNEL_EVENT_IRQ_BEGIN) ||
        krait_kernel_events_has(f->events, KRAIT_KERNEL_EVENT_IPI_BEGIN) ||
        krait_kernel_events_has(f->events, KRAIT_KERNEL_EVENT_SOFTIRQ_BEGIN))
        rc = rc ? rc : add_track(f, track, KRAIT_TRACK_SLICES, "interrupts", "");
    if (cpu->has_frequency) /* an event said it; its class alone says nothing */
        rc = rc ? rc : add_track(f, track, KRAIT_TRACK_COUNTER, "frequency", "kHz");
    return rc;
}

/* What there is, which costs a run over all events unless it was handed in. */
static int list(struct finding *f, struct krait_err *err)
{
    f->flags = krait_kernel_events_lost(f->events) ? KRAIT_TRACK_LOST : 0;
    return krait_kernel_list_of(f->trace, f->machine, &f->list, err);
}

static int find_all(struct finding *f, struct krait_err *err)
{
    int rc = list(f, err);
    for (uint32_t i = 0; !rc && i < f->list->thread_count; i++)
        rc = add_thread(f, &f->list->threads[i], i);
    for (uint32_t i = 0; !rc && i < f->list->cpu_count; i++)
        rc = add_cpu(f, &f->list->cpus[i]);
    return rc;
}

static int find_said(struct finding *f, struct krait_err *err)
{
    if (!krait_kernel_events_has(f->events, KRAIT_KERNEL_EVENT_MARK))
        return 0;
    int rc = list(f, err);
    for (uint32_t i = 0; !rc && i < f->list->thread_count; i++) {
        if (f->list->threads[i].says)
            rc = add_track(f, place_of(&f->list->threads[i], i), KRAIT_TRACK_INSTANTS, "marks", "");
    }
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
