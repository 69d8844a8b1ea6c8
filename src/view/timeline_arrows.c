/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws the flows between lanes, and the work for executors, as the page does: from the marks of one lane to those of
 * the other.
 */
#include "base/fmt.h"
#include "trace/flows.h"
#include "view/arrows.h"
#include "view/flame_text.h"
#include "view/timeline_own.h"

#include <math.h>
#include <string.h>

enum {
    MOST = 150, /* in a picture */
    FAINT = 40, /* more than so many are fainter */
    COLUMN = 8, /* pixels; see view/arrows.h */
    BEND = 14,  /* pixels: from where on an arrow leads straight to the other lane */
};
#define HEAD_WIDTH  3.5
#define HEAD_HEIGHT 6.0

/* `from` and `to` of its arrows are lanes. */
struct arrows {
    const struct krait_timeline *timeline;
    uint32_t *of_thread, *of_task; /* lanes, by the trace's threads and tasks; KRAIT_NO_ID: not drawn */
    struct krait_arrows found;
};

static void arrows_done(struct arrows *a)
{
    free(a->of_thread);
    free(a->of_task);
    krait_arrows_done(&a->found);
}

static void find_lane(struct arrows *a, uint32_t lane)
{
    const struct krait_track *tracks = a->timeline->trace->tracks;
    const struct krait_timeline_lane *of = &a->timeline->lanes[lane];
    if (of->of == KRAIT_OF_THREAD && tracks[of->track].thread != KRAIT_NO_ID)
        a->of_thread[tracks[of->track].thread] = lane;
    for (uint32_t i = 0; i < of->part_count && of->of == KRAIT_OF_TASK; i++) {
        if (tracks[of->parts[i].track].kind == KRAIT_TRACK_STATES)
            a->of_task[tracks[of->parts[i].track].key] = lane;
    }
}

static int find_lanes(struct arrows *a)
{
    const struct krait_trace *trace = a->timeline->trace;
    size_t threads = (size_t)trace->thread_count + 1, tasks = (size_t)trace->task_count + 1;
    a->of_thread = malloc(threads * sizeof(*a->of_thread));
    a->of_task = malloc(tasks * sizeof(*a->of_task));
    if (!a->of_thread || !a->of_task)
        return -ENOMEM;
    memset(a->of_thread, 0xff, threads * sizeof(*a->of_thread));
    memset(a->of_task, 0xff, tasks * sizeof(*a->of_task));
    for (uint32_t i = 0; i < a->timeline->lane_count; i++)
        find_lane(a, i);
    return 0;
}

static uint32_t lane_of(const struct arrows *a, uint32_t thread, uint32_t task)
{
    return task != KRAIT_NO_ID && a->of_task[task] != KRAIT_NO_ID ? a->of_task[task] : a->of_thread[thread];
}

static int add_flow(void *ctx, const struct krait_flow *flow)
{
    struct arrows *a = ctx;
    uint32_t from = lane_of(a, flow->from, flow->from_task), to = lane_of(a, flow->to, flow->to_task);
    if (from == KRAIT_NO_ID || to == KRAIT_NO_ID || from == to)
        return 0;
    return krait_arrows_add(&a->found,
                            (struct krait_arrow){ flow->t_ns, flow->end_ns, from, to, flow->function });
}

/* At the edge of the picture, if the time is not in it. */
static double edge_x(const struct krait_drawing *d, uint64_t t_ns)
{
    const struct krait_range *range = &d->timeline->range;
    return krait_timeline_x(d, KRAIT_MIN(KRAIT_MAX(t_ns, range->from_ns), range->to_ns));
}

static void put_end(struct krait_drawing *d, uint32_t lane, uint64_t t_ns)
{
    krait_timeline_lane_name(d->to, d->timeline, &d->timeline->lanes[lane]);
    krait_buf_str(d->to, " at ");
    krait_timeline_put_time(d, t_ns);
}

static void draw_arrow(struct krait_drawing *d, const struct krait_arrow *arrow, const char *class)
{
    const struct krait_timeline_ends *from = &d->ends[arrow->from], *to = &d->ends[arrow->to];
    bool is_down = to->above > from->above;
    double x0 = edge_x(d, arrow->t_ns), x1 = edge_x(d, arrow->end_ns), down = is_down ? 1 : -1;
    double y0 = is_down ? from->below : from->above, y1 = is_down ? to->above : to->below;
    krait_buf_fmt(d->to, "<g class=\"%s\"><path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>", class, x0,
                  y0, x0, y0 + down * BEND, x1, y1 - down * BEND, x1, y1);
    if (arrow->end_ns <= d->timeline->range.to_ns)
        krait_buf_fmt(d->to, "<path class=\"head\" d=\"M%.1f %.1fl%.1f %.1fh%.1fz\"/>", x1, y1, -HEAD_WIDTH,
                      -down * HEAD_HEIGHT, 2 * HEAD_WIDTH);
    krait_buf_str(d->to, "<title>");
    if (arrow->function) {
        krait_text_xml_raw(d->to, arrow->function);
        krait_buf_char(d->to, '\n');
    }
    krait_buf_str(d->to, "from ");
    put_end(d, arrow->from, arrow->t_ns);
    krait_buf_str(d->to, "\nto ");
    put_end(d, arrow->to, arrow->end_ns);
    krait_buf_str(d->to, "</title></g>\n");
}

int krait_timeline_draw_arrows(struct krait_drawing *d)
{
    const struct krait_timeline *timeline = d->timeline;
    const struct krait_range *range = &timeline->range;
    const uint64_t ns = range->to_ns - range->from_ns;
    KRAIT_CLEANUP(arrows_done)
    struct arrows a = { .timeline = timeline,
                        .found = { .from_ns = range->from_ns,
                                   .ns = ns,
                                   .column_ns = krait_arrows_column(ns, (uint64_t)d->width / COLUMN),
                                   .most = MOST } };
    int rc = find_lanes(&a);
    rc = rc ? rc : krait_flows_each(timeline->trace, *range, add_flow, &a);
    for (uint32_t i = 0; i < a.found.count && !rc; i++)
        draw_arrow(d, &a.found.items[i], a.found.count > FAINT ? "arrow faint" : "arrow");
    d->arrows = a.found.count;
    d->more_arrows = a.found.more;
    return rc;
}
