/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal to remote/: the task of asyncio whose step a thread runs.
 */
#ifndef KRAIT_REMOTE_RUNNING_TASK_H
#define KRAIT_REMOTE_RUNNING_TASK_H

#include "remote/remote.h"

/* Reads it into thread->task, of a thread that does not run; thread->first and count are its frames. What cannot be read is no
 * task. */
void krait_running_task_read(struct krait_remote *remote, const struct krait_remote_stacks *stacks,
                             struct krait_remote_thread *thread);

/* Before code objects are freed that were not met in a sweep (stack.h): forgets the tasks of these. */
void krait_running_tasks_sweep(struct krait_remote *remote);

/* The task whose step a callback of an event loop or a future is; 0: it is another callback. */
uint64_t krait_step_task(struct krait_remote *remote, uint64_t callback);

/* From 3.14 on: looks, once a second at most, for where thread states keep it, which is known once asyncio is imported. */
void krait_running_task_find(struct krait_remote *remote);

#endif
