/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's events that an analysis wants (kernel_raw.h), as texts, of a recording that goes on. All openings of the recording
 * share them, so that each packet is read once:
 *
 *     walk 1   |=== read and kept =====|~~~ read ~~|      ~ some CPUs have not written all of it yet
 *     walk 2   |--- kept --------------|=== new ===|~~~|
 *
 * What is wanted is forgotten if another analysis wants other events, or if earlier packets are others than before.
 */
#ifndef KRAIT_TRACE_KERNEL_RAW_KEPT_H
#define KRAIT_TRACE_KERNEL_RAW_KEPT_H

#include "trace/kernel_raw.h"

struct krait_raw_kept; /* opaque */

/* Returns NULL without memory. */
struct krait_raw_kept *krait_raw_kept_new(void);
struct krait_raw_kept *krait_raw_kept_ref(struct krait_raw_kept *kept);
void krait_raw_kept_unref(struct krait_raw_kept *kept);

/* Reads the events of the walk's range from a time on, without events of other tracers. Returns as krait_kernel_raw_walk. */
typedef int krait_raw_read_fn(const struct krait_trace *trace, const struct krait_raw_walk *walk,
                              char *damage, size_t size);

/* krait_kernel_raw_walk of a trace that goes on: hands out what is kept, and what `read` reads behind it. */
int krait_raw_kept_walk(struct krait_raw_kept *kept, const struct krait_trace *trace,
                        const struct krait_raw_walk *walk, krait_raw_read_fn *read, char *damage,
                        size_t size);

#endif
