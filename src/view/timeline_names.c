/* SPDX-License-Identifier: Apache-2.0
 *
 * Names in lanes that have colours by name, for the legend of these colours: threads in the lanes of CPUs, system calls and
 * interrupts.
 */
#include "base/array.h"
#include "base/map.h"
#include "trace/kernel/kernel_tracks.h"
#include "view/classes.h"
#include "view/timeline_own.h"

#include <string.h>

struct adding {
    const struct krait_trace *trace;
    struct krait_range range;
    struct krait_map times; /* by name */
    bool states;            /* idle time and interrupts look like states, which have a legend of their own */
};

static void adding_done(struct adding *a)
{
    krait_map_done(&a->times);
}

static bool has_own_colour(const struct adding *a, uint32_t name)
{
    return !a->states || krait_class_of(krait_track_text(a->trace, name)) >= krait_class_count;
}

static int add_time(struct adding *a, uint32_t name, uint64_t ns)
{
    uint64_t *known = krait_map_get(&a->times, name);
    if (known)
        *known += ns;
    return known || !has_own_colour(a, name) ? 0 : krait_map_put(&a->times, name, ns);
}

/* What of a box is drawn, so that it counts in any case. */
static uint64_t drawn_ns(const struct adding *a, const struct krait_tile_call *call)
{
    uint64_t from_ns = KRAIT_MAX(call->begin_ns, a->range.from_ns),
             to_ns = KRAIT_MIN(call->end_ns, a->range.to_ns);
    return to_ns > from_ns ? to_ns - from_ns + 1 : 1;
}

static int add_part(struct adding *a, const struct krait_tile *tile)
{
    int rc = 0;
    for (uint32_t i = 0; i < tile->call_count && !rc; i++)
        rc = add_time(a, tile->calls[i].func, drawn_ns(a, &tile->calls[i]));
    for (size_t i = 0, n = (size_t)tile->depths * tile->bins; i < n && tile->cells && !rc; i++) {
        if (!krait_tile_bin_is_empty(&tile->cells[i]))
            rc = add_time(a, tile->cells[i].func, tile->cells[i].busy_ns + 1);
    }
    return rc;
}

static bool is_of(const struct krait_track *track, enum krait_timeline_names_of of)
{
    bool is_cpu = track->of == KRAIT_OF_CPU;
    switch (of) {
    case KRAIT_TIMELINE_RAN:
        return is_cpu && track->kind == KRAIT_TRACK_STATES;
    case KRAIT_TIMELINE_INTERRUPTED:
        return is_cpu && track->kind == KRAIT_TRACK_SLICES;
    default:
        return track->kind == KRAIT_TRACK_SLICES && track->of == KRAIT_OF_THREAD &&
               strcmp(track->name, KRAIT_KERNEL_CALLS) == 0;
    }
}

static int by_time(const void *a, const void *b)
{
    const struct krait_timeline_name *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return (x->name > y->name) - (x->name < y->name);
}

static int sort(struct krait_timeline_name **out, uint32_t *count, const struct krait_map *times)
{
    struct krait_timeline_name *names = malloc((times->len + 1) * sizeof(*names));
    uint32_t n = 0;
    for (size_t i = 0; names && i < times->cap; i++) {
        const struct krait_map_slot *slot = &times->slots[i];
        if (slot->used)
            names[n++] = (struct krait_timeline_name){ (uint32_t)slot->key, slot->value };
    }
    if (!names)
        return -ENOMEM;
    qsort(names, n, sizeof(*names), by_time);
    *out = names;
    *count = n;
    return 0;
}

int krait_timeline_names(struct krait_timeline_names *out, const struct krait_timeline *timeline,
                         enum krait_timeline_names_of of)
{
    KRAIT_CLEANUP(adding_done)
    struct adding adding = { .trace = timeline->trace,
                             .range = timeline->range,
                             .states = of == KRAIT_TIMELINE_RAN };
    int rc = 0;
    for (uint32_t i = 0; i < timeline->lane_count; i++) {
        const struct krait_timeline_lane *lane = &timeline->lanes[i];
        for (uint32_t k = 0; k < lane->part_count && !rc; k++) {
            if (is_of(&timeline->trace->tracks[lane->parts[k].track], of))
                rc = add_part(&adding, &lane->parts[k].tile);
        }
    }
    return rc ? rc : sort(&out->items, &out->count, &adding.times);
}
