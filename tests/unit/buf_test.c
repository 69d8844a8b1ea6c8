/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void what_fits_stays_in_the_callers_array(void **state)
{
    char array[8];
    KRAIT_AUTO_BUF buf = KRAIT_BUF_IN(array);
    krait_buf_str(&buf, "seven b");
    assert_ptr_equal(buf.data, array);
    assert_string_equal(array, "seven b");
}

static void what_does_not_fit_moves_with_what_was_there(void **state)
{
    char array[8];
    KRAIT_AUTO_BUF buf = KRAIT_BUF_IN(array);
    krait_buf_str(&buf, "seven b");
    krait_buf_char(&buf, 'y');
    assert_ptr_not_equal(buf.data, array);
    krait_buf_fmt(&buf, "%s and %s", "tes", "more");
    assert_string_equal(buf.data, "seven bytes and more");
    assert_int_equal(buf.len, strlen(buf.data));
    assert_false(buf.failed);
}

static void nothing_is_an_empty_text(void **state)
{
    char array[8] = "rest";
    KRAIT_AUTO_BUF buf = KRAIT_BUF_IN(array);
    assert_string_equal(buf.data, "");
    assert_int_equal(buf.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_stays_in_the_callers_array),
        cmocka_unit_test(what_does_not_fit_moves_with_what_was_there),
        cmocka_unit_test(nothing_is_an_empty_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
