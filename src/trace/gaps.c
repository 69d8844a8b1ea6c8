/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/gaps.h"

#include "base/array.h"

#include <stdlib.h>

struct parts {
    struct krait_range *items;
    uint32_t count, cap;
};

static int add(struct parts *parts, uint64_t from_ns, uint64_t to_ns)
{
    if (to_ns <= from_ns)
        return 0;
    if (!KRAIT_GROW(parts->items, parts->cap, parts->count + 1))
        return -ENOMEM;
    parts->items[parts->count++] = (struct krait_range){ from_ns, to_ns };
    return 0;
}

/* The parts of the process's life in the range that are outside of its gaps. */
static int add_process(struct parts *parts, const struct krait_process *process, struct krait_range life)
{
    uint64_t from_ns = life.from_ns;
    int rc = 0;
    for (uint32_t i = 0; i < process->gap_count && !rc; i++) {
        rc = add(parts, from_ns, KRAIT_MIN(process->gaps[i].from_ns, life.to_ns));
        from_ns = KRAIT_MAX(from_ns, process->gaps[i].to_ns);
    }
    return rc ? rc : add(parts, from_ns, life.to_ns);
}

static uint32_t count_gaps(const struct krait_process *process, struct krait_range range)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < process->gap_count; i++)
        n += process->gaps[i].from_ns < range.to_ns && process->gaps[i].to_ns > range.from_ns;
    return n;
}

static int by_begin(const void *a, const void *b)
{
    const struct krait_range *x = a, *y = b;
    return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* How long at least one of them lasts. */
static uint64_t covered(struct parts *parts)
{
    uint64_t ns = 0, to_ns = 0;
    if (parts->count)
        qsort(parts->items, parts->count, sizeof(*parts->items), by_begin);
    for (uint32_t i = 0; i < parts->count; i++) {
        const struct krait_range *part = &parts->items[i];
        uint64_t from_ns = KRAIT_MAX(part->from_ns, to_ns);
        ns += part->to_ns > from_ns ? part->to_ns - from_ns : 0;
        to_ns = KRAIT_MAX(to_ns, part->to_ns);
    }
    return ns;
}

int krait_trace_recorded(const struct krait_trace *trace, struct krait_range range,
                         struct krait_recorded *out)
{
    struct parts parts = { 0 };
    struct krait_range all = { UINT64_MAX, 0 };
    int rc = 0;
    *out = (struct krait_recorded){ 0 };
    for (uint32_t i = 0; i < trace->process_count && !rc; i++) {
        const struct krait_process *process = &trace->processes[i];
        const struct krait_range life = { KRAIT_MAX(process->begin_ns, range.from_ns),
                                          KRAIT_MIN(process->end_ns, range.to_ns) };
        if (life.from_ns > life.to_ns)
            continue;
        out->gaps += count_gaps(process, range);
        all.from_ns = KRAIT_MIN(all.from_ns, life.from_ns);
        all.to_ns = KRAIT_MAX(all.to_ns, life.to_ns);
        rc = add_process(&parts, process, life);
    }
    if (!rc && out->gaps) {
        out->ns = covered(&parts);
        out->of_ns = all.to_ns - all.from_ns;
    }
    free(parts.items);
    return rc;
}
