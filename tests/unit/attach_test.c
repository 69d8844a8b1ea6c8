/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/attach.h"
#include "attach_registers.h"
#include "base/base.h"
#include "base/clock.h"
#include "rounds.h"

#include <dlfcn.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* What a process that krait attaches to says of itself. */
struct told {
    _Atomic uint64_t rounds, changed;
    _Atomic int stage; /* of a call: 1 before, 2 after it */
    int rc, error;
    uint64_t took_ns;
};

static struct told *told;
static int pipe_ends[2];

/* ---- the process ---- */

static void run_and_compare(const void *arg)
{
    static struct test_registers wanted, found;
    uint8_t *bytes = (uint8_t *)&wanted;
    for (size_t i = 0; i < sizeof(wanted); i++)
        bytes[i] = (uint8_t)(i * 7 + 1);
    for (;;) {
        memset(&found, 0, sizeof(found));
        test_keep_registers(&wanted, &found, 1000 * 1000);
        bool same = memcmp(wanted.general, found.general, TEST_GENERAL * sizeof(uint64_t)) == 0 &&
                    found.flags == TEST_FLAGS &&
                    memcmp(wanted.vectors, found.vectors, test_vector_bytes()) == 0 &&
                    memcmp(wanted.predicates, found.predicates, test_predicate_bytes()) == 0;
        told->changed += !same;
        told->rounds++;
    }
}

static int read_pipe(void)
{
    char c;
    return (int)read(pipe_ends[0], &c, 1);
}

static int poll_pipe(void)
{
    return poll(&(struct pollfd){ .fd = pipe_ends[0], .events = POLLIN }, 1, -1);
}

static int wait_by_epoll(void)
{
    int fd = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN };
    epoll_ctl(fd, EPOLL_CTL_ADD, pipe_ends[0], &event);
    return epoll_wait(fd, &event, 1, -1);
}

static int sleep_until(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += 1;
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

/* As sleep(3) of a program that goes on where it was interrupted. */
static int sleep_again(void)
{
    struct timespec left = { 1, 0 };
    while (nanosleep(&left, &left)) {
        if (errno != EINTR)
            return -1;
    }
    return 0;
}

static const struct wait {
    const char *name;
    int (*call)(void);
    int rc;
    bool may_be_interrupted; /* signal(7): at any stop */
    bool is_fed, takes_a_second;
} calls[] = {
    { "read", read_pipe, 1, false, true, false },
    { "poll", poll_pipe, 1, false, true, false },
    { "epoll_wait", wait_by_epoll, 1, true, true, false },
    { "clock_nanosleep", sleep_until, 0, false, false, true },
    { "nanosleep", sleep_again, 0, false, false, true },
};

static void wait_in(const void *arg)
{
    const struct wait *wait = arg;
    uint64_t begin = krait_clock_ns(CLOCK_MONOTONIC);
    told->stage = 1;
    told->rc = wait->call();
    told->error = errno;
    told->took_ns = krait_clock_ns(CLOCK_MONOTONIC) - begin;
    told->stage = 2;
    for (;;)
        pause();
}

enum { AROUND = 256 * 1024 };
static uint8_t *around; /* memory that ends with a signal's stack */

static size_t signal_stack(void)
{
    return (size_t)sysconf(_SC_MINSIGSTKSZ) + 1024;
}

static void wait_on_its_stack(int signal)
{
    told->stage = 1;
    for (;;)
        pause();
}

/* Fills the memory when the signal's handler waits: the kernel, and the loader when it first calls pause(), need much stack. */
static void *watch(void *arg)
{
    while (told->stage != 1)
        usleep(1000);
    usleep(50 * 1000);
    memset(around, 0xaa, AROUND - signal_stack());
    for (;;) {
        uint64_t changed = 0;
        for (size_t i = 0; i < AROUND - signal_stack(); i++)
            changed += around[i] != 0xaa;
        told->changed = changed;
        told->rounds++;
        usleep(10 * 1000);
    }
    return NULL;
}

/* A program may have a small stack amid other memory, such as one for signals, and as the threads of other languages do. */
static void wait_on_another_stack(const void *arg)
{
    const struct sigaction action = { .sa_handler = wait_on_its_stack, .sa_flags = SA_ONSTACK };
    pthread_t watcher;
    around = mmap(NULL, AROUND, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const stack_t stack = { .ss_sp = around + AROUND - signal_stack(), .ss_size = signal_stack() };
    if (around == MAP_FAILED || sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL) ||
        pthread_create(&watcher, NULL, watch, NULL))
        _exit(1);
    raise(SIGUSR1);
}

/* ---- krait ---- */

static pid_t start(void (*run)(const void *arg), const void *arg)
{
    *told = (struct told){ 0 };
    pid_t pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run(arg);
    _exit(1);
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void wait_until(bool (*is_so)(const void *arg), const void *arg)
{
    uint64_t until = krait_clock_ns(CLOCK_MONOTONIC) + 60 * KRAIT_NS_PER_S;
    while (!is_so(arg) && krait_clock_ns(CLOCK_MONOTONIC) < until)
        usleep(1000);
    assert_true(is_so(arg));
}

struct folder {
    pid_t pid;
    const char *path;
};

static bool is_in_folder(const void *arg)
{
    const struct folder *folder = arg;
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof(link), "/proc/%d/cwd", folder->pid);
    ssize_t n = readlink(link, path, sizeof(path));
    return n == (ssize_t)strlen(folder->path) && memcmp(path, folder->path, (size_t)n) == 0;
}

/* Makes the process call libc's chdir, which is seen from outside. */
static void attach_and_change_folder(pid_t pid, const char *path)
{
    Dl_info libc;
    char library[PATH_MAX];
    struct krait_err err = { 0 };
    assert_true(dladdr(dlsym(RTLD_DEFAULT, "chdir"), &libc) && realpath(libc.dli_fname, library));
    struct krait_attach_call call = { .library = library, .function = "chdir", .argument = path };
    int rc = krait_attach(pid, &call, &err);
    if (rc)
        fail_msg("%s", err.text);
    wait_until(is_in_folder, &(struct folder){ pid, path });
}

static bool has_gone_on(const void *arg)
{
    return told->rounds >= *(const uint64_t *)arg;
}

static void all_registers_are_those_of_before(void **state)
{
    if (!test_has_registers())
        skip();
    pid_t pid = start(run_and_compare, NULL);
    for (unsigned i = 0; i < tries(5, 50); i++) {
        wait_until(has_gone_on, &(uint64_t){ told->rounds + 1 });
        attach_and_change_folder(pid, i % 2 ? "/" : "/proc");
    }
    wait_until(has_gone_on, &(uint64_t){ told->rounds + 2 });
    assert_int_equal(told->changed, 0);
    end(pid);
}

static bool has_reached(const void *arg)
{
    return told->stage == *(const int *)arg;
}

static void a_call_that_waits_goes_on(void **state)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(calls); i++) {
        const struct wait *wait = &calls[i];
        assert_int_equal(pipe(pipe_ends), 0);
        pid_t pid = start(wait_in, wait);
        wait_until(has_reached, &(int){ 1 });
        usleep(20 * 1000);
        attach_and_change_folder(pid, "/proc");
        if (wait->is_fed)
            assert_int_equal(write(pipe_ends[1], "x", 1), 1);
        wait_until(has_reached, &(int){ 2 });
        bool interrupted = told->rc == -1 && told->error == EINTR && wait->may_be_interrupted;
        if (told->rc != wait->rc && !interrupted)
            fail_msg("%s returned %d, %s", wait->name, told->rc, strerror(told->error));
        if (wait->takes_a_second && told->took_ns < KRAIT_NS_PER_S)
            fail_msg("%s took %llu ns", wait->name, (unsigned long long)told->took_ns);
        end(pid);
        close(pipe_ends[0]);
        close(pipe_ends[1]);
    }
}

static void memory_beside_another_stack_is_left_alone(void **state)
{
    pid_t pid = start(wait_on_another_stack, NULL);
    wait_until(has_gone_on, &(uint64_t){ 1 });
    for (unsigned i = 0; i < 4; i++) {
        attach_and_change_folder(pid, i % 2 ? "/" : "/proc");
        wait_until(has_gone_on, &(uint64_t){ told->rounds + 2 });
        assert_int_equal(told->changed, 0);
    }
    end(pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_registers_are_those_of_before),
        cmocka_unit_test(a_call_that_waits_goes_on),
        cmocka_unit_test(memory_beside_another_stack_is_left_alone),
    };
    told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return told == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
