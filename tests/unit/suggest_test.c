/* SPDX-License-Identifier: Apache-2.0 */
#include "base/suggest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char *const names[] = { "order", "ord", "shop.payments.providers.bank_transfer.retry",
                                     "shop.payments.providers.bank_transfer" };

static const char *nearest(const char *typed)
{
    struct krait_suggest suggest = KRAIT_SUGGEST(typed, strlen(typed));
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(names); i++)
        krait_suggest_try(&suggest, names[i]);
    return suggest.best ? suggest.best : "";
}

static void test_the_nearest_word_is_found(void **state)
{
    assert_string_equal(nearest("oder"), "order");
    assert_string_equal(nearest("rod"), "ord");
    assert_string_equal(nearest("orde"), "ord"); /* the shorter one of two that are as near */
    assert_string_equal(nearest("market"), "");
    assert_string_equal(nearest("o"), "");
}

static void test_long_words_too(void **state)
{
    assert_string_equal(nearest("shop.payments.providers.bank_tranfser"), names[3]);
    assert_string_equal(nearest("shop.payments.providers.bank_transfer.rerty"), names[2]);
}

static void test_a_word_that_is_too_long_is_near_to_none(void **state)
{
    char typed[4096];
    memset(typed, 'o', sizeof(typed) - 1);
    typed[sizeof(typed) - 1] = 0;
    assert_string_equal(nearest(typed), "");
}

static void test_an_event_is_near_by_what_is_behind_its_colons(void **state)
{
    static const char *const events[] = { "usdt:shop:sold", "python:call", "shop:sale" };
    static const struct {
        const char *typed, *best;
    } rows[] = { { "shop:sold", "usdt:shop:sold" },
                 { "sodl", "usdt:shop:sold" },
                 { "shop:sal", "shop:sale" },
                 { "pyton:call", "python:call" },
                 { "call", "python:call" } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(rows); i++) {
        struct krait_suggest suggest = KRAIT_SUGGEST(rows[i].typed, strlen(rows[i].typed));
        for (size_t k = 0; k < KRAIT_ARRAY_LEN(events); k++)
            krait_suggest_try_event(&suggest, events[k]);
        assert_string_equal(suggest.best ? suggest.best : "", rows[i].best);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_nearest_word_is_found),
        cmocka_unit_test(test_long_words_too),
        cmocka_unit_test(test_a_word_that_is_too_long_is_near_to_none),
        cmocka_unit_test(test_an_event_is_near_by_what_is_behind_its_colons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
