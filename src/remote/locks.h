/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the locks of the module threading for which threads wait, and their owners: an RLock keeps its owner; a Lock has
 * one if a thread holds it in a with statement (holders.h).
 */
#ifndef KRAIT_REMOTE_LOCKS_H
#define KRAIT_REMOTE_LOCKS_H

#include "remote/remote.h"

/* After krait_remote_read with KRAIT_READ_CALLS: sets waits_for and deadlocked of all threads, where they can be
 * known. */
void krait_remote_read_locks(struct krait_remote *remote, struct krait_remote_stacks *stacks);

#endif
