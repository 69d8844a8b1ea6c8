/* SPDX-License-Identifier: Apache-2.0
 *
 * parallel_sum THREADS FIELD TRACE...: counts all events and sums a field up, in several threads.
 *
 * Threads take packets from one counter, and each packet is read by a cursor of the thread's own. Streams
 * whose packets depend on each other (they do not say their whole begin time) are taken as a whole. All threads
 * check the trace first, so that they sum of a damaged one what a single thread would.
 *
 *   cc parallel_sum.c -pthread $(pkg-config --cflags --libs krait-read) -o parallel_sum
 */
#include <inttypes.h>
#include <krait/trace_read.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* A part of the work: some packets of a stream. */
struct part {
    uint32_t stream, first, count;
};

struct work {
    struct krait_reader *reader;
    const struct krait_reader_field **fields; /* by class index; NULL: it has none */
    struct part *parts;
    size_t part_count;
    atomic_size_t next;
    atomic_uint_fast64_t events, sum, lost;
    atomic_int failed;
};

static void read_part(struct work *work, const struct part *part)
{
    struct krait_reader_cursor *cursor;
    uint64_t events = 0, sum = 0;
    int step, rc = krait_reader_cursor_new_packets(&cursor, work->reader, part->stream, part->first,
                                                   part->count, NULL);
    if (rc) {
        work->failed = rc;
        return;
    }
    while ((step = krait_reader_cursor_next(cursor)) > 0) {
        struct krait_reader_lost lost;
        int64_t value;
        if (step == KRAIT_READER_LOST && krait_reader_cursor_lost(cursor, &lost) == 0)
            work->lost += lost.count;
        if (step != KRAIT_READER_EVENT)
            continue;
        const struct krait_reader_field *field =
            work->fields[krait_reader_class_index(krait_reader_cursor_class(cursor))];
        events++;
        if (field && krait_reader_cursor_signed(cursor, field, &value) == 0)
            sum += (uint64_t)value;
    }
    krait_reader_cursor_free(cursor);
    work->events += events;
    work->sum += sum;
    if (step < 0)
        work->failed = step;
}

static void *read_parts(void *arg)
{
    struct work *work = arg;
    size_t i;
    krait_reader_check(work->reader, NULL); /* damage is told by who reads it */
    while ((i = atomic_fetch_add(&work->next, 1)) < work->part_count)
        read_part(work, &work->parts[i]);
    return NULL;
}

/* Every packet by itself where that can be, else the stream. */
static int divide(struct work *work)
{
    uint32_t streams = krait_reader_stream_count(work->reader);
    size_t most = 1;
    for (uint32_t s = 0; s < streams; s++)
        most += krait_reader_stream_packet_count(work->reader, s);
    work->parts = calloc(most, sizeof(*work->parts));
    if (!work->parts)
        return -1;
    for (uint32_t s = 0; s < streams; s++) {
        uint32_t packets = krait_reader_stream_packet_count(work->reader, s);
        struct krait_reader_cursor *cursor;
        int rc = packets > 1 ? krait_reader_cursor_new_packets(&cursor, work->reader, s, 1, 1, NULL) : -1;
        if (rc == 0)
            krait_reader_cursor_free(cursor);
        uint32_t step = rc == 0 ? 1 : packets;
        for (uint32_t first = 0; first < packets; first += step)
            work->parts[work->part_count++] = (struct part){ s, first, step };
    }
    return 0;
}

static int look_up(struct work *work, const char *path)
{
    uint32_t n = krait_reader_class_count(work->reader);
    work->fields = calloc(n + 1, sizeof(*work->fields));
    for (uint32_t i = 0; work->fields && i < n; i++)
        krait_reader_class_field(krait_reader_class_at(work->reader, i), KRAIT_READER_ANY_SCOPE, path,
                                 &work->fields[i], NULL);
    return work->fields ? 0 : -1;
}

int main(int argc, char **argv)
{
    enum { MAX_THREADS = 64 };
    struct krait_reader *reader;
    struct krait_reader_error error;
    struct work work = { 0 };
    pthread_t threads[MAX_THREADS];
    int count = argc < 4 ? 0 : atoi(argv[1]);
    if (count < 1 || count > MAX_THREADS) {
        fprintf(stderr, "usage: parallel_sum THREADS FIELD TRACE...\n");
        return 2;
    }
    if (krait_reader_open(&reader, (const char *const *)argv + 3, (size_t)argc - 3, &error)) {
        fprintf(stderr, "parallel_sum: %s\n", error.text);
        return 1;
    }
    work.reader = reader;
    if (look_up(&work, argv[2]) || divide(&work))
        work.failed = -1;
    int started = 0;
    while (!work.failed && started < count && pthread_create(&threads[started], NULL, read_parts, &work) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    printf("events %" PRIu64 "\nsum %" PRIu64 "\nlost %" PRIu64 "\n", (uint64_t)work.events,
           (uint64_t)work.sum, (uint64_t)work.lost);
    free(work.fields);
    free(work.parts);
    krait_reader_close(reader);
    return work.failed || !started;
}
