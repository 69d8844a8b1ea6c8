/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/gil_states.h"

#include "base/array.h"
#include "trace/importer.h"
#include "trace/kernel/kernel.h"

/* The waits of a thread of the kernel's: `ranges`, which have room for `cap`. */
struct waits {
    struct krait_ranges ranges;
    uint32_t cap;
};

struct krait_gil_states {
    const struct krait_trace *trace;
    uint64_t origin_ns;
    uint32_t name;  /* of the waits */
    uint32_t count; /* of the kernel's threads */
    struct waits threads[];
};

static bool add_range(struct waits *waits, struct krait_range range)
{
    if (range.from_ns >= range.to_ns)
        return true;
    if (!KRAIT_GROW(waits->ranges.items, waits->cap, waits->ranges.count + 1))
        return false;
    waits->ranges.items[waits->ranges.count++] = range;
    return true;
}

static uint64_t since(const struct krait_gil_states *gil, uint64_t t_ns)
{
    return t_ns > gil->origin_ns ? t_ns - gil->origin_ns : 0;
}

/* What the kernel does not tell of has no states to be cut. */
static int add_thread(struct krait_gil_states *gil, const struct krait_wall *wall, uint32_t thread)
{
    const struct krait_kthread *t = krait_wall_kthread(wall, thread);
    KRAIT_CLEANUP(krait_wall_track_done) struct krait_wall_track track = { 0 };
    if (!t || !t->interval_count)
        return 0;
    uint64_t first_ns = (uint64_t)t->intervals[0].begin_ns, last_ns = krait_wall_end(wall);
    int rc = krait_wall_track_new(&track, wall, thread);
    for (uint32_t i = 0; i < track.count && !rc; i++) {
        const struct krait_range wait = {
            since(gil, KRAIT_MAX(track.items[i].begin_ns, first_ns)),
            since(gil, KRAIT_MIN(track.items[i + 1].begin_ns, last_ns)),
        };
        if (track.items[i].state == KRAIT_WALL_GIL && !add_range(&gil->threads[t->index], wait))
            rc = -ENOMEM;
    }
    return rc;
}

int krait_gil_states_new(struct krait_gil_states **out, const struct krait_trace *trace,
                         const struct krait_wall *wall, uint64_t origin_ns, struct krait_err *err)
{
    bool has_some = krait_wall_has_kernel(wall) && krait_wall_has_waits(wall);
    uint32_t count = has_some ? krait_wall_states(wall)->thread_count : 0;
    struct krait_gil_states *gil = calloc(1, sizeof(*gil) + count * sizeof(gil->threads[0]));
    if (!gil)
        return krait_err_set(err, -ENOMEM, "out of memory");
    gil->trace = trace;
    gil->origin_ns = origin_ns;
    gil->count = count;
    gil->name = krait_trace_name(trace, KRAIT_TRACK_GIL);
    int rc = gil->name == KRAIT_NO_ID ? -ENOMEM : 0;
    for (uint32_t i = 0; i < trace->thread_count && has_some && !rc; i++)
        rc = add_thread(gil, wall, i);
    if (rc) {
        krait_gil_states_free(gil);
        return krait_err_set(err, rc, "out of memory");
    }
    for (uint32_t i = 0; i < count; i++)
        krait_ranges_join(
            &gil->threads[i].ranges); /* the parts of a wait, and the threads before and after an exec */
    *out = gil;
    return 0;
}

void krait_gil_states_free(struct krait_gil_states *gil)
{
    for (uint32_t i = 0; gil && i < gil->count; i++)
        free(gil->threads[i].ranges.items);
    free(gil);
}

/* The track's key is the index of its thread, the same in each run over the kernel's events. Only kernel traces without calls
 * have several machines. */
static struct krait_ranges waits_of(const struct krait_gil_states *gil, uint32_t id)
{
    const struct krait_track *track = gil ? &gil->trace->tracks[id] : NULL;
    bool is_meant =
        track && krait_kernel_is_thread_states(track) && !track->machine && track->key < gil->count;
    return is_meant ? gil->threads[track->key].ranges : (struct krait_ranges){ 0 };
}

/* A part of an entry, which may be empty, or not touch the range. */
static int add_part(struct krait_name_sums *sums, uint32_t track, struct krait_entry part)
{
    if (part.begin_ns >= part.end_ns || part.begin_ns >= sums->range.to_ns ||
        part.end_ns <= sums->range.from_ns)
        return 0;
    return krait_name_sums_add(sums, track, &part);
}

int krait_gil_states_cut(const struct krait_gil_states *gil, struct krait_name_sums *sums, uint32_t track,
                         const struct krait_entry *entry)
{
    const struct krait_ranges waits = waits_of(gil, track);
    size_t i = KRAIT_PARTITION_POINT(k, waits.count, waits.items[k].to_ns <= entry->begin_ns);
    struct krait_entry part = *entry;
    int rc = 0;
    if (i == waits.count || waits.items[i].from_ns >= entry->end_ns)
        return krait_name_sums_add(sums, track, entry);
    for (; i < waits.count && waits.items[i].from_ns < entry->end_ns && !rc; i++) {
        part.end_ns = waits.items[i].from_ns;
        rc = add_part(sums, track, part);
        part.begin_ns = waits.items[i].to_ns;
    }
    part.end_ns = entry->end_ns;
    return rc ? rc : add_part(sums, track, part);
}

int krait_gil_states_add(const struct krait_gil_states *gil, struct krait_name_sums *sums, uint32_t track)
{
    const struct krait_ranges waits = waits_of(gil, track);
    size_t i = KRAIT_PARTITION_POINT(k, waits.count, waits.items[k].to_ns <= sums->range.from_ns);
    int rc = 0;
    for (; i < waits.count && waits.items[i].from_ns < sums->range.to_ns && !rc; i++)
        rc = add_part(sums, track,
                      (struct krait_entry){ .begin_ns = waits.items[i].from_ns,
                                            .end_ns = waits.items[i].to_ns,
                                            .name = gil->name });
    return rc;
}
