/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal to remote/: which tasks of asyncio await which.
 */
#ifndef KRAIT_REMOTE_AWAITS_H
#define KRAIT_REMOTE_AWAITS_H

#include "remote/remote.h"

/* Sets by_first and by_count of all tasks, which have been listed. `table`: NULL before Python 3.14. Returns 0 or -ENOMEM. */
int krait_awaits_read(struct krait_remote *remote, const struct krait_asyncio_table *table,
                      struct krait_remote_stacks *stacks);

#endif
