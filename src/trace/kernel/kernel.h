/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's part of a trace, recorded by krait, LTTng or perf. It is opened once, when it is first needed.
 */
#ifndef KRAIT_TRACE_KERNEL_H
#define KRAIT_TRACE_KERNEL_H

#include "trace/folders.h"
#include "trace/kernel/own_threads.h"
#include "trace/track.h"

/* How many machines it is of (machines.h): one, unless the trace was opened with KRAIT_MACHINES_APART; 0: there is
 * nothing of the kernel's. */
uint32_t krait_kernel_machines(const struct krait_trace *trace);

/* The first folder of one of them, and the name of its host, which may be empty. */
const char *krait_kernel_dir(const struct krait_trace *trace, uint32_t machine);
const char *krait_kernel_host(const struct krait_trace *trace, uint32_t machine);

/* From its first event to its last, once the trace's tracks were found; before, and where it cannot be read, both are 0. */
struct krait_range krait_kernel_range(const struct krait_trace *trace, uint32_t machine);

/* The events of a machine, of a trace that has them (trace->has_kernel); they are the trace's and live as long. Returns
 * 0, or with err set why they cannot be read: what krait_kernel_events_open returns. One walk at a time. */
int krait_trace_kernel_of(const struct krait_trace *trace, uint32_t machine, struct krait_kernel_events **out,
                          struct krait_err *err);

/* The same where there is one machine. */
static inline int krait_trace_kernel(const struct krait_trace *trace, struct krait_kernel_events **out,
                                     struct krait_err *err)
{
    return krait_trace_kernel_of(trace, 0, out, err);
}

/* What one run of the machine over all of it tells. */
struct krait_kernel_known {
    /* all threads, with their numbers; each run finds them in the same places */
    struct krait_kernel_states *states;
    struct krait_own_threads own; /* which of them recorded themselves */
};

/* That run is made when it is asked for, once; what it tells lives as long as the trace. Returns 0, or with err set
 * what krait_trace_kernel and krait_kernel_states_new return. */
int krait_trace_kernel_known_of(const struct krait_trace *trace, uint32_t machine,
                                const struct krait_kernel_known **out, struct krait_err *err);

static inline int krait_trace_kernel_known(const struct krait_trace *trace,
                                           const struct krait_kernel_known **out, struct krait_err *err)
{
    return krait_trace_kernel_known_of(trace, 0, out, err);
}

/* Walks tracks of the kernel's (krait_importer.walk_many): those of each machine together. */
struct krait_walking;
typedef int krait_machine_walk_fn(const struct krait_trace *trace, uint32_t machine,
                                  const struct krait_track *const *tracks, uint32_t count,
                                  const struct krait_walking *walking);
int krait_kernel_each_machine(const struct krait_trace *trace, const struct krait_track *const *tracks,
                              uint32_t count, const struct krait_walking *walking,
                              krait_machine_walk_fn *walk);

/* Its folders, of all machines; *count is 0 where there are none. */
const char *const *krait_kernel_dirs(const struct krait_trace *trace, uint32_t *count);

/* When it begins; INT64_MAX if there is none. */
int64_t krait_kernel_first(const struct krait_trace *trace);

/* When its states end, by the list of each machine's tracks (kernel_list.h); 0 if there is none that can be read. */
uint64_t krait_kernel_last(const struct krait_trace *trace);

/* Whether a track is of the states that the kernel saw of a thread: track->key is the thread's place in `states`. */
bool krait_kernel_is_thread_states(const struct krait_track *track);

/* Whether a folder is of the kernel's part. */
bool krait_kernel_takes(const struct krait_folder *folder);

#endif
