/* SPDX-License-Identifier: Apache-2.0
 *
 * ring_events DIR PAIRS: what an event costs on its way through krait's ring, without Python.
 *
 * This process writes PAIRS calls and returns as the agent's hot path does; another collects them into DIR.
 * Prints one line of JSON.
 */
#include "event/event.h"
#include "record/collector.h"
#include "record/writer.h"

#include <sys/resource.h>
#include <sys/wait.h>

static void put(struct krait_writer *writer, struct krait_ring *ring, uint32_t event, uint32_t code)
{
    uint64_t t = krait_writer_now(writer);
    if (!krait_ring_has_room(ring, t)) {
        enum krait_ring_room room = krait_writer_room(writer, ring, t, 32);
        if (room == KRAIT_ROOM_NONE)
            return;
        atomic_store(&ring->resync, 0); /* there is no stack to say */
        krait_writer_put_extended(ring, t, event, &code, code ? sizeof(code) : 0);
        return;
    }
    if (code)
        krait_ring_put_code(ring, t, event, code);
    else
        krait_ring_put(ring, t, event);
}

static int write_events(const char *session, uint64_t pairs, FILE *to)
{
    struct krait_writer writer = { 0 };
    if (krait_writer_map(&writer, session) || krait_writer_join(&writer))
        return 1;
    struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_THREAD, (uint32_t)getpid());
    if (!ring)
        return 1;
    uint32_t code = krait_writer_new_code(&writer);
    uint64_t start = krait_clock_ns(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < pairs; i++) {
        put(&writer, ring, KRAIT_EVENT_python_call, code);
        put(&writer, ring, KRAIT_EVENT_python_return, 0);
    }
    uint64_t took = krait_clock_ns(CLOCK_MONOTONIC) - start;
    fprintf(to, "{\"ns_event\": %.2f, \"events\": %llu, ", (double)took / (2 * (double)pairs),
            (unsigned long long)(2 * pairs));
    fflush(to);
    krait_writer_ring_close(ring);
    return 0;
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
    struct krait_err err = { 0 };
    struct krait_collector *collector;
    if (argc != 3) {
        fputs("usage: ring_events DIR PAIRS\n", stderr);
        return 2;
    }
    if (krait_collector_new(&collector, &(struct krait_collector_options){ .dir = argv[1] }, &err)) {
        fprintf(stderr, "ring_events: %s\n", err.text);
        return 1;
    }
    pid_t child = fork();
    if (child == 0)
        _exit(write_events(krait_collector_session(collector), strtoull(argv[2], NULL, 10), stdout));
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (!krait_collector_round(collector))
            krait_collector_nap(collector);
    }
    struct krait_collector_summary summary = { 0 };
    krait_collector_finish(collector, &summary);
    krait_collector_free(collector);
    uint64_t lost = 0;
    for (size_t i = 0; i < KRAIT_COUNT_lost_reason; i++)
        lost += summary.lost[i];
    printf("\"lost\": %llu, \"bytes\": %llu, \"collector_cpu_s\": %.3f}\n", (unsigned long long)lost,
           (unsigned long long)summary.bytes, cpu_seconds());
    return status ? 1 : 0;
}
