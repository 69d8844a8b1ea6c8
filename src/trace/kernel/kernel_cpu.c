/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel_cpu.h"

#include "trace/kernel/kernel_block.h"
#include "trace/kernel/kernel_machine.h"

void krait_kcpu_pass(const struct krait_kernel_states *m, struct krait_kcpu *cpu)
{
    uint64_t ns = krait_kernel_counted(m, cpu->since, m->now);
    bool busy = cpu->state != KRAIT_CS_IDLE && cpu->state != KRAIT_CS_UNKNOWN;
    cpu->ns[cpu->state] += ns;
    krait_cycles_add(&cpu->cycles, ns, busy ? cpu->khz : 0);
    cpu->since = m->now;
}

void krait_kcpu_begin_irq(struct krait_kernel_states *m, struct krait_kcpu *cpu,
                          const struct krait_kernel_event *ev)
{
    if (!cpu->irqs++) {
        cpu->irq_cause = KRAIT_TS_BLOCKED;
        cpu->irq_device = KRAIT_NO_ID;
    }
    cpu->is_ipi = ev->cls->kind == KRAIT_KERNEL_EVENT_IPI_BEGIN;
}

void krait_kcpu_end_irq(struct krait_kernel_states *m, struct krait_kcpu *cpu,
                        const struct krait_kernel_event *ev)
{
    cpu->irqs -= cpu->irqs > 0;
}

void krait_kcpu_begin_softirq(struct krait_kernel_states *m, struct krait_kcpu *cpu,
                              const struct krait_kernel_event *ev)
{
    cpu->softirqs = 1; /* they do not nest */
    cpu->softirq++;
    cpu->soft_cause = (uint8_t)krait_kernel_softirq_cause(krait_kernel_event_int(ev, 0));
    cpu->soft_device = KRAIT_NO_ID;
}

void krait_kcpu_end_softirq(struct krait_kernel_states *m, struct krait_kcpu *cpu,
                            const struct krait_kernel_event *ev)
{
    cpu->softirqs = 0;
}

void krait_kcpu_cause(struct krait_kcpu *cpu, enum krait_kernel_event_kind kind, uint32_t device)
{
    static const uint8_t causes[KRAIT_KERNEL_EVENT_KINDS] = { [KRAIT_KERNEL_EVENT_TIMER] = KRAIT_TS_TIMER,
                                                              [KRAIT_KERNEL_EVENT_DISK] = KRAIT_TS_DISK,
                                                              [KRAIT_KERNEL_EVENT_NET] = KRAIT_TS_NETWORK };
    if (cpu->irqs) {
        cpu->irq_cause = causes[kind];
        cpu->irq_device = device;
    } else if (cpu->softirqs) {
        cpu->soft_cause = causes[kind];
        cpu->soft_device = device;
    }
}
