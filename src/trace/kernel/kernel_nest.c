/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel_nest.h"

#include "base/array.h"

#include <string.h>

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
    krait_kernel_nest_fail(nest, -ENOMEM);
    return NULL;
}

static void pop(struct krait_kernel_nest *nest, struct krait_kernel_open_slices *open, uint64_t end_ns,
                bool cut)
{
    struct krait_kernel_slice *slice = &open->items[--open->count];
    uint64_t last_ns = nest->last_ns(nest, slice->place);
    bool outlives = slice->begin_ns < last_ns && last_ns < end_ns; /* the calls around it */
    slice->end_ns = outlives ? last_ns : KRAIT_MAX(end_ns, slice->end_ns);
    slice->cut = cut || outlives;
    if (open->count)
        slice[-1].end_ns = KRAIT_MAX(slice[-1].end_ns, slice->end_ns);
    if (!nest->rc)
        krait_kernel_nest_fail(nest, nest->end(nest, slice));
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
    uint64_t last_ns = nest->last_ns(nest, slice.place);
    bool is_behind = around && around->begin_ns < last_ns && last_ns <= slice.begin_ns;
    if (is_behind || open->count == MOST_OPEN)
        return;
    slice.name = nest->name(nest, name);
    if (slice.name == KRAIT_NO_ID || !KRAIT_GROW(open->items, open->cap, open->count + 1)) {
        krait_kernel_nest_fail(nest, -ENOMEM);
        return;
    }
    slice.end_ns = slice.begin_ns;
    open->items[open->count++] = slice;
    if (nest->begin)
        krait_kernel_nest_fail(nest, nest->begin(nest, &slice));
}

static void push_call(struct krait_kernel_nest *nest, struct krait_kernel_open_slices *open,
                      const struct krait_kthread *t, uint64_t ns)
{
    uint32_t place = nest->place(nest, t, ns);
    const char *name = t->call == KRAIT_NO_ID ? "" : nest->states->calls.texts[t->call];
    bool live = t->call_ns < (int64_t)ns;
    if (place == KRAIT_NO_ID || !*name)
        return;
    struct krait_kernel_slice slice = { .begin_ns = ns, .place = place, .is_call = true, .live = live };
    push(nest, open, slice, name);
}

/* -- what the machine tells -- */

static void on_entered(void *ctx, const struct krait_kthread *t, uint32_t was, int64_t ns)
{
    struct krait_kernel_nest *nest = ctx;
    struct krait_kernel_open_slices *open = slices_of(nest, t);
    if (!open)
        return;
    if (was != KRAIT_NO_ID)
        pop_to(nest, open, 0, 0);
    pop_to(nest, open, 0, (uint64_t)ns);
    push_call(nest, open, t, (uint64_t)ns);
}

static void on_left(void *ctx, const struct krait_kthread *t, bool own, int64_t ret, int64_t ns)
{
    struct krait_kernel_nest *nest = ctx;
    struct krait_kernel_open_slices *open = slices_of(nest, t);
    if (!open || !open->count || !open->items[0].is_call)
        return;
    pop_to(nest, open, own ? 1 : 0, own ? (uint64_t)ns : 0);
    if (!own)
        return;
    open->items[0].ret = ret;
    pop(nest, open, (uint64_t)ns, false);
}

static void end_function(struct krait_kernel_nest *nest, struct krait_kernel_open_slices *open,
                         const char *name, uint64_t ns)
{
    uint32_t id = open->count ? nest->name(nest, name) : 0, i = open->count;
    while (i && (open->items[i - 1].is_call || open->items[i - 1].name != id))
        i--;
    if (!i)
        return; /* its begin was not seen */
    pop_to(nest, open, i, ns);
    pop(nest, open, ns, false);
}

/* A function without a name in the trace goes by its address. */
static void on_function(void *ctx, const struct krait_kthread *t, const struct krait_kernel_event *ev,
                        int64_t at_ns)
{
    struct krait_kernel_nest *nest = ctx;
    uint64_t ns = (uint64_t)at_ns;
    uint32_t place = nest->place(nest, t, ns);
    struct krait_kernel_open_slices *open = place == KRAIT_NO_ID ? NULL : slices_of(nest, t);
    if (!open)
        return;
    char address[32];
    const char *label = krait_kernel_events_label(nest->events, ev, 0);
    snprintf(address, sizeof(address), "0x%llx", (unsigned long long)krait_kernel_event_int(ev, 0));
    const char *name = label ? label : address;
    if (ev->cls->kind != KRAIT_KERNEL_EVENT_FUNCTION_END)
        push(nest, open, (struct krait_kernel_slice){ .begin_ns = ns, .place = place }, name);
    if (ev->cls->kind != KRAIT_KERNEL_EVENT_FUNCTION_BEGIN)
        end_function(nest, open, name, ns);
}

static void on_change(void *ctx, const struct krait_kchange *change)
{
    struct krait_kernel_nest *nest = ctx;
    uint32_t index = change->thread->index;
    nest->changed(nest, change);
    if (change->thread->state == KRAIT_TS_GONE && index < nest->open_count)
        pop_to(nest, &nest->open[index], 0, (uint64_t)change->ns);
}

static void on_begin(void *ctx, const struct krait_kernel_states *states)
{
    struct krait_kernel_nest *nest = ctx;
    nest->states = states;
    for (uint32_t i = 0; i < states->thread_count && nest->end; i++) {
        const struct krait_kthread *t = states->threads[i];
        bool calls = t->call_counts && t->state != KRAIT_TS_GONE;
        struct krait_kernel_open_slices *open = calls ? slices_of(nest, t) : NULL;
        if (open)
            push_call(nest, open, t, (uint64_t)states->begin_ns);
    }
    nest->started(nest, states);
}

static void finish(struct krait_kernel_nest *nest, uint64_t ns)
{
    for (uint32_t i = 0; i < nest->open_count; i++)
        pop_to(nest, &nest->open[i], 0, ns);
    nest->finished(nest, ns);
}

static void watch(struct krait_kernel_nest *nest)
{
    nest->watch = (struct krait_kernel_watch){ .ctx = nest,
                                               .begin = on_begin,
                                               .change = on_change,
                                               .entered = nest->end ? on_entered : NULL,
                                               .left = nest->end ? on_left : NULL,
                                               .function = nest->end ? on_function : NULL,
                                               .event = nest->event };
}

int krait_kernel_nest_run(struct krait_kernel_nest *nest, uint64_t from_ns, uint64_t until_ns)
{
    watch(nest);
    const struct krait_kernel_options options = { .from_ns = from_ns,
                                                  .until_ns = until_ns,
                                                  .watch = &nest->watch };
    struct krait_kernel_states *states = NULL;
    struct krait_err ignored;
    int rc = krait_kernel_states_new(&states, nest->events, &options, &ignored);
    if (!rc && !nest->rc)
        finish(nest, (uint64_t)states->end_ns);
    krait_kernel_states_free(states);
    return nest->rc ? nest->rc : rc == -ENODATA ? 0 : rc; /* there is nothing in that time */
}

int krait_kernel_nest_go_on(struct krait_kernel_nest *nest, struct krait_kernel_states **states,
                            int64_t until_ns)
{
    watch(nest);
    const struct krait_kernel_options options = { .watch = &nest->watch };
    int rc = krait_kernel_states_go_on(states, nest->events, &options, until_ns);
    return nest->rc ? nest->rc : rc;
}

int krait_kernel_nest_now(struct krait_kernel_nest *nest, uint64_t ns)
{
    for (uint32_t i = 0; i < nest->open_count && !nest->rc; i++) {
        struct krait_kernel_open_slices *open = &nest->open[i], was = *open;
        size_t bytes = open->count * sizeof(*open->items);
        KRAIT_AUTO_FREE struct krait_kernel_slice *items = bytes ? malloc(bytes) : NULL;
        if (bytes && !items)
            return -ENOMEM;
        if (bytes)
            memcpy(items, open->items, bytes);
        pop_to(nest, open, 0, ns);
        if (bytes)
            memcpy(open->items, items, bytes);
        open->count = was.count;
    }
    return nest->rc;
}

void krait_kernel_nest_done(struct krait_kernel_nest *nest)
{
    for (uint32_t i = 0; i < nest->open_count; i++)
        free(nest->open[i].items);
    free(nest->open);
}
