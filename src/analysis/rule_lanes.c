/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/rule_lanes.h"

#include "analysis/rules_unmet.h"
#include "base/fmt.h"
#include "base/runs.h"
#include "trace/kernel/kernel.h"
#include "trace/parts.h"
#include "trace/span_lanes.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

struct making {
    struct krait_lanes *lanes;
    const struct krait_trace *trace;
    struct krait_rules *rules;
    struct krait_intervals found;
    const struct krait_rule_lane *lane; /* that a file declares; NULL: each has one of its own */
    uint32_t number;                    /* of that lane */
    uint64_t end_ns;                    /* of what has no end */
};

static bool takes_key(const struct making *m, const char *key)
{
    uint32_t count = m->lane ? m->lane->key_count : 0;
    for (uint32_t i = 0; i < count; i++) {
        if (key && fnmatch(m->lane->keys[i], key, m->lane->are_paths ? FNM_PATHNAME : 0) == 0)
            return true;
    }
    return !count;
}

static const char *key_text(const struct making *m, uint32_t key)
{
    return key == KRAIT_NO_ID ? NULL : m->found.keys.texts[key];
}

static uint32_t name_of(struct making *m, const char *text)
{
    return krait_strtab_add(&m->lanes->names, text, strlen(text));
}

/* A track for a rule, or for one key of it, in the lane that is made, or in a new one. NULL when memory is out. */
static struct krait_lane_track *add_track(struct making *m, const struct krait_interval_rule *rule,
                                          const char *key, enum krait_track_kind kind)
{
    KRAIT_AUTO_BUF name = { 0 };
    krait_buf_fmt(&name, "%s%s%s", rule->name, key ? " " : "", key ? key : "");
    if (name.failed)
        return NULL;
    return krait_lanes_add(m->lanes, &(struct krait_lane_track){
                                         .kind = (uint8_t)kind,
                                         .lane = m->lane ? m->number : m->lanes->lanes,
                                         .title = m->lane ? m->lane->title : name.data,
                                         .name = name.data,
                                     });
}

static int out_of_room(const struct making *m, uint32_t rule, uint32_t count)
{
    if (count <= KRAIT_RULE_LANES_MOST)
        return 0;
    struct krait_buf *notes = &m->rules->notes;
    krait_buf_fmt(notes, "%u threads or keys of '", count - KRAIT_RULE_LANES_MOST);
    krait_fmt_safe(notes, m->rules->items[rule].name);
    krait_buf_fmt(notes, "' are not drawn: a lane has room for %d\n", KRAIT_RULE_LANES_MOST);
    return notes->failed ? -ENOMEM : 0;
}

/* -- intervals -- */

static int by_end(const void *a, const void *b)
{
    const struct krait_interval *x = a, *y = b;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    return (x->begin_ns < y->begin_ns) - (x->begin_ns > y->begin_ns); /* what lies inside comes first */
}

/* Those of a rule that the lane takes, in the order of their ends. */
static int choose(const struct making *m, uint32_t rule, struct krait_interval **out, size_t *count)
{
    struct krait_interval *own = malloc((m->found.count + 1) * sizeof(*own));
    if (!own)
        return -ENOMEM;
    *out = own;
    *count = 0;
    for (size_t i = 0; i < m->found.count; i++) {
        const struct krait_interval *item = &m->found.items[i];
        if (m->found.rows[item->row].rule == rule && takes_key(m, key_text(m, item->key)))
            own[(*count)++] = *item;
    }
    return krait_runs_sort(own, *count, sizeof(*own), by_end);
}

/* By item: the least begin of those from it on. */
static uint64_t *find_oldest(const struct krait_interval *items, size_t count)
{
    uint64_t *oldest = malloc((count + 1) * sizeof(*oldest)), least = UINT64_MAX;
    for (size_t i = count; oldest && i--;)
        oldest[i] = least = KRAIT_MIN(least, items[i].begin_ns);
    return oldest;
}

/* Where its rows stand among the tracks; KRAIT_NO_ID: not there yet. */
static struct krait_lane_track *row_of(struct making *m, const struct krait_interval_rule *rule,
                                       uint32_t *tracks, int row, bool *fresh)
{
    *fresh = tracks[row] == KRAIT_NO_ID;
    if (!*fresh)
        return &m->lanes->tracks[tracks[row]];
    tracks[row] = m->lanes->count;
    return add_track(m, rule, NULL, KRAIT_TRACK_SLICES);
}

static int put_interval(struct making *m, const struct krait_interval_rule *rule,
                        const struct krait_interval *item, uint32_t *tracks, int row)
{
    bool fresh;
    uint32_t lane = tracks[0] == KRAIT_NO_ID ? 0 : m->lanes->tracks[tracks[0]].lane;
    struct krait_lane_track *track = row_of(m, rule, tracks, row, &fresh);
    const char *key = key_text(m, item->key);
    struct krait_lane_entry entry = { item->begin_ns, item->end_ns, 0, name_of(m, key ? key : rule->name) };
    if (!track || entry.name == KRAIT_NO_ID)
        return -ENOMEM;
    if (fresh && row) { /* all rows of a rule are in one lane */
        track->lane = lane;
        m->lanes->lanes = m->lane ? m->lanes->lanes : lane + 1;
    }
    return krait_lane_track_add(track, &entry);
}

static int put_intervals(struct making *m, uint32_t rule, const struct krait_interval *items, size_t count)
{
    KRAIT_CLEANUP(krait_span_lanes_done) struct krait_span_lanes rows = { 0 };
    KRAIT_AUTO_FREE uint64_t *oldest = find_oldest(items, count);
    uint32_t tracks[KRAIT_SPAN_LANES];
    int rc = oldest ? 0 : -ENOMEM;
    for (int i = 0; i < KRAIT_SPAN_LANES; i++)
        tracks[i] = KRAIT_NO_ID;
    for (size_t i = 0; i < count && !rc; i++) {
        int row = krait_span_lanes_put(&rows, items[i].begin_ns, items[i].end_ns, oldest[i]);
        rc = row < 0 ? row : put_interval(m, &m->rules->items[rule], &items[i], tracks, row);
    }
    return rc;
}

static int add_intervals(struct making *m, uint32_t rule)
{
    KRAIT_AUTO_FREE struct krait_interval *items = NULL;
    size_t count;
    int rc = choose(m, rule, &items, &count);
    return rc ? rc : put_intervals(m, rule, items, count);
}

/* -- states -- */

static int by_place(const void *a, const void *b)
{
    const struct krait_stay *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* "MainThread", "cpu 1": whose states they are. */
static void place_name(const struct making *m, const struct krait_stay *stay, struct krait_buf *to)
{
    const char *text;
    uint32_t thread = krait_stay_place(&m->found, stay, &text);
    if (text)
        krait_buf_str(to, text);
    else if (*m->trace->threads[thread].name)
        krait_buf_str(to, m->trace->threads[thread].name);
    else
        krait_buf_fmt(to, "thread %u", m->trace->threads[thread].tid);
    krait_buf_char(to, '\0');
}

/* Of a state provider the text is "attribute = value". */
static const char *state_name(const struct making *m, const struct krait_stay *stay, const char *place)
{
    const char *text = m->found.keys.texts[stay->state];
    size_t lead = strlen(place);
    bool has_place = m->rules->items[stay->rule].provider && strncmp(text, place, lead) == 0 &&
                     strncmp(text + lead, " = ", 3) == 0;
    return has_place ? text + lead + 3 : text;
}

/* The name that the lane has for a state. */
static const char *label_of(const struct making *m, const char *state)
{
    for (uint32_t i = 0; m->lane && i < m->lane->label_count; i++) {
        if (strcmp(m->lane->labels[i].value, state) == 0)
            return m->lane->labels[i].name;
    }
    return state;
}

static int put_states(struct making *m, const struct krait_stay *stays, size_t count, const char *place,
                      bool is_only)
{
    struct krait_lane_track *track =
        add_track(m, &m->rules->items[stays->rule], is_only ? NULL : place, KRAIT_TRACK_STATES);
    int rc = track ? 0 : -ENOMEM;
    for (size_t i = 0; i < count && !rc; i++) {
        const struct krait_lane_entry entry = { stays[i].begin_ns, KRAIT_MIN(stays[i].end_ns, m->end_ns), 0,
                                                name_of(m, label_of(m, state_name(m, &stays[i], place))) };
        if (entry.name == KRAIT_NO_ID)
            return -ENOMEM;
        if (entry.end_ns > entry.begin_ns)
            rc = krait_lane_track_add(track, &entry);
    }
    return rc;
}

/* The rule's stays, those of a place one after the other. */
static size_t sort_stays(const struct making *m, uint32_t rule, struct krait_stay *own)
{
    size_t n = 0;
    for (size_t i = 0; i < m->found.stay_count; i++) {
        if (m->found.stays[i].rule == rule)
            own[n++] = m->found.stays[i];
    }
    return n;
}

static size_t end_of_place(const struct krait_stay *stays, size_t count, size_t i)
{
    size_t end = i;
    while (end < count && stays[end].place == stays[i].place)
        end++;
    return end;
}

/* One whose states these are. */
struct place {
    const struct krait_stay *stays;
    size_t count;
    const char *name; /* in the lanes' arena */
};

/* "cpu 2" before "cpu 10". */
static int by_name(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return strverscmp(x->name, y->name);
}

/* Those that the lane takes, by name. */
static int find_places(struct making *m, const struct krait_stay *stays, size_t count, struct place *places,
                       uint32_t *found)
{
    for (size_t i = 0, end; i < count; i = end) {
        KRAIT_AUTO_BUF name = { 0 };
        end = end_of_place(stays, count, i);
        place_name(m, &stays[i], &name);
        const char *own = name.failed ? NULL : krait_arena_strdup(&m->lanes->arena, name.data);
        if (!own)
            return -ENOMEM;
        if (takes_key(m, own))
            places[(*found)++] = (struct place){ stays + i, end - i, own };
    }
    if (*found)
        qsort(places, *found, sizeof(*places), by_name);
    return 0;
}

static int put_curve(struct making *m, const struct place *place);

static int add_states(struct making *m, uint32_t rule)
{
    KRAIT_AUTO_FREE struct krait_stay *stays = malloc((m->found.stay_count + 1) * sizeof(*stays));
    size_t count = stays ? sort_stays(m, rule, stays) : 0;
    KRAIT_AUTO_FREE struct place *places = malloc((count + 1) * sizeof(*places));
    uint32_t found = 0;
    int rc = stays && places ? krait_runs_sort(stays, count, sizeof(*stays), by_place) : -ENOMEM;
    rc = rc ? rc : find_places(m, stays, count, places, &found);
    for (uint32_t i = 0; i < KRAIT_MIN(found, (uint32_t)KRAIT_RULE_LANES_MOST) && !rc; i++)
        rc = m->lane && m->lane->is_curve
                 ? put_curve(m, &places[i])
                 : put_states(m, places[i].stays, places[i].count, places[i].name, places[i].count == count);
    return rc ? rc : out_of_room(m, rule, found);
}

/* -- signals -- */

/* A row's. */
struct values {
    uint32_t rule;
    const struct krait_sample *samples;
    size_t count;
};

static int put_values(struct making *m, const struct values *of, const char *key)
{
    struct krait_parts parts = { 0 };
    struct krait_lane_track *track = add_track(m, &m->rules->items[of->rule], key, KRAIT_TRACK_COUNTER);
    int rc = track ? 0 : -ENOMEM;
    for (size_t i = 0; i < of->count; i++)
        krait_parts_take(&parts, of->samples[i].value);
    if (track)
        track->parts = krait_parts_of(&parts, &track->unit);
    for (size_t i = 0; i < of->count && !rc; i++) {
        double value = KRAIT_MAX(KRAIT_MIN(of->samples[i].value, KRAIT_PARTS_MOST), -KRAIT_PARTS_MOST);
        const struct krait_lane_entry entry = { of->samples[i].t_ns, of->samples[i].t_ns,
                                                (int64_t)rint(value * track->parts), 0 };
        rc = krait_lane_track_add(track, &entry);
    }
    return rc;
}

/* The number that a state is; false: none. */
static bool is_number(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end > text && !*end && isfinite(*value);
}

/* States that are numbers. As in Trace Compass (DataDrivenXYDataProvider), the curve is 0 where the attribute has no value, or
 * one that is no number. */
static int put_curve(struct making *m, const struct place *place)
{
    KRAIT_AUTO_FREE struct krait_sample *samples = calloc(2 * place->count + 1, sizeof(*samples));
    size_t n = 0;
    bool has_number = false;
    for (size_t i = 0; samples && i < place->count; i++) {
        const struct krait_stay *stay = &place->stays[i];
        double value;
        bool is = is_number(state_name(m, stay, place->name), &value);
        has_number |= is;
        samples[n++] = (struct krait_sample){ .t_ns = stay->begin_ns, .value = is ? value : 0 };
        uint64_t next_ns = i + 1 < place->count ? stay[1].begin_ns : UINT64_MAX;
        if (stay->end_ns < next_ns)
            samples[n++] = (struct krait_sample){ .t_ns = stay->end_ns };
    }
    const struct values of = { place->stays->rule, samples, n };
    return !samples ? -ENOMEM : has_number ? put_values(m, &of, place->name) : 0;
}

/* Samples of a row stand one after the other. */
static int add_signal(struct making *m, uint32_t rule)
{
    const struct krait_sample *samples = m->found.samples;
    uint32_t places = 0;
    int rc = 0;
    for (size_t i = 0, end; i < m->found.sample_count && !rc; i = end) {
        const struct krait_signal_row *row = &m->found.signals[samples[i].row];
        const char *key = key_text(m, row->key);
        for (end = i; end < m->found.sample_count && samples[end].row == samples[i].row; end++)
            ;
        const struct values of = { rule, samples + i, end - i };
        if (row->rule == rule && takes_key(m, key) && places++ < KRAIT_RULE_LANES_MOST)
            rc = put_values(m, &of, key);
    }
    return rc ? rc : out_of_room(m, rule, places);
}

/* -- all -- */

static int add_rule(struct making *m, uint32_t rule)
{
    switch (m->rules->items[rule].kind) {
    case KRAIT_RULE_STATES:
        return add_states(m, rule);
    case KRAIT_RULE_SIGNAL:
        return add_signal(m, rule);
    default:
        return add_intervals(m, rule);
    }
}

/* Whether its file says which lanes there are. */
static bool has_lanes(const struct krait_rules *rules, uint32_t rule)
{
    for (uint32_t i = 0; i < rules->lane_count; i++) {
        if (rule >= rules->lanes[i].first && rule < rules->lanes[i].end)
            return true;
    }
    return rules->items[rule].is_undrawn;
}

/* Whether it has a lane: one of its own, or one that its file declares. */
static bool is_drawn(const void *making, uint32_t rule)
{
    const struct krait_rules *rules = ((const struct making *)making)->rules;
    for (uint32_t i = 0; i < rules->lane_count; i++) {
        for (uint32_t k = 0; k < rules->lanes[i].count; k++) {
            if (rules->lanes[i].rules[k] == rule)
                return true;
        }
    }
    return !rules->items[rule].is_hidden && !has_lanes(rules, rule);
}

static int add_all(struct making *m)
{
    int rc = 0;
    for (uint32_t i = 0; i < m->rules->lane_count && !rc; i++) {
        m->lane = &m->rules->lanes[i];
        m->number = m->lanes->lanes;
        for (uint32_t k = 0; k < m->lane->count && !rc; k++)
            rc = add_rule(m, m->lane->rules[k]);
    }
    m->lane = NULL;
    for (uint32_t i = 0; i < m->rules->count && !rc; i++)
        rc = m->rules->items[i].is_hidden || has_lanes(m->rules, i) ? 0 : add_rule(m, i);
    return rc;
}

/* What has a match was told with the name that it looks for. */
static void note_nothing(const struct making *m)
{
    struct krait_buf *notes = &m->rules->notes;
    for (uint32_t i = 0; i < m->rules->count; i++) {
        const struct krait_interval_rule *rule = &m->rules->items[i];
        if (rule->match || rule->is_hidden || rule->is_unmet || krait_intervals_has_found(&m->found, i))
            continue;
        krait_intervals_note_no_event(notes, rule, "");
        krait_buf_char(notes, '\n');
    }
}

uint64_t krait_stays_end(const struct krait_intervals *found, const struct krait_trace *trace)
{
    uint64_t end_ns = KRAIT_MAX(trace->end_ns, krait_kernel_last(trace));
    for (size_t i = 0; i < found->stay_count; i++)
        end_ns = KRAIT_MAX(end_ns, found->stays[i].begin_ns + 1);
    return end_ns;
}

static void making_done(struct making *m)
{
    krait_intervals_done(&m->found);
}

int krait_rule_lanes_make(struct krait_lanes *lanes, struct krait_trace *trace, struct krait_rules *rules,
                          const struct krait_rule_lanes_options *options, char *damage, size_t size,
                          struct krait_err *err)
{
    KRAIT_CLEANUP(making_done) struct making m = { .lanes = lanes, .trace = trace, .rules = rules };
    const struct krait_interval_options what = { .rules = rules->items,
                                                 .rule_count = rules->count,
                                                 .range = KRAIT_RANGE_ALL,
                                                 .takes = options->takes,
                                                 .ctx = options->ctx,
                                                 .wants_stays = true,
                                                 .notes = &rules->notes };
    int rc = krait_tracks_find_kinds(trace, krait_intervals_kinds(rules->items, rules->count), err);
    rc = rc ? rc : krait_rules_unmet(rules, trace, is_drawn, &m, &rules->notes, err);
    rc = rc ? rc : krait_intervals_find(&m.found, trace, &what, damage, size, err);
    if (rc)
        return rc;
    m.end_ns = krait_stays_end(&m.found, trace);
    note_nothing(&m);
    krait_intervals_note_given_up(&rules->notes, &m.found);
    rc = add_all(&m);
    return rc == -EFBIG ? krait_err_set(err, rc, "a lane would have more than 2^31 entries")
           : rc         ? krait_err_set(err, rc, "out of memory")
                        : 0;
}
