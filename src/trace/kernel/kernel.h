/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's part of a trace, recorded by krait, LTTng or perf. It is opened once, when it is first needed.
 */
#ifndef KRAIT_TRACE_KERNEL_H
#define KRAIT_TRACE_KERNEL_H

#include "trace/folders.h"
#include "trace/kernel/own_threads.h"
#include "trace/track.h"

/* Its events, of a trace that has them (trace->has_kernel); they are the trace's and live as long. Returns 0,
 * or with err set why they cannot be read: what krait_kernel_events_open returns. One walk at a time. */
int krait_trace_kernel(const struct krait_trace *trace, struct krait_kernel_events **out,
                       struct krait_err *err);

/* What one run of the machine over all of it tells. */
struct krait_kernel_known {
    /* all threads, with their numbers; each run finds them in the same places */
    struct krait_kernel_states *states;
    struct krait_own_threads own; /* which of them recorded themselves */
};

/* That run is made when it is asked for, once; what it tells lives as long as the trace. Returns 0, or with err set
 * what krait_trace_kernel and krait_kernel_states_new return. */
int krait_trace_kernel_known(const struct krait_trace *trace, const struct krait_kernel_known **out,
                             struct krait_err *err);

/* Its folders; *count is 0 where there are none. */
const char *const *krait_kernel_dirs(const struct krait_trace *trace, uint32_t *count);

/* When it begins; INT64_MAX if there is none. */
int64_t krait_kernel_first(const struct krait_trace *trace);

/* Whether a track is of the states that the kernel saw of a thread: track->key is the thread's place in `states`. */
bool krait_kernel_is_thread_states(const struct krait_track *track);

/* Whether a folder is of the kernel's part. */
bool krait_kernel_takes(const struct krait_folder *folder);

#endif
