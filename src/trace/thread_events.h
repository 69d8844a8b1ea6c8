/* SPDX-License-Identifier: Apache-2.0
 *
 * The events of a thread that krait recorded, of some ids: what is no call. Importers read marks, spans and tasks so.
 */
#ifndef KRAIT_TRACE_THREAD_EVENTS_H
#define KRAIT_TRACE_THREAD_EVENTS_H

#include "event/event.h"
#include "trace/import.h"
#include "trace/thread_file.h"

/* One event at a time, in the order of the file; `payload` begins at its fields and is whole. A value other than 0 ends
 * the reading and is returned by it. */
typedef int krait_thread_event_fn(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload);

struct krait_thread_events {
    bool wanted[KRAIT_EVENT_IDS];
    krait_thread_event_fn *fn;
    void *ctx;
};

/* Wants the events whose names begin so, as "task:". */
void krait_thread_events_want(struct krait_thread_events *events, const char *prefix);

/* Whether the thread may have an event that is wanted, by what its metadata tells. */
bool krait_thread_events_may_be(const struct krait_thread_events *events, const struct krait_trace *trace,
                                uint32_t thread);

/* Wanted events are such as krait_event_is_other, or the GIL's: the metadata tells whether there are any. Reads the packets that
 * a range lies in, and some that begin before it. Returns 0, what fn returned, or -ENOMEM; what is damaged ends its packet and
 * is said in `damage`. A file that cannot be opened has no events. */
int krait_thread_events_read(const struct krait_thread_events *events, const struct krait_trace *trace,
                             uint32_t thread, struct krait_range range, struct krait_damage *damage);

/* Behind which a thread's events do not go on from those before: some were lost, or the recording of its process was switched
 * off. The recorder states then anew what the thread is in, or forgets it. */
struct krait_breaks {
    const struct krait_thread_file *file;
    const struct krait_process *process;
    uint32_t packet, gap; /* the next to look at */
    uint64_t since_ns;    /* the last time before those that were passed last, if any */
};

/* Those of a thread that krait recorded, from a time on. */
struct krait_breaks krait_breaks_from(const struct krait_trace *trace, uint32_t thread, uint64_t from_ns);
/* Whether there are any up to a time that are not passed yet; they are now. */
bool krait_breaks_pass(struct krait_breaks *breaks, uint64_t t_ns);

#endif
