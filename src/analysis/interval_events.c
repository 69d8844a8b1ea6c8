/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rules an event is for, and what it is to each: a start or a stop, a state, a value or its label.
 */
#include "analysis/interval_search.h"
#include "base/array.h"
#include "trace/fields.h"

#include <math.h>
#include <string.h>

/* The lane of an event of a stream: what is known about its thread, else the whole trace. */
static uint32_t stream_lane(struct krait_search *search, const struct krait_track *track)
{
    KRAIT_AUTO_BUF lane = { 0 };
    const char *fields = search->said.fields;
    struct krait_fields all = { fields, fields + strlen(fields) }, at = all;
    struct krait_field field;
    search->is_mixed = true;
    if (search->said.is_kernels && search->said.tid >= 0) {
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
static int find_key(struct krait_search *search, const struct krait_trigger *trigger,
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
static int find_place(struct krait_search *search, const struct krait_trigger *trigger,
                      struct krait_edge *edge)
{
    const struct krait_track *track = edge->track == KRAIT_NO_ID ? NULL : &search->trace->tracks[edge->track];
    edge->key = KRAIT_NO_ID;
    if (search->sought[edge->rule].is_keyed) {
        search->is_mixed = true;
        int rc = find_key(search, trigger, &trigger->key, krait_trigger_key_group(trigger), &edge->key);
        return rc ? rc : edge->key == KRAIT_NO_ID ? -ENOENT : 0;
    }
    edge->lane = track && track->thread != KRAIT_NO_ID ? KRAIT_LANE_THREADS | track->thread
                                                       : stream_lane(search, track);
    return edge->lane == KRAIT_NO_ID ? -ENOMEM : 0;
}

/* The same of a state, whose name is then the key; what is a key otherwise has a lane of its own. */
static int find_state(struct krait_search *search, const struct krait_trigger *trigger,
                      struct krait_edge *edge)
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
static int add_edge(struct krait_search *search, const struct krait_trigger *trigger, struct krait_edge edge)
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

static double value_of(struct krait_search *search, const struct krait_trigger *trigger)
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
static int label_place(struct krait_search *search, const struct krait_trigger *trigger,
                       struct krait_edge *edge, uint64_t *place)
{
    int rc = find_place(search, trigger, edge);
    uint32_t of = search->sought[edge->rule].is_keyed ? edge->key : edge->lane;
    *place = (uint64_t)edge->rule << 32 | of;
    return rc;
}

/* An event that names the next value. */
static int keep_label(struct krait_search *search, const struct krait_trigger *trigger,
                      struct krait_edge edge)
{
    uint64_t place;
    uint32_t label;
    int rc = label_place(search, trigger, &edge, &place);
    rc = rc ? rc : find_key(search, trigger, &trigger->by, 0, &label);
    rc = rc ? rc : krait_map_put(&search->labels, place, label);
    return rc == -ENOENT ? 0 : rc;
}

/* The label that is kept for a value, which takes it; KRAIT_NO_ID: none. */
static int take_label(struct krait_search *search, const struct krait_trigger *trigger,
                      struct krait_edge edge, uint32_t *label)
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
static int add_sample(struct krait_search *search, const struct krait_trigger *trigger,
                      struct krait_edge edge)
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

/* The stop first: where both fire, the event ends one and begins the next. Inline: hot path. */
static inline __attribute__((always_inline)) int
add_pair(struct krait_search *search, const struct krait_trigger *const fired[2], struct krait_edge *edge)
{
    int rc = 0;
    edge->is_both = fired[0] && fired[1];
    for (int stops = 1; stops >= 0 && !rc; stops--) {
        edge->stops = stops;
        rc = fired[stops] ? add_edge(search, fired[stops], *edge) : 0;
    }
    return rc;
}

int krait_search_pair(struct krait_search *search, const struct krait_trigger *const fired[2],
                      struct krait_edge edge)
{
    return add_pair(search, fired, &edge);
}

static int take_pair(struct krait_search *search, const struct krait_interval_rule *rule,
                     struct krait_edge edge)
{
    const struct krait_trigger *fired[2] = { NULL, NULL };
    for (uint32_t i = 0; i < rule->trigger_count; i++) {
        const struct krait_trigger *trigger = &rule->triggers[i];
        bool stops = trigger->role == KRAIT_TRIGGER_STOP;
        if (!fired[stops] && krait_trigger_fires(trigger, &search->said))
            fired[stops] = trigger;
    }
    return add_pair(search, fired, &edge);
}

static int take_others(struct krait_search *search, const struct krait_interval_rule *rule,
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

int krait_search_event(struct krait_search *search, uint32_t track, uint64_t t_ns)
{
    int rc = 0;
    search->said.message = NULL;
    search->said.t_ns = t_ns;
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
