/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel_slices.h"

#include "base/array.h"

#include <string.h>

/* -- opening -- */

/* After the first event, by which the walks go. */
static void set_range(struct krait_kernel_slices *kernel)
{
    const struct krait_range *range = &kernel->options.range;
    uint64_t origin = (uint64_t)kernel->known->origin_ns;
    kernel->from_ns = range->from_ns > origin ? range->from_ns - origin : 0;
    kernel->until_ns = range->to_ns == UINT64_MAX ? UINT64_MAX
                       : range->to_ns > origin    ? range->to_ns - origin
                                                  : 0;
}

static int open_kernel(struct krait_kernel_slices *kernel, struct krait_err *err)
{
    const struct krait_kernel_known *known;
    int rc = krait_trace_kernel(kernel->trace, &kernel->events, err);
    rc = rc ? rc : krait_trace_kernel_known(kernel->trace, &known, err);
    if (rc == -ENODATA && kernel->events && krait_kernel_events_damage(kernel->events)->code && err)
        *err = *krait_kernel_events_damage(kernel->events);
    if (rc)
        return rc;
    kernel->known = known->states;
    kernel->own = &known->own;
    set_range(kernel);
    return 0;
}

int krait_kernel_slices_new(struct krait_kernel_slices **out, const struct krait_trace *trace,
                            const struct krait_kernel_slices_options *options, struct krait_err *err)
{
    struct krait_kernel_slices *kernel = calloc(1, sizeof(*kernel));
    if (!kernel)
        return krait_err_set(err, -ENOMEM, "out of memory");
    kernel->trace = trace;
    kernel->options = *options;
    int rc = open_kernel(kernel, err);
    if (rc)
        krait_kernel_slices_free(kernel);
    else
        *out = kernel;
    return rc;
}

void krait_kernel_slices_free(struct krait_kernel_slices *kernel)
{
    if (!kernel)
        return;
    krait_strtab_done(&kernel->names);
    free(kernel);
}

uint32_t krait_kernel_slices_id(const struct krait_kernel_slices *kernel, uint32_t id)
{
    return kernel ? krait_own_threads_kernels_id(kernel->own, id) : id;
}

/* The trace's thread that a thread of the kernel's was at a time; KRAIT_NO_ID if it is none that is taken. */
static uint32_t thread_at(const struct krait_kernel_slices *kernel, const struct krait_kthread *t,
                          uint64_t t_ns)
{
    uint32_t found = krait_own_thread_at(kernel->own, kernel->known->threads[t->index], t_ns);
    const struct krait_kernel_slices_options *o = &kernel->options;
    bool takes = found != KRAIT_NO_ID && (!o->take_thread || o->take_thread(o->ctx, kernel->trace, found));
    return takes ? found : KRAIT_NO_ID;
}

/* -- walking -- */

struct run {
    const struct krait_kthread *thread; /* NULL: none that is known */
    uint64_t begin_ns;
};

struct walk {
    struct krait_kernel_nest nest; /* first: its functions' ctx */
    struct krait_kernel_slices *kernel;
    const struct krait_kernel_sink *sink;
    struct run *runs; /* by CPU */
    uint32_t run_count;
};

/* -- slices -- */

/* The place of a slice is the trace's thread. */
static uint32_t place_of(void *ctx, const struct krait_kthread *t, uint64_t ns)
{
    return thread_at(((struct walk *)ctx)->kernel, t, ns);
}

/* When a thread's calls are cut that nobody ended, as trace/walk.c does. */
static uint64_t last_of(void *ctx, uint32_t place)
{
    const struct krait_trace *trace = ((struct walk *)ctx)->kernel->trace;
    return trace->processes[trace->threads[place].process].end_ns;
}

static uint32_t name_of(void *ctx, const char *text)
{
    struct walk *w = ctx;
    return krait_strtab_add(&w->kernel->names, text, strlen(text));
}

static int begin_slice(void *ctx, const struct krait_kernel_slice *slice)
{
    const struct krait_kernel_sink *sink = ((struct walk *)ctx)->sink;
    return sink->begin ? sink->begin(sink->ctx, slice) : 0;
}

static int end_slice(void *ctx, const struct krait_kernel_slice *slice)
{
    const struct krait_kernel_sink *sink = ((struct walk *)ctx)->sink;
    return sink->end ? sink->end(sink->ctx, slice) : 0;
}

/* -- runs and waits -- */

static struct run *run_on(struct walk *w, uint32_t cpu)
{
    if (KRAIT_GROW_FILLED(w->runs, w->run_count, cpu + 1, 0))
        return &w->runs[cpu];
    krait_kernel_nest_fail(&w->nest, -ENOMEM);
    return NULL;
}

static void end_run(struct walk *w, uint32_t cpu, uint64_t ns)
{
    struct run run = w->runs[cpu];
    w->runs[cpu].thread = NULL;
    if (run.thread && ns > run.begin_ns && w->sink->ran)
        krait_kernel_nest_fail(&w->nest, w->sink->ran(w->sink->ctx, cpu, run.thread, run.begin_ns, ns));
}

static void begin_run(struct walk *w, uint32_t cpu, const struct krait_kthread *t, uint64_t ns)
{
    struct run *run = run_on(w, cpu);
    if (!run)
        return;
    end_run(w, cpu, ns);
    *run = (struct run){ t, ns };
}

static void end_run_of(struct walk *w, const struct krait_kthread *t, uint64_t ns)
{
    for (uint32_t i = 0; i < w->run_count; i++) {
        if (w->runs[i].thread == t)
            end_run(w, i, ns);
    }
}

static bool is_wait(enum krait_thread_state state)
{
    return krait_thread_blocks(state) || state == KRAIT_TS_WOKEN || krait_thread_is_preempted(state);
}

static void tell_wait(struct walk *w, const struct krait_kchange *change)
{
    uint32_t thread = thread_at(w->kernel, change->thread, (uint64_t)change->since_ns);
    const struct krait_kthread *by = krait_kernel_cause(w->nest.states, change->was_by);
    if (thread != KRAIT_NO_ID && change->ns > change->since_ns && w->sink->waited)
        krait_kernel_nest_fail(&w->nest, w->sink->waited(w->sink->ctx, thread, change, by));
}

static void on_change(void *ctx, const struct krait_kchange *change)
{
    struct walk *w = ctx;
    const struct krait_kthread *t = change->thread;
    bool ran = krait_thread_runs((enum krait_thread_state)change->was);
    bool runs = krait_thread_runs((enum krait_thread_state)t->state);
    if (ran && !runs)
        end_run_of(w, t, (uint64_t)change->ns);
    else if (runs && !ran && change->cpu)
        begin_run(w, change->cpu->number, t, (uint64_t)change->ns);
    if (is_wait((enum krait_thread_state)change->was))
        tell_wait(w, change);
}

/* -- both ends -- */

static void on_begin(void *ctx, const struct krait_kernel_states *states)
{
    struct walk *w = ctx;
    uint64_t ns = (uint64_t)states->begin_ns;
    for (uint32_t i = 0; i < states->cpu_count; i++) {
        const struct krait_kthread *t = states->cpus[i].current;
        if (t && krait_thread_runs((enum krait_thread_state)t->state))
            begin_run(w, i, t, ns);
    }
}

static void on_end(void *ctx, uint64_t ns)
{
    struct walk *w = ctx;
    for (uint32_t i = 0; i < w->run_count; i++)
        end_run(w, i, ns);
}

static void walk_done(struct walk *w)
{
    krait_kernel_nest_done(&w->nest);
    free(w->runs);
}

int krait_kernel_slices_walk(struct krait_kernel_slices *kernel, const struct krait_kernel_sink *sink)
{
    KRAIT_CLEANUP(walk_done) struct walk w = { .kernel = kernel, .sink = sink };
    w.nest = (struct krait_kernel_nest){ .events = kernel->events,
                                         .place = place_of,
                                         .last_ns = last_of,
                                         .name = name_of,
                                         .begin = begin_slice,
                                         .end = end_slice,
                                         .started = on_begin,
                                         .changed = on_change,
                                         .finished = on_end };
    return krait_kernel_nest_run(&w.nest, kernel->from_ns, kernel->until_ns);
}
