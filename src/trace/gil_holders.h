/* SPDX-License-Identifier: Apache-2.0
 *
 * Who has the GIL while a thread waits for it, from the events of all threads of its process:
 *
 *     waits    A   ┊wait ───────────────────────────────────────────┤take
 *              B         ┊wait ──────────────┤take
 *     has it   C ██████████████████████┤drop
 *              B                              ████████████████┤drop
 *     told of A    C C C C C C C C C C C B B B B B B B B B B B B B  (from C's drop on the one who takes it)
 *     parts of A   held held held held h free fr held held held hel
 *
 * A thread that has released the GIL and waits until another thread has it is not a waiter: it causes no drop events.
 * While a thread waits, each take and each drop of the GIL is an event. At other times it is not known who has the
 * GIL. From a drop to the next take nobody has it: a thread that waits is woken, or lacks a CPU. A thread that has no
 * ring takes and drops the GIL without an event. Interpreters with a GIL of their own (gil:interpreter) have their own holders. If
 * events contradict each other (events were lost, or an old recording does not tell GILs apart), the holder is unknown until all
 * current waiters are done.
 */
#ifndef KRAIT_TRACE_GIL_HOLDERS_H
#define KRAIT_TRACE_GIL_HOLDERS_H

#include "trace/gil.h"

struct krait_gil_holders; /* opaque */

/* Goes through the events of all processes with more than one thread once; keeps 24 bytes for
 * a wait and 16 for a take and a drop. Returns 0 or -ENOMEM. */
int krait_gil_holders_new(struct krait_gil_holders **out, const struct krait_trace *trace);
void krait_gil_holders_free(struct krait_gil_holders *holders);

/* What is so of a thread from a time on, up to until_ns. */
struct krait_gil_hold {
    uint64_t until_ns;
    uint64_t wait_end_ns; /* of its wait; 0: it does not wait */
    uint32_t holder;      /* another thread, which it waits for; 0: it does not wait, or that is not known */
};

struct krait_gil_hold krait_gil_hold_at(const struct krait_gil_holders *holders, uint32_t tid, uint64_t t_ns);

enum krait_gil_state {
    KRAIT_GIL_UNKNOWN, /* nobody knows whether a thread has it */
    KRAIT_GIL_HELD,    /* another thread has it */
    KRAIT_GIL_FREE,    /* a thread has dropped it, and none has taken it */
};

/* A part of a wait. */
struct krait_gil_part {
    uint64_t begin_ns, end_ns;
    uint32_t holder; /* HELD: has it; FREE: takes it next, maybe the thread that waits; 0: not known */
    uint8_t state;   /* enum krait_gil_state */
};

/* Steps to the next part of a wait of a thread, from a zeroed part to the first. The parts add up to the wait. False: there are
 * no more. */
bool krait_gil_part_next(const struct krait_gil_holders *holders, const struct krait_thread *thread,
                         const struct krait_gil_wait *wait, struct krait_gil_part *part);

/* How long waits lasted, by what is known of the GIL meanwhile: ns[enum krait_gil_state]. */
struct krait_gil_split {
    uint64_t ns[KRAIT_GIL_FREE + 1];
};

/* Adds the parts of a wait. */
void krait_gil_split_add(struct krait_gil_split *split, const struct krait_gil_holders *holders,
                         const struct krait_thread *thread, const struct krait_gil_wait *wait);

#endif
