/* SPDX-License-Identifier: Apache-2.0
 *
 * Who has a CPU while others are ready for it. Each CPU has a log of what it ran, as far back as a thread that
 * is asked for is ready for one. A log that would grow without an end, since a thread never gets its CPU, loses
 * its older half: what was then is not known.
 */
#include "base/array.h"
#include "trace/kernel/kernel_machine.h"

#include <string.h>

enum {
    FIRST_RUNS = 1024,
    MOST_RUNS = 1 << 18, /* of a CPU: 4 MiB */
};

/* -- the log of a CPU -- */

/* Since when a thread is ready that may be asked for. */
static int64_t needed_since(const struct krait_kernel_states *m)
{
    bool all = m->options->watch && m->options->watch->asks_who_had;
    int64_t since_ns = m->now;
    for (uint32_t i = 0; i < m->thread_count; i++) {
        const struct krait_kthread *t = m->threads[i];
        if ((all || t->kept) && krait_thread_is_ready((enum krait_thread_state)t->state))
            since_ns = KRAIT_MIN(since_ns, t->since);
    }
    return since_ns;
}

static void drop_first(struct krait_kruns *runs, uint32_t count)
{
    if (!count)
        return; /* there may be none at all */
    runs->count -= count;
    memmove(runs->items, runs->items + count, runs->count * sizeof(*runs->items));
}

/* Of those that began before, the last is needed. */
static void drop_before(struct krait_kruns *runs, int64_t ns)
{
    uint32_t count = 0;
    while (count + 1 < runs->count && runs->items[count + 1].ns <= ns)
        count++;
    drop_first(runs, count);
}

/* Threads are looked at no more often than as many runs have passed. */
static void make_room(struct krait_kernel_states *m, struct krait_kruns *runs)
{
    uint32_t room = KRAIT_MAX((uint32_t)FIRST_RUNS, m->thread_count);
    if (runs->count < runs->cap)
        return;
    drop_before(runs, needed_since(m));
    if (runs->count >= MOST_RUNS)
        drop_first(runs, runs->count - MOST_RUNS / 2);
    m->failed |= !KRAIT_GROW(runs->items, runs->cap, (size_t)runs->count + room);
}

static uint32_t runner_of(const struct krait_kcpu *cpu)
{
    return cpu->current ? cpu->current->index + 1 : cpu->known ? 0 : KRAIT_RUN_UNKNOWN;
}

void krait_kernel_log_run(struct krait_kernel_states *m, struct krait_kcpu *cpu)
{
    bool is_asked_for = m->options->keep || (m->options->watch && m->options->watch->asks_who_had);
    if (m->own || m->ahead || !is_asked_for)
        return;
    make_room(m, &cpu->runs);
    if (!m->failed)
        cpu->runs.items[cpu->runs.count++] = (struct krait_krun){ .ns = m->now, .by = runner_of(cpu) };
}

/* -- who had it -- */

static bool add_run(struct krait_kruns *to, uint32_t first, struct krait_krun run)
{
    if (to->count > first && to->items[to->count - 1].by == run.by)
        return true;
    if (!KRAIT_GROW(to->items, to->cap, (size_t)to->count + 1))
        return false;
    to->items[to->count++] = run;
    return true;
}

/* The first run of the log that reaches beyond a time. */
static uint32_t first_after(const struct krait_kruns *runs, int64_t ns)
{
    /* the first that begins after it */
    uint32_t low = (uint32_t)KRAIT_PARTITION_POINT(i, runs->count, runs->items[i].ns <= ns);
    return low ? low - 1 : 0;
}

bool krait_kernel_who_had(const struct krait_kernel_states *m, const struct krait_kthread *t,
                          const struct krait_kcpu *here, int64_t since_ns, struct krait_kruns *to)
{
    bool is_known = t->ready_on < m->cpu_count && m->cpus[t->ready_on].met;
    const struct krait_kcpu *cpu = is_known ? &m->cpus[t->ready_on] : here;
    uint32_t first = to->count;
    if (!cpu || !cpu->runs.count || since_ns >= m->now)
        return true;
    const struct krait_kruns *runs = &cpu->runs;
    uint32_t i = first_after(runs, since_ns);
    bool fits = runs->items[i].ns <= since_ns ||
                add_run(to, first, (struct krait_krun){ since_ns, KRAIT_RUN_UNKNOWN });
    for (; fits && i < runs->count && runs->items[i].ns < m->now; i++) {
        struct krait_krun run = runs->items[i];
        bool is_last_then = i + 1 == runs->count || runs->items[i + 1].ns > run.ns;
        run.ns = KRAIT_MAX(run.ns, since_ns);
        run.by = run.by == t->index + 1 ? KRAIT_RUN_UNKNOWN : run.by; /* a ready thread runs nowhere */
        fits = !is_last_then || add_run(to, first, run);
    }
    return fits;
}

static int by_whom(const void *a, const void *b)
{
    const struct krait_competitor *x = a, *y = b;
    return (x->by > y->by) - (x->by < y->by);
}

static int by_time(const void *a, const void *b)
{
    const struct krait_competitor *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return by_whom(a, b);
}

/* Those of one thread, which stand together, are one. */
static uint32_t join(struct krait_competitor *had, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (kept && had[kept - 1].by == had[i].by)
            had[kept - 1].ns += had[i].ns;
        else
            had[kept++] = had[i];
    }
    return kept;
}

static void sort(struct krait_competitor *had, uint32_t count, int (*compare)(const void *a, const void *b))
{
    if (count)
        qsort(had, count, sizeof(*had), compare);
}

bool krait_competitors_add(struct krait_competitors *had, const struct krait_krun *runs, uint32_t count,
                           int64_t from_ns, int64_t until_ns)
{
    uint32_t first = had->count;
    for (uint32_t i = 0; i < count; i++) {
        int64_t begin_ns = KRAIT_MAX(runs[i].ns, from_ns);
        int64_t end_ns = i + 1 < count ? KRAIT_MIN(runs[i + 1].ns, until_ns) : until_ns;
        if (begin_ns >= end_ns)
            continue;
        if (!KRAIT_GROW(had->items, had->cap, (size_t)had->count + 1))
            return false;
        had->items[had->count++] =
            (struct krait_competitor){ .by = runs[i].by, .ns = (uint64_t)(end_ns - begin_ns) };
    }
    sort(had->items + first, had->count - first, by_whom);
    had->count = first + join(had->items + first, had->count - first);
    sort(had->items + first, had->count - first, by_time);
    return true;
}

uint32_t krait_competitors_longest(const struct krait_competitor *had, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (had[i].by && had[i].by != KRAIT_RUN_UNKNOWN)
            return had[i].by;
    }
    return 0;
}

/* -- of an interval -- */

void krait_kernel_keep_had(struct krait_kernel_states *m, const struct krait_kthread *t,
                           struct krait_kinterval *interval)
{
    KRAIT_CLEANUP(krait_competitors_done) struct krait_competitors had = { 0 };
    uint32_t first = m->had.count;
    bool fits = krait_kernel_who_had(m, t, m->here, interval->begin_ns, &m->had);
    interval->had = first;
    interval->had_count = m->had.count - first;
    if (fits && interval->state == KRAIT_TS_PREEMPTED)
        fits = krait_competitors_add(&had, m->had.items + first, interval->had_count, interval->begin_ns,
                                     m->now);
    m->failed |= !fits;
    uint32_t by = krait_competitors_longest(had.items, had.count);
    interval->by = by ? by : interval->by;
}
