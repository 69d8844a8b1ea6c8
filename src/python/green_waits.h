/* SPDX-License-Identifier: Apache-2.0
 *
 * Who wakes a greenlet of gevent. All switches to such a greenlet come from the hub, which runs it because another
 * greenlet has set an event, released a lock, put something into a queue, or ended. Those are calls of functions that gevent
 * compiles, as are those that wait. Both are called on the same object:
 *
 *   A   event.wait() ──┐ switch to the hub              ┌─ switch from the hub
 *   B                  │        event.set() ── switch ──│
 *
 * What a greenlet waits for is the object that it has called such a function on, if it still is at that call when it is
 * left. Who wakes it is told when it goes on. It is not told where it may have been one of several: locks that are
 * released more than once before somebody goes on, by different greenlets.
 */
#ifndef KRAIT_PYTHON_GREEN_WAITS_H
#define KRAIT_PYTHON_GREEN_WAITS_H

#include "python/agent.h"

/* Those of one thread, of which all zeros are none. */
struct krait_green_waits {
    struct krait_map objects;          /* an address to the index of its record + 1; 0: nobody waits for it */
    struct krait_map waiting;          /* a task's id to the same; 0: it does not wait */
    size_t most_objects, most_waiting; /* of krait_map_trim */
    struct krait_green_record {
        uint64_t object;
        uint32_t kind;
        uint32_t waiting;      /* greenlets */
        uint32_t by, releases; /* who has wakened as many of them; 0: nobody, or the main greenlet */
        bool is_mixed;         /* several have */
        uint32_t next;         /* free: the index of the next one + 1 */
    } * records;
    uint32_t count, cap, first_free; /* the last: index + 1 */
    /* The last call of a function that waits, if none that wakes came after it. */
    struct krait_green_call {
        uint64_t object;
        uint32_t kind; /* 0: there is none */
        uint32_t task;
        const void *frame;
        long lasti;
    } call;
};

/* Of how many greenlets a function waits for the end. */
enum krait_green_await {
    KRAIT_GREEN_NONE,
    KRAIT_GREEN_ONE,
    KRAIT_GREEN_SEVERAL,
};

/* What a function tells of that. */
struct krait_green_awaiting {
    enum krait_green_await how;
    /* The local variable of a Python function that has them, and the attribute of that; NULL: a function of C is called on
     * them, or they are the variable itself. */
    const char *local, *attr;
};

/* Whether a module's functions tell that the program has greenlets of gevent. */
bool krait_green_waits_are_of(const char *module);
/* A number of a function that is such a function; 0: it is none. */
uint32_t krait_green_waits_function(const char *module, const char *name);
/* Of such a number. */
struct krait_green_awaiting krait_green_waits_awaiting(uint32_t function);
/* Which instruction a frame is at; -1: it is not known. Leaves no exception. */
long krait_green_lasti(PyObject *frame);
/* It is called on `object`, by the task; 0: by the main greenlet. GIL held; keeps errno and the exception. */
void krait_green_waits_call(struct krait_green_waits *waits, uint32_t function, PyObject *object,
                            uint32_t task);
/* A task is left; `frame` is its innermost one. GIL held; leaves no exception. */
void krait_green_waits_leave(struct krait_green_waits *waits, uint32_t task, PyObject *frame);
/* A task has ended, of the greenlet at this address. */
void krait_green_waits_end(struct krait_green_waits *waits, uint32_t task, const void *greenlet);
/* A task goes on. Returns the id of the one that woke it; 0: it is not known. */
uint32_t krait_green_waits_go_on(struct krait_green_waits *waits, uint32_t task);
void krait_green_waits_done(struct krait_green_waits *waits);

#endif
