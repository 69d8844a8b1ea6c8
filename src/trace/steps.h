/* SPDX-License-Identifier: Apache-2.0
 *
 * The tasks whose steps a thread is in, the innermost last: a step may run another one (a nested event loop).
 */
#ifndef KRAIT_TRACE_STEPS_H
#define KRAIT_TRACE_STEPS_H

#include <stdbool.h>
#include <stdint.h>

/* As many steps within steps as the recorder knows (python/tasks.c). */
enum { KRAIT_STEPS_MAX = 16 };

/* All zeros: it is in none. What a number names is the caller's. */
struct krait_steps {
    uint32_t tasks[KRAIT_STEPS_MAX];
    uint32_t depth;
};

/* Takes the task's step, and those within it, off. Returns whether it was there. */
bool krait_steps_take(struct krait_steps *steps, uint32_t task);
/* Begins a step. With too many of them, ends are missing, and the others are forgotten. */
void krait_steps_push(struct krait_steps *steps, uint32_t task);
/* The innermost one's task, or `none`. */
static inline uint32_t krait_steps_top(const struct krait_steps *steps, uint32_t none)
{
    return steps->depth ? steps->tasks[steps->depth - 1] : none;
}

#endif
