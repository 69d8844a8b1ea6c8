/* SPDX-License-Identifier: Apache-2.0
 *
 * Where intervals begin and end: messages that match, and calls.
 */
#include "analysis/intervals.h"

#include "analysis/intervals_inside.h"
#include "base/array.h"
#include "base/pipe.h"
#include "base/runs.h"
#include "trace/fields.h"

#include <math.h>
#include <string.h>

/* A rule as it is looked for. */
struct sought {
    uint32_t start_group,
        stop_group;      /* that are the key; 0: it is a field. Of a rule of one pattern: start_group */
    uint32_t what_group; /* a state's name, or a signal's number; 0: it is a field */
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
    bool is_mixed;              /* a lane may have edges of more than one track */
    struct krait_strtab lanes;  /* of streams */
    struct krait_buf text, own; /* of a message; of a field */
    struct krait_pipe *pipe;    /* to the thread that searches messages; NULL: this one does */
};

enum { PASSED = 1024 }; /* messages at once, from one thread to the other */

enum { OF_THREADS = 1u << 31 }; /* lanes that are threads; the others are ids in `lanes` */

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
    krait_strtab_done(&search->lanes);
    krait_buf_done(&search->text);
    krait_buf_done(&search->own);
}

/* -- messages -- */

/* The lane of an event of a stream: what its fields say about its thread, else the whole trace. */
static uint32_t stream_lane(struct search *search, const struct krait_track *track, const char *fields)
{
    KRAIT_AUTO_BUF lane = { 0 };
    struct krait_fields all = { fields, fields + strlen(fields) }, at = all;
    struct krait_field field;
    search->is_mixed = true;
    krait_buf_fmt(&lane, "%s %u", track->host, track->pid);
    if (krait_fields_find(&at, "vpid pid", &field))
        krait_buf_fmt(&lane, " %.*s", (int)field.value_len, field.value);
    at = all;
    if (krait_fields_find(&at, "vtid tid thread pthread_id", &field))
        krait_buf_fmt(&lane, " / %.*s", (int)field.value_len, field.value);
    return lane.failed ? KRAIT_NO_ID : krait_strtab_add(&search->lanes, lane.data, lane.len);
}

/* A part of the message that was just matched: a group, or, without one, a field. NULL: it has none. `text` may hold
 * it. */
static const char *find_part(const struct krait_regex *regex, uint32_t group, const char *field,
                             const char *fields, struct krait_buf *text, size_t *n)
{
    if (group)
        return krait_regex_part(regex, group, n);
    if (!krait_fields_get((struct krait_fields){ fields, fields + strlen(fields) }, field, text))
        return NULL;
    *n = text->len;
    return text->data ? text->data : "";
}

/* The key of the message that was just matched; KRAIT_NO_ID: it has none. */
static int find_key(struct search *search, const struct krait_regex *regex, uint32_t group, const char *field,
                    const char *fields, uint32_t *key)
{
    KRAIT_AUTO_BUF text = { 0 };
    size_t n = 0;
    const char *part = find_part(regex, group, field, fields, &text, &n);
    *key = part ? krait_strtab_add(&search->intervals->keys, part, n) : KRAIT_NO_ID;
    return part && *key == KRAIT_NO_ID ? -ENOMEM : 0;
}

/* What belongs together: a key anywhere, or a thread. Returns 0, -ENOMEM, or -ENOENT: there is no key. */
static int find_place(struct search *search, const struct sought *sought, struct krait_edge *edge,
                      const char *fields)
{
    const struct krait_interval_rule *rule = &search->options->rules[edge->rule];
    const struct krait_track *track = &search->trace->tracks[edge->track];
    edge->key = KRAIT_NO_ID;
    if (sought->is_keyed) {
        search->is_mixed = true;
        int rc =
            find_key(search,
                     rule->state   ? rule->state
                     : edge->stops ? rule->stop
                                   : rule->start,
                     edge->stops ? sought->stop_group : sought->start_group, rule->key, fields, &edge->key);
        return rc ? rc : edge->key == KRAIT_NO_ID ? -ENOENT : 0;
    }
    edge->lane =
        track->thread != KRAIT_NO_ID ? OF_THREADS | track->thread : stream_lane(search, track, fields);
    return edge->lane == KRAIT_NO_ID ? -ENOMEM : 0;
}

/* The same of a state, whose name is then the key; what is a key otherwise has a lane of its own. */
static int find_state(struct search *search, const struct sought *sought, struct krait_edge *edge,
                      const char *fields)
{
    const struct krait_interval_rule *rule = &search->options->rules[edge->rule];
    int rc = find_place(search, sought, edge, fields);
    if (!rc && sought->is_keyed) {
        const char *key = search->intervals->keys.texts[edge->key];
        KRAIT_AUTO_BUF lane = { 0 };
        krait_buf_fmt(&lane, "key %s", key);
        edge->lane = lane.failed ? KRAIT_NO_ID : krait_strtab_add(&search->lanes, lane.data, lane.len);
        rc = edge->lane == KRAIT_NO_ID ? -ENOMEM : 0;
    }
    rc = rc ? rc : find_key(search, rule->state, sought->what_group, NULL, fields, &edge->key);
    return rc ? rc : edge->key == KRAIT_NO_ID ? -ENOENT : 0;
}

/* What an instant says. */
struct said {
    const char *message, *fields;
    size_t n; /* of message */
};

/* A message that a rule's start, stop or state matches. */
static int add_edge(struct search *search, struct krait_edge edge, const char *fields)
{
    uint32_t row;
    const struct sought *sought = &search->sought[edge.rule];
    int rc = search->options->rules[edge.rule].state ? find_state(search, sought, &edge, fields)
                                                     : find_place(search, sought, &edge, fields);
    if (rc == -ENOENT) {
        rc = krait_intervals_row(search->intervals, &search->rows, search->options, edge.rule, KRAIT_NO_ID,
                                 &row);
        if (!rc)
            search->intervals->rows[row].no_key++;
        return rc;
    }
    if (rc || !KRAIT_GROW(search->edges, search->edge_cap, search->edge_count + 1))
        return -ENOMEM;
    search->edges[search->edge_count++] = edge;
    return 0;
}

/* What an instant says: its message, or its name with its fields. */
static const char *message_of(struct search *search, const char *name, const char *fields, size_t *n)
{
    struct krait_fields at = { fields, fields + strlen(fields) };
    struct krait_field field;
    if (krait_fields_find(&at, "message msg text buf", &field) && field.value[0] == '"')
        return krait_field_text(&field, &search->own, n);
    krait_buf_clear(&search->text);
    krait_buf_fmt(&search->text, "%s%s%s", name, *fields ? " " : "", fields);
    *n = search->text.len;
    return search->text.data ? search->text.data : "";
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

/* A message that a rule's signal matches. */
static int add_sample(struct search *search, const struct krait_edge *edge, const char *fields)
{
    KRAIT_AUTO_BUF text = { 0 };
    const struct krait_interval_rule *rule = &search->options->rules[edge->rule];
    const struct sought *sought = &search->sought[edge->rule];
    struct krait_sample sample = { .t_ns = edge->t_ns, .track = edge->track, .key = KRAIT_NO_ID };
    size_t n = 0;
    int rc = !sought->is_keyed
                 ? 0
                 : find_key(search, rule->signal, sought->start_group, rule->key, fields, &sample.key);
    if (rc)
        return rc;
    const char *part = find_part(rule->signal, sought->what_group, rule->value, fields, &text, &n);
    sample.value = part ? number_of(part, n) : NAN;
    return krait_signals_add(search->intervals, &search->signals, search->options, edge->rule,
                             sought->is_keyed, sample);
}

static int take_pair(struct search *search, const struct krait_interval_rule *rule, struct krait_edge edge,
                     const struct said *said)
{
    int rc = 0;
    bool starts = krait_regex_find(rule->start, said->message, said->n);
    bool stops = krait_regex_find(rule->stop, said->message, said->n);
    edge.is_both = starts && stops;
    if ((edge.stops = stops))
        rc = add_edge(search, edge, said->fields);
    edge.stops = false;
    return starts && !rc ? add_edge(search, edge, said->fields) : rc;
}

static int take_message(struct search *search, uint32_t track, uint64_t t_ns, const char *name,
                        const char *fields)
{
    struct said said = { .fields = fields };
    int rc = 0;
    said.message = message_of(search, name, fields, &said.n);
    search->intervals->messages++;
    for (uint32_t i = 0; i < search->options->rule_count && !rc; i++) {
        const struct krait_interval_rule *rule = &search->options->rules[i];
        const struct krait_edge edge = { .t_ns = t_ns, .track = track, .rule = (uint16_t)i };
        if (rule->state && krait_regex_find(rule->state, said.message, said.n))
            rc = add_edge(search, edge, fields);
        else if (rule->signal && krait_regex_find(rule->signal, said.message, said.n))
            rc = add_sample(search, &edge, fields);
        else if (rule->start)
            rc = take_pair(search, rule, edge, &said);
    }
    return rc;
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

static int take_spans(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct search *search = ctx;
    struct krait_intervals *intervals = search->intervals;
    uint32_t index = (uint32_t)(track - search->trace->tracks);
    int rc = 0;
    for (uint32_t rule = 0; rule < search->options->rule_count; rule++) {
        const struct krait_match *span = search->options->rules[rule].span;
        for (uint32_t i = 0; span && i < batch->n && !rc; i++) {
            uint32_t row, key;
            if (!krait_match_text(span, krait_track_text(search->trace, batch->name[i])))
                continue;
            rc = span_key(search, search->options->rules[rule].key, batch->text ? batch->text[i] : "", &key);
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
    uint32_t row;
    if (options->by_key || options->rules[rule].state)
        return 0;
    return options->rules[rule].signal
               ? krait_signals_row(search->intervals, &search->signals, options, rule, KRAIT_NO_ID, &row)
               : krait_intervals_row(search->intervals, &search->rows, options, rule, KRAIT_NO_ID, &row);
}

uint32_t krait_interval_group(const struct krait_regex *regex, const char *usual, const char *key)
{
    uint32_t named = krait_regex_group(regex, usual);
    uint32_t first = krait_regex_group(regex, "1"), second = krait_regex_group(regex, "2");
    bool is_key = first && first == krait_regex_group(regex, key ? key : "key");
    return named ? named : is_key ? second : first;
}

static int begin_rule(struct search *search, uint32_t rule, struct krait_err *err)
{
    const struct krait_interval_rule *patterns = &search->options->rules[rule];
    struct sought *sought = &search->sought[rule];
    const char *key = patterns->key ? patterns->key : "key";
    if (begin_row(search, rule))
        return krait_err_set(err, -ENOMEM, "out of memory");
    if (patterns->start) {
        sought->start_group = krait_regex_group(patterns->start, key);
        sought->stop_group = krait_regex_group(patterns->stop, key);
        sought->is_keyed = patterns->key || (sought->start_group && sought->stop_group);
        return 0;
    }
    if (patterns->span)
        return 0;
    if (patterns->state || patterns->signal) {
        const struct krait_regex *regex = patterns->state ? patterns->state : patterns->signal;
        sought->what_group = patterns->value
                                 ? krait_regex_group(regex, patterns->value)
                                 : krait_interval_group(regex, patterns->state ? "state" : "value", key);
        sought->start_group = krait_regex_group(regex, key);
        sought->is_keyed = patterns->key || sought->start_group;
        return 0;
    }
    sought->calls = calloc((size_t)search->trace->func_count + 1, sizeof(*sought->calls));
    return sought->calls ? krait_match_mark(sought->calls, search->trace, patterns->call, err)
                         : krait_err_set(err, -ENOMEM, "out of memory");
}

static enum krait_track_kind kind_of(const struct krait_interval_rule *rule)
{
    return rule->call ? KRAIT_TRACK_CALLS : rule->span ? KRAIT_TRACK_SLICES : KRAIT_TRACK_INSTANTS;
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
        is_needed |= kind_of(&options->rules[i]) == kind;
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

static int by_time(const void *a, const void *b)
{
    const struct krait_edge *x = a, *y = b;
    return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

static int search_all(struct search *search, char *damage, size_t size)
{
    struct krait_intervals *intervals = search->intervals;
    int rc = walk_messages(search, damage, size);
    rc = rc ? rc : walk(search, KRAIT_TRACK_CALLS, take_calls, damage, size);
    rc = rc ? rc : walk(search, KRAIT_TRACK_SLICES, take_spans, damage, size);
    if (!rc && search->is_mixed)
        rc = krait_runs_sort(search->edges, search->edge_count, sizeof(*search->edges), by_time);
    rc = rc ? rc
            : krait_intervals_pair(intervals, &search->rows, search->options, search->edges,
                                   search->edge_count);
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
    for (uint32_t i = 0; i < options->rule_count && !rc; i++)
        rc = begin_rule(&search, i, err);
    if (rc)
        return rc;
    rc = search_all(&search, damage, size);
    for (uint32_t i = 0; i < options->rule_count; i++) {
        const struct krait_interval_rule *of = &options->rules[i];
        intervals->given_up += krait_regex_given_up(of->start) + krait_regex_given_up(of->stop) +
                               krait_regex_given_up(of->state) + krait_regex_given_up(of->signal);
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
    krait_strtab_done(&intervals->keys);
}
