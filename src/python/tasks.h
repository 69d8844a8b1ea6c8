/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks of asyncio and trio: which task's coroutine a thread runs, from when to when, what it waits for then, and who
 * ends that wait.
 *
 * An event loop runs a task in steps. Each step begins or resumes the coroutine that the task was made with, its root,
 * and ends where the root yields, returns or raises:
 *
 *   Task-7    ├ step ┤ waits for a future        ├ step ┤ waits for Task-8    ├ step, the last ┤
 *   events    run    leave                 wake   run    leave                 run              leave
 *
 * So the hooks look at coroutines alone: at a begin, whether the loop has another task now than it had before; at an
 * end, whether the root ends. No object of the program is changed or kept, and no code of its own runs: the loop
 * and its task are read as the interpreter's own asyncio.current_task() reads them.
 *
 * What is thrown into a task, as a cancellation is, goes to its innermost coroutine first, which begins, and then
 * outwards as far as nobody catches it. Where somebody does and waits again, the root does not go on at all: the
 * first yield ends the step.
 *
 * Recording may begin in a step: then the first coroutine that begins is not the task's root, which the task itself tells:
 * tasks_root.c.
 *
 * A task that waits for several, by gather() or at the end of a task group, waits for one future: tasks_several.c.
 *
 * A task is known by its address until its root has returned or raised. A task that is dropped before that may leave its
 * address to another; that one begins its root by a call where the old one would resume it, and so is told apart.
 */
#ifndef KRAIT_PYTHON_TASKS_H
#define KRAIT_PYTHON_TASKS_H

#include "python/agent.h"

/* The root of the step that this thread is in; NULL: in none. hot path */
extern __thread const void *krait_task_root __attribute__((tls_model("initial-exec")));

/* Whether a module's functions tell that the program has tasks from now on. */
bool krait_tasks_are_of(const char *module);
/* Whether the program has imported such a module. GIL held; keeps no exception. */
bool krait_tasks_are_imported(void);
/* It has: the hooks look at coroutines from now on. GIL held. */
void krait_tasks_see(struct krait_interp *in);
/* Looks for the modules that run tasks, as far as they are imported now. GIL held; keeps no exception. */
void krait_tasks_look(struct krait_interp *in);
/* Whether a function of C ends the wait for the future that it is called on. */
bool krait_tasks_is_waker(const char *module, const char *name);

enum krait_tasks_begin {
    KRAIT_TASKS_CALL,
    KRAIT_TASKS_RESUME, /* before Python 3.12 this may be a throw, too */
    KRAIT_TASKS_THROW,
};

/* A coroutine has just begun, or goes on. GIL held; keeps errno and the exception. */
void krait_tasks_begun(struct krait_interp *in, const void *code, enum krait_tasks_begin how);
/* A coroutine is about to yield, in a step; it is the innermost frame, if no other has yielded. Returns whether the step ends
 * by that. GIL held; keeps errno and the exception. hot path */
bool krait_tasks_yielding(struct krait_interp *in, const void *code);
/* The step may end: its root is about to end, or what krait_tasks_yielding says. `value` is what is yielded, or NULL. The
 * same. */
void krait_tasks_ending(struct krait_interp *in, enum krait_event_enum_value how, PyObject *value);
/* A function of C that ends a wait is called on `future`. The same. */
void krait_tasks_wake(struct krait_interp *in, PyObject *future);

/* What a task of trio waits for, of which its address is given: as krait_payload_task_leave's `on`. */
uint64_t krait_tasks_waited(const struct krait_interp *in, const void *trio_task);
/* Such a task is woken; returns by the end of which other one. `by` is 0 if it is not by one's end. */
struct krait_payload_task_wake_by krait_tasks_rescheduled(struct krait_interp *in, const void *trio_task);

/* Events were lost, and the stack has been stated at time t: which tasks' steps the thread is in. Returns false if the ring
 * was full. */
bool krait_tasks_say(struct krait_interp *in, struct krait_ring *ring, uint64_t t);
/* Recording paused at time t, and goes on: nobody knows when the steps that the thread was in have ended. GIL held. */
void krait_tasks_paused(struct krait_interp *in, struct krait_ring *ring, uint64_t t);
/* ... and looks in which step the thread is now, for krait_tasks_say. `frame` is the top of its stack as it is stated. GIL held;
 * keeps the exception. */
void krait_tasks_resumed(struct krait_interp *in, PyObject *frame);
/* A new task's id. */
uint32_t krait_tasks_next_id(struct krait_interp *in);
/* Writes what a task is. `coroutine`: the id of its function; 0: it has not begun, or is not known. */
void krait_tasks_write_definition(struct krait_interp *in, uint32_t id, uint32_t coroutine, const char *name);
/* Writes that a task runs in a nursery, or is awaited together with others: task:nursery. */
void krait_tasks_write_member(struct krait_interp *in, uint32_t id, uint64_t nursery);

/* In a forked child, or for another recording: nothing is known of any task. */
void krait_tasks_forget(struct krait_interp *in);
/* The interpreter has ended. */
void krait_tasks_done(struct krait_interp *in);
/* The thread ends. */
void krait_tasks_thread_end(void);

#endif
