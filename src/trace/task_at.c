/* SPDX-License-Identifier: Apache-2.0
 *
 * In which task's step a thread is at one time. Its events are read from further and further back, up to that time, until
 * they tell. That no step is known proves nothing: an inner one may have ended (an eager task's, Python 3.12), and the
 * outer one is not stated again. So then they are read from where events are missing, or from the thread's begin.
 *
 * Below that: which tasks a thread runs, and what a task is called.
 */
#include "base/array.h"
#include "event/steps.h"
#include "trace/importer.h"
#include "trace/tasks.h"
#include "trace/thread_events.h"

#include <string.h>

/* Of events, before the packet that the time lies in; an answer has to come at once. */
#define FIRST_BYTES ((size_t)64 << 10)
#define MOST_BYTES  ((size_t)1 << 30)
#define TIMES       4 /* as many as the time before */

struct looking {
    struct krait_range range;
    struct krait_steps steps; /* by the tasks' ids */
    struct krait_breaks breaks;
    bool is_whole; /* what was before does not hold any more */
};

/* Steps that are not stated behind one have ended. */
static void pass_breaks(struct looking *looking, uint64_t t_ns)
{
    if (!krait_breaks_pass(&looking->breaks, t_ns))
        return;
    looking->steps.depth = 0;
    looking->is_whole = true;
}

static int on_event(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    struct looking *looking = ctx;
    if (t_ns > looking->range.to_ns)
        return -ERANGE;
    if (t_ns < looking->range.from_ns)
        return 0;
    pass_breaks(looking, t_ns);
    krait_steps_follow(&looking->steps, id, payload);
    return 0;
}

/* Reads from a packet on. Returns whether that tells which step it is, if any. */
static bool look_from(struct looking *looking, const struct krait_trace *trace, uint32_t thread,
                      uint32_t packet, uint64_t at_ns)
{
    struct krait_thread_events events = { .fn = on_event, .ctx = looking };
    struct krait_damage ignored = { 0 }; /* who walks the thread is told */
    events.wanted[KRAIT_EVENT_task_run] = events.wanted[KRAIT_EVENT_task_leave] = true;
    uint64_t from_ns = packet ? krait_recordings_of(trace)->files[thread].packets[packet].begin_ns : 0;
    *looking =
        (struct looking){ .range = { from_ns, at_ns }, .breaks = krait_breaks_from(trace, thread, from_ns) };
    krait_thread_events_read(&events, trace, thread, looking->range, &ignored);
    pass_breaks(looking, at_ns);
    return looking->steps.depth || looking->is_whole || !packet;
}

uint32_t krait_task_at(const struct krait_trace *trace, uint32_t thread, uint64_t at_ns)
{
    const struct krait_image *image = krait_image_of(trace, thread);
    if (!image || !trace->task_count)
        return KRAIT_NO_ID;
    const struct krait_thread_file *file = &krait_recordings_of(trace)->files[thread];
    const struct krait_packet_place *packets = file->packets;
    uint32_t count = (uint32_t)KRAIT_PARTITION_POINT(i, file->packet_count, packets[i].begin_ns <= at_ns);
    uint32_t last = count && !file->goes_back ? count - 1 : 0;
    struct looking looking;
    bool told = false;
    for (size_t back = FIRST_BYTES; !told && back <= MOST_BYTES; back *= TIMES) {
        uint32_t first =
            (uint32_t)KRAIT_PARTITION_POINT(i, last, packets[i].offset + back < packets[last].offset);
        told = look_from(&looking, trace, thread, first, at_ns);
    }
    const uint64_t *task = krait_map_get(&image->tasks, krait_steps_top(&looking.steps, 0));
    return task ? (uint32_t)*task : KRAIT_NO_ID;
}

/* -- all that a thread runs -- */

struct ran {
    const struct krait_image *image;
    bool *tasks;
};

static int note_ran(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    struct ran *ran = ctx;
    struct krait_payload_task_run run;
    const uint64_t *task =
        krait_read_task_run(&payload, &run) ? krait_map_get(&ran->image->tasks, run.task) : NULL;
    if (task)
        ran->tasks[*task] = true;
    return 0;
}

void krait_tasks_of(const struct krait_trace *trace, uint32_t thread, bool *tasks)
{
    struct ran ran = { krait_image_of(trace, thread), tasks };
    struct krait_thread_events events = { .fn = note_ran, .ctx = &ran };
    struct krait_damage ignored = { 0 }; /* who walks the thread is told */
    events.wanted[KRAIT_EVENT_task_run] = true;
    if (ran.image && trace->task_count && krait_thread_events_may_be(&events, trace, thread))
        krait_thread_events_read(&events, trace, thread, KRAIT_RANGE_ALL, &ignored);
}

/* -- greenlets -- */

uint32_t krait_task_parent_at(const struct krait_task *task, uint64_t at_ns)
{
    uint32_t i = 0;
    while (i < KRAIT_ARRAY_LEN(task->parents) && task->parents[i].from_ns > at_ns)
        i++;
    return i < KRAIT_ARRAY_LEN(task->parents) ? task->parents[i].id : KRAIT_NO_ID;
}

/* -- what it is called -- */

bool krait_task_has_name(const struct krait_task *task)
{
    return krait_task_is_named(task->name);
}

bool krait_task_takes(struct krait_trace *trace, struct krait_track *track, uint32_t task)
{
    track->of = KRAIT_OF_TASK;
    track->number = trace->tasks[task].id;
    track->thread_name = krait_task_label(trace, &trace->tasks[task]);
    return track->thread_name != NULL;
}

const char *krait_task_label_in(struct krait_arena *arena, const struct krait_trace *trace,
                                const struct krait_task *task)
{
    const char *func = task->func == KRAIT_NO_ID ? "" : trace->funcs[task->func].name;
    bool has_name = krait_task_has_name(task);
    if (*func && strcmp(task->name, "?") == 0)
        return krait_arena_strdup(arena, func);
    return krait_arena_fmt(arena, "%s%s%s", has_name ? task->name : func, *func ? " " : "",
                           has_name ? func : task->name);
}

const char *krait_task_label(struct krait_trace *trace, const struct krait_task *task)
{
    return krait_task_label_in(&trace->impl->arena, trace, task);
}
