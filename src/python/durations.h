/* SPDX-License-Identifier: Apache-2.0
 *
 * How long the calls of each function last, for the governor. Recording an event stores nothing extra: the times are
 * in the threads' rings already. The governor reads them there every few hundred calls, and before a packet is closed,
 * so that it sees a long call with everything inside it.
 *
 * Time in which other programs had the CPU counts for no function, because it would make a short function look long.
 * The thread's CPU clock says how much time that was; the longest gaps between events say where it was.
 *
 * For a recursive function, the time of its outermost call is divided by the number of all its calls.
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
    uint32_t recent; /* begins in the period; dropped: calls that were timed in this round of probes */
    uint32_t open;   /* its calls that are open where the readings stand */
    uint64_t recent_ticks; /* dropped: the time of those */
    uint64_t calls;        /* begins, halved now and then: older ones count less */
    uint64_t ticks;        /* their time without what recording took inside */
    uint64_t open_ticks;   /* of those that are open, until krait_durations_count_open was called */
};

/* Where the reading of a thread's ring stands. */
struct krait_reading {
    uint32_t tid; /* whose ring it is; who gets it then counts packets from 0 again */
    uint64_t seq; /* of the packet */
    const uint8_t *at;
    uint64_t t;
    uint64_t begins;
    uint64_t stolen;          /* ticks that others had the CPU, as far as it is read */
    uint64_t wall_ns, cpu_ns; /* the thread's clocks at the last look at them */
    long waits;               /* ... and how often it had waited */
    bool ended;               /* the packet was read to its end */
    uint32_t depth;
    uint32_t beyond; /* open calls that the stack has no room for */
    struct krait_open_call {
        uint32_t id;
        bool inner; /* the function calls itself */
        uint64_t t, begins, stolen;
    } stack[512];
};

struct krait_durations {
    struct krait_timed *by_id;
    uint32_t id_cap;
    uint32_t known; /* functions */
    uint32_t *seen; /* ids with begins in this period */
    uint32_t seen_count, seen_cap;
    uint32_t period;
    uint64_t begins;                 /* in this period */
    uint64_t event_ticks;            /* what recording a call and its end costs */
    uint64_t stolen;                 /* ticks that others had the CPU since somebody set it to 0 */
    struct krait_reading **readings; /* by the rings' indexes; NULL: not read yet */
    uint32_t reading_cap;
};

/* Returns NULL when memory is out. */
struct krait_durations *krait_durations_new(uint64_t event_ticks);
void krait_durations_free(struct krait_durations *d);

/* The id stands for the function at `key` whose own id is `base`. */
void krait_durations_know(struct krait_durations *d, uint32_t id, const void *key, uint32_t base);

/* Takes over what is known of the calls of the same function under another id. */
void krait_durations_inherit(struct krait_durations *d, uint32_t id, uint32_t was_id);

/* The function's calls have no ends from now on. */
void krait_durations_forget(struct krait_durations *d, uint32_t base);

/* Reads on in the ring of this thread. closing: its packet is closed at once; the next one goes on from there. */
void krait_durations_read(struct krait_durations *d, const struct krait_writer *writer,
                          const struct krait_ring *ring, bool closing);

/* Recording pauses: what is open is not timed. */
void krait_durations_pause(struct krait_durations *d);

/* Sets open_ticks of all functions that were seen in this period. A function that calls itself may be open all
 * the time: its calls' time is that of the outermost one. */
void krait_durations_count_open(struct krait_durations *d);

/* Counts begins anew. */
void krait_durations_next_period(struct krait_durations *d);

/* Mean time of its calls, ticks; 0 where none was seen. */
static inline uint64_t krait_timed_mean(const struct krait_timed *timed)
{
    return timed->calls ? timed->ticks / timed->calls : 0;
}

#endif
