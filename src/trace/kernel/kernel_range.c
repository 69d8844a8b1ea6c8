/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel_machine.h"

#include <string.h>

void krait_kernel_count_from(void *ctx, int64_t ns)
{
    struct krait_kernel_states *m = ctx;
    m->begin_ns = ns;
    m->now = KRAIT_MAX(m->now, ns);
    for (uint32_t i = 0; i < m->thread_count; i++) {
        memset(m->threads[i]->ns, 0, sizeof(m->threads[i]->ns));
        m->threads[i]->cycles = (struct krait_cycles){ 0 };
        m->threads[i]->doubtful |= m->loss_count && m->losses[m->loss_count - 1] >= m->threads[i]->since;
        m->threads[i]->since = ns;
        m->threads[i]->waited_ns = 0;
        m->threads[i]->interval_count = 0;
    }
    for (uint32_t i = 0; i < m->cpu_count; i++) {
        memset(m->cpus[i].ns, 0, sizeof(m->cpus[i].ns));
        m->cpus[i].cycles = (struct krait_cycles){ 0 };
        m->cpus[i].since = ns;
    }
    for (uint32_t i = 0; i < m->steals.count; i++)
        m->steals.items[i].stolen_ns = 0;
    for (uint32_t i = 0; i < m->stats_count; i++) {
        m->stats[i].errors = 0;
        krait_spread_done(&m->stats[i].took);
    }
    for (uint32_t i = 0; i < KRAIT_LATENCIES; i++)
        krait_spread_done(&m->latencies[i]);
    m->watch = m->options->watch;
    if (m->watch)
        m->watch->begin(m->watch->ctx, m);
}

void krait_kernel_name_processes(struct krait_kernel_states *m)
{
    for (uint32_t i = 0; i < m->process_count; i++)
        m->processes[i].name[0] = '\0'; /* of an earlier end */
    for (uint32_t i = 0; i < m->thread_count; i++) {
        const struct krait_kthread *t = m->threads[i];
        struct krait_kprocess *process = t->process == KRAIT_NO_ID ? NULL : &m->processes[t->process];
        if (process && t->name[0] && (t->tid == process->pid || !process->name[0]))
            memcpy(process->name, t->name, sizeof(process->name));
    }
}

/* Later events may change what it is: the next run takes it off again. */
void krait_kernel_keep_now(struct krait_kernel_states *m, int64_t ns)
{
    int64_t last_ns = m->now;
    m->settled_had = m->had.count;
    m->now = m->end_ns = ns;
    m->here = NULL; /* a ready thread need not wait for the CPU of the last event */
    for (uint32_t i = 0; i < m->thread_count && m->options->keep; i++) {
        struct krait_kthread *t = m->threads[i];
        t->settled_intervals = t->interval_count;
        if (t->kept)
            krait_kernel_keep_interval(m, t, krait_kthread_state_now(m, t));
    }
    m->now = last_ns;
}

void krait_kernel_forget_now(struct krait_kernel_states *m)
{
    m->had.count = m->settled_had;
    for (uint32_t i = 0; i < m->thread_count; i++)
        m->threads[i]->interval_count = m->threads[i]->settled_intervals;
}

void krait_kernel_states_free(struct krait_kernel_states *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->stats_count; i++)
        krait_spread_done(&m->stats[i].took);
    for (uint32_t i = 0; i < KRAIT_LATENCIES; i++)
        krait_spread_done(&m->latencies[i]);
    for (uint32_t i = 0; i < m->thread_count; i++)
        free(m->threads[i]->intervals);
    free(m->threads);
    free(m->processes);
    free(m->stats);
    free(m->losses);
    free(m->kinds);
    for (uint32_t i = 0; i < m->cpu_count; i++)
        free(m->cpus[i].runs.items);
    free(m->cpus);
    free(m->had.items);
    krait_kernel_steals_done(&m->steals);
    krait_kernel_ahead_free(m);
    krait_strtab_done(&m->calls);
    krait_strtab_done(&m->devices);
    krait_map_done(&m->disk_names);
    krait_map_done(&m->by_tid);
    krait_map_done(&m->by_pid);
    krait_map_done(&m->by_call);
    krait_arena_done(&m->arena);
    free(m);
}
