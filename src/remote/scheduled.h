/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal to remote/: the tasks of asyncio before Python 3.14.
 */
#ifndef KRAIT_REMOTE_SCHEDULED_H
#define KRAIT_REMOTE_SCHEDULED_H

#include "base/map.h"
#include "remote/coroutine.h"

/* What objects are, by the address of their type; zeroed at first. */
struct krait_future_types {
    struct krait_map kinds;
};

enum krait_future_kind {
    KRAIT_FUTURE_OTHER,  /* no future of asyncio's C part: one that is written in Python, or something else */
    KRAIT_FUTURE_NATIVE, /* _asyncio.Future */
    KRAIT_FUTURE_TASK,   /* _asyncio.Task */
};

static inline void krait_future_types_done(struct krait_future_types *types)
{
    krait_map_done(&types->kinds);
}

enum krait_future_kind krait_future_kind(const struct krait_remote *remote, struct krait_future_types *types,
                                         uint64_t object);

/* Appends the tasks that have not ended. Returns 0, -ENOMEM, or -ENOENT: the program has not imported asyncio. */
int krait_scheduled_read(const struct krait_remote *remote, const struct krait_remote_stacks *stacks,
                         struct krait_task_places *tasks);

#endif
