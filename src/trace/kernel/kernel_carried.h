/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of a machine when a range of its trace begins, as events of their own. krait puts them in front of a part of a
 * trace, so that its states are those of the whole: krait cut, and krait record where it drops the oldest packets.
 *
 *   whole   ├──────── events ────────┼───────── events ────────┼──────── events ────────┤
 *   part                    states ┌─┼───────── events ────────┼─┐ waits
 *                                  └─┘                         └─┘
 *
 *   krait_thread_state   how a thread is: fields of struct krait_kthread, states and system calls by their names, threads by their
 *                        numbers; times as how long ago they were, INT64_MIN: never. `flags` has a bit for each of KRAIT_CARRIED_FLAGS, in that order
 *   krait_cpu_state      how a CPU is; `tid` runs there, 0 is the idle task. `flags`: KRAIT_CARRIED_KNOWN, KRAIT_CARRIED_IPI,
 *                        KRAIT_CARRIED_DUMPING (the machine's: a state dump is being written)
 *   krait_waited         how the wait of a thread ends that waits when the range ends: for what it waited, which thread woke it (0:
 *                        none), or what the interrupt did that woke it ("": none did), as only later events tell
 *   krait_range_end      the range ends before this, and the whole goes on
 *
 * The first two have a time before the range, the others one behind it. cut_from and cut_until in the metadata's env tell the range
 * (ctf/format.h): krait_kernel_events_walk hands out what is before it in front of everything, and what is behind it as events
 * after the range.
 */
#ifndef KRAIT_TRACE_KERNEL_CARRIED_H
#define KRAIT_TRACE_KERNEL_CARRIED_H

#include "base/buf.h"
#include "trace/kernel/kernel_states.h"

enum krait_carried_event {
    KRAIT_CARRIED_THREAD,
    KRAIT_CARRIED_CPU,
    KRAIT_CARRIED_WAITED,
    KRAIT_CARRIED_END,
    KRAIT_CARRIED_EVENTS,
};

/* Members of struct krait_kthread. */
#define KRAIT_CARRIED_FLAGS(X) \
    X(is_kernel)               \
    X(makes_calls)             \
    X(wakes)                   \
    X(says)                    \
    X(runs_functions)          \
    X(exiting)                 \
    X(call_counts)             \
    X(ended)                   \
    X(newborn)                 \
    X(call_known)              \
    X(call_dumped)             \
    X(deep)                    \
    X(call_locks)              \
    X(doubtful)

enum { KRAIT_CARRIED_KNOWN = 1, KRAIT_CARRIED_IPI = 2, KRAIT_CARRIED_DUMPING = 4 };

/* Appends the TSDL of the event classes that `metadata`, a text, does not have yet, in the types of krait's own kernel traces
 * (kernel/kernel_tsdl.h). */
void krait_carried_declare(struct krait_buf *out, const char *metadata);
/* The id of a class, the same in all traces. */
uint32_t krait_carried_id(enum krait_carried_event event);

/* Told each event's fields. */
typedef void krait_carried_put_fn(void *ctx, enum krait_carried_event event, const struct krait_buf *fields);

/* The threads and CPUs as they are now: of a watcher's `begin` at the beginning of its range. Returns 0 or -ENOMEM. */
int krait_carried_states(const struct krait_kernel_states *states, krait_carried_put_fn *put, void *ctx);
/* How the waits end that go on at the end of the states' range, made with options.wakers. Returns 0 or -ENOMEM. */
int krait_carried_waits(const struct krait_kernel_states *states, krait_carried_put_fn *put, void *ctx);

#endif
