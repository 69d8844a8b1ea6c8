/* SPDX-License-Identifier: Apache-2.0
 *
 * How long the calls of each function last, for the governor. Nothing is stored for it on the way of an
 * event: the times are in the thread's ring already, and are read there every few hundred calls. A sample:
 * what lies in packets that were closed between two readings is not seen.
 *
 * A function that calls itself has the time of its outermost call, divided by all its calls: that is what the
 * calls tell for what they cost.
 */
#ifndef KRAIT_PYTHON_DURATIONS_H
#define KRAIT_PYTHON_DURATIONS_H

#include "base/base.h"
#include "record/writer.h"

/* A function, by its id. */
struct krait_timed {
    const void *key; /* of its slot; NULL: not known */
    uint32_t base;   /* the function's own id: with --call-sites it has one for each line that calls it too */
    uint32_t period; /* of which `recent` is */
    uint32_t recent; /* begins in the period */
    uint32_t open;   /* its calls that are open where the reading stands */
    uint64_t calls;  /* begins, halved now and then: older ones count less */
    uint64_t ticks;  /* their time without what recording took inside */
};

struct krait_durations {
    struct krait_timed *by_id;
    uint32_t id_cap;
    uint32_t known; /* functions */
    uint32_t *seen; /* ids with begins in this period */
    uint32_t seen_count, seen_cap;
    uint32_t period;
    uint64_t begins;      /* in this period */
    uint64_t event_ticks; /* what recording a call and its end costs */
    /* Where the reading stands. */
    const struct krait_ring *ring;
    uint64_t seq; /* of the packet */
    const uint8_t *at;
    uint64_t t;
    uint64_t begins_ever;
    uint32_t depth;
    uint32_t beyond; /* open calls that the stack has no room for */
    struct krait_open_call {
        uint32_t id;
        uint64_t t, begins;
    } stack[512];
};

/* Returns NULL when memory is out. */
struct krait_durations *krait_durations_new(uint64_t event_ticks);
void krait_durations_free(struct krait_durations *d);

/* The id stands for the function at `key` whose own id is `base`. */
void krait_durations_know(struct krait_durations *d, uint32_t id, const void *key, uint32_t base);

/* Reads on in the ring of this thread. */
void krait_durations_read(struct krait_durations *d, const struct krait_writer *writer,
                          const struct krait_ring *ring);

/* Recording pauses: what is open is not timed. */
void krait_durations_pause(struct krait_durations *d);

/* Counts begins anew. */
void krait_durations_next_period(struct krait_durations *d);

/* Mean time of its calls, ticks; 0 where none was seen. */
static inline uint64_t krait_timed_mean(const struct krait_timed *timed)
{
    return timed->calls ? timed->ticks / timed->calls : 0;
}

#endif
