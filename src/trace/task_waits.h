/* SPDX-License-Identifier: Apache-2.0
 *
 * What a task waits for, as the function tells that waits. The tables are in task_waits.c.
 */
#ifndef KRAIT_TRACE_TASK_WAITS_H
#define KRAIT_TRACE_TASK_WAITS_H

#include "trace/tasks.h"

/* Of a coroutine. NULL, or one that is not in the table: KRAIT_TASK_FUTURE. */
enum krait_task_state krait_task_waits(const struct krait_func *coroutine);

/* Of a greenlet: the Python function that it switched in, and the C function that this had called, each NULL if it is not
 * known. Without a row: KRAIT_TASK_SWITCH. */
enum krait_task_state krait_greenlet_waits(const struct krait_func *function, const struct krait_func *c);

#endif
