/* SPDX-License-Identifier: Apache-2.0
 *
 * Children that have ended before krait looked for processes: how much CPU time they took, and how many there were, where the
 * kernel tells. What a process has used goes to its parent when that waits for it (cutime and cstime, proc(5)). What goes there and
 * is of no process that krait has seen was used by those children.
 */
#include "cmd/top.h"

#include <unistd.h>

enum { ENDED, RUNS }; /* values of `born`: it has ended or been seen, or not yet */

void top_unseen_open(struct top_unseen *unseen)
{
    if (krait_births_open(&unseen->births))
        unseen->births = NULL;
}

void top_unseen_done(struct top_unseen *unseen)
{
    krait_births_free(unseen->births);
    krait_map_done(&unseen->born);
}

/* -- how many -- */

static bool is_read(const struct top_processes *processes, pid_t pid)
{
    bool is = false;
    for (uint32_t i = 0; i < processes->count && !is; i++)
        is = processes->items[i].pid == pid && !processes->items[i].ended;
    return is;
}

static void note_birth(struct top_processes *processes, const struct krait_birth *birth)
{
    struct top_unseen *unseen = &processes->unseen;
    const uint64_t *of_parent = krait_map_get(&unseen->born, (uint64_t)birth->parent);
    bool is_ours = (of_parent && *of_parent == RUNS) || is_read(processes, birth->parent);
    krait_map_trim(&unseen->born, &unseen->most_born);
    if (is_ours && krait_map_put(&unseen->born, (uint64_t)birth->pid, RUNS))
        return; /* one less is counted */
}

static void note_end(struct top_unseen *unseen, pid_t pid)
{
    uint64_t *state = krait_map_get(&unseen->born, (uint64_t)pid);
    if (!state || *state != RUNS)
        return;
    *state = ENDED;
    unseen->sum.count++;
}

static void take_births(struct top_processes *processes)
{
    struct top_unseen *unseen = &processes->unseen;
    struct krait_birth birth;
    while (unseen->births && krait_births_next(unseen->births, &birth)) {
        if (birth.ends)
            note_end(unseen, birth.pid);
        else
            note_birth(processes, &birth);
    }
}

void top_unseen_saw(struct top_unseen *unseen, pid_t pid)
{
    uint64_t *state = krait_map_get(&unseen->born, (uint64_t)pid);
    if (state)
        *state = ENDED;
}

/* -- their CPU time -- */

/* The times are in whole ticks of user space, 100 a second, user and kernel each. */
static const uint64_t rounding_ns = 20 * KRAIT_NS_PER_MS;

/* What it has used, and since the last look can have used at most: that goes to its parent now. */
static void note_gone(struct top_unseen *unseen, struct top_process *process, uint64_t now_ns)
{
    uint64_t until = process->ended ? process->ended_ns : now_ns;
    uint64_t since = process->looked_ns && until > process->looked_ns ? until - process->looked_ns : 0;
    uint64_t cpus = KRAIT_MIN((uint64_t)sysconf(_SC_NPROCESSORS_ONLN), (uint64_t)process->times.threads);
    process->gone = true;
    unseen->seen_ns += process->times.own + process->times.children + since * cpus + rounding_ns;
}

/* One that has ended is looked at until its parent has waited for it. */
static void look(struct top_unseen *unseen, struct top_process *process, uint64_t now_ns)
{
    struct krait_task_times now;
    if (process->gone)
        return;
    if (!krait_task_times(process->pid, &now)) {
        note_gone(unseen, process, now_ns);
        return;
    }
    /* those that were there when krait came have waited for children before */
    bool is_old = !process->looked_ns && !unseen->has_begun;
    uint64_t before = is_old ? now.children : process->times.children;
    unseen->waited_ns += now.children > before ? now.children - before : 0;
    process->times = now;
    process->looked_ns = now_ns;
}

/* Parents stand before their children: when a process is gone, its parent has the time at the next look at the latest. */
void top_unseen_look(struct top_processes *processes, uint64_t now_ns)
{
    struct top_unseen *unseen = &processes->unseen;
    if (!processes->with_children)
        return;
    take_births(processes);
    for (uint32_t i = 0; i < processes->count; i++)
        look(unseen, &processes->items[i], now_ns);
    uint64_t seen = KRAIT_MIN(unseen->waited_ns, unseen->seen_ns + unseen->late_ns);
    unseen->sum.cpu_ns += unseen->waited_ns - seen;
    unseen->late_ns = KRAIT_MIN(unseen->seen_ns, unseen->seen_ns + unseen->late_ns - seen);
    unseen->seen_ns = unseen->waited_ns = 0;
    unseen->has_begun = true;
}
