/* SPDX-License-Identifier: Apache-2.0
 *
 * What tasks.c and tasks_modules.c share.
 */
#ifndef KRAIT_PYTHON_TASKS_INSIDE_H
#define KRAIT_PYTHON_TASKS_INSIDE_H

#include "python/tasks.h"

/* A task that has not ended. */
struct krait_agent_task {
    const void *address; /* NULL: free */
    const void *root;    /* its coroutine's code; NULL: it has not begun */
    uint32_t id;
    uint64_t future; /* that it waits for; 0: none */
    /* Of trio, that it runs in; in asyncio the future of several tasks, of which it is one. */
    const void *nursery;
    bool moves; /* ... until it has started: nursery.start() */
};

enum { KRAIT_TASK_TRAPS = 2, KRAIT_TASK_GROUPS = 3 };

struct krait_tasks {
    struct krait_map by_address; /* to 1 + its index; 0: it has ended */
    struct krait_agent_task *tasks;
    uint32_t count, cap, first_free; /* KRAIT_NO_ID: none is free */
    /* Kept until the interpreter ends. NULL where they are not imported. */
    PyObject *get_loop, *current_task;      /* _asyncio's functions; from 3.12 on current_task is one */
    PyObject *current_tasks;                /* before: its dictionary of loops and tasks */
    PyObject *python_tasks;                 /* asyncio.tasks's own, from 3.14 on: see look_for_python_tasks */
    PyObject *task_type;                    /* _asyncio.Task */
    PyObject *gathering;                    /* asyncio.tasks._GatheringFuture */
    PyObject *groups[KRAIT_TASK_GROUPS];    /* code of what waits at the end of a task group */
    PyObject *trio_run;                     /* trio's thread-local object, which has the task that runs */
    PyObject *trio_traps[KRAIT_TASK_TRAPS]; /* code of the coroutines that every wait of trio goes through */
    PyObject *trio_child; /* ... of the one that waits for a child process, through its file descriptor */
    PyObject *trio_exit;  /* ... of the one that waits at the end of a nursery for its tasks */
};

#endif
