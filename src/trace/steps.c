/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/steps.h"

bool krait_steps_take(struct krait_steps *steps, uint32_t task)
{
    uint32_t at = steps->depth;
    while (at && steps->tasks[at - 1] != task)
        at--;
    if (at)
        steps->depth = at - 1;
    return at != 0;
}

void krait_steps_push(struct krait_steps *steps, uint32_t task)
{
    if (steps->depth == KRAIT_STEPS_MAX)
        steps->depth = 0;
    steps->tasks[steps->depth++] = task;
}
