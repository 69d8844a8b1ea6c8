/* SPDX-License-Identifier: Apache-2.0
 *
 * The tasks whose steps a thread is in, the innermost last: a step may run another one (a nested event loop, a task that
 * begins eagerly).
 */
#ifndef KRAIT_EVENT_STEPS_H
#define KRAIT_EVENT_STEPS_H

#include "event/payload.h"

/* Steps within steps, as many as the recorder knows. */
enum { KRAIT_STEPS_MAX = 16 };

/* All zeros: it is in none. What a number names is the caller's. */
struct krait_steps {
    uint32_t tasks[KRAIT_STEPS_MAX];
    uint32_t depth;
};

/* Puts a task's step on top. With too many of them, ends are missing, and the others are forgotten. */
void krait_steps_push(struct krait_steps *steps, uint32_t task);
/* A step begins, or is stated again. Returns whether the thread was in it. */
bool krait_steps_begin(struct krait_steps *steps, uint32_t task);
/* A step ends, with those within it. Where its begin is missing, what else the thread is in is not known. */
void krait_steps_end(struct krait_steps *steps, uint32_t task);
/* The next event of the thread, whose payload begins at its fields: of others than task:run and task:leave nothing is taken.
 * The numbers are the tasks' ids. */
void krait_steps_follow(struct krait_steps *steps, uint32_t event, struct krait_cursor payload);
/* The innermost one's task, or `none`. */
static inline uint32_t krait_steps_top(const struct krait_steps *steps, uint32_t none)
{
    return steps->depth ? steps->tasks[steps->depth - 1] : none;
}

/* What a task that waits for another one waits for. Futures' addresses are even; tasks' ids are made odd. */
static inline uint64_t krait_awaited_task(uint64_t id)
{
    return id << 1 | 1;
}

#endif
