/* SPDX-License-Identifier: Apache-2.0 */
#include "event/steps.h"

/* Takes the task's step, and those within it, off. Returns whether it was there. */
static bool take(struct krait_steps *steps, uint32_t task)
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

bool krait_steps_begin(struct krait_steps *steps, uint32_t task)
{
    bool was_in = take(steps, task);
    krait_steps_push(steps, task);
    return was_in;
}

void krait_steps_end(struct krait_steps *steps, uint32_t task)
{
    if (!take(steps, task))
        steps->depth = 0;
}

void krait_steps_follow(struct krait_steps *steps, uint32_t event, struct krait_cursor payload)
{
    struct krait_payload_task_run run;
    struct krait_payload_task_leave leave;
    if (event == KRAIT_EVENT_task_run && krait_read_task_run(&payload, &run))
        krait_steps_begin(steps, run.task);
    else if (event == KRAIT_EVENT_task_leave && krait_read_task_leave(&payload, &leave))
        krait_steps_end(steps, leave.task);
}
