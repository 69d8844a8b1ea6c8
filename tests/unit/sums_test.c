/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of samples: what is counted once, what turns, and what stays of processes that have ended.
 */
#include "remote/sums.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these before it */
#include <cmocka.h>
#include <string.h>

static const struct krait_remote_code outer = { .name = "outer", .file = "a.py", .first_line = 1 },
                                      inner = { .name = "inner", .file = "a.py", .first_line = 10 };

/* A thread of the process in outer, line 3, in inner, which called itself, lines 12 and 11. */
static void read_once(struct krait_sums *sums, pid_t pid)
{
    struct krait_remote_frame frames[] = { { .code = &inner, .line = 12 },
                                           { .code = &inner, .line = 11 },
                                           { .code = &outer, .line = 3 } };
    struct krait_os_task task = { .tid = pid, .name = "python3" };
    struct krait_remote_thread thread = { .ident = 7, .tid = pid, .holds_gil = true, .count = 3 };
    struct krait_remote_stacks stacks = {
        .threads = &thread, .thread_count = 1, .frames = frames, .frame_count = 3, .tasks = { &task, 1, 1 }
    };
    assert_int_equal(krait_sums_add(sums, pid, &stacks, NULL), 0);
    krait_sums_end_round(sums, 1000);
}

static struct krait_sum sum_of(const struct krait_sums_table *table, const char *name, int32_t line)
{
    struct krait_sum sum = { 0 };
    for (uint32_t i = 0; i < table->count; i++) {
        const struct krait_sums_place *place = &table->places[table->rows[i].place];
        if (strcmp(place->name, name) != 0 || place->line != line)
            continue;
        sum.own += table->rows[i].all.own;
        sum.total += table->rows[i].all.total;
    }
    return sum;
}

static void a_recursion_counts_once_a_function_and_each_of_its_lines(void **state)
{
    struct krait_sums sums = { 0 };
    read_once(&sums, 1);
    read_once(&sums, 1);
    krait_sums_turn(&sums);
    assert_int_equal(sum_of(&sums.functions, "inner", 10).total, 2);
    assert_int_equal(sum_of(&sums.functions, "inner", 10).own, 2);
    assert_int_equal(sum_of(&sums.lines, "inner", 12).own, 2);
    assert_int_equal(sum_of(&sums.lines, "inner", 11).own, 0);
    assert_int_equal(sum_of(&sums.lines, "inner", 11).total, 2);
    assert_int_equal(sum_of(&sums.functions, "outer", 1).own, 0);
    assert_int_equal(sums.all.rounds, 2);
    assert_int_equal(sums.all.gil, 2);
    assert_int_equal(sums.all.ns, 2000);
    krait_sums_done(&sums);
}

static void an_interval_turns_and_a_reset_forgets(void **state)
{
    struct krait_sums sums = { 0 };
    read_once(&sums, 1);
    krait_sums_turn(&sums);
    read_once(&sums, 1);
    assert_int_equal(sums.functions.rows[0].last.total, 1);
    assert_int_equal(sums.functions.rows[0].recent.total, 1);
    assert_int_equal(sums.functions.rows[0].all.total, 1);
    assert_int_equal(sums.all.rounds, 1);
    krait_sums_reset(&sums);
    assert_int_equal(sum_of(&sums.functions, "inner", 10).total, 0);
    assert_int_equal(sums.all.rounds, 0);
    krait_sums_done(&sums);
}

static void many_processes_that_ended_share_their_rows(void **state)
{
    enum { PROCESSES = 1000 };
    struct krait_sums sums = { 0 };
    read_once(&sums, 1);
    for (pid_t pid = 2; pid < 2 + PROCESSES; pid++) {
        read_once(&sums, pid);
        assert_int_equal(krait_sums_end_process(&sums, pid), 0);
    }
    read_once(&sums, 1);
    krait_sums_turn(&sums);
    assert_int_equal(sum_of(&sums.functions, "inner", 10).own, PROCESSES + 2);
    assert_int_equal(sum_of(&sums.lines, "outer", 3).total, PROCESSES + 2);
    assert_true(sums.thread_count < 100);
    assert_true(sums.functions.count < 200);
    assert_int_equal(sums.threads[0].pid, 1);
    assert_string_equal(sums.threads[0].name, "python3");
    assert_int_equal(sums.threads[1].pid, 0);
    krait_sums_done(&sums);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recursion_counts_once_a_function_and_each_of_its_lines),
        cmocka_unit_test(an_interval_turns_and_a_reset_forgets),
        cmocka_unit_test(many_processes_that_ended_share_their_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
