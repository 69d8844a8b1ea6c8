/* SPDX-License-Identifier: Apache-2.0
 *
 * How long calls last, as it is read back from rings. The rings are memory of this test's.
 */
#include "python/durations.h"

#include "event/event.h"
#include "record/ring.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these before it */
#include <cmocka.h>
#include <sys/resource.h>

enum { EVENT_TICKS = 10, LONG = 1, SHORT = 2, PACKET = 4096 };

struct fixture {
    struct krait_control control;
    struct krait_writer writer;
    struct krait_ring rings[2];
    uint8_t packets[2][PACKET];
    struct krait_durations *d;
};

static void open_packet(struct fixture *f, int ring, uint64_t t)
{
    struct krait_ring *r = &f->rings[ring];
    struct krait_packet_head head = { .timestamp_begin = t };
    r->packets = f->packets[ring];
    r->index = (uint32_t)ring;
    r->open_packet = 0;
    r->next_seq++;
    r->limit = r->packets + PACKET - KRAIT_RING_MARGIN;
    memcpy(r->packets, &head, sizeof(head));
    r->cur = r->packets + sizeof(head);
}

/* In place of libc's: each look finds that the thread has waited. What other programs take of this test's own time is
 * nothing that its made-up threads lost. */
int getrusage(__rusage_who_t who, struct rusage *usage)
{
    static long waits;
    *usage = (struct rusage){ .ru_nvcsw = ++waits };
    return 0;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->control.clock_freq = KRAIT_NS_PER_S;
    f->writer.shm.control = &f->control;
    f->writer.shm.packet_bytes = PACKET;
    f->d = krait_durations_new(EVENT_TICKS);
    krait_durations_know(f->d, LONG, "long", LONG);
    krait_durations_know(f->d, SHORT, "short", SHORT);
    open_packet(f, 0, 1000);
    open_packet(f, 1, 1000);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    krait_durations_free(f->d);
    free(f);
    return 0;
}

static void call(struct fixture *f, int ring, uint64_t t, uint32_t code)
{
    krait_ring_put_code(&f->rings[ring], t, KRAIT_EVENT_python_call, code);
}

static void done(struct fixture *f, int ring, uint64_t t)
{
    krait_ring_put(&f->rings[ring], t, KRAIT_EVENT_python_return);
}

static void read_ring(struct fixture *f, int ring, bool closing)
{
    krait_durations_read(f->d, &f->writer, &f->rings[ring], closing);
}

static uint64_t mean(const struct fixture *f, uint32_t id)
{
    return krait_timed_mean(&f->d->by_id[id]);
}

static void recording_is_not_the_functions_time(void **state)
{
    struct fixture *f = *state;
    call(f, 0, 2000, LONG);
    call(f, 0, 2100, SHORT);
    done(f, 0, 2150);
    done(f, 0, 3000);
    read_ring(f, 0, false);
    assert_int_equal(mean(f, SHORT), 50);
    assert_int_equal(mean(f, LONG), 1000 - EVENT_TICKS);
}

static void a_call_goes_on_in_the_next_packet(void **state)
{
    struct fixture *f = *state;
    call(f, 0, 2000, LONG);
    read_ring(f, 0, true);
    open_packet(f, 0, 5000);
    done(f, 0, 7000);
    read_ring(f, 0, false);
    assert_int_equal(mean(f, LONG), 5000);
}

static void a_call_is_cut_where_packets_were_not_read(void **state)
{
    struct fixture *f = *state;
    call(f, 0, 2000, LONG);
    call(f, 0, 2500, SHORT);
    read_ring(f, 0, true);
    open_packet(f, 0, 5000);
    open_packet(f, 0, 6000);
    done(f, 0, 7000);
    read_ring(f, 0, false);
    assert_int_equal(mean(f, LONG), 500 - EVENT_TICKS);
}

static void threads_are_read_in_turn(void **state)
{
    struct fixture *f = *state;
    call(f, 0, 2000, LONG);
    read_ring(f, 0, false);
    call(f, 1, 2500, LONG);
    done(f, 1, 3500);
    read_ring(f, 1, false);
    done(f, 0, 6000);
    read_ring(f, 0, false);
    assert_int_equal(mean(f, LONG), (1000 + 4000) / 2);
}

/* Its first packet has the number and the place of the one that was read last. */
static void a_ring_begins_anew_with_another_thread(void **state)
{
    struct fixture *f = *state;
    f->rings[0].tid = 1;
    call(f, 0, 2000, LONG);
    call(f, 0, 2100, SHORT);
    done(f, 0, 2200);
    read_ring(f, 0, false);
    f->rings[0].tid = 2;
    f->rings[0].next_seq = 0;
    open_packet(f, 0, 9000);
    call(f, 0, 9000, SHORT);
    done(f, 0, 9300);
    read_ring(f, 0, false);
    assert_int_equal(f->d->by_id[SHORT].calls, 2);
    assert_int_equal(mean(f, SHORT), (100 + 300) / 2);
    assert_int_equal(mean(f, LONG), 200 - EVENT_TICKS);
}

static void recursion_counts_once(void **state)
{
    struct fixture *f = *state;
    call(f, 0, 2000, LONG);
    call(f, 0, 2100, LONG);
    done(f, 0, 2900);
    done(f, 0, 3010);
    read_ring(f, 0, false);
    assert_int_equal(mean(f, LONG), (1010 - EVENT_TICKS) / 2);
}

/* The outermost call of a recursion may be open for as long as the program runs. */
static void open_recursion_is_not_short(void **state)
{
    struct fixture *f = *state;
    call(f, 0, 2000, LONG);
    for (uint64_t t = 3000; t < 12000; t += 1000) {
        call(f, 0, t, LONG);
        done(f, 0, t + 500);
    }
    read_ring(f, 0, false);
    krait_durations_count_open(f->d);
    assert_int_equal(mean(f, LONG), 0);
    assert_int_equal(f->d->by_id[LONG].calls, 10);
    assert_int_equal(f->d->by_id[LONG].open_ticks, 11500 - 2000 - 9 * EVENT_TICKS);
    done(f, 0, 12000);
    read_ring(f, 0, false);
    krait_durations_count_open(f->d);
    assert_int_equal(f->d->by_id[LONG].open_ticks, 0);
    assert_int_equal(mean(f, LONG), (10000 - 9 * EVENT_TICKS) / 10);
}

static void many_inner_calls_do_not_make_a_short_function_long(void **state)
{
    enum { ROUNDS = 2000, IN_A_PACKET = 100, STEP = 20 };
    struct fixture *f = *state;
    uint64_t t = 2000;
    call(f, 0, t, SHORT);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < IN_A_PACKET; i++, t += STEP) {
            call(f, 0, t, SHORT);
            done(f, 0, t + STEP / 2);
        }
        read_ring(f, 0, true);
        open_packet(f, 0, t);
    }
    done(f, 0, t);
    read_ring(f, 0, false);
    assert_int_equal(f->d->by_id[SHORT].calls, ROUNDS * IN_A_PACKET + 1);
    assert_in_range(mean(f, SHORT), 1, STEP);
}

static void what_is_dropped_has_no_end(void **state)
{
    struct fixture *f = *state;
    call(f, 0, 2000, LONG);
    call(f, 0, 2100, SHORT);
    read_ring(f, 0, false);
    krait_durations_forget(f->d, SHORT);
    done(f, 0, 4000);
    read_ring(f, 0, false);
    assert_int_equal(mean(f, LONG), 2000 - EVENT_TICKS);
}

static void c_calls_of_what_is_dropped_have_no_end(void **state)
{
    struct fixture *f = *state;
    krait_durations_know(f->d, 3, "c", 3);
    call(f, 0, 2000, LONG);
    call(f, 0, 2100, SHORT);
    krait_ring_put_code(&f->rings[0], 2200, KRAIT_EVENT_c_call, 3);
    read_ring(f, 0, false);
    krait_durations_forget(f->d, SHORT);
    assert_int_equal(f->d->by_id[3].open, 0);
    done(f, 0, 4000);
    read_ring(f, 0, false);
    assert_int_equal(mean(f, LONG), 2000 - 2 * EVENT_TICKS);
}

static void what_comes_back_is_known(void **state)
{
    struct fixture *f = *state;
    call(f, 0, 2000, LONG);
    done(f, 0, 3000);
    read_ring(f, 0, false);
    krait_durations_know(f->d, 7, "long", 7);
    krait_durations_inherit(f->d, 7, LONG);
    assert_int_equal(mean(f, 7), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(recording_is_not_the_functions_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_call_goes_on_in_the_next_packet, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_call_is_cut_where_packets_were_not_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(threads_are_read_in_turn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_ring_begins_anew_with_another_thread, set_up, tear_down),
        cmocka_unit_test_setup_teardown(recursion_counts_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(open_recursion_is_not_short, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_inner_calls_do_not_make_a_short_function_long, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_dropped_has_no_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c_calls_of_what_is_dropped_have_no_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_comes_back_is_known, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
