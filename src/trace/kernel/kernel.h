/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's part of a trace, recorded by krait, LTTng or perf. krait opens it once, when somebody first needs it.
 */
#ifndef KRAIT_TRACE_KERNEL_H
#define KRAIT_TRACE_KERNEL_H

#include "trace/folders.h"
#include "trace/kernel/own_threads.h"
#include "trace/track.h"

/* The number of its machines (machines.h): one, unless the trace was opened with KRAIT_MACHINES_APART; 0: the trace has no
 * kernel events. */
uint32_t krait_kernel_machines(const struct krait_trace *trace);

/* The first folder of a machine, and its host name, which may be empty. */
const char *krait_kernel_dir(const struct krait_trace *trace, uint32_t machine);
const char *krait_kernel_host(const struct krait_trace *trace, uint32_t machine);

/* The times of its first and its last event, after the trace's tracks were found. Both are 0 before that, or if it cannot be
 * read. */
struct krait_range krait_kernel_range(const struct krait_trace *trace, uint32_t machine);

/* The kernel events of a machine, if the trace has some (trace->has_kernel). They belong to the trace. Returns 0, or an
 * error of krait_kernel_events_open with the reason in err. Only one walk may run at a time. */
int krait_trace_kernel_of(const struct krait_trace *trace, uint32_t machine, struct krait_kernel_events **out,
                          struct krait_err *err);

/* The same for the first machine. */
static inline int krait_trace_kernel(const struct krait_trace *trace, struct krait_kernel_events **out,
                                     struct krait_err *err)
{
    return krait_trace_kernel_of(trace, 0, out, err);
}

/* Results of one run of the state machine over all events. */
struct krait_kernel_known {
    /* All threads with their ids; each run finds them in the same places. */
    struct krait_kernel_states *states;
    struct krait_own_threads own; /* those whose calls were recorded */
};

/* Makes that run at the first call. The result is valid as long as the trace. Returns 0, or an error of krait_trace_kernel or
 * krait_kernel_states_new with err set. */
int krait_trace_kernel_known_of(const struct krait_trace *trace, uint32_t machine,
                                const struct krait_kernel_known **out, struct krait_err *err);

static inline int krait_trace_kernel_known(const struct krait_trace *trace,
                                           const struct krait_kernel_known **out, struct krait_err *err)
{
    return krait_trace_kernel_known_of(trace, 0, out, err);
}

/* Walks kernel tracks (krait_importer.walk_many): those of one machine in one call. */
struct krait_walking;
typedef int krait_machine_walk_fn(const struct krait_trace *trace, uint32_t machine,
                                  const struct krait_track *const *tracks, uint32_t count,
                                  const struct krait_walking *walking);
int krait_kernel_each_machine(const struct krait_trace *trace, const struct krait_track *const *tracks,
                              uint32_t count, const struct krait_walking *walking,
                              krait_machine_walk_fn *walk);

/* Of a trace that krait_trace_open_on opened: whether its kernel tracks, but flows, can be walked on (krait_tracks_walk_on). The
 * number of the walk behind which the next one begins, which no other walk has, 0: at the beginning; and that it begins there
 * after all. */
bool krait_kernel_goes_on(const struct krait_trace *trace);
uint64_t krait_kernel_walked(const struct krait_trace *trace);
void krait_kernel_walk_anew(const struct krait_trace *trace);
/* Whether it is such a trace; up to when its files have the events of all CPUs, so that what is read up to there can go on from
 * there with the next opening, if krait_kernel_events_print does not tell otherwise; and up to when what goes on then is known. */
bool krait_kernel_settled(const struct krait_trace *trace, int64_t *until_ns, int64_t *end_ns);
/* The events that analyses want, which such a trace shares with earlier ones (kernel_raw_kept.h); NULL: it is no such trace. */
struct krait_raw_kept;
struct krait_raw_kept *krait_kernel_raw_kept(const struct krait_trace *trace);
/* For krait_trace_bytes_read: a walk had read `before` bytes when it began. */
void krait_kernel_count_read(const struct krait_trace *trace, const struct krait_kernel_events *events,
                             uint64_t before);
/* While a trace is opened, before it has names: gives it those of the earlier one, with their ids. Returns 0 or -ENOMEM. */
int krait_kernel_keep_names(struct krait_trace *trace, const struct krait_trace *before);

/* The folders of all machines; *count is their number, which may be 0. */
const char *const *krait_kernel_dirs(const struct krait_trace *trace, uint32_t *count);

/* The time of its first event; INT64_MAX: there is none. */
int64_t krait_kernel_first(const struct krait_trace *trace);

/* The end of its states, according to the list of each machine's tracks (kernel_list.h); 0: there is no readable list. */
uint64_t krait_kernel_last(const struct krait_trace *trace);

/* Whether the track has the states of a thread by kernel events. track->key is then the thread's place in `states`. */
bool krait_kernel_is_thread_states(const struct krait_track *track);

/* Whether a folder belongs to the kernel's part. */
bool krait_kernel_takes(const struct krait_folder *folder);

#endif
