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
        uint32_t track;
    } * starts;
    uint32_t first, end, cap;
    uint32_t row, key;
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

static struct open *open_of(struct pairs *pairs, const struct krait_edge *edge)
{
    struct krait_map *map = &pairs->open_of[edge->rule];
    uint32_t key = pairs->options->rules[edge->rule].state ? KRAIT_NO_ID : edge->key;
    uint64_t place = (uint64_t)edge->lane << 32 | key, *known = krait_map_get(map, place);
    uint32_t row;
    if (known)
        return &pairs->opens[*known];
    if (krait_intervals_row(pairs->intervals, pairs->rows, pairs->options, edge->rule, edge->key, &row) ||
        !KRAIT_GROW(pairs->opens, pairs->cap, pairs->count + 1) || krait_map_put(map, place, pairs->count))
        return NULL;
    pairs->opens[pairs->count] = (struct open){ .row = row, .key = edge->key };
    return &pairs->opens[pairs->count++];
}

static int add_start(struct pairs *pairs, struct open *open, const struct krait_edge *edge)
{
    struct krait_interval_row *row = &pairs->intervals->rows[open->row];
    row->starts++;
    if (pairs->options->rules[edge->rule].pairing == KRAIT_PAIR_LATEST || open->first == open->end) {
        row->no_stop += open->end - open->first;
        open->first = open->end = 0;
    }
    if (!KRAIT_GROW(open->starts, open->cap, open->end + 1))
        return -ENOMEM;
    open->starts[open->end++] = (struct start){ edge->t_ns, edge->track };
    return 0;
}

static int add_stop(struct pairs *pairs, struct open *open, const struct krait_edge *edge)
{
    struct krait_interval_row *row = &pairs->intervals->rows[open->row];
    row->stops++;
    if (open->first == open->end) {
        row->no_start += !edge->is_both; /* of a row of ticks, the first ends nothing */
        return 0;
    }
    const struct start *start = pairs->options->rules[edge->rule].pairing == KRAIT_PAIR_ORDER
                                    ? &open->starts[open->first++]
                                    : &open->starts[--open->end];
    return krait_intervals_add(pairs->intervals, (struct krait_interval){ .begin_ns = start->t_ns,
                                                                          .end_ns = edge->t_ns,
                                                                          .row = open->row,
                                                                          .key = open->key,
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

/* The state before ends. */
static int add_state(struct pairs *pairs, struct open *open, const struct krait_edge *edge)
{
    bool is_first = open->first == open->end;
    int rc = is_first ? 0 : count_transition(pairs, edge->rule, open->key, edge->key);
    struct krait_edge end = *edge;
    end.is_both = true; /* no state is before the first */
    rc = rc ? rc : add_stop(pairs, open, &end);
    pairs->intervals->rows[open->row].stops -= is_first;
    rc = rc ? rc
            : krait_intervals_row(pairs->intervals, pairs->rows, pairs->options, edge->rule, edge->key,
                                  &open->row);
    open->key = edge->key;
    return rc ? rc : add_start(pairs, open, edge);
}

static int pair_one(struct pairs *pairs, struct open *open, const struct krait_edge *edge)
{
    if (pairs->options->rules[edge->rule].state)
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
    for (uint32_t i = 0; i < pairs.count && !rc; i++)
        intervals->rows[pairs.opens[i].row].no_stop += pairs.opens[i].end - pairs.opens[i].first;
    return rc;
}
