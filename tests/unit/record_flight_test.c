/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording: a flight recorder. The stacks that it writes in place of the events that it drops, and calls that snapshots
 * are taken for.
 */
#include "base/buf.h"
#include "event/payload.h"
#include "record/tracedir.h"
#include "record_fixture.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* One thread of a recording, as the agent records it. Its time begins some seconds ago. */
struct recorded {
    struct fixture *f;
    struct krait_writer writer;
    struct krait_ring *definitions, *ring;
    uint64_t t; /* of the next event */
};

enum { MAIN = 1, DROPPED, OTHER, SORTED }; /* codes */

enum { AGO_S = 3 };

static void begin(struct recorded *r, struct fixture *f, const struct krait_collector_options *options)
{
    r->f = f;
    collect(f, options);
    join(f, &r->writer);
    r->t = krait_writer_now(&r->writer) - AGO_S * r->writer.shm.control->clock_freq;
    r->ring = krait_writer_ring_new(&r->writer, KRAIT_RING_THREAD, 1);
    r->definitions = krait_writer_ring_new(&r->writer, KRAIT_RING_DEFINITIONS, 0);
    assert_non_null(r->ring);
    assert_non_null(r->definitions);
}

static void end(struct recorded *r)
{
    leave(&r->writer);
    finish(r->f);
}

/* `word`: the code of a call. */
static void say(struct recorded *r, uint32_t event, uint32_t word)
{
    bool has_word = krait_event_bytes(event) != 0;
    assert_true(put_event_at(&r->writer, r->ring, r->t++, event, &word, has_word ? sizeof(word) : 0));
}

static void begin_all(struct recorded *r, const uint32_t *codes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        say(r, KRAIT_EVENT_python_call, codes[i]);
}

/* The first calls the second, and so on. */
#define begin_calls(r, ...)                         \
    begin_all(r, (const uint32_t[]){ __VA_ARGS__ }, \
              sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

static void say_switch(struct recorded *r, uint16_t from, uint16_t to)
{
    uint8_t payload[KRAIT_BYTES_python_switch];
    size_t n =
        krait_put_python_switch(payload, &(struct krait_payload_python_switch){ .from = from, .to = to });
    assert_true(put_event_at(&r->writer, r->ring, r->t++, KRAIT_EVENT_python_switch, payload, n));
}

/* As the governor does: from now on the function's calls and ends are not recorded. */
static void omit(struct recorded *r, uint32_t code)
{
    uint8_t payload[KRAIT_BYTES_code_omit];
    size_t n = krait_put_code_omit(
        payload, &(struct krait_payload_code_omit){ .id = code, .reason = KRAIT_omit_reason_governor });
    assert_true(put_event_at(&r->writer, r->definitions, r->t++, KRAIT_EVENT_code_omit, payload, n));
}

/* ---- reading back ---- */

static void tell_event(struct krait_buf *out, uint32_t id, struct krait_cursor payload)
{
    struct krait_payload_python_frame frame;
    struct krait_payload_python_stack stack;
    struct krait_payload_python_switch change;
    struct krait_payload_c_call call;
    if (id == KRAIT_EVENT_python_frame && krait_read_python_frame(&payload, &frame))
        krait_buf_fmt(out, "frame %u at %u; ", frame.code, frame.depth);
    else if (id == KRAIT_EVENT_python_stack && krait_read_python_stack(&payload, &stack))
        krait_buf_fmt(out, "depth %u; ", stack.depth);
    else if (id == KRAIT_EVENT_python_switch && krait_read_python_switch(&payload, &change))
        krait_buf_fmt(out, "switch %u %u; ", change.from, change.to);
    else if (id == KRAIT_EVENT_c_call && krait_read_c_call(&payload, &call))
        krait_buf_fmt(out, "c call %u; ", call.code);
    else
        krait_buf_fmt(out, "%s; ", krait_event_find(id)->name);
}

/* The events of the thread's first packet in a recording. */
static void tell_first_packet(struct krait_buf *out, const char *dir)
{
    char path[PATH_MAX];
    struct krait_packet_head head;
    KRAIT_AUTO_BUF events = { 0 };
    snprintf(path, sizeof(path), "%s/%s-%d/thread-1-0", dir, own_comm(), getpid());
    KRAIT_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && krait_packet_read_head(fd, 0, &head));
    assert_int_equal(krait_packet_read_events(fd, 0, &head, &events), 0);
    const uint8_t *bytes = (const uint8_t *)events.data;
    struct krait_cursor at = { bytes, bytes + events.len }, payload;
    struct krait_event_head event = { .t = head.timestamp_begin };
    while (krait_packet_event(&at, &event, &payload))
        tell_event(out, event.id, payload);
    assert_ptr_equal(at.at, at.end);
}

/* Takes a snapshot of nothing but what is open now, and compares. */
static void expect_open(struct recorded *r, const char *expected)
{
    static unsigned taken;
    struct krait_collector_snapshot made;
    struct krait_err err = { 0 };
    KRAIT_AUTO_BUF text = { 0 };
    char dir[64];
    snprintf(dir, sizeof(dir), "%s/snapshot-%u", r->f->root, taken++);
    krait_collector_round(r->f->collector);
    if (krait_collector_snapshot(r->f->collector, dir, &made, &err))
        fail_msg("%s", err.text);
    tell_first_packet(&text, made.dir);
    free(made.dir);
    assert_string_equal(text.data, expected);
}

/* ---- stacks ---- */

static const struct krait_collector_options only_what_is_open = { .last_ns = 1 };

static void a_function_that_the_governor_drops_ends(void **state)
{
    struct recorded r;
    begin(&r, *state, &only_what_is_open);
    begin_calls(&r, MAIN, DROPPED);
    expect_open(&r, "frame 1 at 0; frame 2 at 1; depth 2; ");
    omit(&r, DROPPED);
    expect_open(&r, "frame 1 at 0; depth 1; ");
    say(&r, KRAIT_EVENT_python_call, OTHER);
    expect_open(&r, "frame 1 at 0; frame 3 at 1; depth 2; ");
    say(&r, KRAIT_EVENT_python_return, 0);
    expect_open(&r, "frame 1 at 0; depth 1; ");
    end(&r);
}

static void it_was_called_and_returned_before(void **state)
{
    struct recorded r;
    begin(&r, *state, &only_what_is_open);
    begin_calls(&r, MAIN, DROPPED);
    say(&r, KRAIT_EVENT_python_return, 0);
    omit(&r, DROPPED);
    say(&r, KRAIT_EVENT_python_call, OTHER);
    expect_open(&r, "frame 1 at 0; frame 3 at 1; depth 2; ");
    end(&r);
}

static void its_c_calls_end_and_what_those_call_goes_on(void **state)
{
    struct recorded r;
    begin(&r, *state, &only_what_is_open);
    say(&r, KRAIT_EVENT_python_call, MAIN);
    say(&r, KRAIT_EVENT_c_call, SORTED);
    say(&r, KRAIT_EVENT_python_call, DROPPED);
    say(&r, KRAIT_EVENT_c_call, SORTED);
    say(&r, KRAIT_EVENT_python_call, OTHER);
    omit(&r, DROPPED);
    expect_open(&r, "frame 1 at 0; depth 1; c call 4; frame 3 at 1; depth 2; ");
    omit(&r, SORTED);
    expect_open(&r, "frame 1 at 0; frame 3 at 1; depth 2; ");
    end(&r);
}

static void it_ends_in_stacks_that_wait_too(void **state)
{
    struct recorded r;
    begin(&r, *state, &only_what_is_open);
    begin_calls(&r, MAIN, DROPPED, OTHER);
    say_switch(&r, 1, 0);
    begin_calls(&r, DROPPED, MAIN);
    omit(&r, DROPPED);
    expect_open(&r, "frame 1 at 0; frame 3 at 1; depth 2; switch 1 0; frame 1 at 0; depth 1; ");
    say_switch(&r, 2, 1);
    say(&r, KRAIT_EVENT_python_return, 0);
    expect_open(
        &r,
        "frame 1 at 0; frame 3 at 1; depth 2; switch 1 0; frame 1 at 0; depth 1; switch 2 0; frame 1 at 0; depth 1; ");
    end(&r);
}

static void a_recording_that_drops_events_has_it_ended_and_asks_no_thread_for_its_stack(void **state)
{
    struct recorded r;
    KRAIT_AUTO_BUF text = { 0 };
    begin(&r, *state,
          &(struct krait_collector_options){ .max_bytes = 1 << 20, .keep_newest = true, .max_overhead = 5 });
    begin_calls(&r, MAIN, DROPPED);
    omit(&r, DROPPED);
    say(&r, KRAIT_EVENT_python_call, OTHER);
    for (uint64_t since = 0; !since; since = krait_collector_keep_newest(r.f->collector)) {
        for (int i = 0; i < 1000; i++) {
            say(&r, KRAIT_EVENT_c_call, SORTED);
            say(&r, KRAIT_EVENT_c_return, 0);
        }
        krait_collector_take_open(r.f->collector);
        krait_collector_round(r.f->collector);
    }
    static const char stack[] = "frame 1 at 0; frame 3 at 1; depth 2; ";
    tell_first_packet(&text, r.f->dir);
    assert_true(text.len > strlen(stack));
    assert_memory_equal(text.data, stack, strlen(stack)); /* the calls that are kept follow */
    assert_int_equal(atomic_load(&r.ring->resync), 0);
    end(&r);
}

/* ---- calls that snapshots are taken for ---- */

/* Two functions have names: DROPPED and OTHER. */
static void begin_with_trigger(struct recorded *r, struct fixture *f, const char *trigger)
{
    begin(r, f, &(struct krait_collector_options){ .open_ns = 1, .snapshot_on = { &trigger, 1 } });
    assert_true(define_at(&r->writer, r->definitions, r->t++, DROPPED, "dropped"));
    assert_true(define_at(&r->writer, r->definitions, r->t++, OTHER, "other"));
}

/* The first round looks at what lasts. */
static bool takes_snapshot(struct recorded *r)
{
    krait_collector_round(r->f->collector);
    const char *said = krait_collector_said(r->f->collector);
    bool taken = said && strncmp(said, "snapshot in ", 12) == 0;
    end(r);
    return taken;
}

static void a_call_that_lasts_is_seen(void **state)
{
    struct recorded r;
    begin_with_trigger(&r, *state, "call:mod.dropped>1s");
    begin_calls(&r, MAIN, DROPPED);
    assert_true(takes_snapshot(&r));
}

static void a_call_that_the_governor_drops_does_not_last(void **state)
{
    struct recorded r;
    begin_with_trigger(&r, *state, "call:mod.dropped>1s");
    begin_calls(&r, MAIN, DROPPED);
    omit(&r, DROPPED);
    assert_false(takes_snapshot(&r));
}

static void the_end_of_a_call_that_called_it_is_seen(void **state)
{
    struct recorded r;
    begin_with_trigger(&r, *state, "call:mod.other>1s");
    begin_calls(&r, MAIN, OTHER, DROPPED);
    omit(&r, DROPPED);
    say(&r, KRAIT_EVENT_python_return, 0);
    assert_false(takes_snapshot(&r));
}

static void a_call_that_called_it_and_lasts_is_seen(void **state)
{
    struct recorded r;
    begin_with_trigger(&r, *state, "call:mod.other>1s");
    begin_calls(&r, MAIN, OTHER, DROPPED);
    omit(&r, DROPPED);
    say(&r, KRAIT_EVENT_python_call, MAIN);
    say(&r, KRAIT_EVENT_python_return, 0);
    assert_true(takes_snapshot(&r));
}

/* The ring of the thread is in front of that of the definitions. */
static void names_are_known_before_the_calls(void **state)
{
    struct recorded r;
    begin_with_trigger(&r, *state, "call:mod.other>1ns");
    say(&r, KRAIT_EVENT_python_call, OTHER);
    r.t += r.writer.shm.control->clock_freq / 1000;
    say(&r, KRAIT_EVENT_python_return, 0);
    for (uint32_t first = atomic_load(&r.ring->open_packet); first == atomic_load(&r.ring->open_packet);) {
        say(&r, KRAIT_EVENT_c_call, SORTED);
        say(&r, KRAIT_EVENT_c_return, 0);
    }
    assert_true(takes_snapshot(&r));
}

static bool tells_nothing(const char *runtime)
{
    return false;
}

static void a_warning_and_a_snapshot_of_one_round_are_both_told(void **state)
{
    struct recorded r;
    const char *const triggers[] = { "call:mod.dropped>1s", "exception:Own" };
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    begin(&r, *state,
          &(struct krait_collector_options){
              .open_ns = 1, .snapshot_on = { triggers, 2 }, .tells_exceptions = tells_nothing });
    size_t n = krait_put_process_start(payload, &(struct krait_payload_process_start){
                                                    .vpid = 4711, .runtime = "Made 1", .command = "made" });
    assert_true(put_event_at(&r.writer, r.definitions, r.t++, KRAIT_EVENT_process_start, payload, n));
    assert_true(define_at(&r.writer, r.definitions, r.t++, DROPPED, "dropped"));
    begin_calls(&r, MAIN, DROPPED);
    krait_collector_round(r.f->collector);
    const char *said = krait_collector_said(r.f->collector);
    assert_string_equal(
        said ? said : "",
        "--snapshot-on exception:Own may miss exceptions in process 4711: Made 1 does not tell the types of all, Python 3.12 does");
    said = krait_collector_said(r.f->collector);
    assert_true(said && strncmp(said, "snapshot in ", 12) == 0);
    assert_null(krait_collector_said(r.f->collector));
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORD_TEST(a_function_that_the_governor_drops_ends),
        RECORD_TEST(it_was_called_and_returned_before),
        RECORD_TEST(its_c_calls_end_and_what_those_call_goes_on),
        RECORD_TEST(it_ends_in_stacks_that_wait_too),
        RECORD_TEST(a_recording_that_drops_events_has_it_ended_and_asks_no_thread_for_its_stack),
        RECORD_TEST(a_call_that_lasts_is_seen),
        RECORD_TEST(a_call_that_the_governor_drops_does_not_last),
        RECORD_TEST(the_end_of_a_call_that_called_it_is_seen),
        RECORD_TEST(a_call_that_called_it_and_lasts_is_seen),
        RECORD_TEST(names_are_known_before_the_calls),
        RECORD_TEST(a_warning_and_a_snapshot_of_one_round_are_both_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
