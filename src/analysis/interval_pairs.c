/* SPDX-License-Identifier: Apache-2.0
 *
 * Which stop ends which start.
 */
#include "analysis/intervals_inside.h"
#include "base/array.h"

/* The starts of a rule, lane and key that have no stop yet, the oldest first. */
struct open {
    struct start {
        uint64_t t_ns;
        uint32_t track, row, key;
    } * starts;
    uint32_t first, end, cap;
    uint32_t key; /* of states: the state that it is in */
    uint32_t rule, lane;
};

struct pairs {
    struct krait_intervals *intervals;
    const struct krait_interval_options *options;
    struct krait_map *rows;
    struct krait_map *open_of;       /* by rule; index of a lane and key */
    struct krait_map *transition_of; /* by rule; index of two states */
    struct open *opens;
    uint32_t count, cap;
};

static void pairs_done(struct pairs *pairs)
{
    for (uint32_t i = 0; i < pairs->count; i++)
        free(pairs->opens[i].starts);
    for (uint32_t i = 0; i < pairs->options->rule_count; i++) {
        if (pairs->open_of)
            krait_map_done(&pairs->open_of[i]);
        if (pairs->transition_of)
            krait_map_done(&pairs->transition_of[i]);
    }
    free(pairs->opens);
    free(pairs->open_of);
    free(pairs->transition_of);
}

static bool is_of_states(const struct pairs *pairs, uint32_t rule)
{
    return pairs->options->rules[rule].kind == KRAIT_RULE_STATES;
}

static struct open *open_of(struct pairs *pairs, const struct krait_edge *edge)
{
    struct krait_map *map = &pairs->open_of[edge->rule];
    uint32_t key = is_of_states(pairs, edge->rule) ? KRAIT_NO_ID : edge->key;
    uint64_t place = (uint64_t)edge->lane << 32 | key, *known = krait_map_get(map, place);
    if (known)
        return &pairs->opens[*known];
    if (!KRAIT_GROW(pairs->opens, pairs->cap, pairs->count + 1) || krait_map_put(map, place, pairs->count))
        return NULL;
    pairs->opens[pairs->count] = (struct open){ .key = edge->key, .rule = edge->rule, .lane = edge->lane };
    return &pairs->opens[pairs->count++];
}

/* Starts that will have no stop. */
static void drop(struct pairs *pairs, struct open *open)
{
    for (uint32_t i = open->first; i < open->end; i++)
        pairs->intervals->rows[open->starts[i].row].no_stop++;
    open->first = open->end = 0;
}

/* The row that an edge belongs to: of its label, where the rule has such, else of its key. */
static int row_of(struct pairs *pairs, const struct krait_edge *edge, uint32_t *key, uint32_t *row)
{
    const struct krait_interval_rule *rule = &pairs->options->rules[edge->rule];
    bool has_labels = false;
    for (uint32_t i = 0; i < rule->trigger_count; i++)
        has_labels |= rule->triggers[i].by.count > 0;
    *key = has_labels && !is_of_states(pairs, edge->rule) ? edge->label : edge->key;
    return krait_intervals_row(pairs->intervals, pairs->rows, pairs->options, edge->rule, *key, row);
}

static int add_start(struct pairs *pairs, struct open *open, const struct krait_edge *edge)
{
    struct start start = { .t_ns = edge->t_ns, .track = edge->track };
    if (pairs->options->rules[edge->rule].pairing == KRAIT_PAIR_LATEST || open->first == open->end)
        drop(pairs, open);
    if (row_of(pairs, edge, &start.key, &start.row) || !KRAIT_GROW(open->starts, open->cap, open->end + 1))
        return -ENOMEM;
    pairs->intervals->rows[start.row].starts++;
    open->starts[open->end++] = start;
    return 0;
}

static int add_orphan(struct pairs *pairs, const struct krait_edge *edge)
{
    uint32_t key, row;
    if (row_of(pairs, edge, &key, &row))
        return -ENOMEM;
    pairs->intervals->rows[row].stops++;
    pairs->intervals->rows[row].no_start += !edge->is_both; /* of a row of ticks, the first ends nothing */
    return 0;
}

static int add_stop(struct pairs *pairs, struct open *open, const struct krait_edge *edge)
{
    if (open->first == open->end)
        return add_orphan(pairs, edge);
    const struct start *start = pairs->options->rules[edge->rule].pairing == KRAIT_PAIR_ORDER
                                    ? &open->starts[open->first++]
                                    : &open->starts[--open->end];
    pairs->intervals->rows[start->row].stops++;
    return krait_intervals_add(pairs->intervals, (struct krait_interval){ .begin_ns = start->t_ns,
                                                                          .end_ns = edge->t_ns,
                                                                          .row = start->row,
                                                                          .key = start->key,
                                                                          .begin_track = start->track,
                                                                          .end_track = edge->track });
}

static int count_transition(struct pairs *pairs, uint32_t rule, uint32_t from, uint32_t to)
{
    struct krait_intervals *intervals = pairs->intervals;
    uint64_t place = (uint64_t)from << 32 | to, *known = krait_map_get(&pairs->transition_of[rule], place);
    if (known) {
        intervals->transitions[*known].count++;
        return 0;
    }
    if (!KRAIT_GROW(intervals->transitions, intervals->transition_cap, intervals->transition_count + 1) ||
        krait_map_put(&pairs->transition_of[rule], place, intervals->transition_count))
        return -ENOMEM;
    intervals->transitions[intervals->transition_count++] = (struct krait_transition){ rule, from, to, 1 };
    return 0;
}

/* The state that it is in is another one since it began. */
static int update_state(struct pairs *pairs, struct open *open, const struct krait_edge *edge)
{
    struct start *start = &open->starts[open->first];
    pairs->intervals->rows[start->row].starts--;
    open->key = edge->key;
    if (row_of(pairs, edge, &start->key, &start->row))
        return -ENOMEM;
    pairs->intervals->rows[start->row].starts++;
    return 0;
}

/* For lanes: the state that it is in, up to here. */
static int add_stay(struct pairs *pairs, const struct open *open, uint64_t end_ns)
{
    struct krait_intervals *intervals = pairs->intervals;
    if (!pairs->options->wants_stays || open->first == open->end)
        return 0;
    if (!KRAIT_GROW(intervals->stays, intervals->stay_cap, intervals->stay_count + 1))
        return -ENOMEM;
    intervals->stays[intervals->stay_count++] =
        (struct krait_stay){ open->starts[open->first].t_ns, end_ns, open->rule, open->key, open->lane };
    return 0;
}

/* The state before ends. */
static int add_state(struct pairs *pairs, struct open *open, const struct krait_edge *edge)
{
    bool is_first = open->first == open->end;
    if (edge->updates && !is_first && edge->key != KRAIT_NO_ID)
        return update_state(pairs, open, edge);
    int rc =
        is_first || edge->key == KRAIT_NO_ID ? 0 : count_transition(pairs, edge->rule, open->key, edge->key);
    rc = rc ? rc : add_stay(pairs, open, edge->t_ns);
    rc = rc || is_first ? rc : add_stop(pairs, open, edge);
    open->key = edge->key;
    if (edge->key == KRAIT_NO_ID) /* in none from then on */
        return rc;
    return rc ? rc : add_start(pairs, open, edge);
}

static int pair_one(struct pairs *pairs, struct open *open, const struct krait_edge *edge)
{
    if (is_of_states(pairs, edge->rule))
        return add_state(pairs, open, edge);
    return edge->stops ? add_stop(pairs, open, edge) : add_start(pairs, open, edge);
}

static int pair_all(struct pairs *pairs, const struct krait_edge *edges, size_t count)
{
    int rc = 0;
    for (size_t i = 0; i < count && !rc; i++) {
        struct open *open = open_of(pairs, &edges[i]);
        rc = open ? 0 : -ENOMEM;
        rc = rc ? rc : pair_one(pairs, open, &edges[i]);
    }
    return rc;
}

int krait_intervals_pair(struct krait_intervals *intervals, struct krait_map *rows,
                         const struct krait_interval_options *options, const struct krait_edge *edges,
                         size_t count)
{
    KRAIT_CLEANUP(pairs_done)
    struct pairs pairs = { .intervals = intervals,
                           .options = options,
                           .rows = rows,
                           .open_of = calloc((size_t)options->rule_count + 1, sizeof(*pairs.open_of)),
                           .transition_of =
                               calloc((size_t)options->rule_count + 1, sizeof(*pairs.transition_of)) };
    int rc = pairs.open_of && pairs.transition_of ? pair_all(&pairs, edges, count) : -ENOMEM;
    for (uint32_t i = 0; i < pairs.count && !rc; i++) {
        rc = is_of_states(&pairs, pairs.opens[i].rule) ? add_stay(&pairs, &pairs.opens[i], UINT64_MAX) : 0;
        drop(&pairs, &pairs.opens[i]);
    }
    return rc;
}
