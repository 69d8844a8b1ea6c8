/* SPDX-License-Identifier: Apache-2.0 */
#include "python/durations.h"

#include "base/array.h"
#include "python/packet.h"

#include <stdlib.h>

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
    free(d->by_id);
    free(d->seen);
    free(d);
}

void krait_durations_know(struct krait_durations *d, uint32_t id, const void *key, uint32_t base)
{
    if (id >= d->id_cap) {
        uint32_t cap = KRAIT_MAX(KRAIT_MAX(1024u, id + 1), d->id_cap * 2);
        struct krait_timed *by_id = realloc(d->by_id, cap * sizeof(*by_id));
        if (!by_id)
            return;
        memset(by_id + d->id_cap, 0, (cap - d->id_cap) * sizeof(*by_id));
        d->by_id = by_id;
        d->id_cap = cap;
    }
    d->known++;
    d->by_id[id] = (struct krait_timed){ .key = key, .base = base };
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
    if (++timed->calls == OLD) {
        timed->calls /= 2;
        timed->ticks /= 2;
    }
}

/* Calls of what has no id that is known are open too, with 0. */
static void begin(struct krait_durations *d, uint32_t code, uint64_t t)
{
    uint32_t id = code < d->id_cap ? d->by_id[code].base : 0;
    d->begins++;
    d->begins_ever++;
    if (d->depth == KRAIT_ARRAY_LEN(d->stack)) {
        d->beyond++;
        return;
    }
    d->stack[d->depth++] = (struct krait_open_call){ .id = id, .t = t, .begins = d->begins_ever };
    if (id)
        count_begin(d, id);
}

static void end(struct krait_durations *d, uint64_t t)
{
    if (d->beyond) {
        d->beyond--;
        return;
    }
    if (!d->depth)
        return;
    const struct krait_open_call *call = &d->stack[--d->depth];
    struct krait_timed *timed = &d->by_id[call->id];
    if (!call->id || !timed->open || --timed->open)
        return;
    uint64_t took = t - call->t, recording = (d->begins_ever - call->begins) * d->event_ticks;
    timed->ticks += took > recording ? took - recording : 0;
}

/* What is open has lasted so long at least. */
static void forget_stack(struct krait_durations *d)
{
    d->beyond = 0;
    while (d->depth)
        end(d, d->t);
}

void krait_durations_pause(struct krait_durations *d)
{
    d->beyond = 0;
    while (d->depth) {
        const struct krait_open_call *call = &d->stack[--d->depth];
        if (call->id) /* 0: of what is not known here, and there may be no table yet */
            d->by_id[call->id].open = 0;
    }
}

static bool continues(const struct krait_durations *d, const struct krait_ring *ring)
{
    return d->ring == ring && d->seq == ring->next_seq && d->at;
}

static void one_event(struct krait_durations *d, const struct krait_packet_event *e)
{
    uint32_t bit = 1u << e->event;
    if (bit & KRAIT_CALL_BEGINS)
        begin(d, e->code, e->t);
    else if (bit & KRAIT_CALL_ENDS)
        end(d, e->t);
    else if (bit & KRAIT_CALL_STACKS)
        forget_stack(d);
}

void krait_durations_read(struct krait_durations *d, const struct krait_writer *writer,
                          const struct krait_ring *ring)
{
    struct krait_packet_event e = { .t = d->t };
    const uint8_t *at = d->at;
    if (!continues(d, ring)) {
        forget_stack(d);
        at = krait_packet_open(writer, ring, &e.t);
    }
    d->ring = ring;
    d->seq = ring->next_seq;
    d->at = NULL;
    while (at && at < ring->cur) {
        size_t n = krait_packet_read(at, &e);
        if (n >= KRAIT_PAYLOAD_VARIES)
            return; /* of a version that has more events than this table */
        one_event(d, &e);
        d->t = e.t;
        at += n;
    }
    d->at = at;
}
