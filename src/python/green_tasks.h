/* SPDX-License-Identifier: Apache-2.0
 *
 * Greenlets as tasks: which one a thread runs, from when to when. greenlets.c tells each switch.
 *
 *   greenlet-1   ├ step ┤ another greenlet runs          ├ step, the last ┤
 *   events       run    leave (switched)                 run              leave (returned)
 *
 * A thread's main greenlet is the thread itself and no task. gevent's hub is one, by the name of "gevent.hub".
 *
 * A greenlet that ends is told by its own `dead`, as of the switch to its parent. Its function is the outermost one that
 * is recorded: no greenlet has kept it by the time of its first switch. A name is what gevent's Greenlet keeps in its
 * __dict__; no code of the program runs.
 *
 * A greenlet is known by its address until it ends. One that is collected in another thread never ends: a switch to
 * another at its address, which has no frame yet, tells them apart.
 */
#ifndef KRAIT_PYTHON_GREEN_TASKS_H
#define KRAIT_PYTHON_GREEN_TASKS_H

#include "python/agent.h"

/* What a switch is to tasks. */
struct krait_green_switch {
    uint32_t left, entered; /* ids; 0: the main greenlet */
    uint32_t at;            /* the function that switched; 0: not known */
    uint32_t by; /* of gevent's hub, that it runs for: the id of the task that woke this one; 0: not known */
    uint32_t awaits; /* the id of the greenlet for whose end the one that was left waits; 0: none, or a set */
    uint64_t set;    /* ... the number of a set of such: green_lets.h */
    enum krait_event_enum_value reason;
};

enum {
    KRAIT_GREEN_BYTES = 4 * sizeof(struct krait_event_extended) + KRAIT_BYTES_task_leave +
                        KRAIT_BYTES_task_await + KRAIT_BYTES_task_run + KRAIT_BYTES_task_wake_by,
};

/* The thread has switched; `threw`: by an exception. GIL held, in the trace function; leaves no exception. */
struct krait_green_switch krait_green_tasks_switch(struct krait_interp *in, PyObject *origin,
                                                   PyObject *target, bool threw);
/* Write what it is to the tasks, where there is room for it all. */
void krait_green_tasks_put_leave(struct krait_ring *ring, uint64_t t, const struct krait_green_switch *of);
void krait_green_tasks_put_await(struct krait_ring *ring, uint64_t t, const struct krait_green_switch *of);
void krait_green_tasks_put_run(struct krait_ring *ring, uint64_t t, const struct krait_green_switch *of);

/* A function of green_waits.h is called on `object`. GIL held; keeps errno and the exception. */
void krait_green_tasks_call(struct krait_interp *in, uint32_t function, PyObject *object);

/* Whether nothing is known of this thread's greenlets: it is a new recording, or a forked child. */
bool krait_green_tasks_are_new(void);
/* Looks which greenlet runs: switches have not been told up to now. GIL held, in a slow path; leaves no exception. `module`
 * is greenlet's C part. */
void krait_green_tasks_look(struct krait_interp *in, PyObject *module);
/* Recording pauses, and switches are not told from now on. GIL held, in the trace function. */
void krait_green_tasks_pause(struct krait_interp *in);
/* A function of Python's begins, or goes on, in a slow path: the first one of a greenlet is its own. GIL held. */
void krait_green_tasks_begun(struct krait_interp *in);
/* Events were lost, and the stack has been stated at time t: which greenlet runs. Returns false if the ring was full. */
bool krait_green_tasks_say(struct krait_interp *in, struct krait_ring *ring, uint64_t t);

/* The name of the greenlet that this thread runs, as its task has it, cut to `size`. False: it runs its main one, or that is not
 * known. GIL held; leaves no exception. */
bool krait_green_tasks_name(char *text, size_t size);

/* In a forked child: its greenlets are other tasks. */
void krait_green_tasks_forked(void);
/* The thread ends. */
void krait_green_tasks_thread_end(void);

#endif
