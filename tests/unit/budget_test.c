/* SPDX-License-Identifier: Apache-2.0
 *
 * What --max-overhead 5 lets recording take, with a clock of one tick a nanosecond that nobody reads.
 */
#include "python/budget.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these before it */
#include <cmocka.h>

enum { MS = 1000000, PPM = 50000 };

static struct krait_budget five_percent(void)
{
    return krait_budget_of(PPM, 1000 * MS);
}

static void a_program_begins_with_two_milliseconds(void **state)
{
    (void)state;
    struct krait_budget b = five_percent();
    assert_int_equal(b.credit, 2 * MS);
    krait_budget_settle(&b, 0, (struct krait_spent){ .calls = 2 * MS });
    assert_false(krait_budget_is_exceeded(&b));
    krait_budget_settle(&b, 0, (struct krait_spent){ .calls = 1 });
    assert_true(krait_budget_is_exceeded(&b));
}

static void time_earns_sixty_percent_of_the_budget(void **state)
{
    (void)state;
    struct krait_budget b = five_percent();
    krait_budget_settle(&b, 100 * MS, (struct krait_spent){ 0 });
    assert_int_equal(b.credit, 2 * MS + 3 * MS);
    krait_budget_settle(&b, 100 * MS, (struct krait_spent){ .calls = 6 * MS });
    assert_int_equal(b.credit, 2 * MS);
}

static void credit_and_debt_have_a_limit(void **state)
{
    (void)state;
    struct krait_budget b = five_percent();
    krait_budget_settle(&b, 3600ull * 1000 * MS, (struct krait_spent){ 0 });
    assert_int_equal(b.credit, 12 * MS);
    krait_budget_settle(&b, 0, (struct krait_spent){ .calls = 3600ull * 1000 * MS });
    assert_int_equal(b.credit, -12 * MS);
}

/* Where the whole budget is spent but not more, what is owed was spent before: nothing has to go for it. */
static void a_debt_alone_drops_nothing(void **state)
{
    (void)state;
    struct krait_budget b = five_percent();
    krait_budget_settle(&b, 0, (struct krait_spent){ .calls = 20 * MS });
    assert_true(krait_budget_is_exceeded(&b));
    assert_false(krait_budget_next_period(&b));
    krait_budget_settle(&b, 201 * MS, (struct krait_spent){ .calls = 10 * MS });
    assert_true(krait_budget_next_period(&b));
    krait_budget_settle(&b, 100 * MS, (struct krait_spent){ .calls = 5 * MS });
    assert_true(b.credit < 0);
    assert_false(krait_budget_is_exceeded(&b));
    krait_budget_settle(&b, 0, (struct krait_spent){ .calls = 1 });
    assert_true(krait_budget_is_exceeded(&b));
}

static void a_drop_forgives_what_was_owed(void **state)
{
    (void)state;
    struct krait_budget b = five_percent();
    krait_budget_settle(&b, 10 * MS, (struct krait_spent){ .calls = 30 * MS });
    assert_int_equal(krait_budget_aim(&b), 10 * MS * 3 / 100);
    krait_budget_forgive(&b);
    assert_int_equal(b.credit, 0);
    assert_int_equal(b.period_spent, 0);
    assert_false(krait_budget_is_exceeded(&b));
}

static void a_pause_earns_what_is_owed(void **state)
{
    (void)state;
    struct krait_budget b = five_percent();
    assert_int_equal(krait_budget_pause_us(&b), 0);
    krait_budget_settle(&b, 0, (struct krait_spent){ .calls = 5 * MS });
    assert_int_equal(krait_budget_pause_us(&b), 100000);
    krait_budget_settle(&b, 100 * MS, (struct krait_spent){ 0 });
    assert_int_equal(b.credit, 0);
}

static void what_no_drop_saves_needs_a_pause(void **state)
{
    (void)state;
    struct krait_budget b = five_percent();
    krait_budget_settle(&b, 11 * MS, (struct krait_spent){ .calls = 5 * MS });
    assert_false(krait_budget_needs_pause(&b));
    krait_budget_settle(&b, 0, (struct krait_spent){ .fixed = 1 * MS });
    assert_true(krait_budget_needs_pause(&b));
    krait_budget_settle(&b, 10 * MS, (struct krait_spent){ 0 });
    assert_false(krait_budget_needs_pause(&b));
}

/* An import names a few thousand functions, then the program begins. */
static void naming_alone_needs_a_pause_where_it_owes_three_milliseconds(void **state)
{
    (void)state;
    struct krait_budget b = five_percent();
    krait_budget_settle(&b, 20 * MS, (struct krait_spent){ .named = 5 * MS });
    assert_true(b.credit < -2 * MS);
    assert_true(krait_budget_is_exceeded(&b));
    assert_false(krait_budget_needs_pause(&b));
    krait_budget_settle(&b, 0, (struct krait_spent){ .named = 1 * MS });
    assert_true(krait_budget_needs_pause(&b));
    krait_budget_forgive(&b);
    assert_false(krait_budget_needs_pause(&b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_begins_with_two_milliseconds),
        cmocka_unit_test(time_earns_sixty_percent_of_the_budget),
        cmocka_unit_test(credit_and_debt_have_a_limit),
        cmocka_unit_test(a_debt_alone_drops_nothing),
        cmocka_unit_test(a_drop_forgives_what_was_owed),
        cmocka_unit_test(a_pause_earns_what_is_owed),
        cmocka_unit_test(what_no_drop_saves_needs_a_pause),
        cmocka_unit_test(naming_alone_needs_a_pause_where_it_owes_three_milliseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
