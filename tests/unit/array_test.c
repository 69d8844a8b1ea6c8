/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_appending_keeps_what_is_there(void **state)
{
    (void)state;
    uint32_t *items = NULL, count = 0, cap = 0;
    while (count < 1000) {
        assert_true(KRAIT_GROW(items, cap, count + 1));
        items[count] = count;
        count++;
    }
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(items[i], i);
    assert_true(cap >= count && cap <= 2 * count);
    free(items);
}

static void test_far_more_at_once(void **state)
{
    (void)state;
    char *items = NULL;
    size_t cap = 0;
    assert_true(KRAIT_GROW(items, cap, 5000));
    assert_int_equal(cap, 5000);
    assert_true(KRAIT_GROW(items, cap, 5001));
    assert_int_equal(cap, 10000);
    free(items);
}

static void test_new_items_are_filled_and_old_ones_kept(void **state)
{
    (void)state;
    uint32_t *items = NULL, cap = 0;
    for (uint32_t i = 0; i < 500; i += 3) {
        assert_true(KRAIT_GROW_FILLED(items, cap, i + 1, 0xff));
        assert_int_equal(items[i], UINT32_MAX);
        items[i] = i;
        assert_int_equal(items[cap - 1], i + 1 == cap ? i : UINT32_MAX);
    }
    for (uint32_t i = 0; i < cap; i++)
        assert_int_equal(items[i], i < 500 && i % 3 == 0 ? i : UINT32_MAX);
    free(items);
}

static void test_a_count_that_cannot_be_leaves_all_as_it_was(void **state)
{
    (void)state;
    char *items = NULL;
    uint8_t cap = 0;
    unsigned need = 200;
    assert_true(KRAIT_GROW(items, cap, need));
    need = 255;
    assert_true(KRAIT_GROW(items, cap, need));
    assert_int_equal(cap, 255);
    const char *before = items;
    need = 256;
    assert_false(KRAIT_GROW(items, cap, need));
    assert_int_equal(cap, 255);
    assert_ptr_equal(items, before);
    free(items);
}

static void test_bytes_that_overflow_leave_all_as_it_was(void **state)
{
    (void)state;
    uint64_t *items = NULL;
    size_t cap = 0;
    assert_false(KRAIT_GROW(items, cap, SIZE_MAX / 4));
    assert_null(items);
    assert_int_equal(cap, 0);
}

static void test_a_search_finds_the_first_that_is_not_before(void **state)
{
    (void)state;
    static const int items[] = { 1, 3, 3, 5 };
    static const size_t first[] = { 0, 0, 1, 1, 3, 3, 4 }; /* of those that are not below 0, 1, ... 6 */
    for (int least = 0; least < 7; least++)
        assert_int_equal(KRAIT_PARTITION_POINT(i, KRAIT_ARRAY_LEN(items), items[i] < least), first[least]);
    const int *none = NULL;
    assert_int_equal(KRAIT_PARTITION_POINT(i, 0, none[i] < 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appending_keeps_what_is_there),
        cmocka_unit_test(test_far_more_at_once),
        cmocka_unit_test(test_new_items_are_filled_and_old_ones_kept),
        cmocka_unit_test(test_a_count_that_cannot_be_leaves_all_as_it_was),
        cmocka_unit_test(test_bytes_that_overflow_leave_all_as_it_was),
        cmocka_unit_test(test_a_search_finds_the_first_that_is_not_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
