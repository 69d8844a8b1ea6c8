/* SPDX-License-Identifier: Apache-2.0
 *
 * Intervals that begin or end where a function is called or returns.
 */
#include "analysis/interval_search.h"
#include "base/array.h"

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

/* An event of a call: its begin, or its return. `arguments`: what was recorded of it, or "". */
struct call_event {
    uint64_t t_ns;
    uint32_t rule, track, func, task;
    bool returns;
    const char *arguments;
};

static int fire(struct krait_search *search, const struct call_event *event)
{
    const struct krait_interval_rule *of = &search->options->rules[event->rule];
    const struct krait_trigger *fired[2] = { NULL, NULL };
    for (uint32_t i = 0; i < of->trigger_count; i++) {
        const struct krait_trigger *trigger = &of->triggers[i];
        bool stops = trigger->role == KRAIT_TRIGGER_STOP;
        const bool *meant = search->sought[event->rule].edges[stops];
        if (meant && meant[event->func] && trigger->returns == event->returns)
            fired[stops] = trigger;
    }
    if (!fired[0] && !fired[1])
        return 0;
    krait_trigger_event_of(&search->said, search->trace, &search->trace->tracks[event->track],
                           search->trace->funcs[event->func].name, "");
    search->said.task = event->task;
    search->said.message = NULL;
    search->said.arguments = event->arguments;
    search->said.t_ns = event->t_ns;
    for (int i = 0; i < 2; i++)
        fired[i] = fired[i] && krait_trigger_holds(fired[i], &search->said) ? fired[i] : NULL;
    const struct krait_edge edge = {
        .t_ns = event->t_ns, .track = event->track, .rule = (uint16_t)event->rule, .label = KRAIT_NO_ID
    };
    int rc = fired[0] || fired[1] ? krait_search_pair(search, fired, edge) : 0;
    search->said.arguments = NULL;
    return rc;
}

static int open_call(struct krait_sought *sought, struct krait_sought_call call)
{
    if (!KRAIT_GROW(sought->open, sought->open_cap, sought->open_count + 1))
        return -ENOMEM;
    sought->open[sought->open_count++] = call;
    return 0;
}

/* What is recorded of a call is known where it ends, or its first step: there its begin fires, too. */
static int end_call(struct krait_search *search, struct call_event event, const struct krait_call_step *step)
{
    struct krait_sought *sought = &search->sought[event.rule];
    if (!sought->open_count)
        return 0;
    const struct krait_sought_call call = sought->open[--sought->open_count];
    const struct krait_sought_key *key = krait_search_arguments_of(
        sought, search->trace->tracks[event.track].thread, step ? step->begin_ns : call.begin_ns, event.t_ns);
    struct call_event begin = event;
    event.arguments = begin.arguments = key ? sought->texts.data + key->text : "";
    begin.t_ns = call.begin_ns;
    begin.task = call.task;
    begin.returns = false;
    int rc = call.is_begin ? fire(search, &begin) : 0;
    return rc || !event.returns ? rc : fire(search, &event);
}

/* A coroutine's or generator's call begins once and ends once; what was live before, or is cut off, has no such event. */
static int take_op(struct krait_search *search, uint32_t rule, uint32_t track,
                   const struct krait_call_batch *calls, uint32_t op, const struct krait_call_step *step)
{
    uint8_t kind = calls->kind[op];
    bool is_begin = kind == KRAIT_OP_CALL, is_end = krait_op_is_end(kind);
    struct call_event event = { .t_ns = calls->t_ns[op],
                                .rule = rule,
                                .track = track,
                                .func = calls->func[op],
                                .returns = kind == KRAIT_OP_RETURN || kind == KRAIT_OP_UNWIND,
                                .arguments = "" };
    bool has_arguments = search->sought[rule].labels.len;
    if (is_begin || event.returns || has_arguments)
        event.task = task_of(search, track, calls, op, step);
    if (!has_arguments)
        return is_begin || event.returns ? fire(search, &event) : 0;
    return is_end ? end_call(search, event, step)
                  : open_call(&search->sought[rule], (struct krait_sought_call){ .begin_ns = event.t_ns,
                                                                                 .is_begin = is_begin,
                                                                                 .task = event.task });
}

static bool is_meant(const struct krait_sought *sought, uint32_t func)
{
    return (sought->edges[0] && sought->edges[0][func]) || (sought->edges[1] && sought->edges[1][func]);
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
        rc = is_meant(sought, calls->func[i])
                 ? take_op(search, rule, track, calls, i, steps ? &steps[i] : NULL)
                 : 0;
    return rc;
}
