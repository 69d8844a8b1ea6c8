/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of the steps of tasks, by coroutine and task name.
 */
#include "base/array.h"
#include "live/inside.h"

#include <stdio.h>

enum {
    TASKS = 1 << 18,   /* tasks kept per process, the newest ones */
    GROUPS_MAX = 4096, /* after this many groups names are ignored: a program may name each request's task */
};

/* The slot of a task. A new task replaces the one that was created TASKS tasks earlier. */
static uint32_t place_of(uint32_t id)
{
    return id % TASKS;
}

void live_define_task(struct krait_live *live, struct live_process *proc,
                      const struct krait_payload_task_define *task)
{
    uint32_t before = proc->task_cap, place = place_of(task->id);
    bool is_named = krait_task_is_named(task->name) && live->group_count < GROUPS_MAX;
    if (!KRAIT_GROW(proc->tasks, proc->task_cap, place + 1)) {
        live->failed = true;
        return;
    }
    for (uint32_t i = before; i < proc->task_cap; i++)
        proc->tasks[i] = (struct live_task){ .group = KRAIT_NO_ID };
    proc->tasks[place] = (struct live_task){
        .id = task->id,
        .code = task->coroutine,
        .name = is_named ? live_keep_text(live, task->name) : "",
        .group = KRAIT_NO_ID,
    };
}

/* The id of the group with that name and coroutine; KRAIT_NO_ID if memory runs out. */
static uint32_t group_of(struct krait_live *live, uint32_t func, const char *name)
{
    char key[KRAIT_PAYLOAD_MAX + 16];
    int n = snprintf(key, sizeof(key), "%u\n%s", func, name);
    if (!KRAIT_GROW(live->groups, live->group_cap, live->group_count + 1)) {
        live->failed = true;
        return KRAIT_NO_ID;
    }
    uint32_t id = krait_strtab_add(&live->group_keys, key, (size_t)n);
    if (id == KRAIT_NO_ID || id < live->group_count)
        return id;
    live->groups[live->group_count++] = (struct live_group){ .func = func, .name = name };
    return id;
}

/* The function of the innermost open call. */
static uint32_t innermost(const struct live_thread *th)
{
    return th->rows[th->stack.items[th->stack.len - 1] >> 1].func;
}

/* The group of a task. If its definition has no coroutine, the function that runs in its first step is used. */
static struct live_group *group_of_task(struct krait_live *live, const struct live_thread *th, uint32_t id)
{
    struct live_process *proc = &live->procs[th->slot];
    struct live_task *task = place_of(id) < proc->task_cap ? &proc->tasks[place_of(id)] : NULL;
    if (!task)
        return NULL;
    if (task->id != id) { /* a newer task has its slot */
        uint32_t group = group_of(live, live_stands_for(live, innermost(th)), "");
        return group == KRAIT_NO_ID ? NULL : &live->groups[group];
    }
    if (task->group == KRAIT_NO_ID) {
        uint32_t func = task->code < proc->func_cap ? proc->funcs[task->code] : KRAIT_NO_ID;
        func = task->code && func != KRAIT_NO_ID ? func : innermost(th);
        task->group = group_of(live, live_stands_for(live, func), task->name ? task->name : "");
    }
    if (task->group == KRAIT_NO_ID)
        return NULL;
    struct live_group *group = &live->groups[task->group];
    group->tasks += task->counts != live->resets + 1;
    task->counts = live->resets + 1;
    return group;
}

/* Counts the open step from th->ran_t to t. */
static void count_running(struct krait_live *live, struct live_thread *th, uint64_t t)
{
    if (!th->step_t || t <= th->ran_t)
        return;
    struct live_group *group = group_of_task(live, th, th->task);
    if (group) {
        group->all.running += t - th->ran_t;
        group->longest = KRAIT_MAX(group->longest, t - th->step_t);
    }
    if (!group || !krait_task_is_hub(group->name)) {
        live->now.longest = KRAIT_MAX(live->now.longest, t - th->step_t);
        live->now.lag = KRAIT_MAX(live->now.lag, t - th->loop_t);
    }
    th->ran_t = t;
}

void live_task_ends_step(struct krait_live *live, struct live_thread *th, uint64_t t)
{
    struct live_group *group = th->step_t ? group_of_task(live, th, th->task) : NULL;
    count_running(live, th, t);
    live->now.steps += th->step_t != 0;
    if (group)
        group->all.steps++;
    th->step_t = 0;
}

/* Steps without a poll between them are of one turn of the event loop: what became ready at its begin, and is the last to
 * run, waits for all before it. Polls are not seen where their function was dropped, nor in a pause: then each step is a
 * turn. */
static void begin_in_turn(const struct krait_live *live, struct live_thread *th, uint64_t t)
{
    const struct live_row *poll = &th->rows[th->poll];
    bool is_seen =
        th->poll && !live_func(live, poll->func)->was_dropped && !live_func(live, innermost(th))->is_pause;
    if (!is_seen || !th->loop_t || poll->all.calls != th->polls)
        th->loop_t = t;
    th->polls = poll->all.calls;
}

void live_task_runs(struct krait_live *live, struct live_thread *th, uint64_t t, uint32_t task)
{
    if (th->step_t && th->task == task) /* it is stated again */
        return;
    if (th->step_t) /* its end was lost */
        live_task_ends_step(live, th, th->ran_t);
    th->task = task;
    th->step_t = th->ran_t = t;
    begin_in_turn(live, th, t);
    group_of_task(live, th, task);
}

void live_task_settle(struct krait_live *live, struct live_thread *th, uint64_t t)
{
    count_running(live, th, t);
}

void live_turn_groups(struct krait_live *live)
{
    for (uint32_t i = 0; i < live->group_count; i++) {
        struct live_group *group = &live->groups[i];
        group->last.steps = group->all.steps - group->mark.steps;
        group->last.running = group->all.running - group->mark.running;
        group->mark = group->all;
        group->mark_tasks = group->tasks;
        group->last_longest = group->longest;
        group->all_longest = KRAIT_MAX(group->all_longest, group->longest);
        group->longest = 0;
    }
}

void live_reset_groups(struct krait_live *live)
{
    live->resets++;
    for (uint32_t i = 0; i < live->group_count; i++)
        live->groups[i] = (struct live_group){ .func = live->groups[i].func, .name = live->groups[i].name };
}

static struct krait_live_steps steps_of(const struct krait_live *live, const struct live_steps *from,
                                        uint64_t longest)
{
    return (struct krait_live_steps){ from->steps, live_ns(live, from->running), live_ns(live, longest) };
}

int krait_live_each_task(struct krait_live *live, krait_live_task_fn *fn, void *ctx)
{
    int rc = 0;
    for (uint32_t i = 0; i < live->group_count && !rc; i++) {
        const struct live_group *group = &live->groups[i];
        const struct krait_live_task task = {
            .func = live_func(live, group->func),
            .name = group->name,
            .tasks = group->mark_tasks,
            .all = steps_of(live, &group->mark, group->all_longest),
            .last = steps_of(live, &group->last, group->last_longest),
        };
        rc = fn(ctx, &task);
    }
    return rc;
}
