/* SPDX-License-Identifier: Apache-2.0
 *
 * What --max-overhead decides, with costs that are made up: no clock is read.
 */
#include "python/choice.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these before it */
#include <cmocka.h>

/* A call and its end cost 100 ns: calls of more than 2,500 ns are long, of less than 2,000 may be dropped. */
enum { EVENT = 100, LONG = KRAIT_LONG_EVENTS * EVENT / 2, SHORT = KRAIT_SHORT_EVENTS * EVENT / 2 };

static struct krait_timed of(uint64_t calls, uint64_t mean)
{
    return (struct krait_timed){ .calls = calls, .ticks = calls * mean, .recent = (uint32_t)calls };
}

static bool may_go(struct krait_timed timed)
{
    return krait_choice_is_short(&timed, EVENT);
}

static bool is_sure(struct krait_timed timed)
{
    return krait_choice_is_sure(&timed, EVENT);
}

static void only_short_functions_may_go(void **state)
{
    (void)state;
    assert_true(may_go(of(400000, 44)));
    assert_false(may_go(of(1000, 52000)));
    assert_false(may_go(of(1000, 221000)));
    assert_false(may_go(of(6172, 142000)));
}

static void no_number_of_calls_makes_a_long_function_go(void **state)
{
    (void)state;
    for (uint64_t calls = 1; calls < 1ull << 30; calls *= 3) {
        assert_false(may_go(of(calls, LONG)));
        assert_false(may_go(of(calls, SHORT + 1)));
    }
    assert_true(may_go(of(1 << 20, SHORT - 1)));
}

static void few_calls_say_nothing(void **state)
{
    (void)state;
    assert_false(may_go(of(6, 44)));
    assert_true(may_go(of(KRAIT_KNOWN_CALLS, 44)));
    assert_false(is_sure(of(KRAIT_KNOWN_CALLS, 44)));
    assert_false(is_sure(of(38, 0)));
    assert_true(is_sure(of(39, 0)));
}

static void a_function_that_is_nearly_long_takes_more_calls_to_be_known(void **state)
{
    (void)state;
    assert_false(is_sure(of(64, SHORT * 3 / 4)));
    assert_true(is_sure(of(256, SHORT * 3 / 4)));
}

/* As sqlglot's Scope.pivots: one call in twenty lasts 350 us, the others 50 ns. */
static void few_long_calls_among_short_ones_keep_a_function(void **state)
{
    (void)state;
    for (uint64_t calls = 20; calls < 100000; calls += 20)
        assert_false(
            may_go((struct krait_timed){ .calls = calls, .ticks = calls / 20 * (350000 + 19 * 50) }));
}

static void an_open_call_counts_for_as_long_as_it_lasts(void **state)
{
    (void)state;
    struct krait_timed timed = { .calls = 1000, .open_ticks = 1000 * LONG };
    assert_false(may_go(timed));
    timed.open_ticks = 1000 * 50;
    assert_true(may_go(timed));
}

/* Before its first long call it looks short; but nobody is sure. */
static void an_unsure_function_stays_while_sure_ones_are_enough(void **state)
{
    (void)state;
    struct krait_candidate all[] = {
        { .id = 1, .recent = 900 },
        { .id = 2, .recent = 600, .rank = 3, .sure = true },
    };
    assert_int_equal(krait_choice_pick(all, 2, 1000), 1);
    assert_int_equal(all[0].id, 2);
    assert_int_equal(krait_choice_pick(all, 2, 1400), 2);
}

static void what_is_in_the_budget_drops_nothing(void **state)
{
    (void)state;
    struct krait_candidate one = { .id = 1, .recent = 1000 };
    assert_int_equal(krait_choice_excess(1000, 30, 30), 0);
    assert_int_equal(krait_choice_pick(&one, 1, 0), 0);
    assert_int_equal(krait_choice_excess(1000, 60, 30), 501);
}

static void the_shortest_go_first_and_no_more_than_needed(void **state)
{
    (void)state;
    struct krait_candidate all[3];
    uint64_t means[] = { 1800, 44, 400 };
    for (uint32_t i = 0; i < 3; i++) {
        struct krait_timed timed = of(1000, means[i]);
        all[i] = krait_choice_candidate(&timed, i, EVENT);
    }
    assert_int_equal(krait_choice_pick(all, 3, 1500), 2);
    assert_int_equal(all[0].id, 1);
    assert_int_equal(all[1].id, 2);
}

static void of_equally_short_ones_the_most_called_goes(void **state)
{
    (void)state;
    struct krait_candidate all[] = { { .id = 1, .recent = 10 }, { .id = 2, .recent = 5000 } };
    assert_int_equal(krait_choice_pick(all, 2, 4000), 1);
    assert_int_equal(all[0].id, 2);
}

static void evenly_hot_functions_go_together(void **state)
{
    (void)state;
    enum { MOST = 10000 };
    static struct krait_candidate all[MOST];
    for (uint32_t count = 70; count <= MOST; count = count * 10 + 3000) {
        for (uint32_t i = 0; i < count; i++)
            all[i] = (struct krait_candidate){ .id = i, .recent = 10 };
        uint64_t excess = krait_choice_excess(count * 10ull, 1000, 30);
        size_t gone = krait_choice_pick(all, count, excess);
        assert_true(gone * 10 >= excess && gone <= count);
    }
}

static void a_function_that_is_seldom_called_stays(void **state)
{
    (void)state;
    struct krait_candidate all[] = { { .id = 1, .recent = 2 }, { .id = 2, .recent = 5000, .rank = 3 } };
    assert_int_equal(krait_choice_pick(all, 2, 4000), 1);
    assert_int_equal(all[0].id, 2);
}

static void a_drop_keeps_the_mean_and_begins_a_round(void **state)
{
    (void)state;
    struct krait_timed timed = of(5000, 44);
    krait_choice_begin_probes(&timed);
    assert_int_equal(krait_timed_mean(&timed), 44);
    assert_int_equal(timed.calls, KRAIT_KNOWN_CALLS);
    assert_int_equal(timed.recent, 0);
}

static void short_probes_leave_it_dropped(void **state)
{
    (void)state;
    struct krait_timed timed = of(5000, 44);
    krait_choice_begin_probes(&timed);
    for (int i = 0; i < 1000; i++) {
        assert_false(krait_choice_add_probe(&timed, 1, 60, EVENT));
        assert_int_equal(krait_choice_round_is_over(&timed), i % KRAIT_KNOWN_CALLS == KRAIT_KNOWN_CALLS - 1);
    }
}

static void one_very_long_probe_takes_it_back(void **state)
{
    (void)state;
    struct krait_timed timed = of(5000, 44);
    krait_choice_begin_probes(&timed);
    assert_true(krait_choice_add_probe(&timed, 1, 350000, EVENT));
}

static void long_probes_take_it_back_within_a_round(void **state)
{
    (void)state;
    struct krait_timed timed = of(5000, 44);
    int probes = 0;
    krait_choice_begin_probes(&timed);
    while (!krait_choice_add_probe(&timed, 1, LONG * 2, EVENT))
        probes++;
    assert_in_range(probes, 1, KRAIT_KNOWN_CALLS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_short_functions_may_go),
        cmocka_unit_test(no_number_of_calls_makes_a_long_function_go),
        cmocka_unit_test(few_calls_say_nothing),
        cmocka_unit_test(a_function_that_is_nearly_long_takes_more_calls_to_be_known),
        cmocka_unit_test(few_long_calls_among_short_ones_keep_a_function),
        cmocka_unit_test(an_open_call_counts_for_as_long_as_it_lasts),
        cmocka_unit_test(an_unsure_function_stays_while_sure_ones_are_enough),
        cmocka_unit_test(what_is_in_the_budget_drops_nothing),
        cmocka_unit_test(the_shortest_go_first_and_no_more_than_needed),
        cmocka_unit_test(of_equally_short_ones_the_most_called_goes),
        cmocka_unit_test(evenly_hot_functions_go_together),
        cmocka_unit_test(a_function_that_is_seldom_called_stays),
        cmocka_unit_test(a_drop_keeps_the_mean_and_begins_a_round),
        cmocka_unit_test(short_probes_leave_it_dropped),
        cmocka_unit_test(one_very_long_probe_takes_it_back),
        cmocka_unit_test(long_probes_take_it_back_within_a_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
