/* SPDX-License-Identifier: Apache-2.0
 *
 * gen_kernel TRACE OUTDIR EVENTS: repeats an LTTng kernel trace with shifted clocks until it has EVENTS
 * events or more (whole repetitions). TRACE has LTTng's layout in little-endian CTF 1.8: its packet header
 * and context, and the compact event header with 27 bits of time or 64.
 *
 * The shift is a multiple of 2^32 ns, so that times of 27 and 32 bits stay as they are. What has to change: in each
 * packet timestamp_begin, timestamp_end, packet_seq_num and events_discarded, and the time in each extended event
 * header. Where these are is found by their values: a byte with id 31 in it, then an id and a time that one event of
 * the stream has, as krait's reader says. What comes out is for other readers to judge.
 */
#include "lttng_packet.h"

#include <errno.h>
#include <krait/trace_read.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SHIFT_UNIT (UINT64_C(1) << 32)

enum { EXTENDED = 31 };

struct event {
    uint64_t time;
    uint32_t id;
};

struct stream {
    const char *path; /* in the trace that is repeated */
    uint8_t *bytes;
    size_t size;
    struct event *events; /* in their order, which is that of time */
    size_t event_count;
    size_t *times; /* places of the whole times */
    size_t time_count;
    uint64_t packets, discarded; /* of one repetition */
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "gen_kernel: %s: %s\n", what, why);
    exit(1);
}

static void *grow(void *array, size_t count, size_t size)
{
    if (count & (count - 1)) /* room is a power of two */
        return array;
    array = realloc(array, (count ? 2 * count : 1) * size);
    if (!array)
        die("memory", strerror(ENOMEM));
    return array;
}

/* ---- what is in the trace ---- */

static void read_file(struct stream *s)
{
    struct stat st;
    FILE *file = fopen(s->path, "rb");
    if (!file || fstat(fileno(file), &st))
        die(s->path, strerror(errno));
    s->size = (size_t)st.st_size;
    s->bytes = malloc(s->size + sizeof(struct extended));
    if (!s->bytes || fread(s->bytes, 1, s->size, file) != s->size)
        die(s->path, "cannot be read");
    fclose(file);
}

static void read_events(struct stream *s, const struct krait_reader *reader, uint32_t stream)
{
    struct krait_reader_error error;
    struct krait_reader_cursor *cursor;
    int step;
    if (krait_reader_cursor_new_stream(&cursor, reader, stream, &error))
        die(s->path, error.text);
    while ((step = krait_reader_cursor_next(cursor)) > 0) {
        if (step != KRAIT_READER_EVENT)
            continue;
        s->events = grow(s->events, s->event_count, sizeof(*s->events));
        s->events[s->event_count++] =
            (struct event){ krait_reader_cursor_cycles(cursor),
                            (uint32_t)krait_reader_class_id(krait_reader_cursor_class(cursor)) };
    }
    krait_reader_cursor_error(cursor, &error);
    if (step < 0)
        die(s->path, error.text);
    krait_reader_cursor_free(cursor);
}

static bool is_event(const struct stream *s, uint32_t id, uint64_t time)
{
    size_t low = 0, high = s->event_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->events[middle].time < time)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < s->event_count && s->events[low].time == time; low++)
        if (s->events[low].id == id)
            return true;
    return false;
}

static void find_times(struct stream *s, size_t at, size_t end)
{
    while (at + sizeof(struct extended) <= end) {
        struct extended header;
        memcpy(&header, s->bytes + at, sizeof(header));
        if ((header.tag & EXTENDED) != EXTENDED || !is_event(s, header.id, header.time)) {
            at++;
            continue;
        }
        s->times = grow(s->times, s->time_count, sizeof(*s->times));
        s->times[s->time_count++] = at + offsetof(struct extended, time);
        at += sizeof(header);
    }
}

static struct packet_head *head_at(struct stream *s, size_t at)
{
    struct packet_head *head = (struct packet_head *)(s->bytes + at);
    if (at + sizeof(*head) > s->size || head->magic != 0xc1fc1fc1 || head->packet_size / 8 > s->size - at ||
        head->packet_size < 8 * sizeof(*head))
        die(s->path, "no packet as LTTng writes it");
    return head;
}

/* Events with ids that only an extended header holds have one: none may have been missed. */
static void check_times(const struct stream *s)
{
    size_t least = 0;
    for (size_t i = 0; i < s->event_count; i++)
        least += s->events[i].id >= EXTENDED;
    if (s->time_count < least || s->time_count > s->event_count)
        die(s->path, "has not the event headers that LTTng writes");
}

static void find_packets(struct stream *s)
{
    for (size_t at = 0; at < s->size; s->packets++) {
        const struct packet_head *head = head_at(s, at);
        find_times(s, at + sizeof(*head), at + head->content_size / 8);
        s->discarded = head->events_discarded;
        at += head->packet_size / 8;
    }
    check_times(s);
}

static uint64_t time_span(struct stream *streams, uint32_t count)
{
    uint64_t first = UINT64_MAX, last = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (size_t at = 0; at < streams[i].size;) {
            const struct packet_head *head = head_at(&streams[i], at);
            first = head->timestamp_begin < first ? head->timestamp_begin : first;
            last = head->timestamp_end > last ? head->timestamp_end : last;
            at += head->packet_size / 8;
        }
    }
    return last - first;
}

/* ---- repetitions ---- */

static void shift(struct stream *s, uint64_t by)
{
    for (size_t at = 0; at < s->size;) {
        struct packet_head *head = head_at(s, at);
        head->timestamp_begin += by;
        head->timestamp_end += by;
        head->packet_seq_num += s->packets;
        head->events_discarded += s->discarded;
        at += head->packet_size / 8;
    }
    for (size_t i = 0; i < s->time_count; i++) {
        uint64_t time;
        memcpy(&time, s->bytes + s->times[i], sizeof(time));
        time += by;
        memcpy(s->bytes + s->times[i], &time, sizeof(time));
    }
}

static FILE *create(const char *dir, const char *like)
{
    char path[4096];
    const char *name = strrchr(like, '/');
    snprintf(path, sizeof(path), "%s/%s", dir, name ? name + 1 : like);
    FILE *file = fopen(path, "wb");
    if (!file)
        die(path, strerror(errno));
    return file;
}

static void write_bytes(FILE *out, const struct stream *s)
{
    if (fwrite(s->bytes, 1, s->size, out) != s->size)
        die(s->path, strerror(errno));
}

static void copy_metadata(const char *from, const char *dir)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/metadata", from);
    struct stream metadata = { .path = path };
    read_file(&metadata);
    FILE *out = create(dir, "metadata");
    write_bytes(out, &metadata);
    if (fclose(out))
        die(dir, strerror(errno));
    free(metadata.bytes);
}

static void repeat(struct stream *streams, uint32_t count, uint64_t times, const char *dir)
{
    uint64_t by = (time_span(streams, count) / SHIFT_UNIT + 1) * SHIFT_UNIT;
    for (uint32_t i = 0; i < count; i++) {
        FILE *out = create(dir, streams[i].path);
        for (uint64_t k = 0; k < times; k++) {
            write_bytes(out, &streams[i]);
            shift(&streams[i], by);
        }
        if (fclose(out))
            die(streams[i].path, strerror(errno));
    }
}

int main(int argc, char **argv)
{
    struct krait_reader *reader;
    struct krait_reader_error error;
    uint64_t wanted = argc == 4 ? strtoull(argv[3], NULL, 10) : 0, events = 0;
    if (!wanted)
        die("usage", "gen_kernel TRACE OUTDIR EVENTS");
    if (krait_reader_open(&reader, (const char *const *)&argv[1], 1, &error))
        die(argv[1], error.text);
    uint32_t count = krait_reader_stream_count(reader);
    struct stream *streams = calloc(count, sizeof(*streams));
    for (uint32_t i = 0; streams && i < count; i++) {
        streams[i].path = krait_reader_stream_path(reader, i);
        read_file(&streams[i]);
        read_events(&streams[i], reader, i);
        find_packets(&streams[i]);
        events += streams[i].event_count;
    }
    if (!events || (mkdir(argv[2], 0777) && errno != EEXIST))
        die(argv[2], events ? strerror(errno) : "there are no events to repeat");
    copy_metadata(argv[1], argv[2]);
    repeat(streams, count, (wanted + events - 1) / events, argv[2]);
    return 0; /* the process ends: it needs not free what it has */
}
