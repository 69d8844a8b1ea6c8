/* SPDX-License-Identifier: Apache-2.0
 *
 * Where intervals begin and end: messages that match, and calls.
 */
#include "analysis/intervals.h"

#include "analysis/intervals_inside.h"
#include "analysis/provider.h"
#include "analysis/rules.h"
#include "base/array.h"
#include "base/pipe.h"
#include "base/runs.h"
#include "trace/fields.h"
#include "trace/importer.h"
#include "trace/kernel/kernel.h"
#include "trace/kernel_raw.h"

#include <math.h>
#include <string.h>

/* A rule as it is looked for. */
struct sought {
    bool is_keyed;
    bool *calls; /* by function; NULL of a rule of messages */
    struct call {
        uint64_t begin_ns;
        bool was_live;
    } * open; /* calls of this thread */
    uint32_t open_count, open_cap;
};

struct search {
    const struct krait_trace *trace;
    const struct krait_interval_options *options;
    struct krait_intervals *intervals;
    struct sought *sought;    /* by rule */
    struct krait_map rows;    /* krait_intervals_row */
    struct krait_map signals; /* krait_signals_row */
    struct krait_edge *edges;
    size_t edge_count, edge_cap;
    bool has_args;            /* calls have arguments */
    bool is_mixed;            /* a lane may have edges of more than one track */
    struct krait_said said;   /* the event that is looked at */
    struct krait_map threads; /* by number: the track of what the kernel saw of it */
    struct krait_map labels;  /* by rule and key or lane: the label of the next value; KRAIT_NO_ID: none */
    struct krait_pipe *pipe;  /* to the thread that searches messages; NULL: this one does */
};

enum { PASSED = 1024 }; /* messages at once, from one thread to the other */

enum { OF_THREADS = 1u << 31 }; /* lanes that are threads; the others are ids in krait_intervals.places */

static void search_done(struct search *search)
{
    for (uint32_t i = 0; search->sought && i < search->options->rule_count; i++) {
        free(search->sought[i].calls);
        free(search->sought[i].open);
    }
    free(search->sought);
    free(search->edges);
    krait_map_done(&search->rows);
    krait_map_done(&search->signals);
    krait_map_done(&search->threads);
    krait_map_done(&search->labels);
    krait_buf_done(&search->said.text);
    krait_buf_done(&search->said.own);
}

/* -- events -- */

/* The lane of an event of a stream: what is known about its thread, else the whole trace. */
static uint32_t stream_lane(struct search *search, const struct krait_track *track)
{
    KRAIT_AUTO_BUF lane = { 0 };
    const char *fields = search->said.fields;
    struct krait_fields all = { fields, fields + strlen(fields) }, at = all;
    struct krait_field field;
    search->is_mixed = true;
    if (search->said.tid >= 0) {
        krait_buf_fmt(&lane, "thread %lld", (long long)search->said.tid);
    } else if (track) {
        krait_buf_fmt(&lane, "%s %u", track->host, track->pid);
        if (krait_fields_find(&at, "vpid pid", &field))
            krait_buf_fmt(&lane, " %.*s", (int)field.value_len, field.value);
        at = all;
        if (krait_fields_find(&at, "vtid tid thread pthread_id", &field))
            krait_buf_fmt(&lane, " / %.*s", (int)field.value_len, field.value);
    }
    return lane.failed ? KRAIT_NO_ID
                       : krait_strtab_add(&search->intervals->places, lane.data ? lane.data : "", lane.len);
}

/* Parts of the event that just fired a trigger as a key: what a template or else a group says; KRAIT_NO_ID: the event has
 * none. */
static int find_key(struct search *search, const struct krait_trigger *trigger,
                    const struct krait_template *template, uint32_t group, uint32_t *key)
{
    KRAIT_AUTO_BUF text = { 0 };
    size_t n = 0;
    const char *part = NULL;
    if (template->count) {
        if (krait_trigger_fill(trigger, template, &search->said, &text))
            part = text.data ? text.data : "";
        n = text.len;
    } else if (group) {
        part = krait_regex_part(trigger->message, group, &n);
    }
    *key = part ? krait_strtab_add(&search->intervals->keys, part, n) : KRAIT_NO_ID;
    return part && *key == KRAIT_NO_ID ? -ENOMEM : 0;
}

/* What belongs together: a key anywhere, or a thread. Returns 0, -ENOMEM, or -ENOENT: there is no key. */
static int find_place(struct search *search, const struct krait_trigger *trigger, struct krait_edge *edge)
{
    const struct krait_track *track = edge->track == KRAIT_NO_ID ? NULL : &search->trace->tracks[edge->track];
    edge->key = KRAIT_NO_ID;
    if (search->sought[edge->rule].is_keyed) {
        search->is_mixed = true;
        int rc = find_key(search, trigger, &trigger->key, krait_trigger_key_group(trigger), &edge->key);
        return rc ? rc : edge->key == KRAIT_NO_ID ? -ENOENT : 0;
    }
    edge->lane =
        track && track->thread != KRAIT_NO_ID ? OF_THREADS | track->thread : stream_lane(search, track);
    return edge->lane == KRAIT_NO_ID ? -ENOMEM : 0;
}

/* The same of a state, whose name is then the key; what is a key otherwise has a lane of its own. */
static int find_state(struct search *search, const struct krait_trigger *trigger, struct krait_edge *edge)
{
    int rc = find_place(search, trigger, edge);
    if (!rc && search->sought[edge->rule].is_keyed) {
        const char *key = search->intervals->keys.texts[edge->key];
        KRAIT_AUTO_BUF lane = { 0 };
        krait_buf_fmt(&lane, "%s%s", KRAIT_PLACE_KEY, key);
        edge->lane =
            lane.failed ? KRAIT_NO_ID : krait_strtab_add(&search->intervals->places, lane.data, lane.len);
        rc = edge->lane == KRAIT_NO_ID ? -ENOMEM : 0;
    }
    rc = rc ? rc : find_key(search, trigger, &trigger->what, krait_trigger_what_group(trigger), &edge->key);
    return rc ? rc : edge->key == KRAIT_NO_ID ? -ENOENT : 0;
}

/* An event that fired a start, a stop or a state. */
static int add_edge(struct search *search, const struct krait_trigger *trigger, struct krait_edge edge)
{
    uint32_t row;
    int rc = trigger->role == KRAIT_TRIGGER_STATE ? find_state(search, trigger, &edge)
                                                  : find_place(search, trigger, &edge);
    if (rc == -ENOENT) {
        rc = krait_intervals_row(search->intervals, &search->rows, search->options, edge.rule, KRAIT_NO_ID,
                                 &row);
        if (!rc)
            search->intervals->rows[row].no_key++;
        return rc;
    }
    rc = rc ? rc : find_key(search, trigger, &trigger->by, 0, &edge.label);
    if (rc || !KRAIT_GROW(search->edges, search->edge_cap, search->edge_count + 1))
        return -ENOMEM;
    search->edges[search->edge_count++] = edge;
    return 0;
}

/* Whether the values of a signal are named by an event before. */
static bool has_after(const struct krait_interval_rule *rule)
{
    bool any = false;
    for (uint32_t i = 0; i < rule->trigger_count; i++)
        any |= rule->triggers[i].role == KRAIT_TRIGGER_AFTER;
    return any;
}

/* A whole text as a number; NAN where it is none. */
static double number_of(const char *text, size_t n)
{
    enum { MOST = 64 };
    char own[MOST], *end;
    if (!n || n >= sizeof(own))
        return NAN;
    memcpy(own, text, n);
    own[n] = '\0';
    double number = strtod(own, &end);
    return end > own && !*end ? number : NAN;
}

static double value_of(struct search *search, const struct krait_trigger *trigger)
{
    KRAIT_AUTO_BUF text = { 0 };
    uint32_t group = krait_trigger_what_group(trigger);
    size_t n = 0;
    if (trigger->what.count)
        return krait_trigger_fill(trigger, &trigger->what, &search->said, &text)
                   ? number_of(text.data, text.len)
                   : NAN;
    const char *part = group ? krait_regex_part(trigger->message, group, &n) : NULL;
    return part ? number_of(part, n) : NAN;
}

/* Where the label of a rule's next value is kept. Returns as find_place does. */
static int label_place(struct search *search, const struct krait_trigger *trigger, struct krait_edge *edge,
                       uint64_t *place)
{
    int rc = find_place(search, trigger, edge);
    uint32_t of = search->sought[edge->rule].is_keyed ? edge->key : edge->lane;
    *place = (uint64_t)edge->rule << 32 | of;
    return rc;
}

/* An event that names the next value. */
static int keep_label(struct search *search, const struct krait_trigger *trigger, struct krait_edge edge)
{
    uint64_t place;
    uint32_t label;
    int rc = label_place(search, trigger, &edge, &place);
    rc = rc ? rc : find_key(search, trigger, &trigger->by, 0, &label);
    rc = rc ? rc : krait_map_put(&search->labels, place, label);
    return rc == -ENOENT ? 0 : rc;
}

/* The label that is kept for a value, which takes it; KRAIT_NO_ID: none. */
static int take_label(struct search *search, const struct krait_trigger *trigger, struct krait_edge edge,
                      uint32_t *label)
{
    uint64_t place;
    *label = KRAIT_NO_ID;
    int rc = label_place(search, trigger, &edge, &place);
    uint64_t *kept = rc ? NULL : krait_map_get(&search->labels, place);
    if (kept) {
        *label = (uint32_t)*kept;
        *kept = KRAIT_NO_ID;
    }
    return rc == -ENOENT ? 0 : rc;
}

/* An event that fired a value. */
static int add_sample(struct search *search, const struct krait_trigger *trigger, struct krait_edge edge)
{
    struct krait_sample sample = { .t_ns = edge.t_ns, .track = edge.track, .key = KRAIT_NO_ID };
    bool is_after = has_after(&search->options->rules[edge.rule]);
    bool is_keyed = search->sought[edge.rule].is_keyed || is_after;
    int rc = is_after ? take_label(search, trigger, edge, &sample.key)
             : is_keyed
                 ? find_key(search, trigger, &trigger->key, krait_trigger_key_group(trigger), &sample.key)
                 : 0;
    sample.value = value_of(search, trigger);
    return rc ? rc
              : krait_signals_add(search->intervals, &search->signals, search->options, edge.rule, is_keyed,
                                  sample);
}

/* Of a pair, the stop first: where both fire, the event ends one and begins the next. */
static int take_pair(struct search *search, const struct krait_interval_rule *rule, struct krait_edge edge)
{
    const struct krait_trigger *fired[2] = { NULL, NULL };
    int rc = 0;
    for (uint32_t i = 0; i < rule->trigger_count; i++) {
        const struct krait_trigger *trigger = &rule->triggers[i];
        bool stops = trigger->role == KRAIT_TRIGGER_STOP;
        if (!fired[stops] && krait_trigger_fires(trigger, &search->said))
            fired[stops] = trigger;
    }
    edge.is_both = fired[0] && fired[1];
    for (int stops = 1; stops >= 0 && !rc; stops--) {
        edge.stops = stops;
        rc = fired[stops] ? add_edge(search, fired[stops], edge) : 0;
    }
    return rc;
}

static int take_others(struct search *search, const struct krait_interval_rule *rule,
                       const struct krait_edge *edge)
{
    int rc = 0;
    for (uint32_t i = 0; i < rule->trigger_count && !rc; i++) {
        const struct krait_trigger *trigger = &rule->triggers[i];
        if (!krait_trigger_fires(trigger, &search->said))
            continue;
        rc = trigger->role == KRAIT_TRIGGER_VALUE   ? add_sample(search, trigger, *edge)
             : trigger->role == KRAIT_TRIGGER_AFTER ? keep_label(search, trigger, *edge)
                                                    : add_edge(search, trigger, *edge);
    }
    return rc;
}

/* The event in search->said. */
static int take_event(struct search *search, uint32_t track, uint64_t t_ns)
{
    int rc = 0;
    search->said.message = NULL;
    for (uint32_t i = 0; i < search->options->rule_count && !rc; i++) {
        const struct krait_interval_rule *rule = &search->options->rules[i];
        const struct krait_edge edge = {
            .t_ns = t_ns, .track = track, .rule = (uint16_t)i, .label = KRAIT_NO_ID
        };
        rc =
            rule->kind == KRAIT_RULE_PAIRS ? take_pair(search, rule, edge) : take_others(search, rule, &edge);
    }
    return rc;
}

static int take_message(struct search *search, uint32_t track, uint64_t t_ns, const char *name,
                        const char *fields)
{
    search->intervals->messages++;
    search->said.name = name;
    search->said.fields = fields;
    search->said.cpu = search->said.tid = -1;
    return take_event(search, track, t_ns);
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

static int pass_part(struct search *search, const struct krait_track *track, const struct krait_batch *batch,
                     uint32_t from, uint32_t n)
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
    struct search *search = ctx;
    uint32_t index = (uint32_t)(track - search->trace->tracks);
    int rc = 0;
    for (uint32_t i = 0; i < batch->n && !rc; i++)
        rc = take_message(search, index, batch->t_ns[i], krait_track_text(search->trace, batch->name[i]),
                          batch->text[i]);
    return rc;
}

/* -- calls -- */

/* Of a call whose begin or end was not recorded, only that it was there. */
static int end_call(struct search *search, uint32_t rule, uint32_t track, uint64_t t_ns, bool is_cut)
{
    struct sought *sought = &search->sought[rule];
    uint32_t row;
    if (!sought->open_count)
        return 0;
    const struct call *call = &sought->open[--sought->open_count];
    int rc = krait_intervals_row(search->intervals, &search->rows, search->options, rule, KRAIT_NO_ID, &row);
    if (rc)
        return rc;
    struct krait_interval_row *counts = &search->intervals->rows[row];
    counts->starts += !call->was_live;
    counts->stops += !is_cut;
    counts->no_start += call->was_live;
    counts->no_stop += is_cut && !call->was_live;
    return call->was_live || is_cut
               ? 0
               : krait_intervals_add(search->intervals, (struct krait_interval){ call->begin_ns, t_ns, row,
                                                                                 KRAIT_NO_ID, track, track });
}

static int begin_call(struct sought *sought, uint64_t t_ns, bool was_live)
{
    if (!KRAIT_GROW(sought->open, sought->open_cap, sought->open_count + 1))
        return -ENOMEM;
    sought->open[sought->open_count++] = (struct call){ t_ns, was_live };
    return 0;
}

static int take_calls(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct search *search = ctx;
    const struct krait_call_batch *calls = batch->calls;
    uint32_t index = (uint32_t)(track - search->trace->tracks);
    int rc = 0;
    for (uint32_t rule = 0; rule < search->options->rule_count; rule++) {
        struct sought *sought = &search->sought[rule];
        for (uint32_t i = 0; i < batch->n && sought->calls && !rc; i++) {
            if (!sought->calls[calls->func[i]])
                continue;
            rc = krait_op_is_end(calls->kind[i])
                     ? end_call(search, rule, index, batch->t_ns[i], calls->kind[i] == KRAIT_OP_CUT)
                     : begin_call(sought, batch->t_ns[i], calls->kind[i] == KRAIT_OP_LIVE);
        }
    }
    return rc;
}

/* -- spans -- */

/* A field of a span's, or of a slice's arguments, is its key. */
static int span_key(struct search *search, const char *field, const char *fields, uint32_t *key)
{
    KRAIT_AUTO_BUF text = { 0 };
    *key = KRAIT_NO_ID;
    if (!field || !krait_fields_get_json(fields, strlen(fields), field, &text))
        return 0;
    *key = krait_strtab_add(&search->intervals->keys, text.data ? text.data : "", text.len);
    return *key == KRAIT_NO_ID ? -ENOMEM : 0;
}

/* The calls of a function have a key where their arguments were recorded. */
static bool is_of_arguments(const struct search *search, const struct krait_interval_rule *rule)
{
    return rule->kind == KRAIT_RULE_CALLS && rule->key && search->has_args;
}

static int take_spans(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct search *search = ctx;
    struct krait_intervals *intervals = search->intervals;
    uint32_t index = (uint32_t)(track - search->trace->tracks);
    int rc = 0;
    for (uint32_t rule = 0; rule < search->options->rule_count; rule++) {
        const struct krait_interval_rule *of = &search->options->rules[rule];
        bool is_meant = track->importer == KRAIT_IMPORTER_krait_args && is_of_arguments(search, of);
        const struct krait_match *span = of->kind == KRAIT_RULE_SPANS || is_meant ? of->match : NULL;
        for (uint32_t i = 0; span && i < batch->n && !rc; i++) {
            uint32_t row, key;
            if (!krait_match_text(span, krait_track_text(search->trace, batch->name[i])))
                continue;
            rc = span_key(search, of->key, batch->text ? batch->text[i] : "", &key);
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

/* -- all -- */

/* Rows that are there without any interval. */
static int begin_row(struct search *search, uint32_t rule)
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

/* Whether each trigger has a key. */
static bool is_keyed(const struct krait_interval_rule *rule)
{
    bool all = rule->trigger_count;
    for (uint32_t i = 0; i < rule->trigger_count; i++)
        all &= rule->triggers[i].key.count || krait_trigger_key_group(&rule->triggers[i]);
    return all;
}

static int begin_rule(struct search *search, uint32_t rule, struct krait_err *err)
{
    const struct krait_interval_rule *of = &search->options->rules[rule];
    struct sought *sought = &search->sought[rule];
    if (begin_row(search, rule))
        return krait_err_set(err, -ENOMEM, "out of memory");
    sought->is_keyed = is_keyed(of);
    if (of->kind != KRAIT_RULE_CALLS || is_of_arguments(search, of))
        return 0;
    sought->calls = calloc((size_t)search->trace->func_count + 1, sizeof(*sought->calls));
    int rc = sought->calls ? krait_match_mark(sought->calls, search->trace, of->match, err)
                           : krait_err_set(err, -ENOMEM, "out of memory");
    return rc == -ENOENT && of->declared_at && search->options->notes
               ? krait_rules_leave_out(search->options->notes, of, err)
               : rc;
}

static unsigned kinds_of(const struct krait_interval_rule *rule)
{
    unsigned arguments = rule->key ? 1u << KRAIT_TRACK_SLICES : 0;
    return rule->kind == KRAIT_RULE_CALLS   ? 1u << KRAIT_TRACK_CALLS | arguments
           : rule->kind == KRAIT_RULE_SPANS ? 1u << KRAIT_TRACK_SLICES
                                            : 1u << KRAIT_TRACK_INSTANTS;
}

/* Whether it looks at the kernel's events. */
static bool needs_kernel(const struct krait_interval_rule *rule)
{
    bool any = false;
    for (uint32_t i = 0; i < rule->trigger_count; i++)
        any |= rule->triggers[i].event_count > 0;
    return any;
}

unsigned krait_intervals_kinds(const struct krait_interval_rule *rules, uint32_t count)
{
    unsigned kinds = 0;
    for (uint32_t i = 0; i < count; i++)
        kinds |= kinds_of(&rules[i]) | (needs_kernel(&rules[i]) ? 1u << KRAIT_TRACK_STATES : 0);
    return kinds;
}

/* Walks the tracks of a kind that are chosen, if a rule needs them. */
static int walk(struct search *search, enum krait_track_kind kind, krait_batch_fn *take, char *damage,
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
        if (trace->tracks[i].kind == kind && options->takes(options->ctx, trace, &trace->tracks[i]))
            tracks[count++] = i;
    }
    return krait_tracks_walk(trace, tracks, count, options->range, take, search, damage, size);
}

/* By two threads where they can be had. */
static int walk_messages(struct search *search, char *damage, size_t size)
{
    if (krait_pipe_open(&search->pipe, sizeof(struct passed), search_passed, search))
        return walk(search, KRAIT_TRACK_INSTANTS, take_messages, damage, size);
    int rc = walk(search, KRAIT_TRACK_INSTANTS, pass_messages, damage, size);
    int searched = krait_pipe_finish(search->pipe);
    krait_pipe_free(search->pipe, passed_done);
    return rc ? rc : searched;
}

/* -- the kernel's events -- */

/* Whether a trigger looks at them, and may fire by an event of this name. */
static bool wants_raw(void *ctx, const char *name)
{
    const struct krait_interval_options *options = ((const struct search *)ctx)->options;
    for (uint32_t i = 0; i < options->rule_count; i++) {
        for (uint32_t t = 0; t < options->rules[i].trigger_count; t++) {
            const struct krait_trigger *trigger = &options->rules[i].triggers[t];
            if (trigger->event_count && krait_trigger_may(trigger, name))
                return true;
        }
    }
    return false;
}

static int take_raw(void *ctx, const struct krait_raw_event *event)
{
    struct search *search = ctx;
    const struct krait_interval_options *options = search->options;
    const uint64_t *known = krait_map_get(&search->threads, (uint64_t)event->tid);
    uint32_t track = known ? (uint32_t)*known : KRAIT_NO_ID;
    if (known && !options->takes(options->ctx, search->trace, &search->trace->tracks[track]))
        return 0;
    search->intervals->messages++;
    search->said.name = event->name;
    search->said.fields = event->fields;
    search->said.cpu = event->cpu;
    search->said.tid = event->tid;
    search->said.is_kernels = true;
    search->is_mixed = true;
    int rc = take_event(search, track, event->t_ns);
    search->said.is_kernels = false;
    return rc;
}

static int walk_kernel(struct search *search, char *damage, size_t size)
{
    const struct krait_trace *trace = search->trace;
    const struct krait_raw_walk walk = {
        .ctx = search, .range = search->options->range, .wants = wants_raw, .take = take_raw
    };
    bool is_needed = false;
    for (uint32_t i = 0; i < search->options->rule_count; i++)
        is_needed |= needs_kernel(&search->options->rules[i]);
    for (uint32_t i = 0; i < trace->track_count && is_needed; i++) {
        const struct krait_track *track = &trace->tracks[i];
        if (krait_kernel_is_thread_states(track) && krait_map_put(&search->threads, track->number, i))
            return -ENOMEM;
    }
    return is_needed ? krait_kernel_raw_walk(trace, &walk, damage, size) : 0;
}

/* -- state providers -- */

static bool provider_wants(void *ctx, const char *name)
{
    const struct krait_interval_options *options = ((const struct search *)ctx)->options;
    for (uint32_t i = 0; i < options->rule_count; i++) {
        if (options->rules[i].provider && krait_provider_may(options->rules[i].provider, name))
            return true;
    }
    return false;
}

/* What a change of an attribute belongs to. */
struct changing {
    struct search *search;
    struct krait_edge edge;
};

/* The state's name has the attribute's in it: rows of several are told apart. */
static int add_change(void *ctx, const char *attribute, const char *value, bool updates)
{
    struct changing *changing = ctx;
    struct search *search = changing->search;
    struct krait_edge edge = changing->edge;
    KRAIT_AUTO_BUF state = { 0 };
    krait_buf_fmt(&state, "%s = %s", attribute, value ? value : "");
    edge.updates = updates;
    edge.lane = krait_strtab_add(&search->intervals->places, attribute, strlen(attribute));
    edge.key = value && !state.failed ? krait_strtab_add(&search->intervals->keys, state.data, state.len)
                                      : KRAIT_NO_ID;
    if (edge.lane == KRAIT_NO_ID || (value && edge.key == KRAIT_NO_ID) ||
        !KRAIT_GROW(search->edges, search->edge_cap, search->edge_count + 1))
        return -ENOMEM;
    search->edges[search->edge_count++] = edge;
    return 0;
}

/* A segment of a pattern: an interval, of the row of its name. */
static int add_segment(void *ctx, const char *name, uint64_t begin_ns, uint64_t end_ns)
{
    struct changing *changing = ctx;
    struct search *search = changing->search;
    const struct krait_range *range = &search->options->range;
    uint32_t rule = search->options->rules[changing->edge.rule].segments, row;
    uint32_t key = krait_strtab_add(&search->intervals->keys, name, strlen(name));
    if (!rule || begin_ns < range->from_ns || end_ns > range->to_ns)
        return 0;
    if (key == KRAIT_NO_ID ||
        krait_intervals_row(search->intervals, &search->rows, search->options, rule - 1, key, &row))
        return -ENOMEM;
    search->intervals->rows[row].starts++;
    search->intervals->rows[row].stops++;
    return krait_intervals_add(
        search->intervals, (struct krait_interval){ begin_ns, end_ns, row, key, KRAIT_NO_ID, KRAIT_NO_ID });
}

static int provide(void *ctx, const struct krait_raw_event *event)
{
    struct changing changing = { .search = ctx };
    struct search *search = ctx;
    const struct krait_interval_options *options = search->options;
    int rc = 0;
    search->intervals->messages++;
    search->is_mixed = true;
    search->said.name = event->name;
    search->said.fields = event->fields;
    search->said.cpu = event->cpu;
    search->said.tid = event->tid;
    for (uint32_t i = 0; i < options->rule_count && !rc; i++) {
        changing.edge = (struct krait_edge){
            .t_ns = event->t_ns, .track = KRAIT_NO_ID, .rule = (uint16_t)i, .label = KRAIT_NO_ID
        };
        if (options->rules[i].provider)
            rc = krait_provider_event(options->rules[i].provider, &search->said, event->t_ns, add_change,
                                      add_segment, &changing);
    }
    return rc;
}

/* From the beginning, whatever the range: states depend on what came before. */
static int walk_providers(struct search *search, char *damage, size_t size)
{
    const struct krait_raw_walk walk = {
        .ctx = search,
        .range = { 0, search->options->range.to_ns },
        .with_others = true,
        .wants = provider_wants,
        .take = provide,
    };
    bool is_needed = false;
    for (uint32_t i = 0; i < search->options->rule_count; i++) {
        if (!search->options->rules[i].provider)
            continue;
        is_needed = true;
        krait_provider_reset(search->options->rules[i].provider);
    }
    return is_needed ? krait_kernel_raw_walk(search->trace, &walk, damage, size) : 0;
}

static int by_time(const void *a, const void *b)
{
    const struct krait_edge *x = a, *y = b;
    return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

static int search_all(struct search *search, char *damage, size_t size)
{
    struct krait_intervals *intervals = search->intervals;
    int rc = walk_messages(search, damage, size);
    rc = rc ? rc : walk_kernel(search, damage, size);
    rc = rc ? rc : walk_providers(search, damage, size);
    rc = rc ? rc : walk(search, KRAIT_TRACK_CALLS, take_calls, damage, size);
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
    struct search search = { .trace = trace,
                             .options = options,
                             .intervals = intervals,
                             .sought = calloc((size_t)options->rule_count + 1, sizeof(*search.sought)) };
    int rc = search.sought ? 0 : krait_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < trace->track_count; i++)
        search.has_args |= trace->tracks[i].importer == KRAIT_IMPORTER_krait_args;
    for (uint32_t i = 0; i < options->rule_count && !rc; i++)
        rc = begin_rule(&search, i, err);
    if (rc)
        return rc;
    rc = search_all(&search, damage, size);
    for (uint32_t i = 0; i < options->rule_count; i++) {
        for (uint32_t t = 0; t < options->rules[i].trigger_count; t++)
            intervals->given_up += krait_regex_given_up(options->rules[i].triggers[t].message);
    }
    return rc == -ENOMEM ? krait_err_set(err, rc, "out of memory") : rc;
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
}

uint32_t krait_stay_place(const struct krait_intervals *intervals, const struct krait_stay *stay,
                          const char **text)
{
    size_t lead = strlen(KRAIT_PLACE_KEY);
    if (stay->place & OF_THREADS) {
        *text = NULL;
        return stay->place & ~OF_THREADS;
    }
    *text = intervals->places.texts[stay->place];
    *text += strncmp(*text, KRAIT_PLACE_KEY, lead) == 0 ? lead : 0;
    return KRAIT_NO_ID;
}
