/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tasks of a thread's dropped events were doing at their end, for --keep newest and snapshots: which wait, for
 * what, and in which steps the thread is. Readers take it for events like any other (trace/tasks.h).
 *
 *   task:leave     of each task that waits; of a greenlet behind its stack, whose innermost call tells for what
 *   task:await     ... for which others
 *   task:run       of each step that the thread is in, the outermost first
 */
#ifndef KRAIT_RECORD_NEWEST_TASKS_H
#define KRAIT_RECORD_NEWEST_TASKS_H

#include "base/buf.h"
#include "base/map.h"
#include "event/steps.h"
#include "event/waits.h"

/* All zeros: none. The memory is that of the tasks that are there at one time. */
struct krait_newest_tasks {
    struct krait_newest_task {
        struct krait_payload_task_leave left;   /* `task` 0: it has ended */
        struct krait_payload_task_await awaits; /* of a greenlet that waits for others; else all 0 */
        bool waits;
        uint16_t number; /* of python:switch, by which its stack waits; 0: it has none of its own */
        uint32_t next;   /* of those that have ended: the index + 1 */
    } * items;
    uint32_t count, cap, first_ended; /* the last: the index + 1, or 0; it is taken for the next task */
    struct krait_map by_id;           /* to the index + 1; 0: it has ended */
    struct krait_waits waits;         /* by index; what is waited for: awaited_by */
    size_t most_ids;                  /* of krait_map_trim */
    bool failed;                      /* memory was out: tasks are missing */
    uint32_t *by_number;              /* to the index + 1 */
    uint32_t number_cap;
    struct krait_steps steps; /* by the tasks' ids */
    uint32_t switching;       /* the index + 1 of the greenlet that a python:switch leaves next */
};

void krait_newest_tasks_done(struct krait_newest_tasks *tasks);
/* The next event that is dropped; of others than tasks' and python:switch nothing is taken. */
void krait_newest_tasks_follow(struct krait_newest_tasks *tasks, uint32_t id, struct krait_cursor payload);

/* Appends an event in the long form. */
void krait_newest_put(struct krait_buf *out, uint64_t time, uint32_t id, const void *payload, size_t n);
/* Append what they do, while `out` has less than `room` bytes: tasks that wait with no stack of their own; the one whose
 * stack waits by a number, if there is one (else false); the steps that the thread is in, however many bytes there are. */
void krait_newest_tasks_put_waiting(const struct krait_newest_tasks *tasks, struct krait_buf *out,
                                    uint64_t time, uint64_t room);
bool krait_newest_tasks_put_left(const struct krait_newest_tasks *tasks, struct krait_buf *out, uint64_t time,
                                 uint64_t room, size_t number);
void krait_newest_tasks_put_steps(const struct krait_newest_tasks *tasks, struct krait_buf *out,
                                  uint64_t time);

#endif
