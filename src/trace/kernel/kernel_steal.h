/* SPDX-License-Identifier: Apache-2.0
 *
 * Steal time: what the host of a virtual machine took from its CPUs. The kernel does not tell when; krait's recorder
 * reads the counters about once a second, and between two readings it is spread evenly. States count it as whatever the
 * CPU did.
 */
#ifndef KRAIT_TRACE_KERNEL_STEAL_H
#define KRAIT_TRACE_KERNEL_STEAL_H

#include "trace/kernel/kernel_events.h"
#include "trace/ranges.h"

/* Of one CPU. */
struct krait_kernel_steal {
    uint64_t stolen_ns; /* in the range */
    uint64_t total_ns;  /* since the machine started, at the last reading */
    int64_t read_ns;    /* which was then; INT64_MIN: there was none */
};

/* By the number of the CPU; those without a reading are there too. */
struct krait_kernel_steals {
    struct krait_kernel_steal *items;
    uint32_t count, cap;
};

/* A reading, event of kind KRAIT_KERNEL_EVENT_STEAL at a time, counts for what of it lies in [from_ns, until_ns), and
 * in the parts, if there are some (else NULL). Returns 0 or -ENOMEM. */
int krait_kernel_steals_add(struct krait_kernel_steals *steals, const struct krait_kernel_event *ev,
                            int64_t from_ns, int64_t until_ns, const struct krait_ranges *parts);
/* Of a trace, in the parts; NULL: of all of it. *ns is how long of that it was read. Returns 0 or -ENOMEM. */
int krait_kernel_steals_read(struct krait_kernel_steals *steals, uint64_t *ns,
                             const struct krait_ranges *parts, struct krait_kernel_events *events);
/* Whether any CPU's was read twice; and of all CPUs together. */
bool krait_kernel_steals_known(const struct krait_kernel_steals *steals);
uint64_t krait_kernel_steals_sum(const struct krait_kernel_steals *steals);
void krait_kernel_steals_done(struct krait_kernel_steals *steals);

#endif
