/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shell.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *name, const char *word)
{
    KRAIT_AUTO_BUF buf = { 0 };
    krait_shell_file(&buf, name);
    assert_false(buf.failed);
    assert_string_equal(buf.data, word);
}

static void names_that_a_shell_takes_as_they_stand_are_plain(void **state)
{
    expect("krait-app.py-20261121-093000", "krait-app.py-20261121-093000");
    expect("/tmp/a_b/c@d%e+f=g:h,i", "/tmp/a_b/c@d%e+f=g:h,i");
}

static void others_are_in_single_quotes(void **state)
{
    expect("my trace", "'my trace'");
    expect("it's", "'it'\\''s'");
    expect("~", "'~'");
    expect("$HOME/`a`\\b", "'$HOME/`a`\\b'");
    expect("\xC3\xA9t\xC3\xA9", "'\xC3\xA9t\xC3\xA9'");
    expect("", "''");
}

static void what_a_terminal_could_obey_is_escaped(void **state)
{
    expect("a\nb\tc", "$'a\\nb\\tc'");
    expect("\033[31mred", "$'\\x1b[31mred'");
    expect("it's\x07\\", "$'it\\'s\\x07\\\\'");
    expect("\xFFx\xC3\xA9", "$'\\xffx\xC3\xA9'");
    expect("\xC2\x9B", "$'\\xc2\\x9b'");
}

static void a_name_is_no_option(void **state)
{
    expect("-x", "./-x");
    expect("-x y", "'./-x y'");
    expect("-\n", "$'./-\\n'");
    expect("a-x", "a-x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_a_shell_takes_as_they_stand_are_plain),
        cmocka_unit_test(others_are_in_single_quotes),
        cmocka_unit_test(what_a_terminal_could_obey_is_escaped),
        cmocka_unit_test(a_name_is_no_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
