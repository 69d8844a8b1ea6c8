/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal to remote/: which tasks of asyncio await a task, before Python 3.14.
 */
#ifndef KRAIT_REMOTE_CALLBACKS_H
#define KRAIT_REMOTE_CALLBACKS_H

#include "remote/lookup.h"
#include "remote/scheduled.h"

/* Appends what awaits a task, in the order of addresses. Returns 0, -ENOMEM, or another error if it changed. */
int krait_callbacks_read(struct krait_remote *remote, struct krait_future_types *types, uint64_t task,
                         struct krait_found *found);

#endif
