/* SPDX-License-Identifier: Apache-2.0
 *
 * The index of a trace: it answers as a walk over the whole trace does, whatever was recorded.
 */
#include "made_view.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these before it */
#include <cmocka.h>
#include <pthread.h>

/* The made trace is removed. */
static void index_equals_walk(struct made *made, uint32_t count)
{
    made_close(made);
    struct opened walk = open_view(made, KRAIT_VIEW_WALK | KRAIT_VIEW_NO_CACHE);
    struct opened index = open_view(made, KRAIT_VIEW_NO_CACHE);
    assert_int_equal(krait_view_wait(index.view), 0);
    assert_int_equal(krait_view_wait(walk.view), 0);
    assert_int_equal(differences(&index, &walk, count), 0);
    close_view(&index);
    close_view(&walk);
    made_free(made);
}

/* One long program, for which the index leaves its finest level out, and several short ones: they differ in more ways. */
static void check_shape(const struct shape *shape, uint32_t events)
{
    enum { SHORT = 75 };
    for (uint32_t seed = 1; seed <= tries(6, 16); seed++) {
        struct made *made = made_new();
        for (uint32_t i = 0; i < 2; i++) {
            made->t = 1000 * i;
            made_thread(made, 10 + i);
            run(made, shape, seed == 1 ? events : events / SHORT, 10 * seed + i);
        }
        index_equals_walk(made, seed == 1 ? tries(1, 3) : 3);
    }
}

static void of_short_calls(void **state)
{
    check_shape(&(struct shape){ .step = 100, .depth = 8 }, 40000);
}

static void of_calls_of_all_lengths(void **state)
{
    check_shape(&(struct shape){ .step = 2000, .pause = 50, .depth = 20 }, 30000);
}

static void of_calls_far_apart(void **state)
{
    check_shape(&(struct shape){ .step = 2000000000, .pause = 3, .depth = 5 }, 20000);
}

static void of_generators(void **state)
{
    check_shape(&(struct shape){ .step = 300, .pause = 500, .depth = 6, .generators = true }, 30000);
}

static void of_losses_and_times_that_go_back(void **state)
{
    check_shape(&(struct shape){ .step = 300, .pause = 800, .depth = 6, .losses = true, .back = true },
                30000);
    check_shape(&(struct shape){ .step = 300, .pause = 500, .depth = 6, .generators = true, .losses = true },
                30000);
}

static void of_greenlets(void **state)
{
    check_shape(&(struct shape){ .step = 300, .pause = 800, .depth = 6, .greenlets = true }, 60000);
}

static void of_many_calls_without_length(void **state)
{
    struct made *made = made_new();
    made_thread(made, 10);
    made->t = 5000;
    made_begin(made, KRAIT_EVENT_python_call, 1);
    for (uint32_t i = 0; i < ROUNDS(200000); i++) {
        made_begin(made, KRAIT_EVENT_c_call, 3);
        made_end(made, KRAIT_EVENT_c_return);
    }
    made->t = 1000000;
    made_end(made, KRAIT_EVENT_python_return);
    index_equals_walk(made, tries(1, 2));
}

/* They neither begin nor take time: what they are a part of must not be named by them, wherever sums are made. */
static void of_parts_without_length(void **state)
{
    struct made *made = made_new();
    made_thread(made, 10);
    made_begin(made, KRAIT_EVENT_python_call, 1);
    for (uint32_t i = 0; i < ROUNDS(20000); i++) {
        made->t += 700;
        made_begin(made, KRAIT_EVENT_python_call, 1 + 3 * (i % 7));
        made_end(made, KRAIT_EVENT_python_return);
        made->t += 700;
        made_begin(made, KRAIT_EVENT_python_resume, 1 + 3 * (i % 5));
        made_end(made, KRAIT_EVENT_python_yield);
    }
    index_equals_walk(made, tries(1, 2));
}

static void of_a_call_of_a_year(void **state)
{
    struct made *made = made_new();
    made_thread(made, 10);
    made_begin(made, KRAIT_EVENT_python_call, 1);
    run(made, &(struct shape){ .step = 100, .depth = 4 }, 20000, 5);
    made->t += 365 * 86400 * KRAIT_NS_PER_S;
    run(made, &(struct shape){ .step = 100, .depth = 4 }, 20000, 5);
    index_equals_walk(made, tries(1, 2));
}

static void of_deep_recursion(void **state)
{
    struct made *made = made_new();
    made_thread(made, 10);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < ROUNDS(60000); i++, made->t += 50)
            made_begin(made, KRAIT_EVENT_python_call, 1 + 3 * (i % 7));
        for (uint32_t i = 0; i < ROUNDS(60000); i++, made->t += 50)
            made_end(made, KRAIT_EVENT_python_return);
    }
    index_equals_walk(made, tries(1, 2));
}

static uint8_t flags_of(struct opened *opened, uint64_t t_ns)
{
    const struct krait_view_query query = { 0, 0, t_ns / KRAIT_WIRE_BINS };
    struct krait_wire_head head;
    KRAIT_AUTO_BUF out = { 0 };
    assert_int_equal(opened->trace->tracks[0].kind, KRAIT_TRACK_CALLS);
    assert_int_equal(krait_view_tile(opened->view, &query, &out), 0);
    memcpy(&head, out.data, sizeof(head));
    return head.flags;
}

static void tiles_tell_where_events_were_lost(void **state)
{
    struct made *made = made_new();
    struct view_dice dice = { 1 };
    made_thread(made, 10);
    made_begin(made, KRAIT_EVENT_python_call, 1);
    made->t = 50000;
    made_end(made, KRAIT_EVENT_python_return);
    lose(made, &dice, 2);
    made->t = 300000;
    made_begin(made, KRAIT_EVENT_python_call, 1);
    made_close(made);
    struct opened index = open_view(made, KRAIT_VIEW_NO_CACHE);
    assert_int_equal(krait_view_wait(index.view), 0);
    assert_int_equal(flags_of(&index, 0), 0);
    assert_int_equal(flags_of(&index, 50000), KRAIT_WIRE_LOST);
    assert_int_equal(flags_of(&index, 299999), 0);
    close_view(&index);
    made_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_short_calls),
        cmocka_unit_test(of_calls_of_all_lengths),
        cmocka_unit_test(of_calls_far_apart),
        cmocka_unit_test(of_generators),
        cmocka_unit_test(of_losses_and_times_that_go_back),
        cmocka_unit_test(of_greenlets),
        cmocka_unit_test(of_many_calls_without_length),
        cmocka_unit_test(of_parts_without_length),
        cmocka_unit_test(of_a_call_of_a_year),
        cmocka_unit_test(of_deep_recursion),
        cmocka_unit_test(tiles_tell_where_events_were_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
