/* SPDX-License-Identifier: Apache-2.0
 *
 * Who ran on the CPUs of a timeline: the names in the lanes of CPUs, for the legend of their colours.
 */
#include "base/array.h"
#include "base/map.h"
#include "view/classes.h"
#include "view/timeline_own.h"

#include <string.h>

/* Idle time and interrupts look like states, which have a legend of their own. */
static bool is_thread(const struct krait_trace *trace, uint32_t name)
{
    return krait_class_of(krait_track_text(trace, name)) >= krait_class_count;
}

static int add_time(struct krait_map *times, const struct krait_trace *trace, uint32_t name, uint64_t ns)
{
    uint64_t *known = krait_map_get(times, name);
    if (known)
        *known += ns;
    return known || !is_thread(trace, name) ? 0 : krait_map_put(times, name, ns);
}

static int add_part(struct krait_map *times, const struct krait_trace *trace, const struct krait_tile *tile)
{
    int rc = 0;
    for (uint32_t i = 0; i < tile->call_count && !rc; i++)
        rc = add_time(times, trace, tile->calls[i].func, tile->calls[i].end_ns - tile->calls[i].begin_ns + 1);
    for (size_t i = 0, n = (size_t)tile->depths * tile->bins; i < n && tile->cells && !rc; i++) {
        if (!krait_tile_bin_is_empty(&tile->cells[i]))
            rc = add_time(times, trace, tile->cells[i].func, tile->cells[i].busy_ns + 1);
    }
    return rc;
}

static int by_time(const void *a, const void *b)
{
    const struct krait_timeline_ran *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return (x->name > y->name) - (x->name < y->name);
}

static int sort(struct krait_timeline_ran **out, uint32_t *count, const struct krait_map *times)
{
    struct krait_timeline_ran *ran = malloc((times->len + 1) * sizeof(*ran));
    uint32_t n = 0;
    for (size_t i = 0; ran && i < times->cap; i++) {
        const struct krait_map_slot *slot = &times->slots[i];
        if (slot->used)
            ran[n++] = (struct krait_timeline_ran){ (uint32_t)slot->key, slot->value };
    }
    if (!ran)
        return -ENOMEM;
    qsort(ran, n, sizeof(*ran), by_time);
    *out = ran;
    *count = n;
    return 0;
}

int krait_timeline_ran(struct krait_timeline_ran **out, uint32_t *count,
                       const struct krait_timeline *timeline)
{
    KRAIT_CLEANUP(krait_map_done) struct krait_map times = { 0 };
    int rc = 0;
    for (uint32_t i = 0; i < timeline->lane_count; i++) {
        const struct krait_timeline_lane *lane = &timeline->lanes[i];
        for (uint32_t k = 0; k < lane->part_count && !rc; k++) {
            const struct krait_track *track = &timeline->trace->tracks[lane->parts[k].track];
            if (track->of == KRAIT_OF_CPU && track->kind == KRAIT_TRACK_STATES)
                rc = add_part(&times, timeline->trace, &lane->parts[k].tile);
        }
    }
    return rc ? rc : sort(out, count, &times);
}
