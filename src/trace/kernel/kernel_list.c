/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel_list.h"

#include "trace/importer.h"

#include <string.h>

/* ---- from a run ---- */

/* By the kernel's process: the trace's that it is, plus 1. So the other threads of a recorded process, which run no Python,
 * are found beside those that do. The caller frees it; NULL: memory is out. */
static uint32_t *find_processes(const struct krait_trace *trace, const struct krait_kernel_known *known)
{
    const struct krait_kernel_states *states = known->states;
    uint32_t *recorded = calloc((size_t)states->process_count + 1, sizeof(*recorded));
    for (uint32_t i = 0; i < states->thread_count && recorded; i++) {
        const struct krait_kthread *t = states->threads[i];
        uint32_t thread = krait_own_thread_at(&known->own, t, UINT64_MAX);
        if (thread != KRAIT_NO_ID && t->process != KRAIT_NO_ID)
            recorded[t->process] = trace->threads[thread].process + 1;
    }
    return recorded;
}

static void list_thread(struct krait_kernel_listed_thread *to, const struct krait_trace *trace,
                        const struct krait_kernel_known *known, const struct krait_kthread *t,
                        const uint32_t *recorded)
{
    bool has_process = t->process != KRAIT_NO_ID;
    const struct krait_kprocess *process = has_process ? &known->states->processes[t->process] : NULL;
    *to = (struct krait_kernel_listed_thread){
        .tid = (uint32_t)t->tid,
        .pid = process ? (uint32_t)process->pid : 0,
        .thread = krait_own_thread_at(&known->own, t, UINT64_MAX),
        .process = has_process && recorded[t->process] ? recorded[t->process] - 1 : KRAIT_NO_ID,
        .makes_calls = t->makes_calls,
        .runs_functions = t->runs_functions,
        .wakes = t->wakes,
        .says = t->says,
    };
    if (to->thread != KRAIT_NO_ID)
        to->process = trace->threads[to->thread].process;
    snprintf(to->name, sizeof(to->name), "%s", t->name);
    snprintf(to->process_name, sizeof(to->process_name), "%s", process ? process->name : "");
}

int krait_kernel_list_make(struct krait_kernel_list *list, const struct krait_trace *trace,
                           const struct krait_kernel_known *known)
{
    const struct krait_kernel_states *states = known->states;
    struct krait_arena *arena = &trace->impl->arena;
    KRAIT_AUTO_FREE uint32_t *recorded = find_processes(trace, known);
    struct krait_kernel_listed_thread *threads =
        krait_arena_alloc(arena, ((size_t)states->thread_count + 1) * sizeof(*threads));
    struct krait_kernel_listed_cpu *cpus =
        krait_arena_alloc(arena, ((size_t)states->cpu_count + 1) * sizeof(*cpus));
    uint32_t met = 0;
    if (!recorded || !threads || !cpus)
        return -ENOMEM;
    for (uint32_t i = 0; i < states->thread_count; i++)
        list_thread(&threads[i], trace, known, states->threads[i], recorded);
    for (uint32_t i = 0; i < states->cpu_count; i++) {
        if (states->cpus[i].met)
            cpus[met++] = (struct krait_kernel_listed_cpu){ i, states->cpus[i].khz != 0 };
    }
    *list = (struct krait_kernel_list){ .begin_ns = states->begin_ns,
                                        .end_ns = states->end_ns,
                                        .threads = threads,
                                        .cpus = cpus,
                                        .thread_count = states->thread_count,
                                        .cpu_count = met };
    return 0;
}

/* ---- from elsewhere ---- */

static bool thread_fits(const struct krait_kernel_listed_thread *t, const struct krait_trace *trace)
{
    bool is_of_thread = t->thread < trace->thread_count;
    return memchr(t->name, 0, sizeof(t->name)) && memchr(t->process_name, 0, sizeof(t->process_name)) &&
           (is_of_thread || t->thread == KRAIT_NO_ID) &&
           (t->process < trace->process_count || t->process == KRAIT_NO_ID) &&
           (!is_of_thread || t->process == trace->threads[t->thread].process) && t->makes_calls <= 1 &&
           t->runs_functions <= 1 && t->wakes <= 1 && t->says <= 1;
}

bool krait_kernel_list_fits(const struct krait_kernel_list *list, const struct krait_trace *trace)
{
    if (list->begin_ns > list->end_ns)
        return false;
    for (uint32_t i = 0; i < list->thread_count; i++) {
        if (!thread_fits(&list->threads[i], trace))
            return false;
    }
    for (uint32_t i = 0; i < list->cpu_count; i++) {
        const struct krait_kernel_listed_cpu *cpu = &list->cpus[i];
        if ((i && cpu->number <= cpu[-1].number) || cpu->number >= KRAIT_KERNEL_EVENT_CPUS ||
            cpu->has_frequency > 1)
            return false;
    }
    return true;
}

int krait_kernel_list_copy(struct krait_kernel_list *to, const struct krait_trace *trace,
                           const struct krait_kernel_list *from)
{
    size_t thread_bytes = from->thread_count * sizeof(*from->threads),
           cpu_bytes = from->cpu_count * sizeof(*from->cpus);
    struct krait_kernel_listed_thread *threads = krait_arena_alloc(&trace->impl->arena, thread_bytes + 1);
    struct krait_kernel_listed_cpu *cpus = krait_arena_alloc(&trace->impl->arena, cpu_bytes + 1);
    if (!threads || !cpus)
        return -ENOMEM;
    if (thread_bytes)
        memcpy(threads, from->threads, thread_bytes);
    if (cpu_bytes)
        memcpy(cpus, from->cpus, cpu_bytes);
    *to = *from;
    to->threads = threads;
    to->cpus = cpus;
    return 0;
}
