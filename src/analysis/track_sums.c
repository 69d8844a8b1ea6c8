/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/track_sums.h"

#include "analysis/gil_states.h"
#include "base/array.h"
#include "trace/gil_holders.h"

#include <string.h>

/* ---- states and system calls ---- */

void krait_name_sums_done(struct krait_name_sums *sums)
{
    for (uint32_t i = 0; i < sums->count; i++)
        krait_hist_done(&sums->items[i].took);
    free(sums->items);
    krait_map_done(&sums->index);
}

/* As the kernel returns them: include/linux/err.h. */
bool krait_syscall_failed(int64_t returned)
{
    return returned < 0 && returned >= -4095;
}

static struct krait_name_sum *sum_of(struct krait_name_sums *s, uint32_t track, uint32_t name)
{
    uint64_t key = name | (s->by_track ? (uint64_t)track << 32 : 0);
    const uint64_t *known = krait_map_get(&s->index, key);
    if (known)
        return &s->items[*known];
    if (!KRAIT_GROW(s->items, s->cap, s->count + 1) || krait_map_put(&s->index, key, s->count))
        return NULL;
    s->items[s->count] = (struct krait_name_sum){ .track = track, .name = name, .shortest_ns = UINT64_MAX };
    return &s->items[s->count++];
}

int krait_name_sums_add(struct krait_name_sums *s, uint32_t track, const struct krait_entry *entry)
{
    if (entry->value == KRAIT_NOT_RETURNED)
        return 0;
    struct krait_name_sum *sum = sum_of(s, track, entry->name);
    if (!sum)
        return -ENOMEM;
    uint64_t begin = KRAIT_MAX(entry->begin_ns, s->range.from_ns),
             end = KRAIT_MIN(entry->end_ns, s->range.to_ns), took = entry->end_ns - entry->begin_ns;
    sum->count++;
    sum->ns += end - begin;
    sum->shortest_ns = KRAIT_MIN(sum->shortest_ns, took);
    sum->longest_ns = KRAIT_MAX(sum->longest_ns, took);
    sum->errors += krait_syscall_failed(entry->value);
    return s->by_track ? 0 : krait_hist_add(&sum->took, took);
}

uint64_t krait_name_sum_quantile(const struct krait_name_sum *sum, double q)
{
    return krait_hist_quantile_within(&sum->took, q, sum->shortest_ns, sum->longest_ns);
}

/* ---- counters ---- */

void krait_counter_add(struct krait_counter_sum *c, const struct krait_entry *entry)
{
    double value = (double)entry->value;
    uint64_t from = KRAIT_MAX(entry->begin_ns, c->range.from_ns),
             to = KRAIT_MIN(entry->end_ns, c->range.to_ns);
    if (!c->has)
        c->first = c->min = c->max = value;
    c->has = true;
    c->changes += entry->begin_ns >= c->range.from_ns;
    c->min = KRAIT_MIN(c->min, value);
    c->max = KRAIT_MAX(c->max, value);
    c->last = value;
    c->known_ns += to - from;
    c->sum += value * (double)(to - from);
}

double krait_counter_mean(const struct krait_counter_sum *sum)
{
    return sum->known_ns ? sum->sum / (double)sum->known_ns : sum->last;
}

/* ---- waits for the GIL ---- */

void krait_gil_pairs_done(struct krait_gil_pairs *pairs)
{
    free(pairs->items);
    krait_map_done(&pairs->index);
}

bool krait_gil_is_waits(const struct krait_track *track)
{
    return track->kind == KRAIT_TRACK_STATES && track->thread != KRAIT_NO_ID &&
           strcmp(track->name, "GIL") == 0;
}

/* The thread of a process that has a number and lives at a time. */
static uint32_t thread_of(const struct krait_trace *trace, uint32_t process, uint32_t tid, uint64_t t_ns)
{
    uint32_t found = KRAIT_NO_ID;
    for (uint32_t i = 0; i < trace->thread_count && tid; i++) {
        const struct krait_thread *thread = &trace->threads[i];
        if (thread->process != process || thread->tid != tid)
            continue;
        found = i;
        if (t_ns <= thread->end_ns)
            break;
    }
    return found;
}

static struct krait_gil_pair *pair_of(struct krait_gil_pairs *p, uint32_t waiter, uint32_t holder)
{
    uint64_t key = (uint64_t)waiter << 32 | holder;
    const uint64_t *known = krait_map_get(&p->index, key);
    if (known)
        return &p->items[*known];
    if (!KRAIT_GROW(p->items, p->cap, p->count + 1) || krait_map_put(&p->index, key, p->count))
        return NULL;
    p->items[p->count] = (struct krait_gil_pair){ .waiter = waiter, .holder = holder };
    return &p->items[p->count++];
}

static int add_part(struct krait_gil_pair *pair, uint64_t ns, const struct krait_entry *wait)
{
    uint64_t whole = wait->end_ns - wait->begin_ns;
    if (!pair)
        return -ENOMEM;
    pair->ns += ns;
    pair->count += !pair->count ||
                   pair->last_from_ns != wait->begin_ns; /* several parts of a wait may be of one holder */
    pair->last_from_ns = wait->begin_ns;
    if (whole >= pair->longest_ns) {
        pair->longest_ns = whole;
        pair->longest_from_ns = wait->begin_ns;
    }
    return 0;
}

/* Cuts it where another thread gets the GIL; each part is its holder's. */
int krait_gil_pairs_add(struct krait_gil_pairs *p, uint32_t waiter, const struct krait_entry *wait)
{
    const struct krait_thread *thread = &p->trace->threads[waiter];
    const struct krait_gil_wait cut = {
        .begin_ns = p->origin_ns + KRAIT_MAX(wait->begin_ns, p->range.from_ns),
        .end_ns = p->origin_ns + KRAIT_MIN(wait->end_ns, p->range.to_ns),
        .holder = (uint32_t)wait->value,
    };
    struct krait_gil_part part = { 0 };
    int rc = 0;
    while (!rc && krait_gil_part_next(p->holders, thread, &cut, &part)) {
        uint32_t holder = part.state == KRAIT_GIL_FREE
                              ? KRAIT_GIL_NOBODY
                              : thread_of(p->trace, thread->process, part.holder, part.begin_ns);
        rc = add_part(pair_of(p, waiter, holder), part.end_ns - part.begin_ns, wait);
    }
    return rc;
}

/* ---- of a trace without an index ---- */

struct walk {
    struct krait_track_sums *sums;
    struct krait_range range;
    const struct krait_gil_states *gil;
    struct krait_entry *values; /* by track: a counter's, until the next one ends it */
    bool *has_value;
};

static bool touches(const struct walk *walk, const struct krait_entry *entry)
{
    return entry->begin_ns < walk->range.to_ns &&
           (entry->end_ns > walk->range.from_ns || entry->begin_ns >= walk->range.from_ns);
}

static void end_value(struct walk *walk, uint32_t track, uint64_t end_ns)
{
    struct krait_entry *value = &walk->values[track];
    value->end_ns = end_ns;
    if (walk->has_value[track] && value->begin_ns < end_ns && touches(walk, value))
        krait_counter_add(&walk->sums->counters[track], value);
}

static int add_entry(struct walk *walk, uint32_t id, const struct krait_track *track,
                     const struct krait_entry *entry)
{
    if (track->kind == KRAIT_TRACK_COUNTER) {
        end_value(walk, id, entry->begin_ns);
        walk->values[id] = *entry;
        walk->has_value[id] = true;
        return 0;
    }
    if (!touches(walk, entry))
        return 0;
    if (track->kind == KRAIT_TRACK_SLICES)
        return krait_name_sums_add(&walk->sums->syscalls, id, entry);
    int rc = krait_gil_states_cut(walk->gil, &walk->sums->states, id, entry);
    return rc || !krait_gil_is_waits(track) ? rc
                                            : krait_gil_pairs_add(&walk->sums->gil, track->thread, entry);
}

static int on_batch(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct walk *walk = ctx;
    uint32_t id = (uint32_t)(track - walk->sums->gil.trace->tracks);
    int rc = 0;
    for (uint32_t i = 0; i < batch->n && !rc; i++) {
        const struct krait_entry entry = { .begin_ns = batch->t_ns[i],
                                           .end_ns = batch->end_ns ? batch->end_ns[i] : batch->t_ns[i],
                                           .value = batch->value ? batch->value[i] : 0,
                                           .name = batch->name ? batch->name[i] : 0 };
        rc = add_entry(walk, id, track, &entry);
    }
    return rc;
}

static bool has_sums(const struct krait_track *track)
{
    return track->kind == KRAIT_TRACK_COUNTER ||
           (track->kind == KRAIT_TRACK_STATES && track->of <= KRAIT_OF_CPU) ||
           (track->kind == KRAIT_TRACK_SLICES && strcmp(track->name, "system calls") == 0);
}

static int walk_all(struct walk *walk, const struct krait_trace *trace,
                    const struct krait_track_sums_options *options)
{
    uint32_t n = 0;
    KRAIT_AUTO_FREE uint32_t *tracks = malloc(KRAIT_MAX(trace->track_count, 1u) * sizeof(*tracks));
    if (!tracks)
        return -ENOMEM;
    for (uint32_t i = 0; i < trace->track_count; i++) {
        walk->sums->counters[i].range = options->range;
        if (has_sums(&trace->tracks[i]) && options->take(options->ctx, trace, &trace->tracks[i]))
            tracks[n++] = i;
    }
    int rc = krait_tracks_walk(trace, tracks, n, KRAIT_RANGE_ALL, on_batch, walk, NULL, 0);
    for (uint32_t i = 0; i < n && !rc; i++) {
        end_value(walk, tracks[i], UINT64_MAX);
        rc = krait_gil_states_add(walk->gil, &walk->sums->states, tracks[i]);
    }
    return rc;
}

static int by_ns(const void *a, const void *b)
{
    const struct krait_name_sum *x = a, *y = b;
    return (x->ns < y->ns) - (x->ns > y->ns);
}

static int by_wait(const void *a, const void *b)
{
    const struct krait_gil_pair *x = a, *y = b;
    return (x->ns < y->ns) - (x->ns > y->ns);
}

/* Nothing can be added any more: the indices are stale. */
static void sort_all(struct krait_track_sums *sums)
{
    if (sums->states.count)
        qsort(sums->states.items, sums->states.count, sizeof(*sums->states.items), by_ns);
    if (sums->syscalls.count)
        qsort(sums->syscalls.items, sums->syscalls.count, sizeof(*sums->syscalls.items), by_ns);
    if (sums->gil.count)
        qsort(sums->gil.items, sums->gil.count, sizeof(*sums->gil.items), by_wait);
}

int krait_track_sums_make(struct krait_track_sums *out, const struct krait_trace *trace,
                          const struct krait_track_sums_options *options)
{
    size_t tracks = KRAIT_MAX(trace->track_count, 1u);
    KRAIT_AUTO_FREE struct krait_entry *values = calloc(tracks, sizeof(*values));
    KRAIT_AUTO_FREE bool *has_value = calloc(tracks, sizeof(*has_value));
    struct krait_gil_holders *holders = NULL;
    struct walk walk = {
        .sums = out, .range = options->range, .gil = options->gil, .values = values, .has_value = has_value
    };
    *out = (struct krait_track_sums){ .states = { .range = options->range, .by_track = true },
                                      .syscalls = { .range = options->range },
                                      .gil = { .trace = trace, .range = options->range } };
    out->counters = calloc(tracks, sizeof(*out->counters));
    int rc = values && has_value && out->counters ? krait_gil_holders_new(&holders, trace) : -ENOMEM;
    out->gil.holders = holders;
    rc = rc ? rc : walk_all(&walk, trace, options);
    out->gil.holders = NULL;
    krait_gil_holders_free(holders);
    sort_all(out);
    return rc;
}

void krait_track_sums_done(struct krait_track_sums *sums)
{
    krait_name_sums_done(&sums->states);
    krait_name_sums_done(&sums->syscalls);
    free(sums->counters);
    krait_gil_pairs_done(&sums->gil);
}
