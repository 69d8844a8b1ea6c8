/* SPDX-License-Identifier: Apache-2.0
 *
 * Code as the compiler of 3.8 makes it. Every version's is in tests/e2e/record/test_record_called.py.
 */
#include "python/compat/calls.h"

#include "python/compat/versions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct krait_calls calls_of(struct krait_arena *arena, unsigned minor, const uint8_t *code,
                                   size_t size)
{
    struct krait_calls calls;
    assert_int_equal(krait_calls_make(&calls, arena, krait_layout_find(0x300 + minor), code, size, NULL, 0),
                     0);
    return calls;
}

#define CALLS(minor, ...) \
    calls_of(&arena, minor, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

/* 3.8: return [a, len(sorted(a))], with a as the local variable 0. */
static void callables_lie_below_their_arguments(void **state)
{
    KRAIT_CLEANUP(krait_arena_done) struct krait_arena arena = { 0 };
    struct krait_calls calls = CALLS(8, 124, 0, 116, 0, 116, 1, 124, 0, 131, 1, 131, 1, 103, 2, 83, 0);
    assert_int_equal(calls.count, 2);
    assert_int_equal(calls.items[0].offset, 8);
    assert_int_equal(calls.items[0].slot, 2);
    assert_int_equal(calls.items[0].of[0].source, KRAIT_SOURCE_NAME);
    assert_int_equal(calls.items[0].of[0].index, 1);
    assert_int_equal(calls.items[1].offset, 10);
    assert_int_equal(calls.items[1].slot, 1);
    assert_int_equal(calls.items[1].of[0].index, 0);
    assert_ptr_equal(krait_calls_find(&calls, 10), &calls.items[1]);
    assert_null(krait_calls_find(&calls, 9));
    assert_null(krait_calls_find(&calls, -1));
}

/* 3.8: (a if a else len)(a): the callable has been loaded on one of two ways. */
static void a_callable_of_two_ways_has_no_source(void **state)
{
    KRAIT_CLEANUP(krait_arena_done) struct krait_arena arena = { 0 };
    struct krait_calls calls = CALLS(8, 124, 0, 114, 8, 124, 0, 110, 2, 116, 0, 124, 0, 131, 1, 83, 0);
    assert_int_equal(calls.count, 1);
    assert_int_equal(calls.items[0].slot, 0);
    assert_int_equal(calls.items[0].of[0].source, KRAIT_SOURCE_NONE);
}

/* 3.8: try: a finally: len(): its body is reached with one value on the stack or with six. */
static void the_body_of_a_shared_finally_is_not_certain(void **state)
{
    KRAIT_CLEANUP(krait_arena_done) struct krait_arena arena = { 0 };
    struct krait_calls calls =
        CALLS(8, 122, 4, 87, 0, 53, 0, 116, 0, 131, 0, 1, 0, 88, 0, 116, 0, 131, 0, 83, 0);
    assert_int_equal(calls.count, 1); /* behind it */
    assert_int_equal(calls.items[0].offset, 16);
    assert_int_equal(calls.items[0].slot, 0);
}

static void code_with_an_unknown_instruction_has_no_calls(void **state)
{
    KRAIT_CLEANUP(krait_arena_done) struct krait_arena arena = { 0 };
    assert_int_equal(CALLS(8, 116, 0, 131, 0, 83, 0).count, 1);
    assert_int_equal(CALLS(8, 116, 0, 131, 0, 255, 0).count, 0);
}

static void any_bytes_may_be_code(void **state)
{
    enum { SIZE = 96, TABLE = 24, CODES = 20000 };
    uint32_t random = 1;
    for (int n = 0; n < CODES; n++) {
        KRAIT_CLEANUP(krait_arena_done) struct krait_arena arena = { 0 };
        unsigned minor = KRAIT_PYTHON_MINOR_MIN + (unsigned)n % KRAIT_PYTHON_COUNT;
        uint8_t bytes[SIZE + TABLE];
        for (size_t i = 0; i < sizeof(bytes); i++) {
            random = random * 1664525u + 1013904223u;
            bytes[i] = (uint8_t)(random >> 24) % (i % 2 ? 16 : 192);
        }
        size_t size = (size_t)n % SIZE;
        uint8_t *code = malloc(size + 1); /* of its size: a sanitizer sees what is read beyond */
        assert_non_null(code);
        memcpy(code, bytes, size);
        struct krait_calls calls;
        assert_int_equal(krait_calls_make(&calls, &arena, krait_layout_find(0x300 + minor), code, size,
                                          bytes + SIZE, n % TABLE),
                         0);
        for (uint32_t i = 0; i < calls.count; i++) {
            assert_true(calls.items[i].offset < size && calls.items[i].slot < calls.items[i].depth);
            assert_ptr_equal(krait_calls_find(&calls, calls.items[i].offset), &calls.items[i]);
        }
        free(code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callables_lie_below_their_arguments),
        cmocka_unit_test(a_callable_of_two_ways_has_no_source),
        cmocka_unit_test(the_body_of_a_shared_finally_is_not_certain),
        cmocka_unit_test(code_with_an_unknown_instruction_has_no_calls),
        cmocka_unit_test(any_bytes_may_be_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
