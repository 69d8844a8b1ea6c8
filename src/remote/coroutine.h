/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal to remote/: where tasks of asyncio have what krait reads of them.
 */
#ifndef KRAIT_REMOTE_COROUTINE_H
#define KRAIT_REMOTE_COROUTINE_H

#include "remote/remote.h"

/* A number that is zero, or is not, until the task ends: what a task that has ended leaves in memory looks like one. */
struct krait_task_mark {
    uint64_t addr; /* 0: there is none */
    uint8_t size;
    bool is_zero;
};

/* A task; `coroutine` and `name` are where the pointers to these are. */
struct krait_task_place {
    uint64_t addr, coroutine, name;
    struct krait_task_mark mark;
    pid_t tid; /* of the thread whose event loop it belongs to; 0: not known */
};

struct krait_task_places {
    struct krait_task_place *items;
    uint32_t count, cap;
};

static inline void krait_task_places_done(struct krait_task_places *places)
{
    free(places->items);
}

#endif
