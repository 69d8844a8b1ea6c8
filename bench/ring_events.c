/* SPDX-License-Identifier: Apache-2.0
 *
 * ring_events DIR COUNT thread|process: what an event costs on its way through krait's ring, without Python.
 *
 * A thread of this process, or another process, writes COUNT calls of 8 bytes as the agent's hot path does; this thread
 * collects them into DIR. Prints one line of JSON.
 */
#include "event/event.h"
#include "record/collector.h"
#include "record/writer.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

struct writing {
    const char *session;
    uint64_t count, begin_ns, end_ns;
    _Atomic int ended;
    int failed;
};

static void put(struct krait_writer *writer, struct krait_ring *ring, uint32_t code)
{
    uint64_t t = krait_writer_now(writer);
    if (!krait_ring_has_room(ring, t)) {
        enum krait_ring_room room = krait_writer_room(writer, ring, t, 32);
        if (room == KRAIT_ROOM_NONE)
            return;
        atomic_store(&ring->resync, 0); /* there is no stack to say */
        krait_writer_put_extended(ring, t, KRAIT_EVENT_python_call, &code, sizeof(code));
        return;
    }
    krait_ring_put_code(ring, t, KRAIT_EVENT_python_call, code);
}

static int write_events(struct writing *writing)
{
    struct krait_writer writer = { 0 };
    if (krait_writer_map(&writer, writing->session) || krait_writer_join(&writer))
        return 1;
    struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_THREAD, (uint32_t)getpid());
    if (!ring)
        return 1;
    uint32_t code = krait_writer_new_code(&writer);
    writing->begin_ns = krait_clock_ns(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < writing->count; i++)
        put(&writer, ring, code);
    writing->end_ns = krait_clock_ns(CLOCK_MONOTONIC);
    krait_writer_ring_close(ring);
    krait_writer_leave(&writer);
    return 0;
}

static void *in_thread(void *arg)
{
    struct writing *writing = arg;
    writing->failed = write_events(writing);
    writing->ended = 1;
    return NULL;
}

static double cpu_seconds(clockid_t id)
{
    return 1e-9 * (double)krait_clock_ns(id);
}

static void collect(struct krait_collector *collector, const struct writing *writing)
{
    for (bool ended = false; krait_collector_round(collector) || !ended;) {
        ended = writing->ended;
        if (!ended)
            krait_collector_nap(collector);
    }
}

static int print(struct krait_collector *collector, const struct writing *writing, uint64_t read_ns,
                 double cpu)
{
    struct krait_collector_summary summary = { 0 };
    uint64_t lost = 0;
    krait_collector_finish(collector, &summary);
    for (size_t i = 0; i < KRAIT_COUNT_lost_reason; i++)
        lost += summary.lost[i];
    printf("{\"ns_event\": %.2f, \"events\": %llu, \"seconds\": %.6f, \"lost\": %llu, \"bytes\": %llu, "
           "\"collector_cpu_s\": %.3f}\n",
           (double)(writing->end_ns - writing->begin_ns) / (double)writing->count,
           (unsigned long long)writing->count, 1e-9 * (double)(read_ns - writing->begin_ns),
           (unsigned long long)lost, (unsigned long long)summary.bytes, cpu);
    return writing->failed;
}

int main(int argc, char **argv)
{
    struct krait_err err = { 0 };
    struct krait_collector *collector;
    pthread_t thread;
    pid_t child = -1;
    if (argc != 4) {
        fputs("usage: ring_events DIR COUNT thread|process\n", stderr);
        return 2;
    }
    struct writing *writing =
        mmap(NULL, sizeof(*writing), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (writing == MAP_FAILED ||
        krait_collector_new(&collector, &(struct krait_collector_options){ .dir = argv[1] }, &err)) {
        fprintf(stderr, "ring_events: %s\n", err.text);
        return 1;
    }
    *writing = (struct writing){ .session = krait_collector_session(collector),
                                 .count = strtoull(argv[2], NULL, 10) };
    bool beside = strcmp(argv[3], "process") == 0;
    if (beside && (child = fork()) == 0) {
        in_thread(writing);
        _exit(0);
    }
    if (!beside && pthread_create(&thread, NULL, in_thread, writing))
        return 1;
    collect(collector, writing);
    uint64_t read_ns = krait_clock_ns(CLOCK_MONOTONIC);
    double cpu = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    if (beside)
        waitpid(child, NULL, 0);
    else
        pthread_join(thread, NULL);
    int rc = print(collector, writing, read_ns, cpu);
    krait_collector_free(collector);
    return rc;
}
