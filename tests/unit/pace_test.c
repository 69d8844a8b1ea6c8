/* SPDX-License-Identifier: Apache-2.0
 *
 * A sampler's instants, and the records of a thread's switches that tell it whether the thread has run.
 */
#include "remote/pace.h"

#include "base/clock.h"
#include "remote/switches.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { PERIOD = 100 * KRAIT_NS_PER_US };

static void open_pace(struct krait_pace *pace)
{
    krait_pace_open(pace, KRAIT_NS_PER_S / PERIOD);
}

static void test_instants_follow_each_other_after_half_to_one_and_a_half_periods(void **state)
{
    (void)state;
    struct krait_pace pace;
    open_pace(&pace);
    uint64_t least = UINT64_MAX, most = 0;
    for (int i = 0; i < 10000; i++) {
        uint64_t due = krait_pace_due(&pace);
        krait_pace_next(&pace, 0);
        uint64_t gap = krait_pace_due(&pace) - due;
        least = KRAIT_MIN(least, gap);
        most = KRAIT_MAX(most, gap);
    }
    assert_in_range(least, PERIOD / 2, PERIOD * 6 / 10);
    assert_in_range(most, PERIOD * 14 / 10, PERIOD * 3 / 2);
    krait_pace_close(&pace);
}

static void test_what_was_late_is_not_made_up_for(void **state)
{
    (void)state;
    struct krait_pace pace;
    open_pace(&pace);
    uint64_t late = krait_pace_due(&pace) + 1000 * PERIOD;
    krait_pace_next(&pace, late); /* the instant that is next already had its time */
    krait_pace_next(&pace, late);
    assert_int_equal(krait_pace_due(&pace), late);
    krait_pace_next(&pace, late);
    assert_true(krait_pace_due(&pace) > late);
    krait_pace_close(&pace);
}

/* Whether the descriptor of the next instant can be read before `ms` are over. */
static int is_due(const struct krait_pace *pace, int ms)
{
    struct pollfd timer = { .fd = krait_pace_fd(pace), .events = POLLIN };
    return poll(&timer, 1, ms);
}

static void wait_in_turns(struct krait_pace *pace)
{
    for (int i = 0; i < 20; i++) {
        uint64_t due = krait_pace_due(pace);
        krait_pace_wait(pace, UINT64_MAX);
        uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
        assert_true(now >= due);
        krait_pace_next(pace, now);
    }
}

static void test_waiting_ends_at_the_instant_or_before_it_at_the_time_that_is_given(void **state)
{
    (void)state;
    struct krait_pace pace;
    open_pace(&pace);
    wait_in_turns(&pace);
    assert_int_equal(is_due(&pace, 10000), 1);
    uint64_t far = krait_clock_ns(CLOCK_MONOTONIC) + 3600 * KRAIT_NS_PER_S;
    krait_pace_begin(&pace, far);
    assert_int_equal(is_due(&pace, 0), 0);
    krait_pace_wait(&pace, krait_clock_ns(CLOCK_MONOTONIC) + PERIOD);
    assert_true(krait_clock_ns(CLOCK_MONOTONIC) < far);
    krait_pace_close(&pace);
}

static void test_without_timers_it_waits_by_the_clock(void **state)
{
    (void)state;
    struct krait_pace pace;
    open_pace(&pace);
    krait_pace_close(&pace);
    assert_int_equal(krait_pace_fd(&pace), -1);
    wait_in_turns(&pace);
}

static void tell_of_the_own_switches(bool registers)
{
    struct krait_switches switches;
    struct krait_switch before, after;
    struct krait_registers found;
    if (!krait_switches_open(&switches, gettid(), registers))
        skip(); /* the kernel does not allow it here */
    assert_false(krait_switches_registers(&switches, &found));
    poll(NULL, 0, 1);
    assert_true(krait_switches_last(&switches, &before));
    assert_false(before.away);         /* it runs */
    for (unsigned i = 0; i < 100; i++) /* their ring begins again at its begin, also within a record */
        poll(NULL, 0, 1);
    assert_true(krait_switches_last(&switches, &after));
    assert_false(after.away);
    assert_true(krait_switches_between(&switches, before.count, after.count) >= 200);
    assert_false(krait_switches_registers(&switches, &found)); /* it has others now */
    krait_switches_close(&switches);
    assert_false(krait_switches_last(&switches, &after));
}

static void test_records_tell_of_the_own_switches(void **state)
{
    tell_of_the_own_switches(false);
}

static void test_records_with_registers_tell_of_the_own_switches(void **state)
{
    tell_of_the_own_switches(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instants_follow_each_other_after_half_to_one_and_a_half_periods),
        cmocka_unit_test(test_what_was_late_is_not_made_up_for),
        cmocka_unit_test(test_waiting_ends_at_the_instant_or_before_it_at_the_time_that_is_given),
        cmocka_unit_test(test_without_timers_it_waits_by_the_clock),
        cmocka_unit_test(test_records_tell_of_the_own_switches),
        cmocka_unit_test(test_records_with_registers_tell_of_the_own_switches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
