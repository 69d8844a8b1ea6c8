/* SPDX-License-Identifier: Apache-2.0
 *
 * Which threads hold a threading.Lock in a with statement. The lock itself does not know, because any thread may release
 * it.
 */
#ifndef KRAIT_REMOTE_HOLDERS_H
#define KRAIT_REMOTE_HOLDERS_H

#include "remote/remote.h"

struct krait_held {
    uint64_t lock;
    pid_t tid;
};

struct krait_held_list {
    struct krait_held *items;
    uint32_t count, cap;
};

static inline void krait_held_done(struct krait_held_list *held)
{
    free(held->items);
}

/* Adds what each thread holds, read while it did not run. A thread that does not stand still for that is left out.
 * Returns 0 or -ENOMEM. */
int krait_held_read(struct krait_remote *remote, const struct krait_remote_stacks *stacks,
                    struct krait_held_list *held);

#endif
