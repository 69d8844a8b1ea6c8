/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernel recorded beside the program, as slices in its threads, runs on CPUs and waits: for whoever shows
 * single calls.
 *
 *     calls      main ─┬──────── load ───────────────┬── ...
 *     slices           │   read ─┬── vfs_read ──┬─   │         system calls, functions of the kernel's
 *     waits            │         │   disk  ready│    │
 *     CPU 1      python3 ────────┤ kworker ├─ python3 ── ...   runs
 *
 * The kernel's events are gone through once to learn which of its threads are the trace's (in a container
 * they have other numbers there), and once for each thing that is asked for. Memory grows with the number of
 * threads, CPUs and names, not with that of events.
 *
 * What happened before the program's first event is told too, and nothing outside of the range.
 */
#ifndef KRAIT_TRACE_KERNEL_SLICES_H
#define KRAIT_TRACE_KERNEL_SLICES_H

#include "trace/kernel/kernel.h"
#include "trace/kernel/kernel_nest.h"

/* Told in the order of time, each thing when it is over, but slices when they begin too. What is NULL is not
 * told. A value other than 0 ends the walk and is returned by it. Times are nanoseconds since the epoch. */
struct krait_kernel_sink {
    void *ctx;
    int (*begin)(void *ctx, const struct krait_kernel_slice *slice);
    int (*end)(void *ctx, const struct krait_kernel_slice *slice);
    /* A thread, any of the machine's, had a CPU. */
    int (*ran)(void *ctx, uint32_t cpu, const struct krait_kthread *thread, uint64_t begin_ns,
               uint64_t end_ns);
    /* A thread of the trace was ready or blocked: change->was, from change->since_ns to change->ns. `by`: who
     * woke it or had its CPU, or NULL. */
    int (*waited)(void *ctx, uint32_t thread, const struct krait_kchange *change,
                  const struct krait_kthread *by);
};

struct krait_kernel_slices_options {
    struct krait_range range;
    /* Whose slices are told; NULL: all of the trace's threads'. */
    bool (*take_thread)(void *ctx, const struct krait_trace *trace, uint32_t thread);
    void *ctx;
};

struct krait_kernel_slices {
    const struct krait_trace *trace;
    struct krait_kernel_slices_options options;
    struct krait_kernel_events *events;      /* the trace's */
    const struct krait_kernel_states *known; /* all threads, with their numbers */
    const struct krait_own_threads *own;
    uint64_t from_ns, until_ns; /* of the range, after the first event */
    struct krait_strtab names;  /* of slices; in the order of their first use */
};

/* Of the kernel's part of a trace, which has to outlive it. Returns 0, or a negative errno with err set: what
 * krait_trace_kernel and krait_kernel_states_new return. */
int krait_kernel_slices_new(struct krait_kernel_slices **out, const struct krait_trace *trace,
                            const struct krait_kernel_slices_options *options, struct krait_err *err);
void krait_kernel_slices_free(struct krait_kernel_slices *kernel);

/* The kernel's number of a thread or process that the program calls so; `kernel` may be NULL. */
uint32_t krait_kernel_slices_id(const struct krait_kernel_slices *kernel, uint32_t id);

/* Returns 0, what the sink returned, or -ENOMEM. May be called again. */
int krait_kernel_slices_walk(struct krait_kernel_slices *kernel, const struct krait_kernel_sink *sink);

#endif
