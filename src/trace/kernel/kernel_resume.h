/* SPDX-License-Identifier: Apache-2.0
 *
 * What krait has computed of the kernel's events of a recording that goes on. It passes from one opening of the recording to the
 * next (krait_trace_open_on), so that each packet is read once for the list of tracks, and once for what they show:
 *
 *     opening 1   |--- events ------------------|.....           . is not written on all CPUs yet
 *     opening 2                                 |--- new ---|....
 *     opening 3                                             |- new -|..
 *
 * If earlier packets are others than before, as krait record --last writes the files anew, or if events came late, all
 * begins at the beginning.
 */
#ifndef KRAIT_TRACE_KERNEL_RESUME_H
#define KRAIT_TRACE_KERNEL_RESUME_H

#include "trace/kernel/kernel.h"
#include "trace/kernel/kernel_list.h"

struct krait_kernel_resume; /* opaque */

/* For events that were just opened. `before` is what an earlier opening has, or NULL; the new one takes from it what still holds.
 * *out is NULL if there are no events yet that all CPUs have written. Returns 0 or -ENOMEM. */
int krait_kernel_resume_new(struct krait_kernel_resume **out, struct krait_kernel_events *events,
                            struct krait_kernel_resume *before);
void krait_kernel_resume_free(struct krait_kernel_resume *resume);

/* Up to when this opening reads, because before that all events are there; and up to when what goes on then is known. */
int64_t krait_kernel_resume_until(const struct krait_kernel_resume *resume, int64_t *end_ns);

/* Gives a new trace the ids of the earlier one's names, as the last walk left them. Returns 0 or -ENOMEM. */
int krait_kernel_resume_names(const struct krait_kernel_resume *before, struct krait_trace *trace);

/* The list of tracks, up to where all is written. Returns 0 or the errors of krait_kernel_states_go_on. */
int krait_kernel_resume_list(struct krait_kernel_resume *resume, struct krait_kernel_list *list,
                             const struct krait_trace *trace, struct krait_kernel_events *events);

/* krait_importer.walk_on. After an error, the next walk begins at the beginning. */
int krait_kernel_resume_walk(struct krait_kernel_resume *resume, const struct krait_trace *trace,
                             const struct krait_track *const *tracks, uint32_t count,
                             const struct krait_walking *walking);
/* The number of the walk behind which the next one begins, which no other has; 0: it begins at the beginning. */
uint64_t krait_kernel_resume_walked(const struct krait_kernel_resume *resume);
/* The next walk begins at the beginning, after all. */
void krait_kernel_resume_anew(struct krait_kernel_resume *resume);

#endif
