/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of perf events, perf's clock, and the time that a host steals.
 */
#include "kernel/perf_clock.h"
#include "kernel/perf_record.h"
#include "kernel/steal.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* ---- perf events ---- */

/* A record of `type`: words of 32 bits behind its head. */
static size_t put_record(uint8_t bytes[128], uint32_t type, uint16_t misc, const uint32_t *words,
                         size_t count)
{
    struct perf_event_header head = { type, misc, (uint16_t)(sizeof(head) + 4 * count) };
    memcpy(bytes, &head, sizeof(head));
    memcpy(bytes + sizeof(head), words, 4 * count);
    return head.size;
}

#define IN_THREAD 10, 11, 1000, 1, 7, 0 /* pid, tid, time 2^32 + 1000, id */

static const struct {
    uint32_t type;
    size_t count;
    uint32_t words[16];
} perf_records[] = {
    { PERF_RECORD_SAMPLE, 12, { 7, 0, 0x40, 0, 10, 11, 1000, 1, 0xabc, 0 } },
    { PERF_RECORD_FORK, 12, { 20, 10, 21, 11, 1000, 1, IN_THREAD } },
    { PERF_RECORD_EXIT, 12, { 20, 10, 21, 11, 1000, 1, IN_THREAD } },
    { PERF_RECORD_COMM, 10, { 20, 21, 0x64636261, 0x00000065, IN_THREAD } },
    { PERF_RECORD_LOST, 10, { 7, 0, 4711, 0, IN_THREAD } },
    { PERF_RECORD_SWITCH, 6, { IN_THREAD } },
};

static void test_records_of_perf_events(void **state)
{
    struct krait_perf_record records[KRAIT_ARRAY_LEN(perf_records)];
    uint8_t bytes[128];
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(perf_records); i++) {
        size_t n = put_record(bytes, perf_records[i].type, 9, perf_records[i].words, perf_records[i].count);
        assert_true(krait_perf_record_parse(&records[i], bytes, n));
        assert_int_equal(records[i].type, perf_records[i].type);
        assert_int_equal(records[i].misc, 9);
        assert_int_equal(records[i].pid, 10);
        assert_int_equal(records[i].tid, 11);
        assert_int_equal(records[i].time, (1ull << 32) + 1000);
    }
    assert_int_equal(records[0].sample.id, 7);
    assert_int_equal(records[0].sample.ip, 0x40);
    assert_int_equal(records[0].sample.addr, 0xabc);
    assert_int_equal(records[1].task.pid, 20);
    assert_int_equal(records[1].task.ppid, 10);
    assert_int_equal(records[1].task.tid, 21);
    assert_int_equal(records[1].task.ptid, 11);
    assert_int_equal(records[3].comm.tid, 21);
    assert_string_equal(records[3].comm.text, "abcde");
    assert_int_equal(records[4].lost, 4711);
}

static void test_records_that_are_none(void **state)
{
    struct krait_perf_record record;
    uint8_t bytes[128];
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(perf_records); i++) {
        size_t n = put_record(bytes, perf_records[i].type, 0, perf_records[i].words, perf_records[i].count);
        assert_false(krait_perf_record_parse(&record, bytes, n - 8)); /* not as long as it says */
        n = put_record(bytes, perf_records[i].type, 0, perf_records[i].words, 4);
        assert_false(krait_perf_record_parse(&record, bytes, n));
    }
    size_t n = put_record(bytes, PERF_RECORD_THROTTLE, 0, perf_records[0].words, 12);
    assert_false(krait_perf_record_parse(&record, bytes, n));
    n = put_record(bytes, 1000, 0, perf_records[0].words, 12);
    assert_false(krait_perf_record_parse(&record, bytes, n));
    assert_false(krait_perf_record_parse(&record, bytes, 4));
}

static void test_perfs_clock_and_the_counter_are_a_straight_line(void **state)
{
    const struct krait_clock counter = { .counter = true, .freq = 2 * KRAIT_NS_PER_S };
    struct krait_perf_clock clock = { &counter, { 1000, 500 }, { 1000, 500 } };
    assert_int_equal(krait_perf_clock_ticks(&clock, 700), 1000); /* nothing is known of its pace */
    clock.last = (struct krait_perf_moment){ 5000, 2500 };
    assert_int_equal(krait_perf_clock_ticks(&clock, 2500), 5000);
    assert_int_equal(krait_perf_clock_ticks(&clock, 2400), 4800);
    assert_int_equal(krait_perf_clock_ticks(&clock, 500), 1000);
    assert_int_equal(krait_perf_clock_ticks(&clock, 2600), 5200);
    const struct krait_clock plain = { .freq = KRAIT_NS_PER_S };
    clock.clock = &plain;
    assert_int_equal(krait_perf_clock_ticks(&clock, 2400), 2400);
}

static void test_perfs_clock_on_this_machine(void **state)
{
    struct krait_clock recording;
    struct krait_perf_clock clock;
    krait_clock_init(&recording);
    krait_perf_clock_init(&clock, &recording);
    nanosleep(&(struct timespec){ .tv_nsec = 20 * KRAIT_NS_PER_MS }, NULL);
    uint64_t before = krait_clock_now(&recording);
    uint64_t event = krait_clock_ns(krait_perf_clock_id(&recording));
    uint64_t after = krait_clock_now(&recording);
    krait_perf_clock_sync(&clock);
    const uint64_t slack = recording.freq / 1000000; /* 1 us */
    uint64_t ticks = krait_perf_clock_ticks(&clock, event);
    assert_true(ticks + slack >= before && ticks <= after + slack);
}

/* ---- steal time ---- */

enum { READINGS = 4 };

struct readings {
    uint32_t count, cpus[READINGS];
    uint64_t ns[READINGS];
};

static void keep_reading(void *ctx, uint32_t cpu, uint64_t total_ns)
{
    struct readings *readings = ctx;
    assert_true(readings->count < READINGS);
    readings->cpus[readings->count] = cpu;
    readings->ns[readings->count++] = total_ns;
}

static void test_steal_time_is_the_eighth_number_of_each_cpu(void **state)
{
    struct readings readings = { 0 };
    krait_steal_parse("cpu  9 9 9 9 9 9 9 953 9 9\n"
                      "cpu0 169106 211984 54624 77759 163 0 45 451 0 0\n"
                      "cpu12 1 2 3 4 5 6 7 18446744073 9\n"
                      "cpu13 1 2 3 4 5 6 7\n"
                      "intr 1 2 3 4 5 6 7 8 9\n"
                      "cpu2 0 0 0 0 0 0 0 0",
                      100, keep_reading, &readings);
    assert_int_equal(readings.count, 3);
    assert_int_equal(readings.cpus[0], 0);
    assert_int_equal(readings.ns[0], 4510000000);
    assert_int_equal(readings.cpus[1], 12);
    assert_true(readings.ns[1] == 184467440730000000u);
    assert_int_equal(readings.cpus[2], 2);
    assert_int_equal(readings.ns[2], 0);
    krait_steal_parse("", 100, keep_reading, &readings);
    assert_int_equal(readings.count, 3);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_of_perf_events),
        cmocka_unit_test(test_records_that_are_none),
        cmocka_unit_test(test_perfs_clock_and_the_counter_are_a_straight_line),
        cmocka_unit_test(test_perfs_clock_on_this_machine),
        cmocka_unit_test(test_steal_time_is_the_eighth_number_of_each_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
