/* SPDX-License-Identifier: Apache-2.0
 *
 * perf_events ID COUNT FILE: what an event of the tracepoint raw_syscalls:sys_enter, whose number is ID, costs through the
 * ring of perf_event_open(2): a system call that does nothing else, and its time.
 *
 * One thread makes the calls; this one reads the ring and writes its bytes to FILE, as perf record does. Prints one line of
 * JSON.
 */
#include "base/clock.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, RING_BYTES = 4 << 20, NAP_NS = 200 * 1000 };

struct calling {
    uint64_t count, begin_ns, end_ns;
    _Atomic int tid, may_begin, ended;
};

struct ring {
    struct perf_event_mmap_page *head;
    const char *bytes;
    uint64_t events, written;
    int to;
};

static void *call(void *arg)
{
    struct calling *calling = arg;
    calling->tid = (int)syscall(SYS_gettid);
    while (!calling->may_begin)
        sched_yield();
    calling->begin_ns = krait_clock_ns(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < calling->count; i++)
        syscall(SYS_getppid);
    calling->end_ns = krait_clock_ns(CLOCK_MONOTONIC);
    calling->ended = 1;
    return NULL;
}

static int open_event(uint64_t id, int tid)
{
    struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT,
                                    .size = sizeof(attr),
                                    .config = id,
                                    .sample_period = 1,
                                    .sample_type = PERF_SAMPLE_TIME,
                                    .use_clockid = 1,
                                    .clockid = CLOCK_MONOTONIC,
                                    .disabled = 1,
                                    .watermark = 1,
                                    .wakeup_watermark = RING_BYTES / 2 };
    return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Records are multiples of 8 bytes: no head of one is split by the ring's end. */
static void count_records(struct ring *ring, uint64_t from, uint64_t to)
{
    while (from < to) {
        const struct perf_event_header *header = (const void *)(ring->bytes + from % RING_BYTES);
        ring->events += header->type == PERF_RECORD_SAMPLE;
        from += header->size;
    }
}

/* Returns whether there was anything. */
static int drain(struct ring *ring)
{
    uint64_t from = ring->head->data_tail, to = __atomic_load_n(&ring->head->data_head, __ATOMIC_ACQUIRE);
    uint64_t first = KRAIT_MIN(to - from, RING_BYTES - from % RING_BYTES);
    if (from == to)
        return 0;
    count_records(ring, from, to);
    if (write(ring->to, ring->bytes + from % RING_BYTES, first) != (ssize_t)first ||
        write(ring->to, ring->bytes, to - from - first) != (ssize_t)(to - from - first))
        perror("write");
    ring->written += to - from;
    __atomic_store_n(&ring->head->data_tail, to, __ATOMIC_RELEASE);
    return 1;
}

static int open_ring(struct ring *ring, int event, const char *path)
{
    void *map = mmap(NULL, PAGE + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    ring->head = map;
    ring->bytes = (const char *)map + PAGE;
    ring->to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return map == MAP_FAILED || ring->to < 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct calling calling = { .count = argc == 4 ? strtoull(argv[2], NULL, 10) : 0 };
    struct ring ring = { 0 };
    pthread_t thread;
    if (!calling.count) {
        fputs("usage: perf_events ID COUNT FILE\n", stderr);
        return 2;
    }
    if (pthread_create(&thread, NULL, call, &calling))
        return 1;
    while (!calling.tid)
        sched_yield();
    int event = open_event(strtoull(argv[1], NULL, 10), calling.tid);
    if (event < 0 || open_ring(&ring, event, argv[3]) || ioctl(event, PERF_EVENT_IOC_ENABLE, 0)) {
        perror("perf_event_open");
        return 1;
    }
    calling.may_begin = 1;
    for (bool ended = false; drain(&ring) || !ended;) {
        ended = calling.ended;
        nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
    }
    uint64_t end_ns = krait_clock_ns(CLOCK_MONOTONIC);
    pthread_join(thread, NULL);
    printf("{\"ns_event\": %.2f, \"events\": %llu, \"seconds\": %.6f, \"lost\": %llu, \"bytes\": %llu}\n",
           (double)(calling.end_ns - calling.begin_ns) / (double)calling.count,
           (unsigned long long)calling.count, 1e-9 * (double)(end_ns - calling.begin_ns),
           (unsigned long long)(calling.count - KRAIT_MIN(ring.events, calling.count)),
           (unsigned long long)ring.written);
    return 0;
}
