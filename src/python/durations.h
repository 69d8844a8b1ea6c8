/* SPDX-License-Identifier: Apache-2.0
 *
 * How long the calls of each function last, for the governor. Recording an event stores nothing extra: the times are
 * in the threads' rings already. The governor reads them there every few hundred calls, and before a packet is closed,
 * so that it sees a long call with everything inside it.
 *
 * Time in which other programs had the CPU does not count, because it would make a short function look long. The
 * thread's CPU clock says how much time that was; the longest gaps between events show where it was.
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
    uint32_t period; /* that `recent` belongs to */
    uint32_t recent; /* begins in the period; if dropped: calls that were timed in this round of probes */
    uint32_t open;   /* its calls that are open at the current positions of the readings */
    uint64_t recent_ticks; /* if dropped: the time of these */
    uint64_t calls;        /* begins; halved now and then, so that older ones count less */
    uint64_t ticks;        /* their time, without the cost of recording inside them */
    uint64_t open_ticks;   /* of open calls, as of the last krait_durations_count_open */
};

/* How far a thread's ring was read. */
struct krait_reading {
    uint32_t tid; /* owner of the ring; a later owner counts packets from 0 again */
    uint64_t seq; /* of the packet */
    const uint8_t *at;
    uint64_t t;
    uint64_t begins;
    uint64_t stolen;          /* ticks in which others had the CPU, up to this position */
    uint64_t wall_ns, cpu_ns; /* the thread's clocks at the last look at them */
    long waits;               /* ... and how often it had waited by then */
    bool ended;               /* the packet was read to its end */
    uint32_t depth;
    uint32_t beyond; /* open calls for which the stack has no room */
    struct krait_open_call {
        uint32_t id;
        bool inner; /* the function calls itself */
        bool c;     /* it is written in C */
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
    uint64_t stolen;                 /* ticks in which others had the CPU, since somebody set it to 0 */
    struct krait_reading **readings; /* by the rings' indexes; NULL: not read yet */
    uint32_t reading_cap;
};

/* Returns NULL when memory is out. */
struct krait_durations *krait_durations_new(uint64_t event_ticks);
void krait_durations_free(struct krait_durations *d);

/* `id` is an id of the function at `key`, whose own id is `base`. */
void krait_durations_know(struct krait_durations *d, uint32_t id, const void *key, uint32_t base);

/* Takes over what is known about the same function under another id. */
void krait_durations_inherit(struct krait_durations *d, uint32_t id, uint32_t was_id);

/* From now on the function's calls have no ends, nor have those of C functions that it made. */
void krait_durations_forget(struct krait_durations *d, uint32_t base);

/* Continues to read the ring of this thread. closing: the packet will be closed, and the next one continues from
 * there. */
void krait_durations_read(struct krait_durations *d, const struct krait_writer *writer,
                          const struct krait_ring *ring, bool closing);

/* The recording pauses: open calls are not timed. */
void krait_durations_pause(struct krait_durations *d);

/* Sets open_ticks of all functions that were seen in this period. A recursive function may be open all the time: the
 * time of its calls is that of the outermost one. */
void krait_durations_count_open(struct krait_durations *d);

/* Begins to count again. */
void krait_durations_next_period(struct krait_durations *d);

/* Mean time of its calls in ticks; 0 if none was seen. */
static inline uint64_t krait_timed_mean(const struct krait_timed *timed)
{
    return timed->calls ? timed->ticks / timed->calls : 0;
}

#endif
