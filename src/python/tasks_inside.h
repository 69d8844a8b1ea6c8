/* SPDX-License-Identifier: Apache-2.0
 *
 * What tasks.c, tasks_root.c, tasks_several.c and tasks_modules.c share.
 */
#ifndef KRAIT_PYTHON_TASKS_INSIDE_H
#define KRAIT_PYTHON_TASKS_INSIDE_H

#include "python/tasks.h"

/* A task that has not ended. */
struct krait_agent_task {
    const void *address; /* NULL: free */
    const void *root;    /* its coroutine's code; NULL: it has not begun */
    const void *wrapper; /* that its definition names: krait_tasks_wrapper; NULL: none */
    uint32_t id;
    uint64_t future;    /* that it waits for; 0: none */
    const void *awaits; /* the task that it awaits itself; NULL: none */
    uint32_t last;      /* of the tasks that it waits for, the one that ended last; 0: none */
    bool gathers;       /* it waits for gather(), which is not cancelled before its tasks have ended */
    /* Of trio, that it runs in; in asyncio the future, or the group, of several tasks, of which it is one. */
    const void *nursery;
    /* The number of the set of tasks that it waits for by wait(), or has waited for so last; 0: none. How many there were. */
    uint64_t own;
    uint32_t sets;
    bool moves; /* ... until it has started: nursery.start() */
};

enum {
    KRAIT_TASK_TRAPS = 2,
    KRAIT_TASK_WAITS = 6,
    KRAIT_TASK_CALLBACKS = 10,
    KRAIT_TASK_COLLECTS = 2,
    KRAIT_TASK_WRAPPERS = 3,
    KRAIT_TASK_WAITING = 256
};

/* What an address is known to be: in the low bits of what by_address has of it. */
enum krait_task_known {
    KRAIT_KNOWN_TASK = 1, /* and its index */
    KRAIT_KNOWN_AWAITED,  /* a future, and the index of the task that waits for it: see tasks_several.c */
    KRAIT_KNOWN_DONE, /* a task, or such a future, and the id of the task by whose end it was done; 0: not known */
    KRAIT_KNOWN_BITS = 2,
};

static inline uint64_t krait_known(enum krait_task_known what, uint32_t number)
{
    return (uint64_t)number << KRAIT_KNOWN_BITS | what;
}

/* Returns whether `known`, of krait_map_get, is that, and its number. */
static inline bool krait_is_known(const uint64_t *known, enum krait_task_known what, uint32_t *number)
{
    bool is = known && (*known & ((1 << KRAIT_KNOWN_BITS) - 1)) == what;
    *number = is ? (uint32_t)(*known >> KRAIT_KNOWN_BITS) : 0;
    return is;
}

struct krait_tasks {
    struct krait_map by_address; /* to krait_known(); 0: nothing */
    struct krait_agent_task *tasks;
    uint32_t count, cap, first_free; /* KRAIT_NO_ID: none is free */
    struct krait_map members;        /* of sets, by number: tasks that have not ended */
    size_t most_members;             /* of krait_map_trim */
    struct krait_waiting {
        const void *future;
        uint32_t tasks;
    } waiting[KRAIT_TASK_WAITING]; /* how many wait for a future, by its address; for some it is not known */
    /* Kept until the interpreter ends. NULL where they are not imported. */
    PyObject *get_loop, *current_task; /* _asyncio's functions; from 3.12 on current_task is one */
    PyObject *current_tasks;           /* before: its dictionary of loops and tasks */
    PyObject *python_tasks;            /* asyncio.tasks's own, from 3.14 on: see look_for_python_tasks */
    PyObject *task_type;               /* _asyncio.Task */
    PyObject *gathering;               /* asyncio.tasks._GatheringFuture */
    PyObject *group;                   /* asyncio.taskgroups.TaskGroup */
    PyObject *waits[KRAIT_TASK_WAITS]; /* code of coroutines that wait for several tasks */
    PyObject *callbacks[KRAIT_TASK_CALLBACKS]; /* ... of what is called when such a task has ended */
    PyObject *collects[KRAIT_TASK_COLLECTS]; /* ... of the coroutine that waits for one of as_completed()'s */
    PyObject *wrappers
        [KRAIT_TASK_WRAPPERS];   /* ... of libraries' coroutines that await the program's one: tasks_root.c */
    PyObject *shield, *shielded; /* ... of asyncio.shield, and of the callback that its future has */
    PyObject *future_type;       /* _asyncio.Future */
    PyGetSetDef *future_callbacks;          /* ... and its `_callbacks`; of a library, which stays */
    PyObject *trio_run;                     /* trio's thread-local object, which has the task that runs */
    PyObject *trio_traps[KRAIT_TASK_TRAPS]; /* code of the coroutines that every wait of trio goes through */
    PyObject *trio_child; /* ... of the one that waits for a child process, through its file descriptor */
    PyObject *trio_exit;  /* ... of the one that waits at the end of a nursery for its tasks */
};

/* NULL: nothing is known of such a task. Valid until objects are made: before Python 3.12 that may run the program's finalizers,
 * and with them other threads, whose tasks move this one. */
struct krait_agent_task *krait_tasks_find(const struct krait_tasks *tasks, const void *address);
/* Writes which task this is. `root`: its coroutine's code, or NULL: it has not begun. NULL: memory is out. */
struct krait_agent_task *krait_tasks_define(struct krait_interp *in, PyObject *object, const void *root);
/* The one whose step the thread is in; NULL: none. */
struct krait_agent_task *krait_tasks_running(const struct krait_interp *in);
bool krait_tasks_is_of_asyncio(const struct krait_tasks *tasks, PyObject *object);
void krait_tasks_write_nursery(struct krait_interp *in, struct krait_agent_task *task, const void *nursery);

/* The code of a function of a module or of a class in it; `inner`: of a function within that one, or NULL. New reference or
 * NULL. */
PyObject *krait_tasks_code(PyObject *module, const char *class, const char *name, const char *inner);
/* The same, of a module that may not be imported yet; where it is not known yet. */
void krait_tasks_look_for_code(PyObject **kept, const char *module, const char *class, const char *name,
                               const char *inner);

/* -- tasks_root.c -- */

struct krait_tasks_root {
    const void *code;
    uint32_t begins; /* of it that have not ended; 0: it has not gone on yet */
};

/* How often a function stands in a stack; as far as the frame `last`, and 0 if that is not in it. `last` NULL: in all of it. */
uint32_t krait_tasks_count_frames(PyObject *frame, const void *code, const PyObject *last);
/* Whether the coroutine that has just begun was begun by another one, or a generator. Leaves no exception. */
bool krait_tasks_is_inner(void);
/* How many frames the stack has. */
uint32_t krait_tasks_depth(void);
/* An exception was thrown into the top frame from outside of its task: how many frames that is above the task's root, of which
 * this is the code. 0: it is the root, or the root is not in the stack. Leaves no exception. */
uint32_t krait_tasks_above_root(const void *root);
/* The coroutine that a task was made with; if that is not recorded, `code`, which has just begun in it (call), or goes on.
 * Leaves no exception. May define functions: what was found of tasks is no longer valid. */
struct krait_tasks_root krait_tasks_find_root(struct krait_interp *in, PyObject *task, const void *code,
                                              bool call);
/* The code itself, if it is that of a library's coroutine that a task is made with in place of the program's own, which that
 * one awaits; else NULL. */
const void *krait_tasks_wrapper(const struct krait_tasks *tasks, const void *code);
/* Whether the innermost frame is called by one of such a wrapper. Leaves no exception. */
bool krait_tasks_is_wrapped(const void *wrapper);
/* Looks for the wrappers, as far as they are imported now. Leaves no exception. */
void krait_tasks_root_look(struct krait_tasks *tasks);
void krait_tasks_root_done(struct krait_tasks *tasks);

/* -- tasks_several.c -- */

/* A future of asyncio that stands for other tasks. */
struct krait_several {
    const void *future; /* its address; NULL: it is none */
    const void *on;     /* what those tasks are known to be in: the future, or the group */
    uint32_t only;      /* the id, if it is one task and stays so; else 0 */
    bool any;           /* there are such tasks */
    bool gathers;       /* gather() made it */
};

/* What a coroutine waits for that is about to yield: `code` is that of the innermost frame. Keeps errno and the exception. */
struct krait_several krait_several_of_frame(struct krait_interp *in, PyObject *code);
/* A task waits for a future; it does no more. */
void krait_several_wait(struct krait_tasks *tasks, const void *future);
void krait_several_go_on(struct krait_tasks *tasks, const void *future);
/* What a future that a task waits for stands for, if that shows in the future. Leaves no exception. */
struct krait_several krait_several_of_future(struct krait_interp *in, PyObject *future);
/* Whether a coroutine, that of asyncio's queue in it, waits for a task: as_completed(). */
bool krait_several_collects(const struct krait_tasks *tasks, const void *code);
/* A task that is new may be one of a group. Leaves no exception. */
void krait_several_note_group(struct krait_interp *in, PyObject *object);
/* In no task's step: the id of the task by whose end the loop calls what runs now; 0: it is not known. `last`: of the tasks that
 * the waiting one waits for, the one that ended last. */
uint32_t krait_several_ended_by(struct krait_interp *in, uint32_t last);
/* Looks for what is used here, as far as it is imported now. Leaves no exception. */
void krait_several_look(struct krait_tasks *tasks);
void krait_several_done(struct krait_tasks *tasks);

#endif
