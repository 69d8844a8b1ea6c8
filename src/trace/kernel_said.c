/* SPDX-License-Identifier: Apache-2.0
 *
 * What programs say to the kernel, as instants of their threads: lines that they write to trace_marker, and the probes
 * that they pass. All tracks are filled by one pass, which takes no other events.
 */
#include "ctf/text/event_text.h"
#include "trace/instants.h"
#include "trace/kernel/kernel.h"
#include "trace/kernel/kernel_tracks.h"

struct walk {
    const struct krait_trace *trace;
    struct krait_kernel_events *events;
    struct krait_damage damage;
    struct krait_instants *lanes;
    uint32_t count;
    struct krait_map of; /* the lane, by the thread's number */
    struct krait_lines lines;
    struct krait_buf text;
    int rc;
    bool done;
};

static void fail(struct walk *w, int rc)
{
    w->rc = w->rc ? w->rc : rc;
    w->done = w->rc != 0;
}

/* A moment behind the range is in none of the batches, of which the walk has an end of its own. */
static void on_mark(void *ctx, const struct krait_kernel_event *ev)
{
    struct walk *w = ctx;
    struct krait_ctf_cursor *cursor;
    const uint64_t *lane = krait_map_get(&w->of, (uint64_t)krait_kernel_event_tid(ev));
    if (!lane || w->rc)
        return;
    krait_buf_clear(&w->text);
    int rc = krait_kernel_events_go(w->events, ev, &cursor);
    rc = rc ? rc : krait_event_text(&w->lines, cursor, &w->text);
    if (rc && rc != -ENOMEM)
        krait_damage_say(&w->damage, "an event of the kernel's cannot be read");
    krait_buf_char(&w->text, '\0');
    if (!rc)
        rc = w->text.failed
                 ? -ENOMEM
                 : krait_instants_add(&w->lanes[*lane], (uint64_t)KRAIT_MAX(ev->ns, 0),
                                      krait_trace_name(w->trace, krait_kernel_events_name(w->events, ev)),
                                      w->text.data);
    if (rc == -ENOMEM || rc > 0)
        fail(w, rc);
}

static void on_time(void *ctx, int64_t ns)
{
    (void)ctx;
    (void)ns;
}

static int make_lanes(struct walk *w, const struct krait_track *const *tracks, uint32_t count,
                      const struct krait_walking *walking)
{
    int rc = 0;
    w->lanes = calloc(count, sizeof(*w->lanes));
    for (w->count = 0; !rc && w->lanes && w->count < count; w->count++) {
        const struct krait_track *track = tracks[w->count];
        w->lanes[w->count] = (struct krait_instants){ .track = track, .walking = walking };
        rc = krait_map_put(&w->of, (uint64_t)(int32_t)track->number, w->count);
    }
    return w->lanes ? rc : -ENOMEM;
}

static void walk_done(struct walk *w)
{
    for (uint32_t i = 0; i < w->count; i++)
        krait_instants_done(&w->lanes[i]);
    free(w->lanes);
    krait_map_done(&w->of);
    krait_lines_done(&w->lines);
    krait_buf_done(&w->text);
}

static int walk_machine(const struct krait_trace *trace, uint32_t machine,
                        const struct krait_track *const *tracks, uint32_t count,
                        const struct krait_walking *walking)
{
    KRAIT_CLEANUP(walk_done) struct walk w = { .trace = trace, .damage = walking->damage };
    int rc = krait_trace_kernel_of(trace, machine, &w.events, NULL);
    rc = rc ? rc : make_lanes(&w, tracks, count, walking);
    if (rc)
        return rc;
    uint64_t first = (uint64_t)KRAIT_MAX(krait_kernel_events_first(w.events), 0);
    const struct krait_range *range = &walking->range;
    const struct krait_kernel_event_walk walk = {
        .ctx = &w,
        .until_ns = range->to_ns == UINT64_MAX ? UINT64_MAX : range->to_ns - KRAIT_MIN(first, range->to_ns),
        .done = &w.done,
        .begin = on_time,
        .from = on_time,
        .handlers = { [KRAIT_KERNEL_EVENT_MARK] = on_mark },
    };
    fail(&w, krait_kernel_events_walk(w.events, &walk));
    for (uint32_t i = 0; i < count && !w.rc; i++)
        fail(&w, krait_instants_flush(&w.lanes[i]));
    if (krait_kernel_events_damage(w.events)->code)
        krait_damage_say(&w.damage, "%s", krait_kernel_events_damage(w.events)->text);
    return w.rc;
}

static int walk_all(const struct krait_trace *trace, const struct krait_track *const *tracks, uint32_t count,
                    const struct krait_walking *walking)
{
    return krait_kernel_each_machine(trace, tracks, count, walking, walk_machine);
}

const struct krait_importer krait_importer_kernel_said = { .takes = krait_kernel_takes,
                                                           .kinds = 1 << KRAIT_TRACK_INSTANTS,
                                                           .tracks = krait_kernel_said_find,
                                                           .walk_many = walk_all };
