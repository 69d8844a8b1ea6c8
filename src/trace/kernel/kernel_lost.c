/* SPDX-License-Identifier: Apache-2.0
 *
 * What the trace does not have: who ran on a CPU before its first event, and what happened while events were lost.
 */
#include "trace/kernel/kernel_machine.h"

typedef struct krait_kernel_states machine;

static bool is_running(const struct krait_kthread *t)
{
    return krait_thread_runs((enum krait_thread_state)t->state);
}

/* Which system call a thread is in is not known any more. */
static void forget_call(const machine *m, struct krait_kthread *t)
{
    if (t->call_counts && m->watch && m->watch->left)
        m->watch->left(m->watch->ctx, t, false, 0, m->now);
    t->call = KRAIT_NO_ID;
    t->call_counts = t->call_known = t->call_dumped = false;
}

KRAIT_COLD void krait_kernel_doubt(machine *m, struct krait_kthread *t)
{
    int64_t now = m->now;
    for (uint32_t i = m->loss_count; i-- > 0 && m->losses[i] >= t->since;)
        m->now = m->losses[i];
    if (t->doubtful)
        m->now = t->since;
    if (m->now < now)
        krait_kernel_leave(m, t, KRAIT_TS_UNKNOWN);
    m->now = now;
    if (t->state == KRAIT_TS_UNKNOWN)
        forget_call(m, t);
}

void krait_kernel_found_running(machine *m, struct krait_kthread *t)
{
    if (KRAIT_UNLIKELY((m->loss_count || t->doubtful) && !is_running(t) && t->state != KRAIT_TS_UNKNOWN))
        krait_kernel_doubt(m, t);
}

/* Nothing was recorded from now on. Threads that run are handled with their CPUs. */
static KRAIT_COLD void forget_waiting(machine *m)
{
    m->here = NULL;
    for (uint32_t i = 0; i < m->thread_count; i++) {
        struct krait_kthread *t = m->threads[i];
        if (t->ended || t->state == KRAIT_TS_GONE || is_running(t))
            continue;
        krait_kernel_leave(m, t, KRAIT_TS_UNKNOWN);
        forget_call(m, t);
    }
}

/* Events of a CPU are missing from now on, up to its next. */
void krait_kernel_on_lost(void *ctx, const struct krait_kernel_event *ev)
{
    machine *m = ctx;
    struct krait_kcpu *cpu = krait_kernel_happen(m, ev);
    if (!cpu || !KRAIT_KERNEL_GROW(m, m->losses, m->loss_cap, m->loss_count + 1))
        return;
    struct krait_kthread *t = cpu->current;
    m->losses[m->loss_count++] = m->now;
    cpu->irqs = cpu->softirqs = 0;
    cpu->current = NULL;
    cpu->known = false;
    cpu->base = KRAIT_CS_UNKNOWN;
    krait_kernel_settle(m, cpu);
    krait_kernel_log_run(m, cpu);
    if (t && is_running(t)) {
        krait_kernel_leave(m, t, KRAIT_TS_UNKNOWN);
        forget_call(m, t);
    }
    if (krait_kernel_event_has(ev, 0))
        forget_waiting(m);
}

/* Events of a CPU between a state dump and now are missing, as krait record --last drops them: threads that waited may have run
 * there since, and wait in another call. */
static KRAIT_COLD void forget_dumped(const machine *m)
{
    for (uint32_t i = 0; i < m->thread_count; i++) {
        struct krait_kthread *t = m->threads[i];
        if (!t->call_dumped)
            continue;
        t->asleep = KRAIT_TS_BLOCKED;
        t->deep = false;
        t->state_call = KRAIT_NO_ID;
        forget_call(m, t);
    }
}

/* Who runs on a CPU since before its first event. */
void krait_kernel_on_found(void *ctx, const struct krait_kernel_event *ev)
{
    machine *m = ctx;
    struct krait_kcpu *cpu = krait_kernel_happen(m, ev);
    const struct krait_kthread *t = krait_kernel_thread_of(m, krait_kernel_event_int(ev, 0));
    if (cpu && cpu->is_carried)
        return; /* more is known of it */
    if (m->has_dumped)
        forget_dumped(m);
    if (cpu && !cpu->known && !(t && is_running(t)))
        krait_kernel_correct(m, cpu, krait_kernel_event_int(ev, 0));
}

int krait_kernel_no_events(const struct krait_kernel_events *events,
                           const struct krait_kernel_options *options, struct krait_err *err)
{
    const struct krait_err *damage = krait_kernel_events_damage(events);
    bool all = !options->from_ns && options->until_ns == UINT64_MAX;
    if (damage->code)
        return krait_err_set(err, -ENODATA, "%s", damage->text);
    return krait_err_set(err, -ENODATA, "there are no kernel events%s", all ? "" : " in that time");
}
