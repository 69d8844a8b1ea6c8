/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording: what arrives on disk, and how it is counted.
 */
#include "forbid.h"
#include "record/tracedir.h"
#include "record_fixture.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

/* ---- what arrives ---- */

static void events_arrive_in_order_and_none_is_missing(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    collect(f, NULL);
    join(f, &writer);
    struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 7);
    enum { EVENTS = 1000000 }; /* 8 MB through a ring of 2 */
    for (uint32_t i = 1; i <= EVENTS; i++) {
        assert_int_equal(put(&writer, ring, i), KRAIT_ROOM_OK);
        if (i % 50000 == 0)
            krait_collector_round(f->collector);
    }
    leave(&writer);
    struct krait_collector_summary summary = finish(f);
    struct seen seen = look(f);
    assert_int_equal(seen.calls, EVENTS);
    assert_int_equal(seen.out_of_turn, 0);
    assert_int_equal(seen.packet_gaps, 0);
    assert_false(seen.back);
    assert_int_equal(summary.events, seen.events);
    assert_int_equal(summary.processes, 1);
    assert_int_equal(summary.threads, 1);
    assert_int_equal(summary.lost[KRAIT_lost_reason_ring_full], 0);
}

static void a_full_ring_counts_what_it_discards_and_asks_for_the_stack(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    collect(f, &(struct krait_collector_options){ .ring_bytes = 64 * 1024 });
    join(f, &writer);
    struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 7);
    uint32_t taken = 0, lost = 0;
    for (uint32_t i = 1; i <= 20000; i++)
        *(put(&writer, ring, i) == KRAIT_ROOM_NONE ? &lost : &taken) += 1;
    assert_true(lost > 1000);
    krait_collector_round(f->collector);
    assert_int_equal(put(&writer, ring, 1), KRAIT_ROOM_RESYNC);
    leave(&writer);
    struct krait_collector_summary summary = finish(f);
    struct seen seen = look(f);
    assert_int_equal(summary.lost[KRAIT_lost_reason_ring_full], lost);
    assert_int_equal(seen.losses, lost);
    assert_int_equal(seen.calls, taken + 1);
}

/* The memory that the recording's file takes. */
static uint64_t memory_of(const struct fixture *f)
{
    struct stat st;
    assert_int_equal(stat(krait_collector_session(f->collector), &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

static void a_ring_grows_while_the_collector_is_away(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    collect(f, &(struct krait_collector_options){ .ring_bytes = 64 * 1024, .buffer_bytes = 64 << 20 });
    join(f, &writer);
    struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 7);
    enum { EVENTS = 1000000 }; /* 8 MB, and once more */
    for (uint32_t i = 1; i <= EVENTS; i++)
        assert_int_equal(put(&writer, ring, i), KRAIT_ROOM_OK);
    assert_true(memory_of(f) > 7u << 20);
    krait_collector_round(f->collector);
    for (uint32_t i = EVENTS + 1; i <= 2 * EVENTS; i++)
        assert_int_equal(put(&writer, ring, i), KRAIT_ROOM_OK);
    krait_collector_round(f->collector);
    put(&writer, ring, 2 * EVENTS + 1);
    krait_collector_round(f->collector);
    assert_true(memory_of(f) < 4u << 20); /* one chunk may be where its open packet is */
    leave(&writer);
    struct krait_collector_summary summary = finish(f);
    struct seen seen = look(f);
    assert_int_equal(seen.calls, 2 * EVENTS + 1);
    assert_int_equal(seen.out_of_turn, 0);
    assert_int_equal(seen.packet_gaps, 0);
    assert_false(seen.back);
    assert_int_equal(summary.lost[KRAIT_lost_reason_ring_full], 0);
    assert_in_range(summary.grown_bytes, 7 << 20, 16 << 20);
}

static void rings_grow_up_to_what_they_may_in_all(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    collect(f, &(struct krait_collector_options){ .ring_bytes = 64 * 1024, .buffer_bytes = 4 << 20 });
    join(f, &writer);
    struct krait_ring *rings[2];
    uint32_t taken = 0, lost = 0;
    for (uint32_t r = 0; r < 2; r++)
        rings[r] = krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 7 + r);
    for (uint32_t i = 1; i <= 2000000; i++)
        *(put(&writer, rings[i % 2], i) == KRAIT_ROOM_NONE ? &lost : &taken) += 1;
    assert_true(memory_of(f) < 6u << 20);
    krait_collector_round(f->collector);
    krait_collector_round(f->collector);
    assert_int_equal(put(&writer, rings[0], 1), KRAIT_ROOM_RESYNC);
    leave(&writer);
    struct krait_collector_summary summary = finish(f);
    assert_int_equal(summary.lost[KRAIT_lost_reason_ring_full], lost);
    assert_int_equal(look(f).calls, taken + 1);
    assert_int_equal(summary.grown_bytes, 4 << 20);
}

/* What a killed program had in the chunks of its rings is there, and others have the chunks then. */
static void chunks_of_who_was_killed_are_drained_and_used_again(void **state)
{
    struct fixture *f = *state;
    collect(f, &(struct krait_collector_options){ .ring_bytes = 64 * 1024, .buffer_bytes = 4 << 20 });
    for (uint32_t round = 0; round < 3; round++) {
        pid_t pid = fork();
        if (pid == 0) {
            struct krait_writer writer;
            struct krait_ring *ring;
            child_writer(f, &writer, &ring);
            for (uint32_t i = 1; i <= 400000; i++) {
                if (put(&writer, ring, i) != KRAIT_ROOM_OK)
                    _exit(1);
            }
            kill(getpid(), SIGKILL);
        }
        assert_int_equal(WTERMSIG(wait_status(pid)), SIGKILL);
        krait_collector_round(f->collector);
        krait_collector_round(f->collector);
        assert_true(memory_of(f) < 2u << 20);
    }
    finish(f);
    struct seen seen = look(f);
    assert_int_equal(seen.calls, 3 * 400000);
    assert_int_equal(seen.out_of_turn, 0);
}

static void lossless_waits_for_the_collector(void **state)
{
    struct fixture *f = *state;
    collect(f, &(struct krait_collector_options){ .ring_bytes = 64 * 1024, .flags = KRAIT_RECORD_LOSSLESS });
    pid_t pid = fork();
    if (pid == 0) {
        struct krait_writer writer;
        struct krait_ring *ring;
        child_writer(f, &writer, &ring);
        for (uint32_t i = 1; i <= 100000; i++) {
            if (put(&writer, ring, i) != KRAIT_ROOM_OK)
                _exit(1);
        }
        _exit(0);
    }
    for (int status = 0; waitpid(pid, &status, WNOHANG) == 0;) {
        krait_collector_round(f->collector);
        krait_collector_nap(f->collector);
    }
    finish(f);
    struct seen seen = look(f);
    assert_int_equal(seen.calls, 100000);
    assert_int_equal(seen.out_of_turn, 0);
    assert_int_equal(seen.losses, 0);
}

/* A zombie or a stopped collector exists, but gives no sign of life. */
static void lossless_waits_no_more_for_a_collector_that_is_silent(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    collect(f, &(struct krait_collector_options){ .ring_bytes = 64 * 1024, .flags = KRAIT_RECORD_LOSSLESS });
    join(f, &writer);
    atomic_store(&writer.shm.control->beat_ns, krait_clock_ns(CLOCK_MONOTONIC) - 9800 * KRAIT_NS_PER_MS);
    struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 7);
    uint64_t begin = krait_clock_ns(CLOCK_MONOTONIC);
    uint32_t lost = 0;
    for (uint32_t i = 1; i <= 20000; i++)
        lost += put(&writer, ring, i) == KRAIT_ROOM_NONE;
    assert_true(lost > 1000);
    assert_true(krait_clock_ns(CLOCK_MONOTONIC) - begin < 5 * KRAIT_NS_PER_S);
    leave(&writer);
}

static void definitions_are_on_disk_while_their_process_lives(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    collect(f, NULL);
    join(f, &writer);
    struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_DEFINITIONS, 0);
    assert_true(define(&writer, ring, 1, "first"));
    krait_collector_round(f->collector);
    assert_int_equal(look(f).defines, 1);
    assert_true(define(&writer, ring, 2, "second"));
    krait_collector_round(f->collector);
    krait_collector_round(f->collector);
    assert_int_equal(look(f).defines, 2);
    char name[900];
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    for (uint32_t i = 3; i <= 500; i++) {
        assert_true(define(&writer, ring, i, name));
        if (i % 20 == 0)
            krait_collector_round(f->collector);
    }
    leave(&writer);
    finish(f);
    assert_int_equal(look(f).defines, 500);
}

/* Each interpreter of a process has its ring; they share the stream. */
/* And is read back as if it had been written in one: in order, at its times, with no packet missing. */
static void what_a_quiet_thread_did_is_on_disk_while_it_lives(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    collect(f, &(struct krait_collector_options){ .open_ns = 1 });
    join(f, &writer);
    struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 7);
    const uint64_t window = 1ull << KRAIT_CTF_TS_BITS;
    uint64_t t = krait_writer_now(&writer), times = 0, now;
    for (uint32_t i = 1; i <= 60; i++) {
        now = t + i * (i % 7 ? window / 3 : window - 1); /* some in the short form, some in the long one */
        times += now;
        assert_int_equal(put_at(&writer, ring, now, i), KRAIT_ROOM_OK);
        krait_collector_round(f->collector);
        assert_int_equal(look(f).last, i);
    }
    for (uint32_t i = 61; i <= 20000; i++) { /* through many packets, with rounds in and between them */
        times += now += i;
        assert_int_equal(put_at(&writer, ring, now, i), KRAIT_ROOM_OK);
        if (i % 1000 == 0)
            krait_collector_round(f->collector);
    }
    leave(&writer);
    struct krait_collector_summary summary = finish(f);
    struct seen seen = look(f);
    assert_int_equal(seen.calls, 20000);
    assert_int_equal(seen.out_of_turn, 0);
    assert_int_equal(seen.packet_gaps, 0);
    assert_int_equal(seen.losses, 0);
    assert_int_equal(seen.times, times);
    assert_int_equal(summary.events, seen.events);
}

/* Pieces are taken from one end while the thread writes at the other. */
static void taking_open_packets_meets_a_thread_that_writes(void **state)
{
    struct fixture *f = *state;
    collect(f, &(struct krait_collector_options){ .open_ns = 1, .flags = KRAIT_RECORD_LOSSLESS });
    pid_t pid = fork();
    if (pid == 0) {
        struct krait_writer writer;
        struct krait_ring *ring;
        child_writer(f, &writer, &ring);
        for (uint32_t i = 1; i <= 1000000; i++)
            put(&writer, ring, i);
        _exit(0);
    }
    collect_until_dead(f, pid);
    finish(f);
    struct seen seen = look(f);
    assert_int_equal(seen.calls, 1000000);
    assert_int_equal(seen.out_of_turn, 0);
    assert_int_equal(seen.packet_gaps, 0);
    assert_false(seen.back);
}

static void definitions_of_several_rings_are_in_the_order_of_time(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    collect(f, NULL);
    join(f, &writer);
    struct krait_ring *a = krait_writer_ring_new(&writer, KRAIT_RING_DEFINITIONS, 0);
    struct krait_ring *b = krait_writer_ring_new(&writer, KRAIT_RING_DEFINITIONS, 0);
    for (uint32_t i = 1; i <= 20; i += 2) {
        assert_true(define(&writer, b, i, "b"));
        assert_true(define(&writer, a, i + 1, "a"));
        if (i % 5 == 0)
            krait_collector_round(f->collector);
    }
    leave(&writer);
    finish(f);
    struct seen seen = look(f);
    assert_int_equal(seen.defines, 20);
    assert_false(seen.back);
}

static void times_are_right_across_the_clocks_windows(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    collect(f, NULL);
    join(f, &writer);
    struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 7);
    static const uint64_t steps[] = { 1, (1u << 27) - 2, 1, 1, 1u << 27, (1u << 27) + 5, 3ull << 30,
                                      0, 1ull << 34 };
    uint64_t now = krait_writer_now(&writer), sum = 0;
    uint64_t t = now - KRAIT_MIN(now, 1ull << 36); /* a machine may be up for minutes only */
    for (uint32_t i = 0; i < KRAIT_ARRAY_LEN(steps); i++) {
        t += steps[i];
        sum += t;
        assert_int_equal(put_at(&writer, ring, t, i + 1), KRAIT_ROOM_OK);
    }
    leave(&writer);
    finish(f);
    struct seen seen = look(f);
    assert_int_equal(seen.calls, KRAIT_ARRAY_LEN(steps));
    assert_true(seen.times == sum);
}

/* ---- counting ---- */

/* One event after the other, as the format says. */
static uint64_t count_slowly(const uint8_t *events, size_t n)
{
    uint64_t count = 0;
    for (size_t at = 0; at + 4 <= n; count++) {
        uint32_t id = events[at] & 31;
        size_t head = id == 31 ? 13 : 4;
        id = id == 31 ? events[at + 1] : id;
        size_t payload = krait_event_bytes(id);
        if (id == KRAIT_EVENT_thread_name) {
            const uint8_t *nul =
                at + head + 4 <= n ? memchr(events + at + head + 4, 0, n - at - head - 4) : NULL;
            payload = nul ? (size_t)(nul + 1 - (events + at + head)) : KRAIT_PAYLOAD_VARIES;
        }
        if (at + head + payload > n)
            return count;
        at += head + payload;
    }
    return count;
}

static void events_are_counted_whatever_their_kinds_and_cuts(void **state)
{
    static const uint32_t ids[] = { 0, 1, 0, 1, 0, 0, 6, 7, 6, 7, 2, 3, 4, 5, 8, 17, 18, 9, 10, 13 };
    uint8_t bytes[4096];
    srand(11);
    for (int round = 0; round < 3000; round++) {
        unsigned kinds = round % 3 ? KRAIT_ARRAY_LEN(ids) - 3 : KRAIT_ARRAY_LEN(ids);
        size_t n = 0;
        while (n + 32 < sizeof(bytes)) {
            uint32_t id = ids[(unsigned)rand() % kinds];
            uint32_t word = (uint32_t)rand() << 5 | id;
            struct krait_event_extended head = { .tag = 31, .id = id, .timestamp = (uint64_t)rand() };
            bool extended = rand() % 100 == 0;
            memcpy(bytes + n, extended ? (void *)&head : &word, extended ? sizeof(head) : sizeof(word));
            n += extended ? sizeof(head) : sizeof(word);
            size_t payload = id == KRAIT_EVENT_thread_name ? 9 : krait_event_payload_bytes[id];
            for (size_t i = 0; i < payload; i++)
                bytes[n++] = id == KRAIT_EVENT_thread_name ? (uint8_t)(i < 8) : (uint8_t)rand();
        }
        size_t cut = (size_t)rand() % n;
        assert_int_equal(krait_packet_count_events(bytes, n), count_slowly(bytes, n));
        uint8_t *exact = malloc(cut ? cut : 1); /* so that the address sanitizer sees a step too far */
        memcpy(exact, bytes, cut);
        assert_int_equal(krait_packet_count_events(exact, cut), count_slowly(exact, cut));
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORD_TEST(events_arrive_in_order_and_none_is_missing),
        RECORD_TEST(a_full_ring_counts_what_it_discards_and_asks_for_the_stack),
        RECORD_TEST(a_ring_grows_while_the_collector_is_away),
        RECORD_TEST(rings_grow_up_to_what_they_may_in_all),
        RECORD_TEST(chunks_of_who_was_killed_are_drained_and_used_again),
        RECORD_TEST(lossless_waits_for_the_collector),
        RECORD_TEST(lossless_waits_no_more_for_a_collector_that_is_silent),
        RECORD_TEST(definitions_are_on_disk_while_their_process_lives),
        RECORD_TEST(what_a_quiet_thread_did_is_on_disk_while_it_lives),
        RECORD_TEST(taking_open_packets_meets_a_thread_that_writes),
        RECORD_TEST(definitions_of_several_rings_are_in_the_order_of_time),
        RECORD_TEST(times_are_right_across_the_clocks_windows),
        RECORD_TEST(events_are_counted_whatever_their_kinds_and_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
