/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "ctf/read/cursor.h"
#include "ctf/read/loss.h"
#include "ctf/read/reader.h"
#include "forbid.h"
#include "record/collector.h"
#include "record/tracedir.h"
#include "record/writer.h"

#include <dirent.h>
#include <ftw.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

/* ---- a recording in a folder of its own ---- */

struct fixture {
    char root[32];
    char dir[48];
    struct krait_collector *collector;
};

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    strcpy(f->root, "/tmp/krait-record-XXXXXX");
    if (!mkdtemp(f->root))
        return -1;
    snprintf(f->dir, sizeof(f->dir), "%s/r", f->root);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    krait_collector_free(f->collector);
    nftw(f->root, remove_entry, 10, FTW_DEPTH | FTW_PHYS);
    free(f);
    return 0;
}

static void collect(struct fixture *f, const struct krait_collector_options *options)
{
    struct krait_collector_options all = options ? *options : (struct krait_collector_options){ 0 };
    struct krait_err err = { 0 };
    all.dir = f->dir;
    all.flags |= KRAIT_RECORD_CHILDREN;
    if (krait_collector_new(&f->collector, &all, &err))
        fail_msg("%s", err.text);
}

static void join(struct fixture *f, struct krait_writer *writer)
{
    assert_int_equal(krait_writer_map(writer, krait_collector_session(f->collector)), 0);
    assert_int_equal(krait_writer_join(writer), 0);
}

/* Ends the recording; whoever writes has ended or closed its slot. */
static struct krait_collector_summary finish(struct fixture *f)
{
    struct krait_collector_summary summary;
    krait_collector_finish(f->collector, &summary);
    return summary;
}

static void leave(struct krait_writer *writer)
{
    atomic_store(&writer->proc->state, KRAIT_SLOT_CLOSED);
    krait_writer_unmap(writer);
}

/* ---- writing, as the agent does ---- */

static enum krait_ring_room put_at(struct krait_writer *writer, struct krait_ring *ring, uint64_t t,
                                   uint32_t code)
{
    if (krait_ring_has_room(ring, t)) {
        krait_ring_put_code(ring, t, KRAIT_EVENT_python_call, code);
        return KRAIT_ROOM_OK;
    }
    enum krait_ring_room room = krait_writer_room(writer, ring, t, sizeof(struct krait_event_extended) + 4);
    if (room == KRAIT_ROOM_NONE)
        return room;
    if (krait_ring_has_room(ring, t))
        krait_ring_put_code(ring, t, KRAIT_EVENT_python_call, code);
    else
        krait_writer_put_extended(ring, t, KRAIT_EVENT_python_call, &code, sizeof(code));
    return room;
}

static enum krait_ring_room put(struct krait_writer *writer, struct krait_ring *ring, uint32_t code)
{
    return put_at(writer, ring, krait_writer_now(writer), code);
}

static bool define(struct krait_writer *writer, struct krait_ring *ring, uint32_t id, const char *name)
{
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    size_t n =
        krait_put_code_define(payload, &(struct krait_payload_code_define){ .id = id,
                                                                            .kind = KRAIT_code_kind_python,
                                                                            .line = 1,
                                                                            .module = "mod",
                                                                            .qualname = name,
                                                                            .file = "file.py" });
    return krait_writer_event(writer, ring, KRAIT_EVENT_code_define, payload, n);
}

/* ---- reading back ---- */

struct seen {
    uint64_t events, calls, defines, ends;
    uint64_t losses;      /* events, as the packets tell */
    uint64_t packet_gaps; /* packets, by their sequence numbers */
    uint64_t out_of_turn; /* calls whose code is not that of the one before in the stream plus one */
    uint32_t last;        /* code */
    uint64_t times;       /* of all calls, added up */
    bool back;            /* a time went back in a stream */
};

static void see_event(struct seen *seen, const struct krait_ctf_cursor *cursor, uint32_t *code)
{
    seen->events++;
    seen->defines += strcmp(cursor->event->name, "code:define") == 0;
    seen->ends += strcmp(cursor->event->name, "process:exit") == 0;
    if (strcmp(cursor->event->name, "python:call") != 0)
        return;
    seen->calls++;
    seen->times += cursor->ticks;
    memcpy(&seen->last, cursor->d.bytes + cursor->d.at / 8, sizeof(seen->last));
    seen->out_of_turn += *code && seen->last != *code + 1;
    *code = seen->last;
}

static void see_stream(struct seen *seen, struct krait_ctf_reader *reader,
                       const struct krait_ctf_stream *stream)
{
    struct krait_ctf_cursor cursor;
    uint64_t before = 0;
    uint32_t code = 0;
    assert_int_equal(krait_ctf_cursor_init(&cursor, reader, stream), 0);
    while (krait_ctf_next(&cursor) > 0) {
        see_event(seen, &cursor, &code);
        seen->back |= cursor.ticks < before;
        before = cursor.ticks;
        assert_int_equal(krait_ctf_event_skip(&cursor), 0);
    }
    assert_string_equal(cursor.err.text, "");
    krait_ctf_cursor_done(&cursor);
    for (uint32_t i = 0; i < stream->packet_count; i++) {
        struct krait_ctf_loss losses[2];
        unsigned n = krait_ctf_losses(stream, i, losses);
        for (unsigned k = 0; k < n; k++)
            *(losses[k].kind[0] == 'e' ? &seen->losses : &seen->packet_gaps) += losses[k].count;
    }
}

/* All that is on disk; everything must be whole. */
static struct seen look(const struct fixture *f)
{
    struct krait_ctf_reader *reader;
    struct krait_err err = { 0 };
    const char *path = f->dir;
    struct seen seen = { 0 };
    if (krait_ctf_open(&reader, &path, 1, &(struct krait_ctf_options){ 0 }, &err))
        fail_msg("%s", err.text);
    assert_string_equal(reader->damage.text, "");
    for (uint32_t i = 0; i < reader->stream_count; i++)
        see_stream(&seen, reader, reader->streams[i]);
    krait_ctf_close(reader);
    return seen;
}

/* ---- a child process that writes ---- */

/* Private to a test and its child. */
struct shared {
    _Atomic uint64_t published;
    _Atomic int go;
};

static struct shared *share(void)
{
    void *at = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    return at;
}

static void child_writer(const struct fixture *f, struct krait_writer *writer, struct krait_ring **ring)
{
    if (krait_writer_map(writer, krait_collector_session(f->collector)) || krait_writer_join(writer))
        _exit(99);
    *ring = krait_writer_ring_new(writer, KRAIT_RING_THREAD, (uint32_t)getpid());
    if (!*ring)
        _exit(98);
}

static void collect_until_dead(struct fixture *f, pid_t pid)
{
    int status;
    while (waitpid(pid, &status, WNOHANG) == 0)
        krait_collector_round(f->collector);
    krait_collector_round(f->collector);
}

static int wait_status(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

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
    enum { EVENTS = 3000000 }; /* 24 MB, and once more */
    for (uint32_t i = 1; i <= EVENTS; i++)
        assert_int_equal(put(&writer, ring, i), KRAIT_ROOM_OK);
    assert_true(memory_of(f) > 20u << 20);
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
    assert_in_range(summary.grown_bytes, 20 << 20, 32 << 20);
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
                                      0, 1ull << 40 };
    uint64_t t = krait_writer_now(&writer) - (1ull << 42), sum = 0;
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

/* ---- ends ---- */

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
    for (int round = 0; round < 200; round++) {
        snprintf(f->dir, sizeof(f->dir), "%s/%d", f->root, round);
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
        nftw(f->dir, remove_entry, 10, FTW_DEPTH | FTW_PHYS);
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
    snprintf(path, sizeof(path), "%s/record_test-%d/metadata", f->dir, pid);
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
    assert_false(krait_writer_running(&writer));
    for (uint32_t i = 1; i <= 1000000; i++)
        put(&writer, ring, i); /* no harm */
    krait_writer_unmap(&writer);
}

static void many_processes_at_once(void **state)
{
    enum { PROCESSES = 600 };
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

/* ---- limits ---- */

/* Open descriptors of this process. */
static int count_descriptors(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void a_recorded_process_keeps_no_descriptor(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    collect(f, NULL);
    int before = count_descriptors();
    join(f, &writer);
    for (uint32_t i = 0; i < 5; i++)
        assert_non_null(krait_writer_ring_new(&writer, KRAIT_RING_THREAD, i + 1));
    assert_int_equal(count_descriptors(), before);
    leave(&writer);
    assert_int_equal(count_descriptors(), before);
}

/* As after chroot, or setuid, which closes /proc/PID/fd of others. */
static void rings_are_had_where_the_sessions_path_leads_nowhere(void **state)
{
    struct fixture *f = *state;
    struct krait_writer first, writer;
    collect(f, NULL);
    join(f, &first);
    join(f, &writer);
    strcpy(writer.path, "/nowhere");
    enum { RINGS = 12 };
    for (uint32_t i = 0; i < RINGS; i++) {
        assert_non_null(
            krait_writer_ring_new(&first, KRAIT_RING_THREAD, i % 3 + 1)); /* not all are neighbours */
        struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 100 + i);
        assert_non_null(ring);
        for (uint32_t k = 0; k < 3000; k++)
            assert_int_equal(put(&writer, ring, k + 1), KRAIT_ROOM_OK);
    }
    leave(&writer);
    leave(&first);
    finish(f);
    struct seen seen = look(f);
    assert_int_equal(seen.calls, RINGS * 3000);
    assert_int_equal(seen.out_of_turn, 0);
}

static void a_program_with_little_address_space_is_recorded(void **state)
{
    struct fixture *f = *state;
    struct krait_writer others;
    collect(f, NULL);
    join(f, &others);
    for (uint32_t i = 0; i < 40; i++) /* more than the program has room to map in passing */
        assert_non_null(krait_writer_ring_new(&others, KRAIT_RING_THREAD, i + 1));
    pid_t pid = fork();
    if (pid == 0) {
        struct krait_writer writer;
        struct krait_ring *ring;
        unsigned long pages = 0;
        FILE *statm = fopen("/proc/self/statm", "r");
        if (!statm || fscanf(statm, "%lu", &pages) != 1)
            _exit(97);
        struct rlimit limit = { (pages << 12) + (16u << 20), (pages << 12) + (16u << 20) };
        setrlimit(RLIMIT_AS, &limit);
        child_writer(f, &writer, &ring);
        put(&writer, ring, 1);
        void *mine = malloc(4 << 20); /* what the program needs is still there */
        while (krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 2))
            ;
        _exit(mine ? 0 : 96);
    }
    assert_int_equal(wait_status(pid), 0);
    leave(&others);
    finish(f);
    assert_int_equal(look(f).calls, 1);
}

static void rings_that_cannot_be_opened_are_mapped_anew(void **state)
{
    enum { NO_FILTER = 95 };
    struct fixture *f = *state;
    collect(f, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct krait_writer writer;
        struct krait_ring *ring;
        if (!forbid_mprotect())
            _exit(NO_FILTER);
        child_writer(f, &writer, &ring);
        put(&writer, ring, 1);
        _exit(0);
    }
    int status = wait_status(pid);
    finish(f);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTER)
        skip();
    assert_int_equal(status, 0);
    assert_int_equal(look(f).calls, 1);
}

static void a_recording_fits_a_limit_on_file_sizes(void **state)
{
    struct fixture *f = *state;
    pid_t pid = fork();
    if (pid == 0) {
        struct krait_collector_options options = { .dir = f->dir };
        struct krait_err err = { 0 };
        struct rlimit limit = { 64 << 20, 64 << 20 };
        setrlimit(RLIMIT_FSIZE, &limit);
        int rc = krait_collector_new(&f->collector, &options, &err);
        limit.rlim_cur = 1 << 20;
        setrlimit(RLIMIT_FSIZE, &limit);
        options.dir = f->root;
        int none = krait_collector_new(&f->collector, &options, &err);
        _exit(rc == 0 && none < 0 && strstr(err.text, "r") ? 0 : 1);
    }
    assert_int_equal(wait_status(pid), 0);
}

static void what_the_disk_refuses_is_counted_and_the_rest_is_whole(void **state)
{
    struct fixture *f = *state;
    struct shared *shared = share();
    collect(f, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        /* The collector's own limit: it stands for a full disk, with short writes. */
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit limit = { 300001, 300001 };
        setrlimit(RLIMIT_FSIZE, &limit);
        struct krait_writer writer;
        struct krait_ring *ring;
        child_writer(f, &writer, &ring);
        for (uint32_t i = 1; i <= 100000; i++) {
            put(&writer, ring, i);
            if (i % 20000 == 0)
                krait_collector_round(f->collector);
        }
        leave(&writer);
        struct krait_collector_summary summary = finish(f);
        atomic_store(&shared->published, summary.lost[KRAIT_lost_reason_disk]);
        _exit(krait_collector_trouble(f->collector) ? 0 : 1);
    }
    assert_int_equal(wait_status(pid), 0);
    struct seen seen = look(f);
    assert_in_range(seen.calls, 30000, 40000);
    assert_int_equal(seen.calls + atomic_load(&shared->published), 100000);
    munmap(shared, sizeof(*shared));
}

/* ---- what is not a recording, and what is not sound ---- */

static void what_is_not_a_recording_is_refused(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer = { 0 };
    char path[64];
    snprintf(path, sizeof(path), "%s/big", f->root);
    FILE *file = fopen(path, "w");
    assert_int_equal(ftruncate(fileno(file), 64 << 20), 0);
    fclose(file);
    assert_int_equal(krait_writer_map(&writer, path), -EPROTO);
    assert_int_equal(krait_writer_map(&writer, f->root), -EPROTO);
    assert_int_equal(krait_writer_map(&writer, "/dev/null"), -EPROTO);
    assert_int_equal(krait_writer_map(&writer, "/proc/self/fd/12345"), -ENOENT);
}

static void nobody_can_pull_the_memory_from_under_the_others(void **state)
{
    struct fixture *f = *state;
    collect(f, NULL);
    assert_int_equal(truncate(krait_collector_session(f->collector), 0), -1);
    assert_int_equal(errno, EPERM);
}

static uint64_t any(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    uint64_t r = *seed;
    static const uint64_t odd[] = { 0, 1, 2, 3, 63, 64, UINT32_MAX, UINT64_MAX, 1u << 31, 84, 32768, 32769 };
    return r % 3 ? odd[(r >> 8) % KRAIT_ARRAY_LEN(odd)] : r;
}

/* Everything that a program can reach: words of the heads, of its slot and of its packets. */
static void scribble(struct krait_writer *writer, struct krait_ring *ring, uint64_t *seed)
{
    static const size_t keep = offsetof(struct krait_ring, state);
    uint8_t *where;
    size_t size;
    switch (any(seed) % 5) {
    case 0:
        where = (uint8_t *)ring + (any(seed) % 2 ? keep + 4 : 0);
        size = any(seed) % 2 ? 64 : sizeof(*ring) - keep - 4;
        break;
    case 1:
        where = (uint8_t *)&writer->shm.procs[writer->proc_index].lost;
        size = sizeof(writer->proc->lost);
        break;
    case 2:
        where = (uint8_t *)writer->shm.control;
        size = offsetof(struct krait_control, collector_pid);
        break;
    case 3:
        where = (uint8_t *)&writer->shm.control->sleeping;
        size = 12;
        break;
    default:
        where = ring->packets;
        where = writer->ring_maps[ring - writer->shm.rings] + any(seed) % 2 * (writer->shm.packet_bytes);
        size = 4096;
    }
    for (int i = 0; i < 8; i++) {
        uint64_t word = any(seed);
        size_t at = (size_t)(any(seed) % size) & ~7ull;
        memcpy(where + at, &word, at + 8 <= size ? 8 : size - at);
    }
}

static void garbage_in_shared_memory_harms_only_its_own_trace(void **state)
{
    struct fixture *f = *state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        snprintf(f->dir, sizeof(f->dir), "%s/%d", f->root, (int)seed);
        uint64_t random = seed * 0x9e3779b97f4a7c15ull;
        struct krait_writer good, bad;
        collect(f, &(struct krait_collector_options){ .rings = 8 });
        join(f, &good);
        join(f, &bad);
        bad.proc->pid = 1; /* anyone else who lives */
        struct krait_ring *good_ring = krait_writer_ring_new(&good, KRAIT_RING_THREAD, 1);
        struct krait_ring *bad_ring =
            krait_writer_ring_new(&bad, seed % 2 ? KRAIT_RING_THREAD : KRAIT_RING_DEFINITIONS, 2);
        for (uint32_t i = 1; i <= 2000; i++) {
            put(&good, good_ring, i);
            if (i % 20)
                continue;
            scribble(&bad, bad_ring, &random);
            krait_collector_round(f->collector);
        }
        leave(&good);
        krait_collector_round(f->collector);
        atomic_store(&bad.shm.procs[bad.proc_index].state, KRAIT_SLOT_CLOSED);
        finish(f);
        char path[128];
        snprintf(path, sizeof(path), "%s/record_test-%d/thread-1-0", f->dir, getpid());
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        assert_true(st.st_size >= 2000 * 8);
        krait_writer_unmap(&bad);
        krait_collector_free(f->collector);
        f->collector = NULL;
        nftw(f->dir, remove_entry, 10, FTW_DEPTH | FTW_PHYS);
    }
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
        size_t payload = id < KRAIT_EVENT_COUNT ? krait_event_payload_bytes[id] : KRAIT_PAYLOAD_VARIES;
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

/* ---- names ---- */

static void hostile_names_are_escaped_for_every_reader(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    static const char *const names[] = { "quote\" = 1, \"x",
                                         "back\\slash\\",
                                         "new\nline",
                                         "tab\tbell\a",
                                         "\001\033[31m\177",
                                         "\"; };",
                                         "/* */",
                                         "//",
                                         "\303\251\342\202\254\360\237\220\215",
                                         "bad\377utf8",
                                         "<module>",
                                         "%s%n",
                                         "\\x41\\101",
                                         "?",
                                         "" };
    collect(f, NULL);
    join(f, &writer);
    struct krait_ring *definitions = krait_writer_ring_new(&writer, KRAIT_RING_DEFINITIONS, 0);
    struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 7);
    for (uint32_t i = 0; i < KRAIT_ARRAY_LEN(names); i++) {
        assert_true(define(&writer, definitions, i + 1, names[i]));
        put(&writer, ring, i + 1);
    }
    leave(&writer);
    finish(f);
    assert_int_equal(look(f).calls, KRAIT_ARRAY_LEN(names));
    if (system("command -v babeltrace2 >/dev/null") != 0)
        return;
    char command[256];
    snprintf(command, sizeof(command),
             "n=$(babeltrace2 %s 2>%s/said | grep -c python:call) && [ \"$n\" = %zu ] && [ ! -s %s/said ]",
             f->dir, f->root, KRAIT_ARRAY_LEN(names), f->root);
    assert_int_equal(system(command), 0);
}

/* A process that joins, says what it is called, and does what comes `then`, by which it becomes `comm`,
 * before the collector sees it. */
static pid_t unseen_process(const struct fixture *f, void (*then)(void), const char *comm)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct krait_writer writer;
        struct krait_ring *ring;
        uint8_t payload[KRAIT_PAYLOAD_MAX];
        child_writer(f, &writer, &ring);
        size_t n = krait_put_process_start(payload, &(struct krait_payload_process_start){
                                                        .vpid = (uint32_t)getpid(),
                                                        .vppid = (uint32_t)getppid(),
                                                        .origin = KRAIT_process_origin_fork,
                                                        .runtime = "CPython",
                                                        .command = "as it was said",
                                                    });
        ring = krait_writer_ring_new(&writer, KRAIT_RING_DEFINITIONS, 0);
        krait_writer_event(&writer, ring, KRAIT_EVENT_process_start, payload, n);
        then();
        _exit(97);
    }
    char path[32];
    snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    for (bool is = false; !is; usleep(1000)) {
        KRAIT_AUTO_BUF text = { 0 };
        assert_int_equal(krait_buf_read_file(&text, path), 0);
        is = strncmp(text.data, comm, strlen(comm)) == 0;
    }
    return pid;
}

static void take_another_name(void)
{
    prctl(PR_SET_NAME, "later");
    pause();
}

static void execute_another_program(void)
{
    execlp("sleep", "sleep", "300", NULL);
}

/* Whether its metadata, in the end, has this text. */
static bool is_called(const struct fixture *f, const char *folder, pid_t pid, const char *text)
{
    char path[128];
    KRAIT_AUTO_BUF metadata = { 0 };
    snprintf(path, sizeof(path), "%s/%s-%d/metadata", f->dir, folder, pid);
    assert_int_equal(krait_buf_read_file(&metadata, path), 0);
    return strstr(metadata.data, text);
}

/* As a worker does that has just been forked. */
static void a_name_that_is_taken_before_the_process_is_seen_is_told(void **state)
{
    struct fixture *f = *state;
    collect(f, NULL);
    pid_t renamed = unseen_process(f, take_another_name, "later");
    pid_t executed = unseen_process(f, execute_another_program, "sleep");
    for (int i = 0; i < 3; i++) {
        krait_collector_round(f->collector);
        usleep(20000); /* names are looked at again after 10 ms */
    }
    finish(f);
    kill(renamed, SIGKILL);
    kill(executed, SIGKILL);
    wait_status(renamed);
    wait_status(executed);
    assert_true(is_called(f, "later", renamed, "procname = \"later\""));
    assert_false(is_called(f, "later", renamed, "command = \"as it was said\""));
    assert_true(is_called(f, "record_test", executed, "procname = \"record_test\""));
    assert_true(is_called(f, "record_test", executed, "command = \"as it was said\""));
}

static void who_was_refused_is_called_as_the_collector_knows_it(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer = { 0 };
    char why[64];
    collect(f, NULL);
    assert_int_equal(krait_writer_map(&writer, krait_collector_session(f->collector)), 0);
    pid_t child = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
    if (child < 0 && errno == EPERM)
        skip(); /* a pid namespace is root's to make */
    if (!child) {
        krait_writer_refuse(&writer, "it is another program");
        _exit(getpid() != 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(krait_collector_refusal(f->collector, 0, why, sizeof(why)), child);
    assert_string_equal(why, "it is another program");
    krait_writer_unmap(&writer);
    finish(f);
}

int main(void)
{
#define RECORD_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
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
        RECORD_TEST(nothing_published_is_lost_when_the_writer_is_killed),
        RECORD_TEST(a_packet_whose_writer_died_while_it_closed_it_is_there_once),
        RECORD_TEST(slots_of_processes_that_died_early_are_used_again),
        RECORD_TEST(a_ring_is_found_again_when_one_was_given_back),
        RECORD_TEST(a_process_that_was_gone_before_it_was_seen_has_its_name),
        RECORD_TEST(rings_of_who_lives_on_are_nobody_elses_after_the_end),
        RECORD_TEST(many_processes_at_once),
        RECORD_TEST(a_recorded_process_keeps_no_descriptor),
        RECORD_TEST(rings_are_had_where_the_sessions_path_leads_nowhere),
        RECORD_TEST(a_program_with_little_address_space_is_recorded),
        RECORD_TEST(rings_that_cannot_be_opened_are_mapped_anew),
        RECORD_TEST(a_recording_fits_a_limit_on_file_sizes),
        RECORD_TEST(what_the_disk_refuses_is_counted_and_the_rest_is_whole),
        RECORD_TEST(what_is_not_a_recording_is_refused),
        RECORD_TEST(nobody_can_pull_the_memory_from_under_the_others),
        RECORD_TEST(garbage_in_shared_memory_harms_only_its_own_trace),
        RECORD_TEST(events_are_counted_whatever_their_kinds_and_cuts),
        RECORD_TEST(hostile_names_are_escaped_for_every_reader),
        RECORD_TEST(a_name_that_is_taken_before_the_process_is_seen_is_told),
        RECORD_TEST(who_was_refused_is_called_as_the_collector_knows_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
