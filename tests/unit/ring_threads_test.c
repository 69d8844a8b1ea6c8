/* SPDX-License-Identifier: Apache-2.0
 *
 * Writers and collector as threads of one process, all in one mapping, so that the thread sanitizer sees both sides.
 */
#include "record/collector_inside.h"
#include "record/writer.h"

#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { THREADS = 3, EVENTS = 200000, DEFINITIONS = 2000 };

/* A writer that uses the collector's own mapping. */
static void share_mapping(struct krait_writer *writer, struct krait_collector *c)
{
    assert_int_equal(krait_writer_map(writer, krait_collector_session(c)), 0);
    krait_shm_move(&writer->shm, c->shm.base, writer->shm.bytes);
    for (uint32_t i = 0; i < writer->shm.ring_max; i++)
        atomic_store(&writer->ring_maps[i], krait_shm_packet(&c->shm, i, 0));
    assert_non_null(writer->window);
    munmap(writer->window, writer->window_count * krait_shm_chunk_bytes(&writer->shm));
    writer->window = krait_shm_packet(&c->shm, 0, (1 + writer->window_first) * KRAIT_PACKETS_MAX);
    assert_int_equal(krait_writer_join(writer), 0);
}

static void put(struct krait_writer *writer, struct krait_ring *ring, uint32_t code)
{
    uint64_t t = krait_writer_now(writer);
    if (krait_ring_has_room(ring, t)) {
        krait_ring_put_code(ring, t, KRAIT_EVENT_python_call, code);
        return;
    }
    if (krait_writer_room(writer, ring, t, 32) != KRAIT_ROOM_NONE)
        krait_writer_put_extended(ring, t, KRAIT_EVENT_python_call, &code, sizeof(code));
}

static void *write_calls(void *arg)
{
    struct krait_writer *writer = arg;
    for (uint32_t part = 0; part < 4; part++) {
        struct krait_ring *ring = krait_writer_ring_new(writer, KRAIT_RING_THREAD, 1);
        for (uint32_t i = 0; ring && i < EVENTS / 4; i++)
            put(writer, ring, i);
        krait_writer_ring_close(ring);
    }
    return NULL;
}

static void *write_definitions(void *arg)
{
    struct krait_writer *writer = arg;
    struct krait_ring *ring = krait_writer_ring_new(writer, KRAIT_RING_DEFINITIONS, 0);
    for (uint32_t i = 1; ring && i <= DEFINITIONS; i++) {
        uint8_t payload[KRAIT_PAYLOAD_MAX];
        size_t n = krait_put_thread_name(
            payload, &(struct krait_payload_thread_name){ .vtid = i, .name = "a thread" });
        if (!krait_writer_event(writer, ring, KRAIT_EVENT_thread_name, payload, n))
            krait_writer_lost(writer, KRAIT_lost_reason_undefined, 1);
    }
    krait_writer_ring_close(ring);
    return NULL;
}

struct collecting {
    struct krait_collector *collector;
    _Atomic int done;
};

static void *collect(void *arg)
{
    struct collecting *c = arg;
    while (!atomic_load(&c->done)) {
        krait_collector_round(c->collector);
        krait_collector_nap(c->collector);
    }
    return NULL;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static void record(const char *root, uint32_t flags, struct krait_collector_summary *summary)
{
    char dir[64];
    snprintf(dir, sizeof(dir), "%s/%u", root, flags);
    struct collecting collecting = { 0 };
    struct krait_collector_options options = {
        .dir = dir, .flags = flags, .ring_bytes = 256 * 1024, .rings = 16, .buffer_bytes = 8 << 20
    };
    struct krait_err err;
    struct krait_writer writer;
    pthread_t threads[THREADS + 1], collector;
    assert_int_equal(krait_collector_new(&collecting.collector, &options, &err), 0);
    uint8_t *heads;
    share_mapping(&writer, collecting.collector);
    heads = writer.shm.base;
    pthread_create(&collector, NULL, collect, &collecting);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, write_calls, &writer);
    pthread_create(&threads[THREADS], NULL, write_definitions, &writer);
    for (int i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&collecting.done, 1);
    pthread_join(collector, NULL);
    assert_ptr_equal(heads, collecting.collector->shm.base);
    atomic_store(&writer.proc->state, KRAIT_SLOT_CLOSED);
    krait_collector_finish(collecting.collector, summary);
    krait_collector_free(collecting.collector);
    free(writer.ring_maps);
}

static void writers_and_collector_agree_on_every_event(void **state)
{
    char root[] = "/tmp/krait-threads-XXXXXX";
    struct krait_collector_summary summary;
    assert_non_null(mkdtemp(root));
    record(root, 0, &summary);
    uint64_t lost = summary.lost[KRAIT_lost_reason_ring_full] + summary.lost[KRAIT_lost_reason_undefined];
    /* What definitions lose is counted by the ring and by who could not define. */
    assert_in_range(summary.events + lost, THREADS * EVENTS + DEFINITIONS, 2 * THREADS * EVENTS);
    record(root, KRAIT_RECORD_LOSSLESS, &summary);
    assert_int_equal(summary.events, THREADS * EVENTS + DEFINITIONS + 1); /* and process:exit */
    nftw(root, remove_entry, 10, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(writers_and_collector_agree_on_every_event) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
