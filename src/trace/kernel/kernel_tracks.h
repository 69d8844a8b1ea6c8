/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernel recorded as tracks (trace/track.h), whoever recorded it, with a program beside it or none:
 *
 *   thread    STATES "state"          user, system, blocked_disk, ...; value: the thread that woke it, or has its CPU
 *             SLICES "system calls"   read, futex, ...; value: what it returned, 0 where it goes on at the end
 *             SLICES "functions"      of the kernel's, in system calls and outside, where they were recorded; of a range,
 *                                     those that begin in it
 *             FLOWS "wake-ups"        from when it woke a thread until that ran; to that thread's states
 *             INSTANTS "marks"        what it wrote to trace_marker, and the probes that it passed (kernel_said.c)
 *   CPU       STATES "threads"        who has it, by the name; value: its number; gaps where it idles or is unknown
 *             SLICES "interrupts"     by the device's name, or the soft interrupt's number
 *             COUNTER "frequency"     in kHz
 *
 * A thread that makes no system call, runs no such function, or wakes none, has no such track. All follow from the
 * machine of kernel_states.h, which goes through all events up to the end of the range: once for all tracks that are
 * walked together.
 */
#ifndef KRAIT_TRACE_KERNEL_TRACKS_H
#define KRAIT_TRACE_KERNEL_TRACKS_H

#include "trace/importer.h"

/* What tracks of slices are called. */
#define KRAIT_KERNEL_CALLS     "system calls"
#define KRAIT_KERNEL_FUNCTIONS "functions"

/* Of struct krait_importer: a part that cannot be read has no tracks, which trace->damage says. */
int krait_kernel_tracks_find(struct krait_trace *trace, struct krait_err *err);
krait_tracks_walk_fn krait_kernel_tracks_walk;

/* What a walk of a recording that goes on knows at its end, for the next. Opaque. */
struct krait_kernel_walk_on;

/* Walks tracks without flows up to until_ns (what goes on, up to end_ns), as krait_kernel_states_go_on runs the machine, from
 * where the earlier walk of *kept has ended, which may have been of an earlier opening of the same folders with the same ids of
 * names. walking->batch gets the entries that have ended meanwhile, and walking->now what goes on. *kept is NULL the first time;
 * afterwards it is for the next walk, or after an error NULL. Returns as krait_kernel_tracks_walk. */
int krait_kernel_walk_on(struct krait_kernel_walk_on **kept, const struct krait_trace *trace,
                         const struct krait_track *const *tracks, uint32_t count,
                         const struct krait_walking *walking, int64_t until_ns, int64_t end_ns);
void krait_kernel_walk_on_free(struct krait_kernel_walk_on *on);

/* The same of marks alone. */
int krait_kernel_said_find(struct krait_trace *trace, struct krait_err *err);

#endif
