/* SPDX-License-Identifier: Apache-2.0
 *
 * Switches of one program's threads, from perf events: what else runs is not told.
 */
#include "trace/kernel/kernel_machine.h"

typedef struct krait_kernel_states machine;

static void take_off(machine *m, struct krait_kcpu *cpu, const struct krait_kernel_event *ev,
                     enum krait_thread_state to)
{
    struct krait_kthread *t = krait_kernel_thread_of(m, krait_kernel_event_int(ev, 0));
    if (!t)
        return;
    krait_kernel_expect(m, cpu, t);
    krait_kernel_found_running(m, t);
    krait_kernel_leave(m, t, to);
    cpu->current = NULL;
    cpu->base = KRAIT_CS_UNKNOWN;
}

void krait_kernel_run_thread(machine *m, struct krait_kcpu *cpu, const struct krait_kernel_event *ev)
{
    struct krait_kthread *t = krait_kernel_thread_of(m, krait_kernel_event_int(ev, 0));
    krait_kernel_expect(m, cpu, t);
    if (t) {
        krait_kernel_set_process(m, t, krait_kernel_event_int(ev, 1));
        t->waited_ns = t->state == KRAIT_TS_BLOCKED ? krait_kernel_counted(m, t->since, m->now) : 0;
    }
    krait_kernel_put_on(m, cpu, t);
}

/* A fault is told when its page is there. Where the disk had it, that is what the thread was blocked on just now. */
void krait_kernel_fault_thread(machine *m, struct krait_kcpu *cpu, const struct krait_kernel_event *ev)
{
    struct krait_kthread *t = krait_kernel_thread_of(m, krait_kernel_event_tid(ev));
    uint64_t waited = t && krait_kernel_event_int(ev, 0) ? t->waited_ns : 0;
    if (!t)
        return;
    t->waited_ns = 0;
    if (waited && m->ahead)
        krait_kernel_waited_for_page(m, t, waited);
    t->ns[KRAIT_TS_BLOCKED] -= waited;
    t->ns[KRAIT_TS_FAULT] += waited;
    if (waited && t->interval_count && t->intervals[t->interval_count - 1].state == KRAIT_TS_BLOCKED)
        t->intervals[t->interval_count - 1].state = KRAIT_TS_FAULT;
}

void krait_kernel_leave_thread(machine *m, struct krait_kcpu *cpu, const struct krait_kernel_event *ev)
{
    take_off(m, cpu, ev, krait_kernel_event_int(ev, 1) ? KRAIT_TS_PREEMPTED : KRAIT_TS_BLOCKED);
}

void krait_kernel_end_thread(machine *m, struct krait_kcpu *cpu, const struct krait_kernel_event *ev)
{
    take_off(m, cpu, ev, KRAIT_TS_GONE);
}

/* A thread names itself, or another: then it is not the one that runs here. */
void krait_kernel_name_running(machine *m, struct krait_kcpu *cpu, const struct krait_kernel_event *ev)
{
    struct krait_kthread *t = krait_kernel_thread_of(m, krait_kernel_event_int(ev, 0));
    if (!t)
        return;
    krait_kernel_name_thread(t, ev, 1);
    krait_kernel_set_process(m, t, krait_kernel_event_int(ev, 2));
    if (t->tid == krait_kernel_event_tid(ev) && cpu->current != t) {
        krait_kernel_expect(m, cpu, t);
        krait_kernel_put_on(m, cpu, t);
    }
}
