/* SPDX-License-Identifier: Apache-2.0
 *
 * Where intervals begin and end: messages that match, and calls.
 */
#include "analysis/intervals.h"

#include "analysis/interval_search.h"
#include "analysis/rules.h"
#include "base/array.h"
#include "base/fmt.h"
#include "base/pipe.h"
#include "base/runs.h"
#include "trace/fields.h"
#include "trace/importer.h"

#include <string.h>

enum {
    PASSED = 1024,     /* messages at once, from one thread to the other */
    MOST_LOOKED = 1000 /* spans of a rule in which the field that may be meant is looked for */
};

static void search_done(struct krait_search *search)
{
    for (uint32_t i = 0; search->sought && i < search->options->rule_count; i++) {
        free(search->sought[i].calls);
        free(search->sought[i].edges[0]);
        free(search->sought[i].edges[1]);
        free(search->sought[i].open);
        krait_map_done(&search->sought[i].suspended);
        free(search->sought[i].keys);
        krait_strtab_done(&search->sought[i].fields);
        krait_strtab_done(&search->sought[i].labels);
        krait_buf_done(&search->sought[i].texts);
    }
    krait_coroutines_free(search->coroutines);
    free(search->steps);
    free(search->sought);
    free(search->edges);
    free(search->seen);
    krait_map_done(&search->rows);
    krait_map_done(&search->signals);
    krait_task_keys_done(&search->tasks);
    krait_map_done(&search->threads);
    krait_map_done(&search->labels);
    krait_buf_done(&search->said.text);
    krait_buf_done(&search->said.own);
}

/* -- messages -- */

static int take_message(struct krait_search *search, uint32_t track, uint64_t t_ns, const char *name,
                        const char *fields)
{
    search->intervals->messages++;
    krait_trigger_event_of(&search->said, search->trace, &search->trace->tracks[track], name, fields);
    return krait_search_event(search, track, t_ns);
}

/* Some thousand messages on their way: one thread reads, another searches. */
struct passed {
    uint32_t n, track;
    uint64_t t_ns[PASSED];
    const char *name[PASSED];
    size_t at[PASSED]; /* in texts */
    struct krait_buf texts;
};

static int search_passed(void *ctx, void *slot)
{
    const struct passed *passed = slot;
    int rc = 0;
    for (uint32_t i = 0; i < passed->n && !rc; i++)
        rc = take_message(ctx, passed->track, passed->t_ns[i], passed->name[i],
                          passed->texts.data + passed->at[i]);
    return rc;
}

static int pass_part(struct krait_search *search, const struct krait_track *track,
                     const struct krait_batch *batch, uint32_t from, uint32_t n)
{
    int rc;
    struct passed *passed = krait_pipe_slot(search->pipe, &rc);
    if (!passed)
        return rc;
    passed->n = n;
    passed->track = (uint32_t)(track - search->trace->tracks);
    krait_buf_clear(&passed->texts);
    for (uint32_t i = 0; i < n; i++) {
        const char *text = batch->text[from + i];
        passed->t_ns[i] = batch->t_ns[from + i];
        passed->name[i] = krait_track_text(search->trace, batch->name[from + i]);
        passed->at[i] = passed->texts.len;
        krait_buf_add(&passed->texts, text, strlen(text) + 1);
    }
    if (passed->texts.failed)
        return -ENOMEM;
    krait_pipe_push(search->pipe);
    return 0;
}

static int pass_messages(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    int rc = 0;
    for (uint32_t from = 0; from < batch->n && !rc; from += PASSED)
        rc = pass_part(ctx, track, batch, from, KRAIT_MIN(batch->n - from, (uint32_t)PASSED));
    return rc;
}

static void passed_done(void *slot)
{
    krait_buf_done(&((struct passed *)slot)->texts);
}

static int take_messages(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct krait_search *search = ctx;
    uint32_t index = (uint32_t)(track - search->trace->tracks);
    int rc = 0;
    for (uint32_t i = 0; i < batch->n && !rc; i++)
        rc = take_message(search, index, batch->t_ns[i], krait_track_text(search->trace, batch->name[i]),
                          batch->text[i]);
    return rc;
}

/* -- calls -- */

/* An end of a function's call or of its step, at an op of a batch. */
struct call_end {
    uint32_t rule, track, task; /* the task that is known to run it, or KRAIT_NO_ID */
    uint64_t t_ns, begin_ns;    /* the last: of the whole; 0: not known */
    bool is_first;              /* of a coroutine: its first step ends */
    bool goes_on;               /* ... and the call does not */
    bool was_live, is_cut, is_whole;
    bool was_left; /* krait_call_step: it is counted as one without a stop */
    bool is_inner; /* it is left out */
};

/* What is known of all calls may be their key: $thread, which those of a track have in common, or $task. Returns 0 or
 * -ENOMEM. */
static int find_call_key(struct krait_search *search, const struct call_end *end, uint64_t call_ns)
{
    const struct krait_interval_rule *of = &search->options->rules[end->rule];
    struct krait_sought *sought = &search->sought[end->rule];
    const struct krait_trigger_slice call = { .track = &search->trace->tracks[end->track],
                                              .name = of->name,
                                              .fields = "",
                                              .begin_ns = call_ns,
                                              .task = end->task };
    KRAIT_AUTO_BUF text = { 0 };
    if (sought->key_track == end->track + 1 && !sought->is_by_task)
        return 0;
    sought->key_track = end->track + 1;
    sought->key = KRAIT_NO_ID;
    if (!of->key || !krait_trigger_is_part(of->key))
        return 0;
    bool has_key = krait_trigger_get_slice(&search->tasks, &call, of->key, &text);
    sought->with_key += has_key;
    sought->without_key += !has_key;
    if (has_key)
        sought->key = krait_strtab_add(&search->intervals->keys, text.data ? text.data : "", text.len);
    return has_key && sought->key == KRAIT_NO_ID ? -ENOMEM : 0;
}

/* A call of a coroutine counts where it begins, and where it ends. Of one that has begun but not ended, its first step says so. */
static int count_whole(struct krait_search *search, const struct call_end *end, uint32_t row, uint32_t key)
{
    struct krait_interval_row *counts = &search->intervals->rows[row];
    bool has_ended = !end->goes_on && !end->is_cut, is_first = end->is_first && !end->was_left;
    counts->starts += is_first;
    counts->no_stop += is_first && !has_ended;
    counts->stops += has_ended;
    counts->no_start += has_ended && !end->begin_ns;
    search->sought[end->rule].unfollowed += has_ended && !end->begin_ns && !end->was_live;
    counts->no_stop -= counts->no_stop && has_ended && end->begin_ns && !is_first;
    return has_ended && end->begin_ns
               ? krait_intervals_add(
                     search->intervals,
                     (struct krait_interval){ end->begin_ns, end->t_ns, row, key, end->track, end->track })
               : 0;
}

/* Of a call whose begin or end was not recorded, only that it was there. One that a switch of greenlets suspends has no stop until
 * it ends. */
static int count_call(struct krait_search *search, const struct call_end *end, uint32_t row, uint32_t key)
{
    struct krait_interval_row *counts = &search->intervals->rows[row];
    counts->starts += !end->was_live && !end->was_left;
    counts->stops += !end->is_cut;
    counts->no_start += end->was_live && !end->was_left;
    counts->no_stop += end->is_cut && !end->was_live && !end->was_left;
    counts->no_stop -= counts->no_stop && !end->is_cut && !end->was_live && end->was_left;
    return end->was_live || end->is_cut
               ? 0
               : krait_intervals_add(
                     search->intervals,
                     (struct krait_interval){ end->begin_ns, end->t_ns, row, key, end->track, end->track });
}

/* `call_ns`: the begin of the whole call, by which its arguments are found. */
static int end_call(struct krait_search *search, const struct call_end *end, uint64_t call_ns)
{
    uint32_t thread = search->trace->tracks[end->track].thread, key = KRAIT_NO_ID, row;
    if (krait_search_has_arguments(search, end->rule)) {
        const struct krait_sought_key *known =
            krait_search_arguments_of(&search->sought[end->rule], thread, call_ns, end->t_ns);
        if (!known)
            return 0;
        key = known->key;
    } else if (find_call_key(search, end, call_ns)) {
        return -ENOMEM;
    } else {
        key = search->sought[end->rule].key;
    }
    if (end->is_inner)
        return 0;
    if (krait_intervals_row(search->intervals, &search->rows, search->options, end->rule, key, &row))
        return -ENOMEM;
    return end->is_whole ? count_whole(search, end, row, key) : count_call(search, end, row, key);
}

static int begin_call(struct krait_sought *sought, uint64_t t_ns, bool was_live)
{
    if (!KRAIT_GROW(sought->open, sought->open_cap, sought->open_count + 1))
        return -ENOMEM;
    sought->open[sought->open_count++] = (struct krait_sought_call){ .begin_ns = t_ns, .was_live = was_live };
    return 0;
}

/* Whether a call, of which an end was just taken off `open`, began in another one of the rule. One that a task awaits is asked
 * about at each step: it keeps the answer of the first, as an exception may be thrown into it without a step of its awaiter. */
static int find_inner(struct krait_sought *sought, uint32_t track, const struct krait_call_step *step,
                      uint8_t kind, bool *is_inner)
{
    enum { ENDED, OUTER, INNER };
    bool goes_on = step && (kind == KRAIT_OP_YIELD || step->is_left);
    *is_inner = sought->open_count;
    if (!step || !step->call)
        return 0;
    if (sought->of_track != track + 1) {
        krait_map_done(&sought->suspended);
        sought->suspended = (struct krait_map){ 0 };
        sought->of_track = track + 1;
    }
    uint64_t *known = krait_map_get(&sought->suspended, step->call);
    if (known && *known != ENDED)
        *is_inner = *known == INNER;
    if (known)
        *known = goes_on ? *known : ENDED;
    if (known || !goes_on)
        return 0;
    krait_map_trim(&sought->suspended, &sought->suspended_most);
    return krait_map_put(&sought->suspended, step->call, *is_inner ? INNER : OUTER);
}

/* `step` is NULL where no rule needs it. */
static int take_end(struct krait_search *search, uint32_t rule, uint32_t track,
                    const struct krait_call_batch *calls, uint32_t op, const struct krait_call_step *step)
{
    uint8_t kind = calls->kind[op];
    struct krait_sought *sought = &search->sought[rule];
    if (!sought->open_count)
        return 0;
    const struct krait_sought_call *call = &sought->open[--sought->open_count];
    struct call_end end = { .rule = rule,
                            .track = track,
                            .task = KRAIT_NO_ID,
                            .t_ns = calls->t_ns[op],
                            .begin_ns = call->begin_ns,
                            .was_live = call->was_live,
                            .is_cut = kind == KRAIT_OP_CUT };
    if (search->options->rules[rule].is_outermost && find_inner(sought, track, step, kind, &end.is_inner))
        return -ENOMEM;
    if (!step) {
        sought->unfollowed += !end.is_inner && end.is_cut && !end.was_live && calls->left && calls->left[op];
        return end_call(search, &end, call->begin_ns);
    }
    end.task = step->is_coroutine || step->is_left || step->was_left ? step->task : KRAIT_NO_ID;
    if (search->options->rules[rule].is_of_steps) {
        end.was_live = step->was_live && !step->was_left;
        end.is_cut &= !step->is_left;
        return end_call(search, &end, step->begin_ns);
    }
    end.begin_ns = step->begin_ns;
    end.was_live = step->was_live;
    end.was_left = step->was_left;
    end.is_whole = step->is_coroutine;
    if (end.is_whole) {
        end.is_first = step->is_first;
        end.goes_on = kind == KRAIT_OP_YIELD;
    }
    return end_call(search, &end, step->begin_ns);
}

/* Which calls of coroutines the steps of a batch belong to. */
static int follow_coroutines(struct krait_search *search, uint32_t track,
                             const struct krait_call_batch *calls)
{
    bool is_new = !search->coroutines || search->calls_track != track;
    int rc = 0;
    if (is_new) {
        krait_coroutines_free(search->coroutines);
        search->coroutines = NULL;
        search->calls_track = track;
        rc = krait_coroutines_new(&search->coroutines, search->trace, search->trace->tracks[track].thread,
                                  search->options->range);
    }
    if (!rc && !KRAIT_GROW(search->steps, search->step_cap, calls->n))
        rc = -ENOMEM;
    return rc ? rc : krait_coroutines_take(search->coroutines, calls, search->steps);
}

static bool needs_steps(const struct krait_search *search)
{
    bool any = search->has_switches;
    for (uint32_t i = 0; i < search->options->rule_count; i++)
        any |=
            search->options->rules[i].is_of_steps
                ? search->options->rules[i].key || !search->trace->task_count /* nobody tells of greenlets */
                : search->sought[i].has_coroutines;
    return any;
}

static int take_calls(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct krait_search *search = ctx;
    const struct krait_call_batch *calls = batch->calls;
    uint32_t index = (uint32_t)(track - search->trace->tracks);
    bool has_steps = needs_steps(search);
    int rc = has_steps ? follow_coroutines(search, index, calls) : 0;
    for (uint32_t rule = 0; rule < search->options->rule_count; rule++) {
        struct krait_sought *sought = &search->sought[rule];
        for (uint32_t i = 0; i < batch->n && sought->calls && !rc; i++) {
            if (!sought->calls[calls->func[i]])
                continue;
            rc = krait_op_is_end(calls->kind[i])
                     ? take_end(search, rule, index, calls, i, has_steps ? &search->steps[i] : NULL)
                     : begin_call(sought, batch->t_ns[i], calls->kind[i] == KRAIT_OP_LIVE);
        }
        rc = rc ? rc : krait_search_calls(search, rule, index, calls, has_steps ? search->steps : NULL);
    }
    return rc;
}

/* -- spans -- */

/* Keeps the names of spans, if a rule asks for spans: one may be meant. */
static int see_names(struct krait_search *search, const struct krait_batch *batch)
{
    for (uint32_t i = 0; search->asks_spans && i < batch->n; i++) {
        uint32_t name = batch->name[i];
        if (!KRAIT_GROW_FILLED(search->seen, search->seen_cap, name + 1, 0))
            return -ENOMEM;
        const char *text = search->seen[name] ? NULL : krait_track_text(search->trace, name);
        search->seen[name] = true;
        if (text && krait_strtab_add(&search->intervals->spans, text, strlen(text)) == KRAIT_NO_ID)
            return -ENOMEM;
    }
    return 0;
}

int krait_search_slice_key(struct krait_search *search, uint32_t rule,
                           const struct krait_trigger_slice *slice, uint32_t *key)
{
    const char *field = search->options->rules[rule].key;
    struct krait_sought *sought = &search->sought[rule];
    KRAIT_AUTO_BUF text = { 0 };
    *key = KRAIT_NO_ID;
    if (!field)
        return 0;
    if (!krait_trigger_get_slice(&search->tasks, slice, field, &text)) {
        bool is_looked_at = sought->without_key++ < MOST_LOOKED && !sought->with_key;
        return is_looked_at ? krait_fields_names_json(&sought->fields, slice->fields, strlen(slice->fields))
                            : 0;
    }
    sought->with_key++;
    *key = krait_strtab_add(&search->intervals->keys, text.data ? text.data : "", text.len);
    return *key == KRAIT_NO_ID ? -ENOMEM : 0;
}

static int take_spans(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct krait_search *search = ctx;
    struct krait_intervals *intervals = search->intervals;
    uint32_t index = (uint32_t)(track - search->trace->tracks);
    int rc = see_names(search, batch);
    for (uint32_t rule = 0; rule < search->options->rule_count; rule++) {
        const struct krait_interval_rule *of = &search->options->rules[rule];
        const struct krait_match *span = of->kind == KRAIT_RULE_SPANS ? of->match : NULL;
        for (uint32_t i = 0; span && i < batch->n && !rc; i++) {
            uint32_t row, key;
            const char *name = krait_track_text(search->trace, batch->name[i]);
            const struct krait_trigger_slice slice = { track, name, batch->text ? batch->text[i] : "",
                                                       batch->t_ns[i], KRAIT_NO_ID };
            if (!krait_match_text(span, name))
                continue;
            intervals->of_kernel |= track->importer == KRAIT_IMPORTER_kernel;
            rc = krait_search_slice_key(search, rule, &slice, &key);
            rc = rc ? rc : krait_intervals_row(intervals, &search->rows, search->options, rule, key, &row);
            rc =
                rc ? rc
                   : krait_intervals_add(intervals, (struct krait_interval){ batch->t_ns[i], batch->end_ns[i],
                                                                             row, key, index, index });
            if (rc)
                break;
            intervals->rows[row].starts++;
            intervals->rows[row].stops++;
        }
    }
    return rc;
}

static bool needs_arguments(const struct krait_search *search)
{
    bool any = false;
    for (uint32_t i = 0; i < search->options->rule_count; i++)
        any |= krait_search_has_arguments(search, i);
    return any;
}

/* -- rules -- */

/* Rows that are there without any interval. */
static int begin_row(struct krait_search *search, uint32_t rule)
{
    const struct krait_interval_options *options = search->options;
    const struct krait_interval_rule *of = &options->rules[rule];
    uint32_t row;
    if (of->by_key || of->kind == KRAIT_RULE_STATES)
        return 0;
    return of->kind == KRAIT_RULE_SIGNAL
               ? krait_signals_row(search->intervals, &search->signals, options, rule, KRAIT_NO_ID, &row)
               : krait_intervals_row(search->intervals, &search->rows, options, rule, KRAIT_NO_ID, &row);
}

bool krait_interval_rule_is_keyed(const struct krait_interval_rule *rule)
{
    bool all = rule->trigger_count;
    for (uint32_t i = 0; i < rule->trigger_count; i++)
        all &= krait_trigger_is_keyed(&rule->triggers[i]);
    return all;
}

static int mark_calls(struct krait_search *search, uint32_t rule, struct krait_err *err)
{
    struct krait_sought *sought = &search->sought[rule];
    sought->calls = calloc((size_t)search->trace->func_count + 1, sizeof(*sought->calls));
    return sought->calls
               ? krait_match_mark(sought->calls, search->trace, search->options->rules[rule].match, err)
               : krait_err_set(err, -ENOMEM, "out of memory");
}

static int begin_rule(struct krait_search *search, uint32_t rule, struct krait_err *err)
{
    const struct krait_interval_rule *of = &search->options->rules[rule];
    struct krait_sought *sought = &search->sought[rule];
    const char *at = of->declared_at;
    if (begin_row(search, rule))
        return krait_err_set(err, -ENOMEM, "out of memory");
    sought->is_keyed = krait_interval_rule_is_keyed(of);
    sought->is_by_task = of->key && strcmp(of->key, "$task") == 0;
    int rc = of->kind == KRAIT_RULE_CALLS ? mark_calls(search, rule, err)
                                          : krait_search_begin_calls(search, rule, &at, err);
    sought->is_left_out = rc == -ENOENT;
    for (uint32_t i = 0; sought->calls && i < search->trace->func_count; i++)
        sought->has_coroutines |=
            sought->calls[i] && search->trace->funcs[i].suspends == KRAIT_SUSPENDS_COROUTINE;
    if (!rc && krait_search_begin_arguments(search, rule))
        return krait_err_set(err, -ENOMEM, "out of memory");
    return rc == -ENOENT && at && search->options->notes
               ? krait_rules_leave_out(search->options->notes, of, at, err)
               : rc;
}

/* What fires the triggers of a rule: calls, messages, or both. */
static unsigned kinds_of_triggers(const struct krait_interval_rule *rule)
{
    unsigned kinds = rule->trigger_count ? 0 : 1u << KRAIT_TRACK_INSTANTS;
    for (uint32_t i = 0; i < rule->trigger_count; i++)
        kinds |= 1u << (rule->triggers[i].call ? KRAIT_TRACK_CALLS : KRAIT_TRACK_INSTANTS);
    return kinds;
}

static unsigned kinds_of(const struct krait_interval_rule *rule)
{
    unsigned arguments = krait_search_asks_arguments(rule) ? 1u << KRAIT_TRACK_SLICES : 0;
    return rule->kind == KRAIT_RULE_CALLS   ? 1u << KRAIT_TRACK_CALLS | arguments
           : rule->kind == KRAIT_RULE_SPANS ? 1u << KRAIT_TRACK_SLICES
                                            : kinds_of_triggers(rule) | arguments;
}

unsigned krait_intervals_kinds(const struct krait_interval_rule *rules, uint32_t count)
{
    unsigned kinds = 0;
    for (uint32_t i = 0; i < count; i++)
        kinds |= kinds_of(&rules[i]) | (krait_search_needs_kernel(&rules[i]) ? 1u << KRAIT_TRACK_STATES : 0);
    return kinds;
}

/* Walks the tracks of a kind that are chosen, if a rule needs them. */
static int walk(struct krait_search *search, enum krait_track_kind kind, krait_batch_fn *take, char *damage,
                size_t size)
{
    const struct krait_trace *trace = search->trace;
    const struct krait_interval_options *options = search->options;
    KRAIT_AUTO_FREE uint32_t *tracks = malloc(((size_t)trace->track_count + 1) * sizeof(*tracks));
    uint32_t count = 0;
    bool is_needed = false;
    if (!tracks)
        return -ENOMEM;
    for (uint32_t i = 0; i < options->rule_count; i++)
        is_needed |= kinds_of(&options->rules[i]) >> kind & 1;
    for (uint32_t i = 0; i < trace->track_count && is_needed; i++) {
        if (trace->tracks[i].kind != kind || !options->takes(options->ctx, trace, &trace->tracks[i]))
            continue;
        tracks[count++] = i;
        search->intervals->of_kernel |= trace->tracks[i].importer == KRAIT_IMPORTER_kernel_said;
    }
    return krait_tracks_walk(trace, tracks, count, options->range, take, search, damage, size);
}

/* By two threads where they can be had. */
static int walk_messages(struct krait_search *search, char *damage, size_t size)
{
    if (krait_pipe_open(&search->pipe, sizeof(struct passed), search_passed, search))
        return walk(search, KRAIT_TRACK_INSTANTS, take_messages, damage, size);
    int rc = walk(search, KRAIT_TRACK_INSTANTS, pass_messages, damage, size);
    int searched = krait_pipe_finish(search->pipe);
    krait_pipe_free(search->pipe, passed_done);
    return rc ? rc : searched;
}

/* -- all -- */

static int by_time(const void *a, const void *b)
{
    const struct krait_edge *x = a, *y = b;
    return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

static int search_calls(struct krait_search *search, char *damage, size_t size)
{
    int rc = needs_arguments(search)
                 ? walk(search, KRAIT_TRACK_SLICES, krait_search_take_arguments, damage, size)
                 : 0;
    rc = rc ? rc : krait_search_sort_arguments(search);
    return rc ? rc : walk(search, KRAIT_TRACK_CALLS, take_calls, damage, size);
}

static int search_all(struct krait_search *search, char *damage, size_t size)
{
    struct krait_intervals *intervals = search->intervals;
    int rc = walk_messages(search, damage, size);
    rc = rc ? rc : krait_search_kernel(search, damage, size);
    rc = rc ? rc : krait_search_tasks(search, damage, size);
    rc = rc ? rc : krait_search_providers(search, damage, size);
    rc = rc ? rc : search_calls(search, damage, size);
    rc = rc ? rc : walk(search, KRAIT_TRACK_SLICES, take_spans, damage, size);
    if (!rc && search->is_mixed)
        rc = krait_runs_sort(search->edges, search->edge_count, sizeof(*search->edges), by_time);
    rc = rc ? rc
            : krait_intervals_pair(intervals, &search->rows, search->options, search->edges,
                                   search->edge_count);
    rc = rc ? rc : krait_intervals_within(intervals, search->options);
    rc = rc ? rc : krait_intervals_hide(intervals, search->options);
    rc = rc ? rc : krait_intervals_sum(intervals);
    return rc ? rc : krait_signals_sum(intervals);
}

int krait_intervals_find(struct krait_intervals *intervals, const struct krait_trace *trace,
                         const struct krait_interval_options *options, char *damage, size_t size,
                         struct krait_err *err)
{
    KRAIT_CLEANUP(search_done)
    struct krait_search search = { .trace = trace,
                                   .options = options,
                                   .intervals = intervals,
                                   .tasks = { .trace = trace },
                                   .has_switches = krait_coroutines_may_switch(trace),
                                   .sought =
                                       calloc((size_t)options->rule_count + 1, sizeof(*search.sought)) };
    int rc = search.sought ? 0 : krait_err_set(err, -ENOMEM, "out of memory");
    search.said.tasks = &search.tasks;
    for (uint32_t i = 0; i < trace->track_count; i++)
        search.has_args |= trace->tracks[i].importer == KRAIT_IMPORTER_krait_args;
    for (uint32_t i = 0; i < options->rule_count && !rc; i++) {
        search.asks_spans |= options->rules[i].kind == KRAIT_RULE_SPANS;
        rc = begin_rule(&search, i, err);
    }
    if (rc)
        return rc;
    rc = search_all(&search, damage, size);
    rc = rc || !search.tasks.failed ? rc : -ENOMEM;
    krait_search_note(&search);
    for (uint32_t i = 0; i < options->rule_count; i++) {
        for (uint32_t t = 0; t < options->rules[i].trigger_count; t++)
            intervals->given_up += krait_regex_given_up(options->rules[i].triggers[t].message);
    }
    return rc == -ENOMEM ? krait_err_set(err, rc, "out of memory") : rc;
}

void krait_intervals_note_given_up(struct krait_buf *notes, const struct krait_intervals *intervals)
{
    char searches[KRAIT_FMT_SIZE];
    if (intervals->given_up)
        krait_buf_fmt(notes,
                      "%s given up: %s too many steps; a pattern without repeats inside repeats, such as "
                      "(a+)+, is faster\n",
                      krait_fmt_counted(searches, intervals->given_up, "search"),
                      intervals->given_up == 1 ? "it takes" : "they take");
}

void krait_intervals_done(struct krait_intervals *intervals)
{
    free(intervals->items);
    free(intervals->rows);
    free(intervals->transitions);
    free(intervals->samples);
    free(intervals->signals);
    free(intervals->stays);
    krait_strtab_done(&intervals->keys);
    krait_strtab_done(&intervals->places);
    krait_strtab_done(&intervals->spans);
}

uint32_t krait_stay_place(const struct krait_intervals *intervals, const struct krait_stay *stay,
                          const char **text)
{
    size_t lead = strlen(KRAIT_PLACE_KEY);
    if (stay->place & KRAIT_LANE_THREADS) {
        *text = NULL;
        return stay->place & ~KRAIT_LANE_THREADS;
    }
    *text = intervals->places.texts[stay->place];
    *text += strncmp(*text, KRAIT_PLACE_KEY, lead) == 0 ? lead : 0;
    return KRAIT_NO_ID;
}
