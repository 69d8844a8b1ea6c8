/* SPDX-License-Identifier: Apache-2.0
 *
 * What a CPU does: its time in each state, its cycles, and the interrupts that are running.
 */
#ifndef KRAIT_TRACE_KERNEL_CPU_H
#define KRAIT_TRACE_KERNEL_CPU_H

#include "trace/kernel/kernel_states.h"

/* Counts the time up to now. */
void krait_kcpu_pass(const struct krait_kernel_states *m, struct krait_kcpu *cpu);

/* From now on it is in a state. hot path */
static inline void krait_kcpu_turn(const struct krait_kernel_states *m, struct krait_kcpu *cpu,
                                   enum krait_cpu_state to)
{
    if (cpu->state == to)
        return;
    krait_kcpu_pass(m, cpu);
    cpu->state = (uint8_t)to;
}

/* What an event of a CPU changes there. */
typedef void krait_kcpu_step(struct krait_kernel_states *m, struct krait_kcpu *cpu,
                             const struct krait_kernel_event *ev);

krait_kcpu_step krait_kcpu_begin_irq;
krait_kcpu_step krait_kcpu_end_irq;
krait_kcpu_step krait_kcpu_begin_softirq;
krait_kcpu_step krait_kcpu_end_softirq;

/* What an interrupt does, and with which device, tells what those that it wakes waited for. */
void krait_kcpu_cause(struct krait_kcpu *cpu, enum krait_kernel_event_kind kind, uint32_t device);

#endif
