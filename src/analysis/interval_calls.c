/* SPDX-License-Identifier: Apache-2.0
 *
 * Intervals that begin or end where a function is called or returns.
 */
#include "analysis/interval_search.h"

bool krait_search_needs_calls(const struct krait_interval_rule *rule)
{
    bool any = false;
    for (uint32_t i = 0; i < rule->trigger_count; i++)
        any |= rule->triggers[i].call != NULL;
    return any;
}

int krait_search_begin_calls(struct krait_search *search, uint32_t rule, const char **at,
                             struct krait_err *err)
{
    const struct krait_interval_rule *of = &search->options->rules[rule];
    const struct krait_trace *trace = search->trace;
    struct krait_sought *sought = &search->sought[rule];
    int rc = 0;
    for (uint32_t i = 0; i < of->trigger_count && !rc; i++) {
        const struct krait_trigger *trigger = &of->triggers[i];
        bool **calls = &sought->edges[trigger->role == KRAIT_TRIGGER_STOP];
        if (!trigger->call)
            continue;
        *at = trigger->call_at;
        *calls = calloc((size_t)trace->func_count + 1, sizeof(**calls));
        rc = *calls ? krait_match_mark(*calls, trace, trigger->call, err)
                    : krait_err_set(err, -ENOMEM, "out of memory");
        for (uint32_t f = 0; f < trace->func_count && !rc; f++)
            sought->has_coroutines |= (*calls)[f] && trace->funcs[f].suspends == KRAIT_SUSPENDS_COROUTINE;
    }
    return rc;
}

/* A coroutine's or generator's call begins once and ends once; what was live before, or is cut off, has no such event. */
static bool is_at(const struct krait_trigger *trigger, uint8_t kind)
{
    return trigger->returns ? kind == KRAIT_OP_RETURN || kind == KRAIT_OP_UNWIND : kind == KRAIT_OP_CALL;
}

/* KRAIT_NO_ID: its time tells it. Steps say nothing of begins. */
static uint32_t task_of(struct krait_search *search, uint32_t track, const struct krait_call_batch *calls,
                        uint32_t op, const struct krait_call_step *step)
{
    if (krait_op_is_end(calls->kind[op]))
        return step && (step->is_coroutine || step->is_left || step->was_left) ? step->task : KRAIT_NO_ID;
    if (search->trace->funcs[calls->func[op]].suspends != KRAIT_SUSPENDS_COROUTINE)
        return KRAIT_NO_ID;
    return krait_task_keys_begun(&search->tasks, search->trace->tracks[track].thread, calls->t_ns[op],
                                 op + 1 < calls->n ? calls->t_ns[op + 1] : UINT64_MAX);
}

static int take_op(struct krait_search *search, uint32_t rule, uint32_t track,
                   const struct krait_call_batch *calls, uint32_t op, const struct krait_call_step *step)
{
    const struct krait_interval_rule *of = &search->options->rules[rule];
    const struct krait_trigger *fired[2] = { NULL, NULL };
    for (uint32_t i = 0; i < of->trigger_count; i++) {
        const struct krait_trigger *trigger = &of->triggers[i];
        bool stops = trigger->role == KRAIT_TRIGGER_STOP;
        const bool *meant = search->sought[rule].edges[stops];
        if (meant && meant[calls->func[op]] && is_at(trigger, calls->kind[op]))
            fired[stops] = trigger;
    }
    if (!fired[0] && !fired[1])
        return 0;
    krait_trigger_event_of(&search->said, search->trace, &search->trace->tracks[track],
                           search->trace->funcs[calls->func[op]].name, "");
    search->said.task = task_of(search, track, calls, op, step);
    search->said.message = NULL;
    const struct krait_edge edge = {
        .t_ns = calls->t_ns[op], .track = track, .rule = (uint16_t)rule, .label = KRAIT_NO_ID
    };
    search->said.t_ns = calls->t_ns[op];
    return krait_search_pair(search, fired, edge);
}

int krait_search_calls(struct krait_search *search, uint32_t rule, uint32_t track,
                       const struct krait_call_batch *calls, const struct krait_call_step *steps)
{
    const struct krait_sought *sought = &search->sought[rule];
    int rc = 0;
    if (sought->is_left_out || /* one end alone makes no interval */
        !(sought->edges[0] || sought->edges[1]))
        return 0;
    search->is_mixed = true;
    for (uint32_t i = 0; i < calls->n && !rc; i++)
        rc = take_op(search, rule, track, calls, i, steps ? &steps[i] : NULL);
    return rc;
}
