/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording: how processes end, and what is kept of them.
 */
#include "record_fixture.h"
#include "rounds.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

static void write_until_killed(const struct fixture *f, struct shared *shared)
{
    struct krait_writer writer;
    struct krait_ring *ring;
    child_writer(f, &writer, &ring);
    for (uint32_t i = 1;; i++) {
        if (put(&writer, ring, i) == KRAIT_ROOM_NONE)
            i--; /* again: what counts is what was complete */
        else
            atomic_store_explicit(&shared->published, i, memory_order_release);
    }
}

static void nothing_published_is_lost_when_the_writer_is_killed(void **state)
{
    struct fixture *f = *state;
    struct shared *shared = share();
    srand(4711);
    for (unsigned round = 0; round < tries(50, 200); round++) {
        snprintf(f->dir, sizeof(f->dir), "%s/%u", f->root, round);
        collect(f, &(struct krait_collector_options){ .ring_bytes = 64 * 1024 });
        atomic_store(&shared->published, 0);
        pid_t pid = fork();
        if (pid == 0)
            write_until_killed(f, shared);
        while (!atomic_load(&shared->published))
            ;
        uint64_t until = krait_clock_ns(CLOCK_MONOTONIC) + (uint64_t)(rand() % 1500) * KRAIT_NS_PER_US;
        while (krait_clock_ns(CLOCK_MONOTONIC) < until)
            krait_collector_round(f->collector);
        kill(pid, SIGKILL);
        collect_until_dead(f, pid);
        struct krait_collector_summary summary = finish(f);
        struct seen seen = look(f);
        assert_in_range(seen.calls, atomic_load(&shared->published), atomic_load(&shared->published) + 1);
        assert_int_equal(seen.out_of_turn, 0);
        assert_int_equal(seen.last, seen.calls);
        assert_int_equal(seen.packet_gaps, 0);
        assert_int_equal(summary.events, seen.events);
        krait_collector_free(f->collector);
        f->collector = NULL;
        remove_folder(f->dir);
    }
    munmap(shared, sizeof(*shared));
}

/* The instants between two stores of the writer, one by one: a packet is closed, but its owner died before it
 * said so everywhere. */
static void a_packet_whose_writer_died_while_it_closed_it_is_there_once(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    collect(f, NULL);
    join(f, &writer);
    struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 7);
    for (uint32_t i = 1; i <= 10; i++)
        put(&writer, ring, i);
    atomic_store(&ring->lens[0], (uint32_t)(ring->cur - ring->packets));
    atomic_fetch_or(&ring->ready, 1); /* and open_packet still says 0 */
    krait_collector_round(f->collector);
    leave(&writer);
    finish(f);
    assert_int_equal(look(f).calls, 10);
}

static void a_child_ends_when_it_ended_and_not_when_the_collector_looks(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    struct krait_ring *ring;
    collect(f, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        child_writer(f, &writer, &ring);
        put(&writer, ring, 1);
        _exit(0);
    }
    krait_collector_child(f->collector, pid);
    wait_status(pid);
    uint64_t tick = krait_clock_now(krait_collector_clock(f->collector));
    krait_collector_round(f->collector);
    krait_collector_ended(f->collector, pid, KRAIT_process_end_exit, 0, tick);
    krait_collector_round(f->collector);
    finish(f);
    assert_int_equal(look(f).ends, 1);
    assert_int_equal(look(f).end, tick);
}

static void slots_of_processes_that_died_early_are_used_again(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    collect(f, &(struct krait_collector_options){ .rings = 2 });
    pid_t pid = fork();
    if (pid == 0) {
        struct krait_ring *ring;
        child_writer(f, &writer, &ring);
        /* As if killed between taking a slot, or a ring, and filling it. */
        atomic_store(&writer.shm.rings[1].state, krait_slot_taken(writer.proc_index));
        atomic_store(&writer.shm.control->ring_used, 2);
        atomic_store(&writer.shm.procs[1].state, krait_slot_taken((uint32_t)getpid()));
        atomic_store(&writer.shm.control->proc_used, 2);
        put(&writer, ring, 1);
        _exit(0);
    }
    wait_status(pid);
    krait_collector_round(f->collector);
    join(f, &writer);
    assert_int_equal(atomic_load(&writer.shm.procs[1].state), KRAIT_SLOT_FREE);
    assert_non_null(krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 1));
    assert_non_null(krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 2));
    assert_null(krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 3));
    leave(&writer);
    finish(f);
    assert_int_equal(look(f).calls, 1);
}

/* All slots of processes but those that are in use already. */
static void fill_slots(struct krait_writer *writer, pid_t pid)
{
    for (uint32_t i = 0; i < KRAIT_PROCS_MAX; i++) {
        uint32_t expected = KRAIT_SLOT_FREE;
        atomic_compare_exchange_strong(&writer->shm.procs[i].state, &expected,
                                       krait_slot_taken((uint32_t)pid));
    }
    atomic_store(&writer->shm.control->proc_used, KRAIT_PROCS_MAX);
}

static void a_process_without_a_slot_is_counted_as_such(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer, other;
    collect(f, NULL);
    join(f, &writer);
    fill_slots(&writer, getppid());
    assert_int_equal(krait_writer_map(&other, krait_collector_session(f->collector)), 0);
    assert_int_equal(krait_writer_join(&other), -EAGAIN);
    krait_writer_unmap(&other);
    krait_collector_round(f->collector);
    leave(&writer);
    struct krait_collector_summary summary = finish(f);
    assert_int_equal(summary.lost[KRAIT_lost_reason_no_slot], 1);
    assert_int_equal(summary.lost[KRAIT_lost_reason_no_ring], 0);
}

/* In a child, which may wait for long. */
static void begin_patiently(const struct fixture *f)
{
    struct krait_writer writer;
    if (krait_writer_map(&writer, krait_collector_session(f->collector)))
        _exit(99);
    writer.patience_ns = 60 * KRAIT_NS_PER_S;
    if (krait_writer_join(&writer))
        _exit(98);
    _exit(!krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 2));
}

/* It has found nothing when it wakes the collector, which does not nap here. */
static pid_t wait_for_one_that_waits(const struct fixture *f, struct krait_control *control)
{
    atomic_store(&control->sleeping, 1);
    pid_t pid = fork();
    if (pid == 0)
        begin_patiently(f);
    while (atomic_load(&control->sleeping))
        assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    return pid;
}

static void a_process_that_begins_waits_for_the_slot_of_one_that_has_ended(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    collect(f, NULL);
    join(f, &writer);
    pid_t dead = fork();
    if (dead == 0)
        _exit(0);
    wait_status(dead);
    fill_slots(&writer, dead);
    pid_t pid = wait_for_one_that_waits(f, writer.shm.control);
    krait_collector_round(f->collector);
    assert_int_equal(wait_status(pid), 0);
    leave(&writer);
    assert_int_equal(finish(f).lost[KRAIT_lost_reason_no_slot], 0);
}

static void a_process_that_begins_waits_for_a_ring(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    collect(f, &(struct krait_collector_options){ .rings = 1 });
    join(f, &writer);
    struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 1);
    put(&writer, ring, 1);
    pid_t pid = wait_for_one_that_waits(f, writer.shm.control);
    krait_writer_ring_close(ring);
    krait_collector_round(f->collector);
    assert_int_equal(wait_status(pid), 0);
    leave(&writer);
    finish(f);
}

static void a_ring_is_found_again_when_one_was_given_back(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    collect(f, &(struct krait_collector_options){ .rings = 1 });
    join(f, &writer);
    for (uint32_t i = 1; i <= 5; i++) {
        struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_THREAD, i);
        assert_non_null(ring);
        assert_null(krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 9));
        put(&writer, ring, 1);
        krait_writer_ring_close(ring);
        krait_collector_round(f->collector);
    }
    leave(&writer);
    assert_int_equal(finish(f).threads, 5);
    assert_int_equal(look(f).calls, 5);
}

static void a_process_that_was_gone_before_it_was_seen_has_its_name(void **state)
{
    struct fixture *f = *state;
    collect(f, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct krait_writer writer;
        struct krait_ring *ring;
        child_writer(f, &writer, &ring);
        put(&writer, ring, 1);
        _exit(0);
    }
    wait_status(pid);
    finish(f);
    char path[128];
    snprintf(path, sizeof(path), "%s/%s-%d/metadata", f->dir, own_comm(), pid);
    assert_int_equal(access(path, R_OK), 0);
    assert_int_equal(look(f).calls, 1);
}

/* Two writers in a ring would follow each other's addresses. */
static void rings_of_who_lives_on_are_nobody_elses_after_the_end(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer, late = { 0 };
    collect(f, NULL);
    join(f, &writer);
    struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 7);
    for (uint32_t i = 1; i <= 10000; i++)
        put(&writer, ring, i);
    struct krait_collector_summary summary = finish(f);
    assert_int_equal(summary.alive, 1);
    assert_int_equal(look(f).calls, 10000);
    assert_int_equal(look(f).packet_gaps, 0);
    assert_int_equal(krait_slot_state(atomic_load(&ring->state)), KRAIT_SLOT_OPEN);
    assert_int_equal(krait_slot_state(atomic_load(&writer.proc->state)), KRAIT_SLOT_OPEN);
    assert_null(krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 8));
    assert_int_equal(krait_writer_map(&late, krait_collector_session(f->collector)), -ESHUTDOWN);
    struct krait_writer child = writer;
    assert_int_equal(krait_writer_join(&child), -ESHUTDOWN);
    assert_true(krait_writer_is_over(&writer));
    for (uint32_t i = 1; i <= 1000000; i++)
        put(&writer, ring, i); /* no harm */
    krait_writer_unmap(&writer);
}

/* One look tells them apart: at a second one it may be on again. */
static void who_joins_is_told_whether_the_recording_is_off_or_over(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    collect(f, NULL);
    join(f, &writer);
    krait_collector_toggle(f->collector);
    struct krait_writer late = writer;
    assert_int_equal(krait_writer_join(&late), -EHOSTDOWN);
    assert_null(krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 7));
    struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_DEFINITIONS, 0);
    assert_non_null(ring); /* what has joined has names, also if it was switched off since */
    assert_int_equal(put(&writer, ring, 1), KRAIT_ROOM_NONE);
    writer.settles = true;
    assert_int_equal(put(&writer, ring, 1), KRAIT_ROOM_OK);
    writer.settles = false;
    krait_writer_ring_close(ring);
    leave(&writer);
    finish(f);
}

/* Else the end of a call would be taken whose begin was not. */
static void after_an_event_that_came_too_late_the_next_one_looks_first(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    collect(f, NULL);
    join(f, &writer);
    struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 7);
    assert_int_equal(put(&writer, ring, 1), KRAIT_ROOM_OK);
    uint64_t t = krait_writer_now(&writer);
    krait_collector_toggle(f->collector);
    assert_int_equal(krait_writer_room(&writer, ring, t, 8), KRAIT_ROOM_NONE);
    assert_false(krait_ring_has_room(ring, t));
    krait_collector_toggle(f->collector);
    assert_int_equal(krait_writer_room(&writer, ring, t, 8), KRAIT_ROOM_RESYNC);
    krait_writer_ring_close(ring);
    leave(&writer);
    finish(f);
}

static void many_processes_at_once(void **state)
{
    enum { PROCESSES = 100 };
    struct fixture *f = *state;
    struct shared *shared = share();
    pid_t pids[PROCESSES];
    struct rlimit few, all;
    getrlimit(RLIMIT_NOFILE, &all);
    few = all;
    few.rlim_cur = 64;
    setrlimit(RLIMIT_NOFILE, &few); /* fewer files than streams */
    collect(f, NULL);
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            struct krait_writer writer;
            struct krait_ring *ring;
            child_writer(f, &writer, &ring);
            for (uint32_t k = 1; k <= 100; k++)
                put(&writer, ring, k);
            atomic_fetch_add(&shared->published, 1);
            while (!atomic_load(&shared->go))
                usleep(20000);
            _exit(0);
        }
    }
    while (atomic_load(&shared->published) < PROCESSES)
        krait_collector_round(f->collector);
    atomic_store(&shared->go, 1);
    for (int i = 0; i < PROCESSES; i++)
        collect_until_dead(f, pids[i]);
    struct krait_collector_summary summary = finish(f);
    setrlimit(RLIMIT_NOFILE, &all);
    assert_int_equal(summary.processes, PROCESSES);
    for (int i = 0; i < KRAIT_COUNT_lost_reason; i++)
        assert_int_equal(summary.lost[i], 0);
    assert_null(krait_collector_trouble(f->collector));
    assert_int_equal(look(f).calls, PROCESSES * 100);
    munmap(shared, sizeof(*shared));
}

/* A time that seems to go back, as where a child that libc did not fork wrote into the ring too: to a reader it is one of
 * 2^27 ticks later, until an event in the long form tells the whole time. */
static void packets_that_two_processes_wrote_at_once_are_dropped(void **state)
{
    enum { CALLS = 20000, TORN = 3000 };
    struct fixture *f = *state;
    struct krait_writer writer;
    collect(f, NULL);
    join(f, &writer);
    struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 7);
    for (uint32_t i = 1; i <= CALLS; i++) {
        if (i == TORN + 1)
            ring->window = UINT64_MAX; /* so the next one is in the long form */
        put_at(&writer, ring, krait_writer_now(&writer) - (i == TORN ? 100000 : 0), i);
    }
    krait_collector_round(f->collector); /* the child notices later */
    krait_writer_lost(&writer, KRAIT_lost_reason_raw_fork, 1);
    leave(&writer);
    struct krait_collector_summary summary = finish(f);
    struct seen seen = look(f);
    uint64_t dropped = summary.lost[KRAIT_lost_reason_raw_fork] - 1;
    assert_in_range(dropped, TORN + 1, 2 * TORN); /* one packet, of 32 KiB */
    assert_int_equal(seen.calls, CALLS - dropped);
    assert_int_equal(seen.last, CALLS);
    assert_int_equal(seen.packet_gaps, 0);
    assert_int_equal(summary.events, seen.events);
    assert_false(seen.back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORD_TEST(nothing_published_is_lost_when_the_writer_is_killed),
        RECORD_TEST(a_packet_whose_writer_died_while_it_closed_it_is_there_once),
        RECORD_TEST(a_child_ends_when_it_ended_and_not_when_the_collector_looks),
        RECORD_TEST(slots_of_processes_that_died_early_are_used_again),
        RECORD_TEST(a_process_without_a_slot_is_counted_as_such),
        RECORD_TEST(a_process_that_begins_waits_for_the_slot_of_one_that_has_ended),
        RECORD_TEST(a_process_that_begins_waits_for_a_ring),
        RECORD_TEST(a_ring_is_found_again_when_one_was_given_back),
        RECORD_TEST(a_process_that_was_gone_before_it_was_seen_has_its_name),
        RECORD_TEST(rings_of_who_lives_on_are_nobody_elses_after_the_end),
        RECORD_TEST(who_joins_is_told_whether_the_recording_is_off_or_over),
        RECORD_TEST(after_an_event_that_came_too_late_the_next_one_looks_first),
        RECORD_TEST(many_processes_at_once),
        RECORD_TEST(packets_that_two_processes_wrote_at_once_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
