/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KRAIT_REMOTE_LOCALS_H
#define KRAIT_REMOTE_LOCALS_H

#include "remote/remote.h"

/* A local variable; `value`: as in value.h. */
struct krait_local {
    const char *name, *value;
    bool changed; /* two readings of it differed: it need not have had this value at any time */
};

typedef void krait_local_fn(void *ctx, const struct krait_local *local);

enum { KRAIT_LOCALS_MAX = 100 };

/* Calls `each` for the first KRAIT_LOCALS_MAX variables of a function that have a value; module-level code and class
 * bodies have none, because their variables are in a dict. Returns 0; -EAGAIN: the frame runs another function by
 * now, and `each` was not called; -ENOMEM. */
int krait_locals_read(const struct krait_remote *remote, const struct krait_remote_frame *frame,
                      krait_local_fn *each, void *ctx);

#endif
