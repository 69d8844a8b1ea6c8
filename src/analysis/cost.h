/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes off what recording took: a clock for a thread's calls that stands still while krait records a begin or an end.
 *
 * krait reads the clock in the middle of recording an event. Of what a call costs, a part is `inside`: after the reading at
 * its begin and before the one at its end. The rest is `outside`, before the begin and after the end, in the caller
 * (struct krait_call_cost). The clock loses half of a part on each side of an event:
 *
 *     caller ........|begin ............ end|........ caller
 *             outside/2  inside/2  inside/2  outside/2
 *
 * So a call's own time shrinks by its inside, its caller's by its outside, and the total time of a function by all that was
 * recorded below it. No time between two events becomes negative: what would exceed it is not taken off elsewhere.
 */
#ifndef KRAIT_ANALYSIS_COST_H
#define KRAIT_ANALYSIS_COST_H

#include "trace/trace.h"

struct krait_cost_clock {
    const struct krait_func *funcs;
    const struct krait_call_cost *cost; /* of the thread's process, by kind of function */
    uint64_t last_ns;                   /* the last event's time, as recorded */
    uint64_t taken_ns;                  /* off all times from there on */
    uint64_t after_ns;                  /* twice what recording the last event took after its time */
    uint64_t *t_ns;                     /* of the batch; owned */
};

/* Whether anything is known to take off, of some process. */
bool krait_cost_is_known(const struct krait_trace *trace);

/* Before a thread's calls. Returns 0 or -ENOMEM. */
int krait_cost_begin(struct krait_cost_clock *clock, const struct krait_trace *trace, uint32_t thread);
void krait_cost_done(struct krait_cost_clock *clock);

/* Event i of the batch comes: takes off what recording took between it and the one before, at most `most_ns`, and sets
 * clock->t_ns[i]. Returns what was taken. Nothing for what readers add (enum krait_op_kind), nor for a resume and a yield:
 * they cost less than a call and a return, and were not measured. hot path */
static inline uint64_t krait_cost_next(struct krait_cost_clock *clock, const struct krait_call_batch *ops,
                                       uint32_t i, uint64_t most_ns)
{
    const struct krait_call_cost *cost = &clock->cost[clock->funcs[ops->func[i]].kind];
    uint8_t kind = ops->kind[i];
    const uint32_t measured = 1u << KRAIT_OP_CALL | 1u << KRAIT_OP_RETURN | 1u << KRAIT_OP_UNWIND;
    bool is_end = krait_op_is_end(kind), is_of_call = measured >> kind & 1;
    uint32_t outside = is_of_call ? cost->outside_ns : 0, inside = is_of_call ? cost->inside_ns : 0;
    uint64_t ns = (clock->after_ns + (is_end ? inside : outside) + 1) / 2;
    ns = KRAIT_MIN(ns, most_ns);
    clock->after_ns = is_end ? outside : inside;
    clock->last_ns = ops->t_ns[i];
    clock->taken_ns += ns;
    clock->t_ns[i] = clock->last_ns - clock->taken_ns;
    return ns;
}

/* The whole batch on this clock; valid until the next one. */
struct krait_call_batch krait_cost_take(struct krait_cost_clock *clock, const struct krait_call_batch *ops);

#endif
