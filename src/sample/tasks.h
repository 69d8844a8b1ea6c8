/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of sample/: the tasks of asyncio that samples have met. Each gets an id and a definition when it is met first.
 */
#ifndef KRAIT_SAMPLE_TASKS_H
#define KRAIT_SAMPLE_TASKS_H

#include "sample/codes.h"

struct krait_sample_tasks {
    struct krait_map ids; /* struct krait_running_task.key -> id */
    uint32_t count;
};

void krait_sample_tasks_done(struct krait_sample_tasks *tasks);

/* Sets *id; defines it, and its coroutine's function, at time t. Returns 0, or a negative errno with err set. */
int krait_sample_task(struct krait_sample_tasks *tasks, struct krait_sample_codes *codes,
                      struct krait_sample_stream *definitions, uint64_t t,
                      const struct krait_running_task *task, uint32_t *id, struct krait_err *err);

/* The thread of `stream` runs a step of task `to` from now on, and none of `from` any more; 0: of none. */
int krait_sample_task_put(struct krait_sample_stream *stream, uint64_t t, uint32_t from, uint32_t to,
                          struct krait_err *err);

#endif
