/* SPDX-License-Identifier: Apache-2.0 */
#include "record/newest_tasks.h"

#include "base/array.h"
#include "ctf/format.h"

#include <string.h>

void krait_newest_tasks_done(struct krait_newest_tasks *tasks)
{
    krait_map_done(&tasks->by_id);
    krait_waits_done(&tasks->waits);
    free(tasks->by_number);
    free(tasks->items);
}

/* ---- tasks ---- */

/* What a task waits for; 0: nothing that an event names. */
static uint64_t awaited_by(const struct krait_payload_task_leave *left)
{
    return left->reason == KRAIT_task_leave_reason_future || left->reason == KRAIT_task_leave_reason_tasks
               ? left->on
           : left->reason == KRAIT_task_leave_reason_task ? krait_awaited_task(left->on)
                                                          : 0;
}

/* The index + 1, or 0: memory is out. */
static uint32_t new_item(struct krait_newest_tasks *tasks)
{
    uint32_t index = tasks->first_ended;
    if (index)
        tasks->first_ended = tasks->items[index - 1].next;
    else if (KRAIT_GROW(tasks->items, tasks->cap, tasks->count + 1))
        index = ++tasks->count;
    if (index)
        tasks->items[index - 1] = (struct krait_newest_task){ 0 };
    return index;
}

/* The same. */
static uint32_t find_or_add(struct krait_newest_tasks *tasks, uint32_t id)
{
    const uint64_t *known = krait_map_get(&tasks->by_id, id);
    if (known && *known)
        return (uint32_t)*known;
    krait_map_trim(&tasks->by_id, &tasks->most_ids);
    uint32_t index = new_item(tasks);
    if (!index || krait_map_put(&tasks->by_id, id, index)) {
        tasks->failed = true;
        return 0;
    }
    tasks->items[index - 1].left.task = id;
    return index;
}

/* It does not wait any more: neither for what it waited for, nor by a stack. */
static void go_on(struct krait_newest_tasks *tasks, uint32_t index)
{
    struct krait_newest_task *task = &tasks->items[index - 1];
    krait_waits_end(&tasks->waits, index - 1);
    if (task->number && tasks->by_number[task->number] == index)
        tasks->by_number[task->number] = 0;
    task->waits = false;
    task->number = 0;
    task->awaits = (struct krait_payload_task_await){ 0 };
}

/* It waits for its turn alone. */
static void make_ready(struct krait_newest_tasks *tasks, uint32_t number)
{
    struct krait_payload_task_leave *left = &tasks->items[number].left;
    krait_waits_end(&tasks->waits, number);
    left->reason = KRAIT_task_leave_reason_yielded;
    left->on = 0;
    tasks->items[number].awaits = (struct krait_payload_task_await){ 0 };
}

/* All that wait for it are ready. */
static void wake(struct krait_newest_tasks *tasks, uint64_t key)
{
    uint32_t number;
    while ((number = krait_waits_last(&tasks->waits, key)) != KRAIT_NO_ID)
        make_ready(tasks, number);
}

static void wake_by(struct krait_newest_tasks *tasks, uint32_t id)
{
    const uint64_t *index = krait_map_get(&tasks->by_id, id);
    if (index && *index && tasks->items[*index - 1].waits)
        make_ready(tasks, (uint32_t)*index - 1);
}

/* It waits for nothing any more. */
static void end(struct krait_newest_tasks *tasks, uint32_t index)
{
    uint32_t id = tasks->items[index - 1].left.task;
    uint64_t *known = krait_map_get(&tasks->by_id, id);
    if (known)
        *known = 0;
    if (tasks->switching == index)
        tasks->switching = 0;
    tasks->items[index - 1] = (struct krait_newest_task){ .next = tasks->first_ended };
    tasks->first_ended = index;
}

/* ---- events ---- */

static void run(struct krait_newest_tasks *tasks, uint32_t id)
{
    uint32_t index = find_or_add(tasks, id);
    krait_steps_begin(&tasks->steps, id);
    if (index)
        go_on(tasks, index);
}

static void leave(struct krait_newest_tasks *tasks, const struct krait_payload_task_leave *event)
{
    uint32_t index = find_or_add(tasks, event->task);
    krait_steps_end(&tasks->steps, event->task);
    if (!index)
        return;
    go_on(tasks, index);
    struct krait_newest_task *task = &tasks->items[index - 1];
    switch (event->reason) {
    case KRAIT_task_leave_reason_returned:
    case KRAIT_task_leave_reason_raised:
        wake(tasks, krait_awaited_task(event->task));
        end(tasks, index);
        return;
    case KRAIT_task_leave_reason_unseen:
        end(tasks, index);
        return;
    default:
        task->left = *event;
        task->waits = true;
    }
    tasks->failed |= krait_waits_begin(&tasks->waits, index - 1, awaited_by(event)) != 0;
    tasks->switching = event->reason == KRAIT_task_leave_reason_switched ? index : 0;
}

static void await(struct krait_newest_tasks *tasks, const struct krait_payload_task_await *event)
{
    const uint64_t *index = krait_map_get(&tasks->by_id, event->task);
    if (index && *index && tasks->items[*index - 1].waits)
        tasks->items[*index - 1].awaits = *event;
}

static void switch_stacks(struct krait_newest_tasks *tasks, uint16_t from)
{
    uint32_t index = tasks->switching, before = tasks->number_cap;
    tasks->switching = 0;
    if (!index || !from)
        return;
    if (!KRAIT_GROW(tasks->by_number, tasks->number_cap, (uint32_t)from + 1)) {
        tasks->failed = true;
        return;
    }
    memset(tasks->by_number + before, 0, (tasks->number_cap - before) * sizeof(*tasks->by_number));
    uint32_t other = tasks->by_number[from]; /* that had the number before */
    if (other && other != index)
        tasks->items[other - 1].number = 0;
    tasks->by_number[from] = index;
    tasks->items[index - 1].number = from;
}

void krait_newest_tasks_follow(struct krait_newest_tasks *tasks, uint32_t id, struct krait_cursor payload)
{
    struct krait_payload_task_run begun;
    struct krait_payload_task_leave left;
    struct krait_payload_task_wake woken;
    struct krait_payload_task_wake_by woken_by;
    struct krait_payload_task_await awaits;
    struct krait_payload_python_switch change;
    if (id == KRAIT_EVENT_task_run && krait_read_task_run(&payload, &begun))
        run(tasks, begun.task);
    else if (id == KRAIT_EVENT_task_leave && krait_read_task_leave(&payload, &left))
        leave(tasks, &left);
    else if (id == KRAIT_EVENT_task_wake && krait_read_task_wake(&payload, &woken))
        wake(tasks, woken.on);
    else if (id == KRAIT_EVENT_task_wake_by && krait_read_task_wake_by(&payload, &woken_by))
        wake_by(tasks, woken_by.task);
    else if (id == KRAIT_EVENT_task_await && krait_read_task_await(&payload, &awaits))
        await(tasks, &awaits);
    else if (id == KRAIT_EVENT_python_switch && krait_read_python_switch(&payload, &change))
        switch_stacks(tasks, change.from);
}

/* ---- the base ---- */

void krait_newest_put(struct krait_buf *out, uint64_t time, uint32_t id, const void *payload, size_t n)
{
    uint8_t head[sizeof(struct krait_event_extended)];
    krait_buf_add(out, (const char *)head, krait_head_extend(head, id, time));
    krait_buf_add(out, payload, n);
}

static void put_task(struct krait_buf *out, uint64_t time, const struct krait_newest_task *task)
{
    uint8_t payload[KRAIT_MAX(KRAIT_BYTES_task_leave, KRAIT_BYTES_task_await)];
    if (!task->left.task || !task->waits)
        return;
    krait_newest_put(out, time, KRAIT_EVENT_task_leave, payload, krait_put_task_leave(payload, &task->left));
    if (task->awaits.task)
        krait_newest_put(out, time, KRAIT_EVENT_task_await, payload,
                         krait_put_task_await(payload, &task->awaits));
}

void krait_newest_tasks_put_waiting(const struct krait_newest_tasks *tasks, struct krait_buf *out,
                                    uint64_t time, uint64_t room)
{
    for (uint32_t i = 0; i < tasks->count && out->len < room; i++) {
        if (!tasks->items[i].number)
            put_task(out, time, &tasks->items[i]);
    }
}

bool krait_newest_tasks_put_left(const struct krait_newest_tasks *tasks, struct krait_buf *out, uint64_t time,
                                 uint64_t room, size_t number)
{
    uint32_t index = number < tasks->number_cap ? tasks->by_number[number] : 0;
    if (!index || out->len >= room)
        return false;
    put_task(out, time, &tasks->items[index - 1]);
    return true;
}

void krait_newest_tasks_put_steps(const struct krait_newest_tasks *tasks, struct krait_buf *out,
                                  uint64_t time)
{
    for (uint32_t i = 0; i < tasks->steps.depth; i++) {
        uint8_t payload[KRAIT_BYTES_task_run];
        const struct krait_payload_task_run event = { .task = tasks->steps.tasks[i] };
        krait_newest_put(out, time, KRAIT_EVENT_task_run, payload, krait_put_task_run(payload, &event));
    }
}
