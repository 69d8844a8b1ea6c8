/* SPDX-License-Identifier: Apache-2.0
 *
 * The locks of the module threading that threads wait for, and who holds them as far as Python knows: an
 * RLock keeps its owner, a Lock does not (any thread may release it).
 */
#ifndef KRAIT_REMOTE_LOCKS_H
#define KRAIT_REMOTE_LOCKS_H

#include "remote/remote.h"

/* After krait_remote_read with KRAIT_READ_CALLS: sets waits_for and deadlocked of all threads. What cannot be told is left out. */
void krait_remote_read_locks(struct krait_remote *remote, struct krait_remote_stacks *stacks);

#endif
