/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread of another process is stopped and let go.
 */
#include "remote/stop.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static bool is_held(int number)
{
    sigset_t held;
    pthread_sigmask(SIG_BLOCK, NULL, &held);
    return sigismember(&held, number);
}

struct seen {
    pid_t pid;
    int rc;
    bool held;
};

/* What Ctrl-Z would do while the program is stopped. */
static void *stop_once(void *arg)
{
    struct seen *seen = arg;
    uint64_t before_ns;
    seen->rc = krait_stop_begin(seen->pid, &before_ns);
    seen->held = is_held(SIGTSTP) && !is_held(SIGTERM);
    if (!seen->rc)
        seen->rc = krait_stop_end(seen->pid);
    return NULL;
}

static void a_program_is_not_left_stopped_by_ctrl_z(void **state)
{
    struct seen seen = { .pid = fork() };
    if (!seen.pid) {
        for (;;)
            pause();
    }
    krait_stop_in_thread(stop_once, &seen);
    assert_false(is_held(SIGTSTP));
    kill(seen.pid, SIGKILL);
    waitpid(seen.pid, NULL, 0);
    if (seen.rc == -EPERM)
        skip(); /* no rights to trace */
    assert_int_equal(seen.rc, 0);
    assert_true(seen.held);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_program_is_not_left_stopped_by_ctrl_z) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
