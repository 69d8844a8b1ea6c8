/* SPDX-License-Identifier: Apache-2.0
 *
 * Who has the GIL while a thread waits for it, from the events of all threads of its process:
 *
 *     waits    A   ┊wait ───────────────────────────────────────────┤take
 *              B         ┊wait ──────────────┤take
 *     has it   C ██████████████████████┤drop
 *              B                              ████████████████┤drop
 *     told of A    C C C C C C C C C C C B B B B B B B B B B B B B  (from C's drop on the one who takes it)
 *
 * A thread that has released the GIL and waits until another thread has it is not a waiter: it causes no drop events.
 * While a thread waits, each take and each drop of the GIL is an event. At other times it is not known who has the
 * GIL. The events do not say which GIL they belong to. If they contradict each other (several interpreters with a GIL
 * each, or lost events), the holder is unknown until all current waiters are done.
 */
#ifndef KRAIT_TRACE_GIL_HOLDERS_H
#define KRAIT_TRACE_GIL_HOLDERS_H

#include "trace/trace.h"

struct krait_gil_holders; /* opaque */

/* Goes through the events of all processes with more than one thread once; keeps 24 bytes for
 * a wait and 16 for a take. Returns 0 or -ENOMEM. */
int krait_gil_holders_new(struct krait_gil_holders **out, const struct krait_trace *trace);
void krait_gil_holders_free(struct krait_gil_holders *holders);

/* What is so of a thread from a time on, up to until_ns. */
struct krait_gil_hold {
    uint64_t until_ns;
    uint64_t wait_end_ns; /* of its wait; 0: it does not wait */
    uint32_t holder;      /* another thread, which it waits for; 0: it does not wait, or that is not known */
};

struct krait_gil_hold krait_gil_hold_at(const struct krait_gil_holders *holders, uint32_t tid, uint64_t t_ns);

#endif
