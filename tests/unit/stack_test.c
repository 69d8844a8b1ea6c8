/* SPDX-License-Identifier: Apache-2.0
 *
 * The stack machine: whatever goes in, what comes out is balanced.
 */
#include "trace/stack.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these before it */
#include <cmocka.h>
#include <string.h>

/* What came out, as text: "10 call 1, 20 return 1". */
struct run {
    struct krait_stack *stack;
    char text[4096];
    size_t batches;
    int stop_with;
};

static int write_down(void *ctx, const struct krait_call_batch *ops)
{
    static const char *const words[] = {
        "call", "resume", "throw", "live", "return", "yield", "unwind", "cut"
    };
    struct run *run = ctx;
    run->batches++;
    for (uint32_t i = 0; i < ops->n; i++) {
        size_t at = strlen(run->text);
        at += (size_t)snprintf(run->text + at, sizeof(run->text) - at, "%s%llu %s %u", at ? ", " : "",
                               (unsigned long long)ops->t_ns[i], words[ops->kind[i]], ops->func[i]);
        bool may_be_left = ops->kind[i] == KRAIT_OP_CUT || ops->kind[i] == KRAIT_OP_LIVE;
        if (may_be_left && ops->left[i])
            snprintf(run->text + at, sizeof(run->text) - at, " as %u", ops->left[i]);
    }
    return run->stop_with;
}

static void start(struct run *run, struct krait_range range)
{
    *run = (struct run){ .stack = calloc(1, sizeof(*run->stack)) };
    assert_non_null(run->stack);
    krait_stack_init(run->stack, range, write_down, run);
}

static void stop(struct run *run, uint64_t t_ns, const char *expected)
{
    krait_stack_finish(run->stack, t_ns);
    krait_stack_done(run->stack);
    free(run->stack);
    assert_string_equal(run->text, expected);
}

/* Function ids are code ids plus 100, so that neither can stand for the other. */
static void py(struct run *run, uint64_t t, uint32_t code)
{
    krait_stack_begin(run->stack, t, code + 100, code, KRAIT_OP_CALL, KRAIT_STACK_PYTHON);
}

static void c(struct run *run, uint64_t t, uint32_t code)
{
    krait_stack_begin(run->stack, t, code + 100, code, KRAIT_OP_CALL, KRAIT_STACK_C);
}

static void py_end(struct run *run, uint64_t t)
{
    krait_stack_end(run->stack, t, KRAIT_OP_RETURN, KRAIT_STACK_PYTHON);
}

static void c_end(struct run *run, uint64_t t)
{
    krait_stack_end(run->stack, t, KRAIT_OP_RETURN, KRAIT_STACK_C);
}

static void hands_out_calls_in_nesting_order(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    py(&run, 10, 1);
    c(&run, 20, 2);
    c_end(&run, 30);
    krait_stack_end(run.stack, 40, KRAIT_OP_YIELD, KRAIT_STACK_PYTHON);
    stop(&run, 50, "10 call 101, 20 call 102, 30 return 102, 40 yield 101");
}

static void ignores_an_end_of_a_c_call_that_did_not_begin(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    c_end(&run, 5);
    py(&run, 10, 1);
    c_end(&run, 20);
    py_end(&run, 30);
    assert_int_equal(run.stack->orphans, 2);
    stop(&run, 50, "10 call 101, 30 return 101");
}

static void ignores_an_end_of_a_python_call_on_an_empty_stack(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    py_end(&run, 5);
    assert_int_equal(run.stack->orphans, 1);
    stop(&run, 50, "");
}

static void cuts_c_calls_that_a_python_end_leaves_behind(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    py(&run, 10, 1);
    c(&run, 20, 2);
    c(&run, 21, 3);
    krait_stack_end(run.stack, 30, KRAIT_OP_UNWIND, KRAIT_STACK_PYTHON);
    stop(&run, 50, "10 call 101, 20 call 102, 21 call 103, 30 cut 103, 30 cut 102, 30 unwind 101");
}

static void cuts_c_calls_when_the_python_call_below_was_not_seen(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    c(&run, 20, 2);
    py_end(&run, 30);
    stop(&run, 50, "20 call 102, 30 cut 102");
}

static void cuts_at_the_end_what_is_open(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    py(&run, 10, 1);
    py(&run, 20, 2);
    stop(&run, 50, "10 call 101, 20 call 102, 50 cut 102, 50 cut 101");
}

static void time_never_goes_back(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    py(&run, 10, 1);
    py(&run, 5, 2);
    py_end(&run, 8);
    py_end(&run, 12);
    stop(&run, 3, "10 call 101, 10 call 102, 10 return 102, 12 return 101");
}

static void seeds_a_stack_that_was_live_before(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    krait_stack_live(run.stack, 10, 101, 1, 0);
    krait_stack_live(run.stack, 10, 102, 2, 1);
    krait_stack_settle(run.stack, 10, 2);
    py_end(&run, 20);
    stop(&run, 30, "10 live 101, 10 live 102, 20 return 102, 30 cut 101");
}

static void resynchronises_and_keeps_what_is_the_same(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    py(&run, 10, 1);
    c(&run, 11, 9);
    py(&run, 12, 2);
    py(&run, 13, 3);
    krait_stack_live(run.stack, 50, 101, 1, 0); /* open, with the C call that calls what is above */
    krait_stack_live(run.stack, 50, 102, 2, 1);
    krait_stack_live(run.stack, 50, 104, 4, 2); /* another than before */
    krait_stack_settle(run.stack, 50, 3);
    py_end(&run, 60);
    stop(&run, 70,
         "10 call 101, 11 call 109, 12 call 102, 13 call 103, 13 cut 103, 50 live 104, 60 return 104, "
         "70 cut 102, 70 cut 109, 70 cut 101");
}

static void a_run_above_the_outermost_frame_leaves_c_calls_open(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    py(&run, 10, 1);
    c(&run, 11, 9);
    krait_stack_live(run.stack, 20, 102, 2, 1); /* its begin was not recorded */
    krait_stack_settle(run.stack, 20, 2);
    krait_stack_live(run.stack, 30, 102, 2, 1); /* it is open already */
    krait_stack_settle(run.stack, 30, 2);
    py_end(&run, 40);
    c_end(&run, 41);
    py_end(&run, 42);
    stop(&run, 50, "10 call 101, 11 call 109, 20 live 102, 40 return 102, 41 return 109, 42 return 101");
}

static void settling_cuts_deeper_calls_and_c_calls_on_top(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    py(&run, 10, 1);
    c(&run, 11, 9);
    py(&run, 12, 2);
    krait_stack_settle(run.stack, 20, 1);
    py_end(&run, 30);
    stop(&run, 40, "10 call 101, 11 call 109, 12 call 102, 12 cut 102, 12 cut 109, 30 return 101");
}

static void settling_at_nothing_empties_the_stack(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    c(&run, 9, 9);
    py(&run, 10, 1);
    krait_stack_settle(run.stack, 20, 0);
    stop(&run, 40, "9 call 109, 10 call 101, 10 cut 101, 10 cut 109");
}

static void a_frame_deeper_than_the_stack_goes_on_top(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    krait_stack_live(run.stack, 10, 101, 1, 65535);
    krait_stack_settle(run.stack, 10, 65535);
    stop(&run, 40, "10 live 101, 40 cut 101");
}

static void code_left_out_is_cut_and_what_it_called_goes_on(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    py(&run, 10, 1);
    py(&run, 11, 2);
    py(&run, 12, 3);
    py(&run, 13, 2);
    krait_stack_omit(run.stack, 20, 2);
    py_end(&run, 30);
    py_end(&run, 40);
    stop(&run, 50,
         "10 call 101, 11 call 102, 12 call 103, 13 call 102, 20 cut 102, 20 cut 103, 20 cut 102, 20 live "
         "103, "
         "30 return 103, 40 return 101");
}

static void c_calls_go_with_code_that_is_left_out(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    py(&run, 10, 1);
    py(&run, 11, 2);
    c(&run, 12, 3);
    py(&run, 13, 4);
    c(&run, 14, 5);
    krait_stack_omit(run.stack, 20, 2);
    c_end(&run, 30);
    py_end(&run, 40);
    py_end(&run, 50);
    stop(
        &run, 60,
        "10 call 101, 11 call 102, 12 call 103, 13 call 104, 14 call 105, 20 cut 105, 20 cut 104, 20 cut 103, "
        "20 cut 102, 20 live 104, 20 live 105, 30 return 105, 40 return 104, 50 return 101");
}

static void code_left_out_that_is_not_open_changes_nothing(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    py(&run, 10, 1);
    krait_stack_omit(run.stack, 20, 7);
    py_end(&run, 15); /* before the omission: times are what they were */
    stop(&run, 50, "10 call 101, 15 return 101");
}

static void a_stack_that_was_left_comes_back(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    py(&run, 10, 1);
    py(&run, 11, 2);
    c(&run, 12, 3);
    krait_stack_switch(run.stack, 20, 1, 0);
    py(&run, 21, 4);
    krait_stack_switch(run.stack, 30, 2, 1);
    c_end(&run, 31);
    py_end(&run, 32);
    krait_stack_switch(run.stack, 40, 1, 2);
    py_end(&run, 41);
    stop(
        &run, 50,
        "10 call 101, 11 call 102, 12 call 103, 20 cut 103 as 3, 20 cut 102 as 2, 20 cut 101 as 1, 21 call 104, "
        "30 cut 104 as 4, 30 live 101 as 1, 30 live 102 as 2, 30 live 103 as 3, 31 return 103, 32 return 102, "
        "40 cut 101 as 1, 40 live 104 as 4, 41 return 104");
}

static void calls_of_one_function_on_two_stacks_are_two_calls(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    py(&run, 10, 1);
    py(&run, 11, 2);
    krait_stack_switch(run.stack, 20, 1, 0);
    py(&run, 21, 1);
    krait_stack_switch(run.stack, 30, 2, 1);
    stop(&run, 50,
         "10 call 101, 11 call 102, 20 cut 102 as 2, 20 cut 101 as 1, 21 call 101, 30 cut 101 as 3, "
         "30 live 101 as 1, 30 live 102 as 2, 50 cut 102, 50 cut 101");
}

static void code_left_out_goes_from_stacks_that_were_left(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    py(&run, 10, 1);
    py(&run, 11, 2);
    krait_stack_switch(run.stack, 20, 1, 0);
    krait_stack_omit(run.stack, 25, 1);
    krait_stack_switch(run.stack, 30, 2, 1);
    py_end(&run, 31);
    stop(&run, 50,
         "10 call 101, 11 call 102, 20 cut 102 as 2, 20 cut 101 as 1, 30 live 102 as 2, 31 return 102");
}

/* The omission is no switch: who follows calls does not know that it goes on. */
static void a_call_keeps_its_number_where_its_caller_is_left_out(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    py(&run, 10, 1);
    py(&run, 11, 2);
    krait_stack_switch(run.stack, 20, 1, 0);
    krait_stack_switch(run.stack, 30, 2, 1);
    krait_stack_omit(run.stack, 35, 1);
    krait_stack_switch(run.stack, 40, 1, 2);
    stop(&run, 50,
         "10 call 101, 11 call 102, 20 cut 102 as 2, 20 cut 101 as 1, 30 live 101 as 1, 30 live 102 as 2, "
         "35 cut 102, 35 cut 101, 35 live 102, 40 cut 102 as 2");
}

static int count_batch(void *ctx, const struct krait_call_batch *ops)
{
    *(size_t *)ctx += ops->n;
    return 0;
}

/* What a damaged trace may say: each number leaves another deep stack. */
static void stacks_that_were_left_have_bounded_memory(void **state)
{
    enum { DEEP = 1 << 16, NUMBERS = 300 };
    struct krait_stack *stack = calloc(1, sizeof(*stack));
    size_t ops = 0;
    assert_non_null(stack);
    krait_stack_init(stack, (struct krait_range){ 1000, 2000 }, count_batch, &ops);
    for (uint32_t i = 0; i < DEEP; i++)
        krait_stack_begin(stack, 10, 101, 1, KRAIT_OP_CALL, KRAIT_STACK_PYTHON);
    for (uint32_t i = 1; i <= NUMBERS; i++)
        krait_stack_switch(stack, 20, i, i);
    assert_int_equal(stack->len, 0);
    assert_true(stack->left_frames <= 2 * KRAIT_STACK_DEPTH_MAX);
    krait_stack_switch(stack, 30, NUMBERS, 1);
    assert_int_equal(stack->len, DEEP);
    assert_int_equal(stack->rc, 0);
    krait_stack_done(stack);
    free(stack);
}

/* Each switch between two deep stacks has 8 bytes in a trace. */
static void hostile_switches_take_bounded_time(void **state)
{
    enum { DEEP = 1 << 17, SWITCHES = 1 << 17 };
    struct krait_stack *stack = calloc(1, sizeof(*stack));
    size_t ops = 0;
    assert_non_null(stack);
    krait_stack_init(stack, KRAIT_RANGE_ALL, count_batch, &ops);
    stack->budget = 1 << 19; /* not the whole of it: this is a test */
    for (uint32_t i = 0; i < DEEP; i++)
        krait_stack_begin(stack, 10, 101, 1, KRAIT_OP_CALL, KRAIT_STACK_PYTHON);
    for (uint32_t i = 0; i < SWITCHES; i++)
        krait_stack_switch(stack, 20, 1 + i % 2, 2 - i % 2);
    assert_true(stack->overdrawn);
    assert_int_equal(stack->len, 0);
    assert_true(ops < 8 * (size_t)DEEP);
    for (uint32_t i = 0; i < DEEP; i++)
        krait_stack_begin(stack, 30, 102, 2, KRAIT_OP_CALL, KRAIT_STACK_PYTHON);
    for (uint32_t i = 0; i < SWITCHES; i++) {
        krait_stack_omit(stack, 40, 2 + i);
        krait_stack_end_of(stack, 40, 7);
    }
    krait_stack_finish(stack, 50);
    assert_int_equal(stack->len, 0);
    krait_stack_done(stack);
    free(stack);
}

static void switches_of_a_program_are_all_paid_for(void **state)
{
    enum { DEEP = 300, SWITCHES = 20000 };
    struct krait_stack *stack = calloc(1, sizeof(*stack));
    size_t ops = 0;
    assert_non_null(stack);
    krait_stack_init(stack, KRAIT_RANGE_ALL, count_batch, &ops);
    for (uint32_t i = 0; i < DEEP; i++)
        krait_stack_begin(stack, 10, 101, 1, KRAIT_OP_CALL, KRAIT_STACK_PYTHON);
    for (uint32_t i = 0; i < SWITCHES; i++)
        krait_stack_switch(stack, 20, 1 + i % 2, 2 - i % 2);
    assert_false(stack->overdrawn);
    assert_int_equal(stack->budget, KRAIT_STACK_BUDGET + SWITCHES * (uint64_t)(KRAIT_STACK_PAY - DEEP));
    assert_int_equal(stack->len, DEEP);
    krait_stack_done(stack);
    free(stack);
}

static void stacks_that_were_left_are_not_known_behind_a_gap(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    py(&run, 10, 1);
    krait_stack_switch(run.stack, 20, 1, 0);
    krait_stack_forget_left(run.stack);
    krait_stack_switch(run.stack, 30, 2, 1);
    stop(&run, 50, "10 call 101, 20 cut 101 as 1");
}

static void a_range_cuts_at_both_edges(void **state)
{
    struct run run;
    start(&run, (struct krait_range){ 100, 200 });
    py(&run, 10, 1);
    py(&run, 20, 2);
    py_end(&run, 30);
    py(&run, 40, 3);
    py(&run, 150, 4);
    stop(&run, 900, "100 live 101, 100 live 103, 150 call 104, 200 cut 104, 200 cut 103, 200 cut 101");
}

/* Its calls are those that a walk over everything finds. */
static void a_gap_over_the_ranges_end_cuts_what_it_cuts(void **state)
{
    struct run run;
    start(&run, (struct krait_range){ 100, 200 });
    py(&run, 10, 1);
    py(&run, 120, 2);
    py(&run, 130, 3);
    krait_stack_live(run.stack, 300, 101, 1, 0);
    krait_stack_live(run.stack, 300, 104, 4, 1);
    krait_stack_settle(run.stack, 300, 2);
    stop(&run, 900, "100 live 101, 120 call 102, 130 call 103, 130 cut 103, 130 cut 102, 200 cut 101");
}

static void a_range_in_which_nothing_happens_shows_what_was_open(void **state)
{
    struct run run;
    start(&run, (struct krait_range){ 100, 200 });
    py(&run, 10, 1);
    stop(&run, 900, "100 live 101, 200 cut 101");
}

static void a_range_after_the_end_is_empty(void **state)
{
    struct run run;
    start(&run, (struct krait_range){ 100, 200 });
    py(&run, 10, 1);
    stop(&run, 90, "");
}

static void an_end_at_the_ranges_begin_is_before_it(void **state)
{
    struct run run;
    start(&run, (struct krait_range){ 100, 200 });
    py(&run, 10, 1);
    py_end(&run, 100);
    py(&run, 100, 2);
    py_end(&run, 101);
    stop(&run, 200, "100 call 102, 101 return 102");
}

static void a_consumer_that_stops_is_not_called_again(void **state)
{
    struct run run;
    start(&run, KRAIT_RANGE_ALL);
    run.stop_with = 7;
    py(&run, 1, 1);
    py_end(&run, 2);
    krait_stack_flush(run.stack);
    py(&run, 3, 1);
    py_end(&run, 4);
    krait_stack_finish(run.stack, 5);
    assert_int_equal(run.stack->rc, 7);
    assert_int_equal(run.batches, 1);
    stop(&run, 5, "1 call 101, 2 return 101");
}

/* Counts instead of writing down. */
struct tally {
    uint64_t begins, ends;
};

static int count_ops(void *ctx, const struct krait_call_batch *ops)
{
    struct tally *tally = ctx;
    for (uint32_t i = 0; i < ops->n; i++) {
        tally->begins += !krait_op_is_end(ops->kind[i]);
        tally->ends += krait_op_is_end(ops->kind[i]);
        assert_true(tally->begins >= tally->ends);
    }
    return 0;
}

static void calls_above_the_greatest_depth_are_left_out_in_pairs(void **state)
{
    struct krait_stack *stack = calloc(1, sizeof(*stack));
    struct tally tally = { 0 };
    assert_non_null(stack);
    krait_stack_init(stack, KRAIT_RANGE_ALL, count_ops, &tally);
    for (uint32_t i = 0; i < KRAIT_STACK_DEPTH_MAX + 10; i++)
        krait_stack_begin(stack, i, 1, 1, KRAIT_OP_CALL, KRAIT_STACK_PYTHON);
    assert_int_equal(stack->over, 10);
    for (uint32_t i = 0; i < 10; i++)
        krait_stack_end(stack, KRAIT_STACK_DEPTH_MAX + 10, KRAIT_OP_RETURN, KRAIT_STACK_PYTHON);
    assert_int_equal(stack->len, KRAIT_STACK_DEPTH_MAX);
    krait_stack_finish(stack, KRAIT_STACK_DEPTH_MAX + 20);
    assert_int_equal(stack->rc, 0);
    assert_int_equal(tally.begins, KRAIT_STACK_DEPTH_MAX);
    assert_int_equal(tally.ends, KRAIT_STACK_DEPTH_MAX);
    krait_stack_done(stack);
    free(stack);
}

/* Any events in any order, in any range: begins and ends balance and nest, times do not go back. */
struct nesting {
    uint32_t open[4096];
    uint32_t depth;
    uint64_t last_ns;
    struct krait_range range;
};

static int check_nesting(void *ctx, const struct krait_call_batch *ops)
{
    struct nesting *n = ctx;
    for (uint32_t i = 0; i < ops->n; i++) {
        assert_true(ops->t_ns[i] >= n->last_ns);
        assert_true(ops->t_ns[i] >= n->range.from_ns && ops->t_ns[i] <= n->range.to_ns);
        n->last_ns = ops->t_ns[i];
        if (!krait_op_is_end(ops->kind[i])) {
            assert_true(n->depth < KRAIT_ARRAY_LEN(n->open));
            n->open[n->depth++] = ops->func[i];
            continue;
        }
        assert_true(n->depth > 0);
        assert_int_equal(n->open[--n->depth], ops->func[i]);
    }
    return 0;
}

static uint32_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ull + 1442695040888963407ull; /* Knuth's MMIX generator */
    return (uint32_t)(*seed >> 33);
}

static void random_event(struct krait_stack *stack, uint64_t t, uint64_t *seed)
{
    uint32_t code = next_random(seed) % 6;
    uint32_t depth = next_random(seed) % 8;
    enum krait_stack_lang lang = next_random(seed) % 2;
    switch (next_random(seed) % 9) {
    case 0:
    case 1:
    case 2:
        krait_stack_begin(stack, t, code, code, next_random(seed) % KRAIT_OP_END, lang);
        break;
    case 3:
    case 4:
        krait_stack_end(stack, t, KRAIT_OP_END + next_random(seed) % 3, lang);
        break;
    case 5:
        krait_stack_live(stack, t, code, code, depth);
        break;
    case 6:
        krait_stack_settle(stack, t, depth);
        break;
    case 7:
        krait_stack_switch(stack, t, code, depth);
        break;
    default:
        krait_stack_omit(stack, t, code);
    }
}

static void any_events_come_out_balanced(void **state)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        uint64_t random = seed;
        struct krait_range range = { 0, UINT64_MAX };
        if (seed % 3 == 0)
            range = (struct krait_range){ 500, 900 };
        struct krait_stack *stack = calloc(1, sizeof(*stack));
        struct nesting *nesting = calloc(1, sizeof(*nesting));
        assert_non_null(stack);
        assert_non_null(nesting);
        nesting->range = range;
        krait_stack_init(stack, range, check_nesting, nesting);
        uint64_t t = 0;
        for (int i = 0; i < 1000 && t < range.to_ns; i++) {
            random_event(stack, t, &random);
            t += next_random(&random) % 3;
        }
        krait_stack_finish(stack, t);
        assert_int_equal(nesting->depth, 0);
        krait_stack_done(stack);
        free(stack);
        free(nesting);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hands_out_calls_in_nesting_order),
        cmocka_unit_test(ignores_an_end_of_a_c_call_that_did_not_begin),
        cmocka_unit_test(ignores_an_end_of_a_python_call_on_an_empty_stack),
        cmocka_unit_test(cuts_c_calls_that_a_python_end_leaves_behind),
        cmocka_unit_test(cuts_c_calls_when_the_python_call_below_was_not_seen),
        cmocka_unit_test(cuts_at_the_end_what_is_open),
        cmocka_unit_test(time_never_goes_back),
        cmocka_unit_test(seeds_a_stack_that_was_live_before),
        cmocka_unit_test(resynchronises_and_keeps_what_is_the_same),
        cmocka_unit_test(a_run_above_the_outermost_frame_leaves_c_calls_open),
        cmocka_unit_test(settling_cuts_deeper_calls_and_c_calls_on_top),
        cmocka_unit_test(settling_at_nothing_empties_the_stack),
        cmocka_unit_test(a_frame_deeper_than_the_stack_goes_on_top),
        cmocka_unit_test(code_left_out_is_cut_and_what_it_called_goes_on),
        cmocka_unit_test(c_calls_go_with_code_that_is_left_out),
        cmocka_unit_test(code_left_out_that_is_not_open_changes_nothing),
        cmocka_unit_test(stacks_that_were_left_have_bounded_memory),
        cmocka_unit_test(hostile_switches_take_bounded_time),
        cmocka_unit_test(switches_of_a_program_are_all_paid_for),
        cmocka_unit_test(a_call_keeps_its_number_where_its_caller_is_left_out),
        cmocka_unit_test(stacks_that_were_left_are_not_known_behind_a_gap),
        cmocka_unit_test(a_range_cuts_at_both_edges),
        cmocka_unit_test(a_gap_over_the_ranges_end_cuts_what_it_cuts),
        cmocka_unit_test(a_range_in_which_nothing_happens_shows_what_was_open),
        cmocka_unit_test(a_range_after_the_end_is_empty),
        cmocka_unit_test(an_end_at_the_ranges_begin_is_before_it),
        cmocka_unit_test(a_consumer_that_stops_is_not_called_again),
        cmocka_unit_test(a_stack_that_was_left_comes_back),
        cmocka_unit_test(calls_of_one_function_on_two_stacks_are_two_calls),
        cmocka_unit_test(code_left_out_goes_from_stacks_that_were_left),
        cmocka_unit_test(calls_above_the_greatest_depth_are_left_out_in_pairs),
        cmocka_unit_test(any_events_come_out_balanced),
    };
    return cmocka_run_group_tests_name("stack", tests, NULL, NULL);
}
