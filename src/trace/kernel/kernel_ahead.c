/* SPDX-License-Identifier: Apache-2.0
 *
 * Behind the range: what ends the waits that go on at its end tells what those threads waited for in it. The machine
 * goes on with all threads and CPUs, and gets them back as they were; only what was learned of the waits is kept.
 */
#include "trace/kernel/kernel_machine.h"

#include <string.h>

struct krait_kernel_ahead {
    struct krait_kthread *threads; /* as they were at the range's end */
    struct krait_kcpu *cpus;
    uint32_t thread_count, process_count, cpu_count;
    /* waits of which it is not known yet what for, and CPUs whose steal time was not read yet */
    uint32_t pending;
};

static bool waits(const struct krait_kthread *t)
{
    return t->state == KRAIT_TS_BLOCKED;
}

/* Whether there is something to learn of how its wait ends. */
static bool is_pending(const struct krait_kernel_states *m, const struct krait_kthread *t)
{
    return waits(t) && (krait_kernel_told(m, t) == KRAIT_TS_BLOCKED || (m->options->wakers && !t->ended_ns));
}

void krait_kernel_look_ahead(struct krait_kernel_states *m)
{
    struct krait_kernel_ahead *ahead = m->ahead = calloc(1, sizeof(*ahead));
    m->failed |= !ahead;
    if (!ahead)
        return;
    ahead->threads = calloc((size_t)m->thread_count + 1, sizeof(*ahead->threads));
    ahead->cpus = calloc((size_t)m->cpu_count + 1, sizeof(*ahead->cpus));
    m->failed |= !ahead->threads || !ahead->cpus;
    if (m->failed)
        return;
    ahead->thread_count = m->thread_count;
    ahead->process_count = m->process_count;
    ahead->cpu_count = m->cpu_count;
    if (m->cpu_count)
        memcpy(ahead->cpus, m->cpus, m->cpu_count * sizeof(*m->cpus));
    for (uint32_t i = 0; i < m->thread_count; i++) {
        struct krait_kthread *t = m->threads[i];
        ahead->threads[i] = *t;
        ahead->pending += is_pending(m, t);
        t->kept = false;
    }
    for (uint32_t i = 0; i < m->steals.count; i++)
        ahead->pending += m->steals.items[i].read_ns != INT64_MIN;
    m->is_over = !ahead->pending;
}

void krait_kernel_reads_steal(struct krait_kernel_states *m, const struct krait_kernel_event *ev)
{
    int64_t cpu = krait_kernel_event_int(ev, 0);
    bool is_next = cpu >= 0 && cpu < m->steals.count && m->steals.items[cpu].read_ns != INT64_MIN &&
                   m->steals.items[cpu].read_ns < m->end_ns;
    if (is_next)
        m->is_over = m->ahead->pending && !--m->ahead->pending;
}

/* Of a thread as it was, where the wait that goes on at the range's end began then; else NULL. */
static struct krait_kthread *who_waits(const struct krait_kernel_states *m, const struct krait_kthread *t,
                                       int64_t since_ns)
{
    const struct krait_kernel_ahead *ahead = m->ahead;
    struct krait_kthread *was = t->index < ahead->thread_count ? &ahead->threads[t->index] : NULL;
    return was && waits(was) && was->since == since_ns ? was : NULL;
}

static void know_end(const struct krait_kernel_states *m, struct krait_kthread *was, uint32_t by)
{
    const struct krait_kcpu *cpu = m->here;
    bool in_interrupt = cpu && (cpu->irqs || cpu->softirqs);
    was->ended_ns = m->now;
    was->ended_by = by <= m->ahead->thread_count ? by : 0;
    was->ended_cause = !in_interrupt ? (uint8_t)KRAIT_TS_COUNT : cpu->irqs ? cpu->irq_cause : cpu->soft_cause;
    was->ended_device = !in_interrupt ? KRAIT_NO_ID : cpu->irqs ? cpu->irq_device : cpu->soft_device;
    was->ended_ipi = in_interrupt && cpu->irqs && cpu->is_ipi;
}

void krait_kernel_ends_wait(struct krait_kernel_states *m, const struct krait_kthread *t,
                            enum krait_thread_state as, uint32_t by)
{
    struct krait_kthread *was = who_waits(m, t, t->since);
    if (!was || !is_pending(m, was))
        return;
    if (krait_kernel_told(m, was) == KRAIT_TS_BLOCKED)
        was->state = (uint8_t)as;
    know_end(m, was, by);
    m->is_over = m->ahead->pending && !--m->ahead->pending;
}

void krait_kernel_waited_for_page(const struct krait_kernel_states *m, const struct krait_kthread *t,
                                  uint64_t waited_ns)
{
    struct krait_kthread *was = who_waits(m, t, t->since - (int64_t)waited_ns);
    if (was)
        was->state = KRAIT_TS_FAULT;
}

/* Threads are found by their numbers as at the range's end. */
static void find_again(struct krait_kernel_states *m)
{
    krait_map_done(&m->by_tid);
    for (uint32_t i = 0; i < m->thread_count; i++) {
        struct krait_kthread *t = m->threads[i];
        m->failed |= krait_map_put(&m->by_tid, (uint32_t)t->tid, (uintptr_t)t) != 0;
    }
}

void krait_kernel_look_back(struct krait_kernel_states *m)
{
    const struct krait_kernel_ahead *ahead = m->ahead;
    if (!ahead || m->failed)
        return;
    m->thread_count = ahead->thread_count;
    m->process_count = ahead->process_count;
    m->cpu_count = ahead->cpu_count;
    m->now = m->end_ns;
    for (uint32_t i = 0; i < ahead->thread_count; i++)
        *m->threads[i] = ahead->threads[i];
    if (ahead->cpu_count)
        memcpy(m->cpus, ahead->cpus, ahead->cpu_count * sizeof(*m->cpus));
    find_again(m);
    krait_kernel_ahead_free(m);
}

void krait_kernel_ahead_free(struct krait_kernel_states *m)
{
    if (!m->ahead)
        return;
    free(m->ahead->threads);
    free(m->ahead->cpus);
    free(m->ahead);
    m->ahead = NULL;
}
