/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/span_lanes.h"

#include "base/array.h"

#include <errno.h>

/* How many of the lane's last spans lie within one that begins then. */
static uint32_t within(const struct krait_span_lane *lane, uint64_t begin_ns)
{
    uint32_t n = 0;
    while (n < lane->n && lane->known[lane->n - 1 - n].begin_ns >= begin_ns)
        n++;
    return n;
}

/* One that ends after such a span has begun, and began before it. */
static bool crosses(const struct krait_span_lane *lane, uint64_t begin_ns)
{
    uint32_t n = within(lane, begin_ns);
    return n < lane->n && lane->known[lane->n - 1 - n].end_ns > begin_ns;
}

/* What ended before it cannot be crossed any more. */
static void forget(struct krait_span_lane *lane, uint64_t oldest_ns)
{
    enum { SOME = 64 };
    uint32_t n = 0;
    if (lane->n < SOME)
        return;
    while (n < lane->n && lane->known[n].end_ns <= oldest_ns)
        n++;
    memmove(lane->known, lane->known + n, (lane->n - n) * sizeof(*lane->known));
    lane->n -= n;
}

static bool add(struct krait_span_lane *lane, uint64_t begin_ns, uint64_t end_ns)
{
    lane->n -= within(lane, begin_ns);
    if (!KRAIT_GROW(lane->known, lane->cap, lane->n + 1))
        return false;
    lane->known[lane->n++] = (struct krait_span_known){ begin_ns, end_ns };
    return true;
}

int krait_span_lanes_put(struct krait_span_lanes *lanes, uint64_t begin_ns, uint64_t end_ns,
                         uint64_t oldest_ns)
{
    uint32_t i = 0;
    while (i + 1 < KRAIT_SPAN_LANES && i < lanes->count && crosses(&lanes->lanes[i], begin_ns))
        i++;
    if (!KRAIT_GROW_FILLED(lanes->lanes, lanes->cap, i + 1, 0))
        return -ENOMEM;
    lanes->count = KRAIT_MAX(lanes->count, i + 1);
    forget(&lanes->lanes[i], oldest_ns);
    return add(&lanes->lanes[i], begin_ns, end_ns) ? (int)i : -ENOMEM;
}

void krait_span_lanes_done(struct krait_span_lanes *lanes)
{
    for (uint32_t i = 0; i < lanes->count; i++)
        free(lanes->lanes[i].known);
    free(lanes->lanes);
    *lanes = (struct krait_span_lanes){ 0 };
}
