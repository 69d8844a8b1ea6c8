/* SPDX-License-Identifier: Apache-2.0
 *
 * The proof that a thread did not run, by the kernel's records of its switches, of another thread of this process.
 */
#include "remote/still.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

enum { TRIES = 10000 };

struct other {
    pthread_t thread;
    _Atomic pid_t tid;
    atomic_bool computes, ends;
    uintptr_t stack; /* an address there */
};

static void *run_other(void *arg)
{
    struct other *other = arg;
    other->stack = (uintptr_t)&other;
    other->tid = gettid();
    while (!other->ends) {
        if (!other->computes)
            poll(NULL, 0, 1);
    }
    return NULL;
}

static void begin_other(struct other *other, bool computes)
{
    *other = (struct other){ .computes = computes };
    assert_int_equal(pthread_create(&other->thread, NULL, run_other, other), 0);
    while (!other->tid)
        poll(NULL, 0, 1);
}

static void end_other(struct other *other)
{
    other->ends = true;
    pthread_join(other->thread, NULL);
}

static void skip_without_records(void)
{
    struct krait_switches switches;
    if (!krait_switches_open(&switches, gettid(), false))
        skip(); /* the kernel does not allow it here */
    krait_switches_close(&switches);
}

static bool has_records(const struct krait_still *still)
{
    return still->at->switches.page;
}

/* Reads it until there is a proof. */
static void prove(struct krait_still *still, const struct other *other)
{
    bool is_proved = false;
    for (int i = 0; i < TRIES && !is_proved; i++)
        is_proved = !krait_still_begin(still, getpid(), other->tid) && krait_still_end(still);
    assert_true(is_proved);
}

/* Reads it until there is a proof by records, which still.c marks so, while it would run. */
static void prove_by_records(struct krait_still *still, const struct other *other)
{
    bool is_by_records = false;
    still->records = true;
    for (int i = 0; i < TRIES && !is_by_records; i++) {
        prove(still, other);
        is_by_records = still->count >> 63 && still->state == 'R';
    }
    assert_true(is_by_records);
}

static void test_the_count_of_a_thread_that_runs_changes_with_its_switches_alone(void **state)
{
    (void)state;
    skip_without_records();
    static struct krait_still still = { .records = true };
    uint64_t before = 0;
    for (int i = 0; i < TRIES && !(still.at && has_records(&still)); i++)
        krait_still_begin(&still, getpid(),
                          gettid()); /* closes them if this thread has lost its CPU between */
    assert_true(has_records(&still));
    for (int i = 0; i < 10; i++) {
        poll(NULL, 0, 1);
        uint64_t count = krait_still_count(&still, getpid(), gettid());
        assert_int_not_equal(count, 0);
        assert_int_not_equal(count, before);
        before = count;
    }
    krait_still_done(&still);
}

/* As when other threads or processes come and go. */
static void test_records_that_are_opened_again_are_counted_from_their_beginning(void **state)
{
    (void)state;
    skip_without_records();
    static struct krait_still still;
    struct other other;
    begin_other(&other, true);
    for (int i = 0; i < 5; i++) {
        prove_by_records(&still, &other);
        assert_true(still.at->often < UINT16_MAX); /* no more than there were */
        assert_int_equal(still.at->wait, 0);
        still.records = false;
        prove(&still, &other);
        assert_false(has_records(&still));
    }
    krait_still_done(&still);
    end_other(&other);
}

/* They are of the last switch: the stack pointer is on its stack, a little below the frame of its function. */
static void test_records_have_the_registers_of_a_thread_that_computes_or_waits(void **state)
{
    (void)state;
    enum { FRAMES = 8192 };
    static struct krait_still still = { .records = true, .registers = true };
    struct krait_switches switches;
    struct krait_registers registers;
    if (!krait_switches_open(&switches, gettid(), true))
        skip(); /* the kernel does not allow it here */
    krait_switches_close(&switches);
    for (int computes = 0; computes < 2; computes++) {
        struct other other;
        begin_other(&other, computes);
        bool told = false;
        for (int i = 0; i < TRIES && !told; i++)
            told = !krait_still_begin(&still, getpid(), other.tid) &&
                   krait_still_registers(&still, &registers) && krait_still_end(&still);
        assert_true(told);
        assert_in_range(registers.value[KRAIT_CFI_SP], other.stack - FRAMES, other.stack);
        assert_true(registers.known >> KRAIT_CFI_PC & 1 && registers.value[KRAIT_CFI_PC]);
        end_other(&other);
    }
    krait_still_done(&still);
}

static void test_of_threads_that_have_ended_nothing_stays_open(void **state)
{
    (void)state;
    static struct krait_still still;
    struct krait_os_tasks tasks = { 0 };
    struct other others[2];
    for (int i = 0; i < 2; i++) {
        begin_other(&others[i], false);
        still.records = true;
        prove(&still, &others[i]);
        prove(&still, &others[i]);
    }
    end_other(&others[0]);
    assert_int_equal(krait_tasks_read(&tasks, getpid(), false), 0);
    krait_still_keep(&still, &tasks);
    assert_int_equal(still.files[0].tid, 0);
    assert_null(still.files[0].switches.page);
    assert_int_equal(still.files[1].tid, others[1].tid);
    end_other(&others[1]);
    krait_tasks_done(&tasks);
    krait_still_done(&still);
}

/* They take the places of each other, not those of threads that live. */
static void test_a_threads_files_stay_open_while_hundreds_of_others_come_and_go(void **state)
{
    (void)state;
    static struct krait_still still;
    struct krait_os_tasks tasks = { 0 };
    struct other living, brief;
    begin_other(&living, false);
    krait_still_count(&still, getpid(), living.tid);
    const struct krait_still_files *files = still.at;
    for (int i = 0; i < KRAIT_STILL_FILES + 10; i++) {
        begin_other(&brief, false);
        krait_still_count(&still, getpid(), brief.tid);
        end_other(&brief);
        assert_int_equal(krait_tasks_read(&tasks, getpid(), false), 0);
        krait_still_keep(&still, &tasks);
        assert_int_equal(files->tid, living.tid);
    }
    end_other(&living);
    krait_tasks_done(&tasks);
    krait_still_done(&still);
}

static void test_krait_holds_a_thread_that_would_run_on_its_cpu_and_none_that_sleeps(void **state)
{
    (void)state;
    static struct krait_still still;
    struct other other;
    bool held = false;
    begin_other(&other, true);
    still.records = true;
    for (int i = 0; i < TRIES && !held; i++) {
        prove(&still, &other);
        assert_true(!still.holds || still.state == 'R');
        held = still.holds;
    }
    assert_true(held);
    other.computes = false;
    do
        prove(&still, &other);
    while (still.state == 'R');
    assert_false(still.holds);
    krait_still_done(&still);
    end_other(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_count_of_a_thread_that_runs_changes_with_its_switches_alone),
        cmocka_unit_test(test_records_that_are_opened_again_are_counted_from_their_beginning),
        cmocka_unit_test(test_records_have_the_registers_of_a_thread_that_computes_or_waits),
        cmocka_unit_test(test_of_threads_that_have_ended_nothing_stays_open),
        cmocka_unit_test(test_a_threads_files_stay_open_while_hundreds_of_others_come_and_go),
        cmocka_unit_test(test_krait_holds_a_thread_that_would_run_on_its_cpu_and_none_that_sleeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
