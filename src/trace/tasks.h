/* SPDX-License-Identifier: Apache-2.0
 *
 * What tasks of asyncio and trio, and greenlets, do, from krait's events: the states of their tracks.
 *
 *   running   a thread runs a step of it
 *   ready     what it waited for is there, or it waits for nothing: it is its loop's turn
 *   the rest  it waits: for a timer, a lock, a queue, a socket, a child process, another task, or a future of which no
 *             more is known
 *
 *   switch    a greenlet: another one runs, and no more is known
 *
 * krait derives what a future stands for from the innermost coroutine that waits for it: asyncio.sleep waits for a timer, a
 * coroutine of asyncio.locks for a lock. In trio that is the innermost one outside of trio/_core/_traps.py, because every wait
 * goes through that file. What a greenlet waits for follows from the function in which it switched. The tables are in
 * task_waits.c.
 */
#ifndef KRAIT_TRACE_TASKS_H
#define KRAIT_TRACE_TASKS_H

#include "event/payload.h"
#include "trace/track.h"

/* Their texts are the states' names (krait_task_state_names). */
enum krait_task_state {
    KRAIT_TASK_RUNNING,
    KRAIT_TASK_READY,
    KRAIT_TASK_TIMER,
    KRAIT_TASK_LOCK,
    KRAIT_TASK_QUEUE,
    KRAIT_TASK_SOCKET,
    KRAIT_TASK_CHILD,
    KRAIT_TASK_TASK,
    KRAIT_TASK_FUTURE,
    KRAIT_TASK_SWITCH,
    KRAIT_TASK_STATES,
};

extern const char *const krait_task_state_names[KRAIT_TASK_STATES];

/* Whether the program gave it a name: krait_task_is_named. */
bool krait_task_has_name(const struct krait_task *task);

/* The state of a task at a given time. `left` has its id and, if the task is not running, why it waits, for what, and where:
 * of a greenlet, to which one it switched. */
struct krait_task_then {
    uint32_t thread; /* the last one that ran it */
    uint64_t since_ns;
    bool runs;
    struct krait_payload_task_leave left;
    struct krait_payload_task_await awaits; /* of a greenlet that waits for others; else all 0 */
};

/* The id of a greenlet's parent; 0: its thread's main greenlet; KRAIT_NO_ID: it is not known. */
uint32_t krait_task_parent_at(const struct krait_task *task, uint64_t at_ns);

/* Finds the tasks that existed at `at_ns`, which is above 0, in a process that krait recorded, sorted by since_ns. The caller
 * frees *then. Returns 0 or -ENOMEM. */
int krait_tasks_at(const struct krait_trace *trace, uint32_t process, uint64_t at_ns,
                   struct krait_task_then **then, uint32_t *count);

/* Sets ran[i] for each task i that has a step in a thread that krait recorded. Skips damaged data, and what does not fit in
 * memory. */
void krait_tasks_of(const struct krait_trace *trace, uint32_t thread, bool *ran);

/* The index of the task whose step a recorded thread runs at a time; KRAIT_NO_ID if it runs none, or if the step began more than
 * a gigabyte of the thread's events before. */
uint32_t krait_task_at(const struct krait_trace *trace, uint32_t thread, uint64_t at_ns);

/* Makes a track of a thread one of a task, by its index. False: memory is out. */
bool krait_task_takes(struct krait_trace *trace, struct krait_track *track, uint32_t task);

/* "handle Task-7", "first handle": a name that somebody chose goes first. The trace's; NULL: memory is out. */
const char *krait_task_label(struct krait_trace *trace, const struct krait_task *task);
/* The same in an arena of the caller's. */
const char *krait_task_label_in(struct krait_arena *arena, const struct krait_trace *trace,
                                const struct krait_task *task);

#endif
