/* SPDX-License-Identifier: Apache-2.0
 *
 * Built twice, as programs are: functions bound when they are first called, by way of the PLT; and all at the
 * start, without it, in pages that the loader makes read-only.
 */
#include "python/got.h"

#include "base/buf.h"
#include "forbid.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { OURS = 4711 };

static pid_t ours(void)
{
    return OURS;
}

/* A function of its own: one that calls it twice may keep where it lies, as clang does. */
__attribute__((noinline)) static pid_t asked(void)
{
    return getppid();
}

/* The protection of this program's own mappings. */
static void protections(struct krait_buf *out)
{
    KRAIT_AUTO_FILE FILE *maps = fopen("/proc/self/maps", "re");
    char line[512], range[64], permissions[8];
    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps)) {
        if (strstr(line, "got_") && sscanf(line, "%63s %7s", range, permissions) == 2)
            krait_buf_fmt(out, "%s %s\n", range, permissions);
    }
}

static void with_a_call_that_is_not_there_nothing_is_led(void **state)
{
    const struct krait_got_call calls[] = { { "getppid", (void *)ours },
                                            { "krait_no_such_call", (void *)ours } };
    assert_int_equal(krait_got_redirect((void *)ours, calls, KRAIT_ARRAY_LEN(calls)), -ENOENT);
    assert_int_not_equal(asked(), OURS);
    assert_int_equal(krait_got_redirect((void *)(uintptr_t)1, calls, 1), -ENOENT); /* no file lies there */
}

static void what_is_not_led_is_not_said_to_be(void **state)
{
    enum { WRONG = 1, NO_FILTER = 2 };
    const struct krait_got_call calls[] = { { "getppid", (void *)ours } };
    pid_t child = fork();
    if (!child) {
        bool forbidden = forbid_mprotect();
        int rc = krait_got_redirect((void *)ours, calls, 1);
        _exit(!forbidden ? NO_FILTER : (rc == 0) == (asked() == OURS) ? 0 : WRONG);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_FILTER)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void calls_of_the_file_are_led_and_pages_stay_as_they_were(void **state)
{
    KRAIT_AUTO_BUF before = { 0 };
    KRAIT_AUTO_BUF after = { 0 };
    pid_t parent = asked();
    pid_t (*real)(void);
    *(void **)&real = dlsym(RTLD_DEFAULT, "getppid");
    const struct krait_got_call calls[] = { { "getppid", (void *)ours } };
    protections(&before);
    assert_int_equal(krait_got_redirect((void *)ours, calls, 1), 0);
    protections(&after);
    assert_int_equal(asked(), OURS);
    assert_int_equal(real(), parent);
    assert_string_equal(before.data, after.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_a_call_that_is_not_there_nothing_is_led),
        cmocka_unit_test(what_is_not_led_is_not_said_to_be),
        cmocka_unit_test(calls_of_the_file_are_led_and_pages_stay_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
