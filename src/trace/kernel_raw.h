/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's events as they were recorded, with all their fields as text: for those who look for events that krait has
 * no rule of its own for. What analyses know by kind is in kernel/kernel_events.h.
 */
#ifndef KRAIT_TRACE_KERNEL_RAW_H
#define KRAIT_TRACE_KERNEL_RAW_H

#include "trace/trace.h"

enum { KRAIT_RAW_CPUS = 8192 /* as KRAIT_KERNEL_EVENT_CPUS */ };

struct krait_raw_event {
    uint64_t t_ns;
    const char *name, *fields; /* the fields as trace/fields.h reads them; both valid during the call */
    const char *host;          /* the trace's; "": not known */
    int64_t cpu, tid;          /* where it happened, and the thread that ran there; -1: not known */
    int64_t pid;               /* that thread's process, if the event or its contexts say it; else -1 */
};

struct krait_raw_walk {
    void *ctx;
    struct krait_range range;
    bool with_others; /* also the events of other tracers, such as LTTng's of programs */
    bool (*wants)(
        void *ctx,
        const char *name); /* whether events of this name are handed out; asked once for each class */
    int (*take)(void *ctx, const struct krait_raw_event *event); /* what is not 0 ends the walk */
    uint64_t *last_ns; /* NULL, or is raised to the last event's time; at most the range's end */
    /* NULL: the walk reads what is before the range, to know which threads run. Or the thread that each CPU has (KRAIT_RAW_CPUS;
     * -1: not known), before the range and then behind it, or where `take` ended the walk. */
    int64_t *runs;
};

/* Hands out the events of all CPUs in the order of time. Returns 0 also where nothing was recorded in the kernel, what
 * `take` returned, or -ENOMEM. Damage does not fail it: `damage` (size bytes, may be NULL) keeps the first. */
int krait_kernel_raw_walk(const struct krait_trace *trace, const struct krait_raw_walk *walk, char *damage,
                          size_t size);

/* When the first of them is, whatever it is; 0 where there is none. */
uint64_t krait_kernel_raw_first(const struct krait_trace *trace);

#endif
