/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel_steal.h"

#include "base/array.h"

enum { MOST_CPUS = KRAIT_KERNEL_EVENT_CPUS };

static struct krait_kernel_steal *steal_of(struct krait_kernel_steals *steals, uint32_t cpu)
{
    if (!KRAIT_GROW(steals->items, steals->cap, cpu + 1))
        return NULL;
    while (steals->count <= cpu)
        steals->items[steals->count++] = (struct krait_kernel_steal){ .read_ns = INT64_MIN };
    return &steals->items[cpu];
}

int krait_kernel_steals_add(struct krait_kernel_steals *steals, const struct krait_kernel_event *ev,
                            int64_t from_ns, int64_t until_ns, const struct krait_ranges *parts)
{
    int64_t cpu = krait_kernel_event_int(ev, 0);
    uint64_t total_ns = (uint64_t)krait_kernel_event_int(ev, 1);
    struct krait_kernel_steal *steal = cpu < 0 || cpu >= MOST_CPUS ? NULL : steal_of(steals, (uint32_t)cpu);
    if (!steal)
        return cpu < 0 || cpu >= MOST_CPUS ? 0 : -ENOMEM;
    int64_t begin_ns = KRAIT_MAX(steal->read_ns, from_ns), end_ns = KRAIT_MIN(ev->ns, until_ns);
    const struct krait_ranges all = { 0 };
    bool some, counts = steal->read_ns != INT64_MIN && begin_ns < end_ns && total_ns > steal->total_ns;
    if (counts)
        steal->stolen_ns += (uint64_t)((unsigned __int128)(total_ns - steal->total_ns) *
                                       krait_ranges_overlap(parts ? parts : &all, (uint64_t)begin_ns,
                                                            (uint64_t)end_ns, &some) /
                                       (uint64_t)(ev->ns - steal->read_ns));
    steal->total_ns = total_ns;
    steal->read_ns = KRAIT_MAX(ev->ns, steal->read_ns);
    return 0;
}

/* -- of a whole trace -- */

struct reading {
    struct krait_kernel_steals *steals;
    const struct krait_ranges *parts;
    int64_t first_ns, last_ns;
    bool done; /* no later reading counts */
    int rc;
};

static void on_begin(void *ctx, int64_t ns)
{
    struct reading *r = ctx;
    r->first_ns = r->last_ns = ns;
}

static void on_from(void *ctx, int64_t ns)
{
    (void)ctx;
    (void)ns;
}

/* Whether each CPU was read behind the last part. */
static bool is_read(const struct reading *r)
{
    uint64_t until_ns = r->parts ? r->parts->items[r->parts->count - 1].to_ns : UINT64_MAX;
    for (uint32_t i = 0; i < r->steals->count; i++) {
        int64_t read_ns = r->steals->items[i].read_ns;
        if (read_ns != INT64_MIN && (uint64_t)read_ns < until_ns)
            return false;
    }
    return true;
}

static void on_steal(void *ctx, const struct krait_kernel_event *ev)
{
    struct reading *r = ctx;
    int rc = krait_kernel_steals_add(r->steals, ev, r->first_ns, INT64_MAX, r->parts);
    r->rc = r->rc ? r->rc : rc;
    r->last_ns = KRAIT_MAX(r->last_ns, ev->ns);
    r->done = is_read(r);
}

int krait_kernel_steals_read(struct krait_kernel_steals *steals, uint64_t *ns,
                             const struct krait_ranges *parts, struct krait_kernel_events *events)
{
    const struct krait_ranges all = { 0 };
    bool some;
    struct reading r = { .steals = steals, .parts = parts && parts->count ? parts : NULL };
    const struct krait_kernel_event_walk walk = { .ctx = &r,
                                                  .until_ns = UINT64_MAX,
                                                  .done = &r.done,
                                                  .begin = on_begin,
                                                  .from = on_from,
                                                  .handlers = { [KRAIT_KERNEL_EVENT_STEAL] = on_steal } };
    int rc = krait_kernel_events_walk(events, &walk);
    *ns = krait_ranges_overlap(r.parts ? r.parts : &all, (uint64_t)r.first_ns, (uint64_t)r.last_ns, &some);
    return rc ? rc : r.rc;
}

bool krait_kernel_steals_known(const struct krait_kernel_steals *steals)
{
    return steals->count;
}

uint64_t krait_kernel_steals_sum(const struct krait_kernel_steals *steals)
{
    uint64_t ns = 0;
    for (uint32_t i = 0; i < steals->count; i++)
        ns += steals->items[i].stolen_ns;
    return ns;
}

void krait_kernel_steals_done(struct krait_kernel_steals *steals)
{
    free(steals->items);
    *steals = (struct krait_kernel_steals){ 0 };
}
