/* SPDX-License-Identifier: Apache-2.0 */
#include "python/durations.h"

#include "base/array.h"
#include "base/clock.h"
#include "python/packet.h"

#include <stdlib.h>
#include <sys/resource.h>

struct krait_durations *krait_durations_new(uint64_t event_ticks)
{
    struct krait_durations *d = calloc(1, sizeof(*d));
    if (d) {
        d->event_ticks = event_ticks;
        d->period = 1;
    }
    return d;
}

void krait_durations_free(struct krait_durations *d)
{
    if (!d)
        return;
    for (uint32_t i = 0; i < d->reading_cap; i++)
        free(d->readings[i]);
    free(d->readings);
    free(d->by_id);
    free(d->seen);
    free(d);
}

void krait_durations_know(struct krait_durations *d, uint32_t id, const void *key, uint32_t base)
{
    if (!KRAIT_GROW_FILLED(d->by_id, d->id_cap, id + 1, 0))
        return;
    d->known++;
    d->by_id[id] = (struct krait_timed){ .key = key, .base = base };
}

void krait_durations_inherit(struct krait_durations *d, uint32_t id, uint32_t was_id)
{
    if (id >= d->id_cap || was_id >= d->id_cap)
        return;
    d->by_id[id].calls = d->by_id[was_id].calls;
    d->by_id[id].ticks = d->by_id[was_id].ticks;
}

void krait_durations_next_period(struct krait_durations *d)
{
    d->period++;
    d->seen_count = 0;
    d->begins = 0;
}

static void note_seen(struct krait_durations *d, uint32_t id)
{
    if (!KRAIT_GROW(d->seen, d->seen_cap, d->seen_count + 1))
        return;
    d->seen[d->seen_count++] = id;
}

static void count_begin(struct krait_durations *d, uint32_t id)
{
    enum { OLD = 1 << 16 };
    struct krait_timed *timed = &d->by_id[id];
    if (timed->period != d->period) {
        timed->period = d->period;
        timed->recent = 0;
        note_seen(d, id);
    }
    timed->recent++;
    timed->open++;
    if (++timed->calls >= OLD && timed->open == 1) { /* an open call's time is of all calls inside it */
        timed->calls /= 2;
        timed->ticks /= 2;
    }
}

/* Whether this thread is in the function. */
static bool is_open(const struct krait_durations *d, const struct krait_reading *r, uint32_t id)
{
    uint32_t i = d->by_id[id].open ? r->depth : 0;
    while (i && r->stack[i - 1].id != id)
        i--;
    return i;
}

/* Calls of what has no id that is known are open too, with 0. */
static void begin(struct krait_durations *d, struct krait_reading *r, uint32_t code, uint64_t t, bool c)
{
    uint32_t id = code < d->id_cap ? d->by_id[code].base : 0;
    d->begins++;
    r->begins++;
    if (r->depth == KRAIT_ARRAY_LEN(r->stack)) {
        r->beyond++;
        return;
    }
    bool inner = id && is_open(d, r, id);
    r->stack[r->depth++] = (struct krait_open_call){
        .id = id, .inner = inner, .c = c, .t = t, .begins = r->begins, .stolen = r->stolen
    };
    if (id)
        count_begin(d, id);
}

/* How long the call has lasted at t, without what is not its own. */
static uint64_t own_ticks(const struct krait_durations *d, const struct krait_reading *r,
                          const struct krait_open_call *call, uint64_t t)
{
    uint64_t took = t - call->t, recording = (r->begins - call->begins) * d->event_ticks;
    uint64_t not_its = recording + r->stolen - call->stolen;
    return took > not_its ? took - not_its : 0;
}

static void end(struct krait_durations *d, struct krait_reading *r, uint64_t t)
{
    if (r->beyond) {
        r->beyond--;
        return;
    }
    if (!r->depth)
        return;
    const struct krait_open_call *call = &r->stack[--r->depth];
    if (!call->id)
        return;
    struct krait_timed *timed = &d->by_id[call->id];
    timed->open -= timed->open > 0;
    if (!call->inner)
        timed->ticks += own_ticks(d, r, call, t);
}

/* What is open has lasted so long at least. */
static void forget_stack(struct krait_durations *d, struct krait_reading *r)
{
    r->beyond = 0;
    while (r->depth)
        end(d, r, r->t);
}

static void forget_in(struct krait_durations *d, struct krait_reading *r, uint32_t base)
{
    uint32_t kept = 0;
    bool gone = false;
    for (uint32_t i = 0; i < r->depth; i++) {
        const struct krait_open_call *call = &r->stack[i];
        gone = call->id == base || (gone && call->c);
        if (!gone)
            r->stack[kept++] = *call;
        else
            d->by_id[call->id].open -= d->by_id[call->id].open > 0;
    }
    r->depth = kept;
}

void krait_durations_forget(struct krait_durations *d, uint32_t base)
{
    for (uint32_t i = 0; i < d->reading_cap; i++) {
        if (d->readings[i])
            forget_in(d, d->readings[i], base);
    }
    d->by_id[base].open = 0;
}

void krait_durations_count_open(struct krait_durations *d)
{
    for (uint32_t i = 0; i < d->seen_count; i++)
        d->by_id[d->seen[i]].open_ticks = 0;
    for (uint32_t i = 0; i < d->reading_cap; i++) {
        const struct krait_reading *r = d->readings[i];
        for (uint32_t j = 0; r && j < r->depth; j++) {
            const struct krait_open_call *call = &r->stack[j];
            if (call->id && !call->inner && d->by_id[call->id].period == d->period)
                d->by_id[call->id].open_ticks += own_ticks(d, r, call, r->t);
        }
    }
}

void krait_durations_pause(struct krait_durations *d)
{
    for (uint32_t i = 0; i < d->reading_cap; i++) {
        struct krait_reading *r = d->readings[i];
        while (r && r->depth) {
            const struct krait_open_call *call = &r->stack[--r->depth];
            if (call->id) /* 0: of what is not known here, and there may be no table yet */
                d->by_id[call->id].open = 0;
        }
        if (r)
            r->beyond = 0;
    }
}

static void one_event(struct krait_durations *d, struct krait_reading *r, const struct krait_packet_event *e)
{
    uint32_t bit = krait_event_bit(e->head.id);
    if (bit & KRAIT_CALL_BEGINS)
        begin(d, r, e->code, e->head.t, bit & KRAIT_CALL_IN_C);
    else if (bit & KRAIT_CALL_ENDS)
        end(d, r, e->head.t);
    else if (bit & KRAIT_CALL_STACKS)
        forget_stack(d, r);
}

static struct krait_reading *reading_of(struct krait_durations *d, const struct krait_ring *ring)
{
    if (!KRAIT_GROW_FILLED(d->readings, d->reading_cap, ring->index + 1, 0))
        return NULL;
    struct krait_reading *r = d->readings[ring->index];
    if (!r)
        r = d->readings[ring->index] = calloc(1, sizeof(*r));
    if (r && r->tid != ring->tid) { /* the thread that had the ring has ended: nothing of it goes on */
        forget_stack(d, r);
        *r = (struct krait_reading){ .tid = ring->tid };
    }
    return r;
}

/* Where to read on; what is open stays so if nothing is missing in between. */
static struct krait_cursor take_up(struct krait_durations *d, struct krait_reading *r,
                                   const struct krait_writer *writer, const struct krait_ring *ring,
                                   uint64_t *t)
{
    bool same = r->seq == ring->next_seq && r->at, next = r->ended && r->seq + 1 == ring->next_seq;
    *t = r->t;
    if (same)
        return (struct krait_cursor){ r->at, ring->cur };
    if (!next)
        forget_stack(d, r);
    return krait_packet_open(writer, ring, t);
}

/* ---- time that others had the CPU ---- */

/* What the thread did not get since the last look, ns; 0 where it waited for something: that is its own time. */
static uint64_t stolen_ns(struct krait_reading *r)
{
    struct rusage usage;
    uint64_t wall = krait_clock_ns(CLOCK_MONOTONIC), cpu = krait_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    getrusage(RUSAGE_THREAD, &usage);
    bool waited = usage.ru_nvcsw != r->waits || !r->wall_ns;
    uint64_t passed = wall - r->wall_ns, ran = cpu - r->cpu_ns;
    r->wall_ns = wall;
    r->cpu_ns = cpu;
    r->waits = usage.ru_nvcsw;
    return waited || ran > passed ? 0 : passed - ran;
}

/* The longest time between two events. */
static uint64_t longest_gap(const struct krait_reading *r, struct krait_cursor events, uint64_t t)
{
    struct krait_packet_event e = { .head.t = t };
    uint64_t longest = 0, before = r->t;
    while (events.at < events.end && krait_packet_read(&events, &e)) {
        longest = KRAIT_MAX(longest, e.head.t - before);
        before = e.head.t;
    }
    return longest;
}

/* Of the time before an event at t: `left` ticks were stolen somewhere, most likely in the longest gaps. */
static void take_stolen(struct krait_reading *r, uint64_t t, uint64_t longest, uint64_t *left)
{
    enum { NEARLY = 4 };
    uint64_t gap = t - r->t;
    if (gap < longest / NEARLY || !*left)
        return;
    uint64_t part = KRAIT_MIN(gap, *left);
    r->stolen += part;
    *left -= part;
}

void krait_durations_read(struct krait_durations *d, const struct krait_writer *writer,
                          const struct krait_ring *ring, bool closing)
{
    enum { LITTLE_US = 50 };
    struct krait_reading *r = reading_of(d, ring);
    struct krait_packet_event e;
    if (!r)
        return;
    struct krait_cursor events = take_up(d, r, writer, ring, &e.head.t);
    uint64_t freq = writer->shm.control->clock_freq;
    uint64_t left = (uint64_t)((unsigned __int128)stolen_ns(r) * freq / KRAIT_NS_PER_S);
    uint64_t longest = UINT64_MAX;
    d->stolen += left;
    if (left > LITTLE_US * freq / 1000000)
        longest = longest_gap(r, events, e.head.t);
    else
        left = 0;
    r->seq = ring->next_seq;
    r->at = NULL;
    r->ended = false;
    while (events.at < events.end) {
        if (!krait_packet_read(&events, &e))
            return; /* of a version that has more events than this table */
        take_stolen(r, e.head.t, longest, &left);
        one_event(d, r, &e);
        r->t = e.head.t;
    }
    r->at = events.at;
    r->ended = events.at && closing;
}
