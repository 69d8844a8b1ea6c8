/* SPDX-License-Identifier: Apache-2.0
 *
 * What tasks do at the end of events that are dropped: record/newest_tasks.h.
 */
#include "record/newest_tasks.h"

#include "ctf/format.h"

/* cmocka.h needs these */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void run(struct krait_newest_tasks *tasks, uint32_t task)
{
    uint8_t payload[KRAIT_BYTES_task_run];
    size_t n = krait_put_task_run(payload, &(struct krait_payload_task_run){ .task = task });
    krait_newest_tasks_follow(tasks, KRAIT_EVENT_task_run, (struct krait_cursor){ payload, payload + n });
}

static void leave(struct krait_newest_tasks *tasks, uint32_t task, uint8_t reason, uint64_t on)
{
    uint8_t payload[KRAIT_BYTES_task_leave];
    size_t n = krait_put_task_leave(
        payload, &(struct krait_payload_task_leave){ .task = task, .reason = reason, .on = on });
    krait_newest_tasks_follow(tasks, KRAIT_EVENT_task_leave, (struct krait_cursor){ payload, payload + n });
}

static void wake(struct krait_newest_tasks *tasks, uint64_t on)
{
    uint8_t payload[KRAIT_BYTES_task_wake];
    size_t n = krait_put_task_wake(payload, &(struct krait_payload_task_wake){ .on = on });
    krait_newest_tasks_follow(tasks, KRAIT_EVENT_task_wake, (struct krait_cursor){ payload, payload + n });
}

static void wake_by(struct krait_newest_tasks *tasks, uint32_t task, uint32_t by)
{
    uint8_t payload[KRAIT_BYTES_task_wake_by];
    size_t n =
        krait_put_task_wake_by(payload, &(struct krait_payload_task_wake_by){ .task = task, .by = by });
    krait_newest_tasks_follow(tasks, KRAIT_EVENT_task_wake_by, (struct krait_cursor){ payload, payload + n });
}

/* How many tasks wait for something, and do not only wait for their turn. */
static int count_waiting(const struct krait_newest_tasks *tasks)
{
    int n = 0;
    for (uint32_t i = 0; i < tasks->count; i++)
        n += tasks->items[i].waits && tasks->items[i].left.reason == KRAIT_task_leave_reason_future;
    return n;
}

static void switch_from(struct krait_newest_tasks *tasks, uint16_t from)
{
    uint8_t payload[KRAIT_BYTES_python_switch];
    size_t n = krait_put_python_switch(payload, &(struct krait_payload_python_switch){ .from = from });
    krait_newest_tasks_follow(tasks, KRAIT_EVENT_python_switch,
                              (struct krait_cursor){ payload, payload + n });
}

static void await_set(struct krait_newest_tasks *tasks, uint32_t task, uint64_t set)
{
    uint8_t payload[KRAIT_BYTES_task_await];
    size_t n = krait_put_task_await(payload, &(struct krait_payload_task_await){ .task = task, .set = set });
    krait_newest_tasks_follow(tasks, KRAIT_EVENT_task_await, (struct krait_cursor){ payload, payload + n });
}

/* The first task waits for each of the others, one after the other. */
static void tasks_that_have_ended_take_no_memory(void **state)
{
    enum { FIRST = 1, MANY = 20000, FEW = 4096 };
    struct krait_newest_tasks tasks = { 0 };
    KRAIT_AUTO_BUF out = { 0 };
    run(&tasks, FIRST);
    for (uint32_t task = FIRST + 1; task < MANY; task++) {
        leave(&tasks, FIRST, KRAIT_task_leave_reason_task, task);
        run(&tasks, task);
        leave(&tasks, task, KRAIT_task_leave_reason_future, 4096);
        run(&tasks, task);
        leave(&tasks, task, KRAIT_task_leave_reason_returned, 0);
        run(&tasks, FIRST);
    }
    assert_int_equal(tasks.count, 2);
    assert_true(tasks.by_id.len <= FEW && tasks.waits.last.len <= FEW);
    assert_false(tasks.failed);
    leave(&tasks, FIRST, KRAIT_task_leave_reason_task, MANY);
    krait_newest_tasks_put_waiting(&tasks, &out, 0, SIZE_MAX);
    assert_int_equal(out.len, sizeof(struct krait_event_extended) + KRAIT_BYTES_task_leave);
    krait_newest_tasks_done(&tasks);
}

static void all_that_wait_for_one_future_are_ready_when_it_is_done(void **state)
{
    enum { ALL = 5, FUTURE = 4096, OTHER = 8192 };
    struct krait_newest_tasks tasks = { 0 };
    for (uint32_t task = 1; task <= ALL; task++)
        leave(&tasks, task, KRAIT_task_leave_reason_future, FUTURE);
    run(&tasks, 3);
    leave(&tasks, 3, KRAIT_task_leave_reason_future, OTHER);
    wake_by(&tasks, 2, 3);
    assert_int_equal(count_waiting(&tasks), ALL - 1);
    wake(&tasks, FUTURE);
    assert_int_equal(count_waiting(&tasks), 1);
    wake(&tasks, FUTURE);
    wake_by(&tasks, ALL + 1, 0);
    assert_int_equal(count_waiting(&tasks), 1);
    wake(&tasks, OTHER);
    assert_int_equal(count_waiting(&tasks), 0);
    assert_int_equal(tasks.count, ALL);
    krait_newest_tasks_done(&tasks);
}

/* In an order in which no task is the last that began to wait; where each looked at all others, this took a minute. */
static void of_very_many_that_wait_for_one_task_each_may_go_on_alone(void **state)
{
    enum { ALL = 200000, AWAITED = ALL + 1 };
    struct krait_newest_tasks tasks = { 0 };
    run(&tasks, AWAITED);
    for (uint32_t task = 1; task <= ALL; task++)
        leave(&tasks, task, KRAIT_task_leave_reason_task, AWAITED);
    for (uint32_t task = 1; task <= ALL; task += 2)
        run(&tasks, task);
    for (uint32_t task = ALL; task; task -= 2)
        wake_by(&tasks, task, AWAITED);
    assert_int_equal(krait_waits_last(&tasks.waits, krait_awaited_task(AWAITED)), KRAIT_NO_ID);
    assert_false(tasks.failed);
    krait_newest_tasks_done(&tasks);
}

static size_t bytes_of_waiting(const struct krait_newest_tasks *tasks)
{
    KRAIT_AUTO_BUF out = { 0 };
    krait_newest_tasks_put_waiting(tasks, &out, 0, SIZE_MAX);
    return out.len;
}

static void a_greenlet_waits_for_others_until_it_goes_on(void **state)
{
    enum {
        LEAVE = sizeof(struct krait_event_extended) + KRAIT_BYTES_task_leave,
        AWAIT = sizeof(struct krait_event_extended) + KRAIT_BYTES_task_await,
    };
    struct krait_newest_tasks tasks = { 0 };
    leave(&tasks, 1, KRAIT_task_leave_reason_switched, 0);
    await_set(&tasks, 1, 77);
    await_set(&tasks, 2, 77); /* which is not known */
    assert_int_equal(bytes_of_waiting(&tasks), LEAVE + AWAIT);
    run(&tasks, 1);
    assert_int_equal(bytes_of_waiting(&tasks), 0);
    leave(&tasks, 1, KRAIT_task_leave_reason_switched, 0);
    assert_int_equal(bytes_of_waiting(&tasks), LEAVE);
    await_set(&tasks, 1, 78);
    wake_by(&tasks, 1, 0);
    assert_int_equal(bytes_of_waiting(&tasks), LEAVE);
    krait_newest_tasks_done(&tasks);
}

/* Its stack is that of nobody else. */
static void a_greenlet_that_ends_is_not_switched_from(void **state)
{
    enum { ENDS = 1, OTHER = 2, NUMBER = 3 };
    struct krait_newest_tasks tasks = { 0 };
    KRAIT_AUTO_BUF out = { 0 };
    leave(&tasks, ENDS, KRAIT_task_leave_reason_switched, 0);
    leave(&tasks, ENDS, KRAIT_task_leave_reason_returned, 0);
    run(&tasks, OTHER);
    switch_from(&tasks, NUMBER);
    leave(&tasks, OTHER, KRAIT_task_leave_reason_future, 4096);
    assert_false(krait_newest_tasks_put_left(&tasks, &out, 0, SIZE_MAX, NUMBER));
    leave(&tasks, OTHER, KRAIT_task_leave_reason_switched, 0);
    switch_from(&tasks, NUMBER);
    assert_true(krait_newest_tasks_put_left(&tasks, &out, 0, SIZE_MAX, NUMBER));
    krait_newest_tasks_done(&tasks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_that_have_ended_take_no_memory),
        cmocka_unit_test(all_that_wait_for_one_future_are_ready_when_it_is_done),
        cmocka_unit_test(of_very_many_that_wait_for_one_task_each_may_go_on_alone),
        cmocka_unit_test(a_greenlet_waits_for_others_until_it_goes_on),
        cmocka_unit_test(a_greenlet_that_ends_is_not_switched_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
