/* SPDX-License-Identifier: Apache-2.0
 *
 * Which steps of coroutines belong to one call. A step is what the events of calls tell: from a call or a resume to the next
 * yield. No event names the coroutine itself; the tasks and the order of the steps do:
 *
 *   task 7     main ─┬─ serve ─┬─ read ┐ ┐ ┐      a task runs; it yields from the innermost coroutine to the root
 *   task 8     main ─┬─ serve ┐ ┐
 *   task 7     main ─┬─ serve ─┬─ read ┐          it goes on from the root to the innermost coroutine
 *                              └─ read ─ ...      the same call of read, because this serve awaits nothing else
 *
 * The root of a task is known by its task (task:run stands behind its begin), every other coroutine by the one that awaits it,
 * which awaits one at a time. An exception is thrown into the innermost one at once, without a step of those that await it:
 * it is the end of the task's chain.
 *
 * Where that is not so, krait does not guess: a coroutine that no task runs, or that another function or C drives by send(),
 * has steps alone. Generators may be resumed by anybody, and are never told apart. Where events were lost, or the recording
 * was off or paused, all that is suspended is forgotten.
 *
 * A switch of greenlets suspends calls and steps of any function. They go on where their stack comes back, which the walk
 * tells (krait_call_batch.left): such a call lasts from its begin to its own end. Coroutines that run then are still open:
 * what they await, and the step of the task, comes back with the stack.
 */
#ifndef KRAIT_TRACE_COROUTINES_H
#define KRAIT_TRACE_COROUTINES_H

#include "trace/trace.h"

struct krait_coroutines;

/* What the end of a call or of a step ends. */
struct krait_call_step {
    uint64_t begin_ns; /* when its call began; 0: that is not known, and so not which call it is */
    uint32_t call;     /* of a call that a task awaits: its number in the thread, from 1; else 0 */
    uint32_t place;    /* of it: see krait_coroutines_has */
    uint32_t task;     /* that it runs in: index, or KRAIT_NO_ID; of coroutines, and if is_left or was_left */
    bool is_coroutine; /* else begin_ns is that of the step */
    bool is_first;     /* it began with the call */
    bool was_live;     /* its begin is not known: it was open before, or events are missing */
    bool is_left;      /* no end: the thread switches greenlets, and it may go on */
    bool was_left;     /* it did so before */
};

/* Of a thread, whose calls are walked in a range. Returns 0 or -ENOMEM. */
int krait_coroutines_new(struct krait_coroutines **out, const struct krait_trace *trace, uint32_t thread,
                         struct krait_range range);
void krait_coroutines_free(struct krait_coroutines *coroutines);

/* The next batch. Sets steps[i] for each op i that is an end; of each other, was_left: it goes on. Returns 0 or -ENOMEM. */
int krait_coroutines_take(struct krait_coroutines *coroutines, const struct krait_call_batch *ops,
                          struct krait_call_step *steps);

/* Whether a call that was suspended is so still, and known. */
bool krait_coroutines_has(const struct krait_coroutines *coroutines, uint32_t place, uint32_t call);

/* The same of a call that a switch of greenlets has suspended. */
bool krait_coroutines_has_left(const struct krait_coroutines *coroutines, uint32_t left);

/* Whether some tasks are greenlets. */
bool krait_coroutines_may_switch(const struct krait_trace *trace);

#endif
