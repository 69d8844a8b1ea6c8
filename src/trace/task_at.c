/* SPDX-License-Identifier: Apache-2.0
 *
 * In which task's step a thread is at one time. Its events are read backwards, in stretches each as long as all before it, up to
 * one in which a step begins or ends, or behind whose begin the thread's events do not go on.
 */
#include "event/payload.h"
#include "trace/importer.h"
#include "trace/steps.h"
#include "trace/tasks.h"
#include "trace/thread_events.h"

#define FIRST_NS   (10 * KRAIT_NS_PER_MS)
#define MOST_BYTES ((size_t)1 << 30) /* of events, read back: an answer has to come at once */

struct looking {
    struct krait_range range;
    struct krait_steps steps; /* by the tasks' ids */
    struct krait_breaks breaks;
    bool some; /* a step began or ended, or what was before is not known any more */
};

/* Steps that are not stated behind one have ended. */
static void pass_breaks(struct looking *looking, uint64_t t_ns)
{
    if (!krait_breaks_pass(&looking->breaks, t_ns))
        return;
    looking->steps.depth = 0;
    looking->some = true;
}

static int on_event(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    struct looking *looking = ctx;
    struct krait_payload_task_run run;
    struct krait_payload_task_leave leave;
    if (t_ns > looking->range.to_ns)
        return -ERANGE;
    if (t_ns < looking->range.from_ns)
        return 0;
    pass_breaks(looking, t_ns);
    looking->some = true;
    if (id == KRAIT_EVENT_task_run && krait_read_task_run(&payload, &run)) {
        krait_steps_take(&looking->steps, run.task); /* it may be stated again */
        krait_steps_push(&looking->steps, run.task);
    } else if (id == KRAIT_EVENT_task_leave && krait_read_task_leave(&payload, &leave)) {
        looking->steps.depth = krait_steps_take(&looking->steps, leave.task) ? looking->steps.depth : 0;
    }
    return 0;
}

uint32_t krait_task_at(const struct krait_trace *trace, uint32_t thread, uint64_t at_ns)
{
    const struct krait_image *image = krait_image_of(trace, thread);
    struct krait_damage ignored = { 0 }; /* who walks the thread is told */
    struct looking looking = { 0 };
    struct krait_thread_events events = { .fn = on_event, .ctx = &looking };
    events.wanted[KRAIT_EVENT_task_run] = events.wanted[KRAIT_EVENT_task_leave] = true;
    if (!image || !trace->task_count || !krait_thread_events_may_be(&events, trace, thread))
        return KRAIT_NO_ID;
    const struct krait_thread_file *file = &krait_recordings_of(trace)->files[thread];
    size_t end = krait_thread_file_seek(file, at_ns), at;
    uint64_t back_ns = FIRST_NS;
    looking.range.from_ns = at_ns;
    do {
        looking.range = (struct krait_range){ at_ns - KRAIT_MIN(back_ns, at_ns), looking.range.from_ns };
        looking.breaks = krait_breaks_from(trace, thread, looking.range.from_ns);
        krait_thread_events_read(&events, trace, thread, looking.range, &ignored);
        pass_breaks(&looking, looking.range.to_ns);
        at = krait_thread_file_seek(file, looking.range.from_ns);
        back_ns *= 2;
    } while (!looking.some && looking.range.from_ns > trace->threads[thread].begin_ns &&
             end - at < MOST_BYTES);
    const uint64_t *task = krait_map_get(&image->tasks, krait_steps_top(&looking.steps, 0));
    return task ? (uint32_t)*task : KRAIT_NO_ID;
}
