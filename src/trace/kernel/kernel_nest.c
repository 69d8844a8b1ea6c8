/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel_nest.h"

#include "base/array.h"

/* From the outermost inwards. */
struct krait_kernel_open_slices {
    struct krait_kernel_slice *items; /* end_ns: up to when it is known to go on */
    uint32_t count, cap;
};

/* A kernel follows functions 50 deep at the most (FTRACE_RETFUNC_DEPTH in kernel/trace/fgraph.c): more are
 * open where ends were lost. */
enum { MOST_OPEN = 64 };

static struct krait_kernel_open_slices *slices_of(struct krait_kernel_nest *nest,
                                                  const struct krait_kthread *t)
{
    if (!nest->rc && KRAIT_GROW_FILLED(nest->open, nest->open_count, t->index + 1, 0))
        return &nest->open[t->index];
    nest->rc = nest->rc ? nest->rc : -ENOMEM;
    return NULL;
}

static void pop(struct krait_kernel_nest *nest, struct krait_kernel_open_slices *open, uint64_t end_ns,
                bool cut)
{
    struct krait_kernel_slice *slice = &open->items[--open->count];
    uint64_t last_ns = nest->last_ns(nest->ctx, slice->place);
    bool outlives = slice->begin_ns < last_ns && last_ns < end_ns; /* the calls around it */
    slice->end_ns = outlives ? last_ns : KRAIT_MAX(end_ns, slice->end_ns);
    slice->cut = cut || outlives;
    if (open->count)
        slice[-1].end_ns = KRAIT_MAX(slice[-1].end_ns, slice->end_ns);
    if (!nest->rc)
        nest->rc = nest->end(nest->ctx, slice);
}

static void pop_to(struct krait_kernel_nest *nest, struct krait_kernel_open_slices *open, uint32_t count,
                   uint64_t end_ns)
{
    while (open->count > count)
        pop(nest, open, end_ns, true);
}

static void push(struct krait_kernel_nest *nest, struct krait_kernel_open_slices *open,
                 struct krait_kernel_slice slice, const char *name)
{
    const struct krait_kernel_slice *around = open->count ? &open->items[open->count - 1] : NULL;
    uint64_t last_ns = nest->last_ns(nest->ctx, slice.place);
    bool is_behind = around && around->begin_ns < last_ns && last_ns <= slice.begin_ns;
    if (is_behind || open->count == MOST_OPEN)
        return;
    slice.name = nest->name(nest->ctx, name);
    if (slice.name == KRAIT_NO_ID || !KRAIT_GROW(open->items, open->cap, open->count + 1)) {
        nest->rc = -ENOMEM;
        return;
    }
    slice.end_ns = slice.begin_ns;
    open->items[open->count++] = slice;
    if (nest->begin)
        nest->rc = nest->begin(nest->ctx, &slice);
}

static void push_call(struct krait_kernel_nest *nest, struct krait_kernel_open_slices *open,
                      const struct krait_kthread *t, uint64_t ns)
{
    uint32_t place = nest->place(nest->ctx, t, ns);
    const char *name = t->call == KRAIT_NO_ID ? "" : nest->states->calls.texts[t->call];
    bool live = t->call_ns < (int64_t)ns;
    if (place == KRAIT_NO_ID || !*name)
        return;
    struct krait_kernel_slice slice = { .begin_ns = ns, .place = place, .is_call = true, .live = live };
    push(nest, open, slice, name);
}

int krait_kernel_nest_entered(struct krait_kernel_nest *nest, const struct krait_kthread *t, uint32_t was,
                              uint64_t ns)
{
    struct krait_kernel_open_slices *open = slices_of(nest, t);
    if (!open)
        return nest->rc;
    if (was != KRAIT_NO_ID)
        pop_to(nest, open, 0, 0);
    pop_to(nest, open, 0, ns);
    push_call(nest, open, t, ns);
    return nest->rc;
}

int krait_kernel_nest_left(struct krait_kernel_nest *nest, const struct krait_kthread *t, bool own,
                           int64_t ret, uint64_t ns)
{
    struct krait_kernel_open_slices *open = slices_of(nest, t);
    if (!open || !open->count || !open->items[0].is_call)
        return nest->rc;
    if (!own) {
        pop_to(nest, open, 0, 0);
        return nest->rc;
    }
    pop_to(nest, open, 1, ns);
    open->items[0].ret = ret;
    pop(nest, open, ns, false);
    return nest->rc;
}

static void end_function(struct krait_kernel_nest *nest, struct krait_kernel_open_slices *open,
                         const char *name, uint64_t ns)
{
    uint32_t id = open->count ? nest->name(nest->ctx, name) : 0, i = open->count;
    while (i && (open->items[i - 1].is_call || open->items[i - 1].name != id))
        i--;
    if (!i)
        return; /* its begin was not seen */
    pop_to(nest, open, i, ns);
    pop(nest, open, ns, false);
}

/* A function without a name in the trace goes by its address. */
int krait_kernel_nest_function(struct krait_kernel_nest *nest, const struct krait_kthread *t,
                               const struct krait_kernel_event *ev, uint64_t ns)
{
    uint32_t place = nest->place(nest->ctx, t, ns);
    struct krait_kernel_open_slices *open = place == KRAIT_NO_ID ? NULL : slices_of(nest, t);
    if (!open)
        return nest->rc;
    char address[32];
    const char *label = krait_kernel_events_label(nest->events, ev, 0);
    snprintf(address, sizeof(address), "0x%llx", (unsigned long long)krait_kernel_event_int(ev, 0));
    const char *name = label ? label : address;
    if (ev->cls->kind != KRAIT_KERNEL_EVENT_FUNCTION_END)
        push(nest, open, (struct krait_kernel_slice){ .begin_ns = ns, .place = place }, name);
    if (ev->cls->kind != KRAIT_KERNEL_EVENT_FUNCTION_BEGIN)
        end_function(nest, open, name, ns);
    return nest->rc;
}

int krait_kernel_nest_gone(struct krait_kernel_nest *nest, const struct krait_kthread *t, uint64_t ns)
{
    if (t->index < nest->open_count)
        pop_to(nest, &nest->open[t->index], 0, ns);
    return nest->rc;
}

int krait_kernel_nest_begin(struct krait_kernel_nest *nest, const struct krait_kernel_states *states)
{
    nest->states = states;
    for (uint32_t i = 0; i < states->thread_count; i++) {
        const struct krait_kthread *t = states->threads[i];
        bool calls = t->call_counts && t->state != KRAIT_TS_GONE;
        struct krait_kernel_open_slices *open = calls ? slices_of(nest, t) : NULL;
        if (open)
            push_call(nest, open, t, (uint64_t)states->begin_ns);
    }
    return nest->rc;
}

int krait_kernel_nest_finish(struct krait_kernel_nest *nest, uint64_t ns)
{
    for (uint32_t i = 0; i < nest->open_count; i++)
        pop_to(nest, &nest->open[i], 0, ns);
    return nest->rc;
}

void krait_kernel_nest_done(struct krait_kernel_nest *nest)
{
    for (uint32_t i = 0; i < nest->open_count; i++)
        free(nest->open[i].items);
    free(nest->open);
}
