/* SPDX-License-Identifier: Apache-2.0
 *
 * Who has a CPU while others are ready for it.
 */
#include "analysis/kernel_machine.h"

enum { RUNS = 1024 }; /* of a CPU that are known; a power of two */

void krait_kernel_log_run(struct krait_kernel_states *m, struct krait_kcpu *cpu)
{
    if (m->own || (!m->options->watch && !m->options->keep))
        return;
    if (!cpu->runs)
        cpu->runs = krait_arena_alloc(&m->arena, RUNS * sizeof(*cpu->runs));
    m->failed |= !cpu->runs;
    if (cpu->runs)
        cpu->runs[cpu->run_count++ & (RUNS - 1)] =
            (struct krait_krun){ .ns = m->now, .by = cpu->current ? cpu->current->index + 1 : 0 };
}

/* Those beyond the most are not told. */
static uint32_t add(struct krait_khad *had, uint32_t count, uint32_t by, uint64_t ns)
{
    uint32_t i = 0;
    while (i < count && had[i].by != by)
        i++;
    if (i == KRAIT_KHAD_MOST)
        return count;
    if (i == count)
        had[count++] = (struct krait_khad){ .by = by };
    had[i].ns += ns;
    return count;
}

static int by_ns(const void *a, const void *b)
{
    const struct krait_khad *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return (x->by > y->by) - (x->by < y->by);
}

uint32_t krait_kernel_had(const struct krait_kernel_states *m, const struct krait_kthread *t,
                          const struct krait_kcpu *here, int64_t since_ns,
                          struct krait_khad had[KRAIT_KHAD_MOST])
{
    bool is_known = t->ready_on < m->cpu_count && m->cpus[t->ready_on].met;
    const struct krait_kcpu *cpu = is_known ? &m->cpus[t->ready_on] : here;
    uint32_t count = 0;
    int64_t end_ns = m->now;
    if (!cpu || !cpu->runs)
        return 0;
    for (uint32_t k = 0; k < KRAIT_MIN(cpu->run_count, (uint32_t)RUNS) && end_ns > since_ns; k++) {
        const struct krait_krun *run = &cpu->runs[(cpu->run_count - 1 - k) & (RUNS - 1)];
        int64_t begin_ns = KRAIT_MAX(run->ns, since_ns);
        if (run->by && run->by != t->index + 1 && begin_ns < end_ns)
            count = add(had, count, run->by, (uint64_t)(end_ns - begin_ns));
        end_ns = KRAIT_MIN(end_ns, begin_ns);
    }
    qsort(had, count, sizeof(*had), by_ns);
    return count;
}

void krait_kernel_keep_had(struct krait_kernel_states *m, const struct krait_kthread *t,
                           struct krait_kinterval *interval)
{
    struct krait_khad had[KRAIT_KHAD_MOST];
    uint32_t count = krait_kernel_had(m, t, m->here, interval->begin_ns, had);
    interval->had = m->had_count;
    for (uint32_t i = 0; i < count; i++) {
        if (!krait_kernel_grow(m, &m->had, m->had_count, &m->had_cap, sizeof(*m->had)))
            return;
        m->had[m->had_count++] = had[i];
        interval->had_count++;
    }
    if (count && interval->state == KRAIT_TS_PREEMPTED)
        interval->by = had[0].by;
}
