/* SPDX-License-Identifier: Apache-2.0
 *
 * The index of a trace: it answers as a walk over the whole trace does, whatever was recorded.
 */
#include "../view_compare.h"
#include "made_trace.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these before it */
#include <cmocka.h>
#include <pthread.h>

struct opened {
    struct krait_trace *trace;
    struct krait_view *view;
};

static struct opened open_view(const struct made *made, unsigned flags)
{
    const char *path = made->parent;
    const struct krait_view_options options = {
        .paths = &path, .path_count = 1, .flags = flags, .threads = 2, .small = 1
    };
    struct opened opened;
    struct krait_err err = { 0 };
    assert_int_equal(krait_trace_open(&opened.trace, &path, 1, KRAIT_NEEDS_CALLS, &err), 0);
    assert_int_equal(krait_view_open(&opened.view, opened.trace, &options, &err), 0);
    return opened;
}

static void close_view(struct opened *opened)
{
    krait_view_close(opened->view);
    krait_trace_close(opened->trace);
}

/* Compares many tiles of all tracks; the made trace is removed. */
static void index_equals_walk(struct made *made, uint32_t count)
{
    struct view_dice dice = { 7 };
    made_close(made);
    struct opened walk = open_view(made, KRAIT_VIEW_WALK | KRAIT_VIEW_NO_CACHE);
    struct opened index = open_view(made, KRAIT_VIEW_NO_CACHE);
    assert_int_equal(krait_view_wait(index.view), 0);
    assert_int_equal(krait_view_wait(walk.view), 0);
    assert_int_equal(krait_view_length(index.view), krait_view_length(walk.view));
    for (uint32_t track = 0; track < index.trace->track_count; track++)
        assert_int_equal(view_compare_track(index.view, walk.view, track, count, &dice), 0);
    close_view(&index);
    close_view(&walk);
    made_free(made);
}

/* ---- programs that do not exist ---- */

struct shape {
    uint32_t step;  /* ns between two events, at most */
    uint32_t pause; /* one of so many events comes after a long pause */
    uint32_t depth; /* about */
    bool generators, losses, greenlets, back;
};

static void lose(struct made *made, struct view_dice *dice, uint32_t depth)
{
    made_flush(made);
    made->lost += 10;
    made->t += view_dice(dice) % 100000;
    for (uint32_t i = 0; i < depth; i++) {
        const struct krait_payload_python_frame frame = { .code = 1 + 3 * (view_dice(dice) % 5),
                                                          .depth = (uint16_t)i };
        uint8_t payload[KRAIT_BYTES_python_frame];
        made_put(made, KRAIT_EVENT_python_frame, payload, krait_put_python_frame(payload, &frame));
    }
    const struct krait_payload_python_stack settle = { .depth = (uint16_t)depth };
    uint8_t payload[KRAIT_BYTES_python_stack];
    made_put(made, KRAIT_EVENT_python_stack, payload, krait_put_python_stack(payload, &settle));
}

static void change_greenlet(struct made *made, struct view_dice *dice)
{
    const struct krait_payload_python_switch change = { .from = (uint16_t)(1 + view_dice(dice) % 4),
                                                        .to = (uint16_t)(view_dice(dice) % 5) };
    uint8_t payload[KRAIT_BYTES_python_switch];
    made_put(made, KRAIT_EVENT_python_switch, payload, krait_put_python_switch(payload, &change));
}

static void rare(struct made *made, struct view_dice *dice, const struct shape *shape)
{
    if (shape->losses && view_dice(dice) % 4 == 0)
        lose(made, dice, view_dice(dice) % 6);
    if (shape->greenlets)
        change_greenlet(made, dice);
    if (shape->back)
        made->t -= KRAIT_MIN(made->t, (uint64_t)(view_dice(dice) % 5000));
    if (shape->generators)
        made_end(made, view_dice(dice) % 2 ? KRAIT_EVENT_python_yield : KRAIT_EVENT_python_unwind);
}

/* What is open is not looked at: ends that have no begin belong to a trace's hardships. */
static void run(struct made *made, const struct shape *shape, uint32_t events, uint64_t seed)
{
    struct view_dice dice = { seed };
    uint32_t depth = 0;
    for (uint32_t i = 0; i < events; i++) {
        made->t += view_dice(&dice) % (shape->step + 1);
        if (shape->pause && view_dice(&dice) % shape->pause == 0)
            made->t += view_dice(&dice) % 3000000;
        if (view_dice(&dice) % 500 == 0)
            rare(made, &dice, shape);
        bool begins = view_dice(&dice) % 100 < (depth < shape->depth ? 60u : 40u);
        uint32_t code = 1 + view_dice(&dice) % (MADE_CODES - 1);
        depth += begins ? 1 : depth ? -1u : 0;
        if (begins)
            made_begin(made,
                       code % 3 == 0                                    ? KRAIT_EVENT_c_call
                       : shape->generators && view_dice(&dice) % 3 == 0 ? KRAIT_EVENT_python_resume
                                                                        : KRAIT_EVENT_python_call,
                       code);
        else
            made_end(made, view_dice(&dice) % 3 ? KRAIT_EVENT_python_return : KRAIT_EVENT_c_return);
    }
}

static void check_shape(const struct shape *shape, uint32_t events)
{
    struct made *made = made_new();
    for (uint32_t i = 0; i < 2; i++) {
        made->t = 1000 * i;
        made_thread(made, 10 + i);
        run(made, shape, events, 11 + i);
    }
    index_equals_walk(made, 6);
}

static void of_short_calls(void **state)
{
    check_shape(&(struct shape){ .step = 100, .depth = 8 }, 150000);
}

static void of_calls_of_all_lengths(void **state)
{
    check_shape(&(struct shape){ .step = 2000, .pause = 50, .depth = 20 }, 100000);
}

static void of_calls_far_apart(void **state)
{
    check_shape(&(struct shape){ .step = 2000000000, .pause = 3, .depth = 5 }, 20000);
}

static void of_generators(void **state)
{
    check_shape(&(struct shape){ .step = 300, .pause = 500, .depth = 6, .generators = true }, 60000);
}

static void of_losses_and_times_that_go_back(void **state)
{
    check_shape(&(struct shape){ .step = 300, .pause = 800, .depth = 6, .losses = true, .back = true },
                80000);
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
    for (uint32_t i = 0; i < 1000000; i++) {
        made_begin(made, KRAIT_EVENT_c_call, 3);
        made_end(made, KRAIT_EVENT_c_return);
    }
    made->t = 1000000;
    made_end(made, KRAIT_EVENT_python_return);
    index_equals_walk(made, 2);
}

static void of_a_call_of_a_year(void **state)
{
    struct made *made = made_new();
    made_thread(made, 10);
    made_begin(made, KRAIT_EVENT_python_call, 1);
    run(made, &(struct shape){ .step = 100, .depth = 4 }, 40000, 5);
    made->t += 365 * 86400 * KRAIT_NS_PER_S;
    run(made, &(struct shape){ .step = 100, .depth = 4 }, 40000, 5);
    index_equals_walk(made, 2);
}

static void of_deep_recursion(void **state)
{
    struct made *made = made_new();
    made_thread(made, 10);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 60000; i++, made->t += 50)
            made_begin(made, KRAIT_EVENT_python_call, 1 + 3 * (i % 7));
        for (uint32_t i = 0; i < 60000; i++, made->t += 50)
            made_end(made, KRAIT_EVENT_python_return);
    }
    index_equals_walk(made, 2);
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
        cmocka_unit_test(of_a_call_of_a_year),
        cmocka_unit_test(of_deep_recursion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
