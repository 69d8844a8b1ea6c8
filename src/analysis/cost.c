/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/cost.h"

#include "trace/stack.h"

static bool is_some(const struct krait_call_cost *cost)
{
    uint32_t sum = 0;
    for (unsigned kind = 0; kind < KRAIT_FUNC_KINDS; kind++)
        sum |= cost[kind].inside_ns | cost[kind].outside_ns;
    return sum;
}

bool krait_cost_is_known(const struct krait_trace *trace)
{
    for (uint32_t i = 0; i < trace->process_count; i++) {
        if (is_some(trace->processes[i].cost))
            return true;
    }
    return false;
}

int krait_cost_begin(struct krait_cost_clock *clock, const struct krait_trace *trace, uint32_t thread)
{
    uint64_t *t_ns = clock->t_ns ? clock->t_ns : malloc(KRAIT_STACK_BATCH * sizeof(*t_ns));
    if (!t_ns)
        return -ENOMEM;
    *clock = (struct krait_cost_clock){
        .funcs = trace->funcs,
        .cost = trace->processes[trace->threads[thread].process].cost,
        .t_ns = t_ns,
    };
    return 0;
}

void krait_cost_done(struct krait_cost_clock *clock)
{
    free(clock->t_ns);
    *clock = (struct krait_cost_clock){ 0 };
}

struct krait_call_batch krait_cost_take(struct krait_cost_clock *clock, const struct krait_call_batch *ops)
{
    struct krait_call_batch taken = *ops;
    for (uint32_t i = 0; i < ops->n; i++)
        krait_cost_next(clock, ops, i, ops->t_ns[i] - clock->last_ns);
    taken.t_ns = clock->t_ns;
    return taken;
}
