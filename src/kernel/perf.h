/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening perf events. The source that records them is krait_kernel_perf (kernel_source.h).
 */
#ifndef KRAIT_KERNEL_PERF_H
#define KRAIT_KERNEL_PERF_H

#include "base/err.h"

#include <linux/perf_event.h>

/* Of process `pid` (0: this one, -1: all) on `cpu` (-1: all). Returns a descriptor or a negative errno. */
int krait_perf_event_open(struct perf_event_attr *attr, int pid, int cpu);
/* Why a user may not have the events of what is his own, and what to do: `rc` is what opening them returned.
 * Returns it. */
int krait_perf_refusal(int rc, struct krait_err *err);

#endif
