/* SPDX-License-Identifier: Apache-2.0
 *
 * Any changes to a good index: what is read of a range stays the same. The input says
 *
 *   packets | from | to | cut | packet * (gap, events, discarded, lost packets) | change * (place, bits)
 *
 * a byte each; from and to count the times at which packets begin.
 */
#include "packets.h"

#include "ctf/read/merge.h"
#include "ctf/read/range.h"
#include "ctf/read/reader.h"
#include "ctf/text/pretty.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

enum { MAX_PACKETS = 9, INDEX_HEADER = 16, INDEX_ENTRY = 72, ROOM = 4096 };

struct made {
    uint8_t stream[ROOM * MAX_PACKETS], index[INDEX_HEADER + INDEX_ENTRY * MAX_PACKETS];
    size_t stream_size, index_size;
    uint64_t ticks, seq, discarded;
    int64_t times[MAX_PACKETS];
    unsigned packets;
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return fuzz_make_dir();
}

static uint8_t take(const uint8_t **data, size_t *size)
{
    if (!*size)
        return 0;
    --*size;
    return *(*data)++;
}

static void put(uint8_t *to, size_t *at, const void *bytes, size_t n)
{
    memcpy(to + *at, bytes, n);
    *at += n;
}

static void put_be(struct made *m, uint64_t value, unsigned bytes)
{
    while (bytes--)
        m->index[m->index_size++] = (uint8_t)(value >> 8 * bytes);
}

/* Event `a` of fuzz_lttng, with an empty string. */
static void put_event(struct made *m)
{
    uint32_t header = (uint32_t)(m->ticks & 0x7ffffff) << 5;
    static const uint8_t fields[4 + 17 + 4 + 1 + 2] = { 1 };
    put(m->stream, &m->stream_size, &header, sizeof(header));
    put(m->stream, &m->stream_size, fields, sizeof(fields));
    m->ticks++;
}

static void put_packet(struct made *m, const uint8_t **data, size_t *size)
{
    size_t from = m->stream_size, head;
    m->ticks += (uint64_t)take(data, size) << 20;
    m->times[m->packets++] = (int64_t)m->ticks;
    unsigned events = take(data, size) % 8;
    m->discarded += take(data, size);
    m->seq += 1 + take(data, size) % 4;
    uint64_t begin = m->ticks;
    static const uint8_t header[32] = { 0xc1, 0x1f, 0xfc, 0xc1 };
    put(m->stream, &m->stream_size, header, sizeof(header));
    head = m->stream_size;
    m->stream_size += 48;
    for (unsigned i = 0; i < events; i++)
        put_event(m);
    uint64_t bits = (m->stream_size - from) * 8;
    uint64_t context[] = { begin, m->ticks, bits, bits, m->seq, (uint32_t)m->discarded };
    put(m->stream, &head, context, sizeof(context));
    uint64_t entry[] = { from, bits, bits, begin, m->ticks, (uint32_t)m->discarded, 0, 0, m->seq };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(entry); i++)
        put_be(m, entry[i], 8);
}

static void change_index(struct made *m, uint8_t cut, const uint8_t *data, size_t size)
{
    for (; size >= 3; data += 3, size -= 3)
        m->index[(data[0] | data[1] << 8) % m->index_size] ^= data[2];
    m->index_size -= KRAIT_MIN(m->index_size, (size_t)cut % 80);
}

/* -- reading -- */

static struct krait_ctf_reader *open_reader(bool indexes)
{
    struct krait_ctf_options options = { .indexes = indexes };
    struct krait_ctf_reader *reader = NULL;
    const char *path = fuzz_dir;
    if (krait_ctf_open(&reader, &path, 1, &options, NULL))
        abort();
    return reader;
}

static void add_losses(struct krait_pretty *pretty, const struct krait_ctf_stream *stream,
                       struct krait_buf *out)
{
    for (uint32_t i = 0; i < stream->packet_count; i++) {
        struct krait_ctf_loss losses[2];
        unsigned n = krait_ctf_losses(stream, i, losses);
        for (unsigned k = 0; k < n; k++)
            krait_pretty_loss(pretty, &losses[k], out);
    }
}

static void read_range(struct krait_ctf_reader *reader, int64_t from, int64_t to, struct krait_buf *out)
{
    struct krait_pretty pretty = { .flags = KRAIT_PRETTY_SECONDS, .text = KRAIT_TEXT_FIELD_NAMES };
    struct krait_ctf_merge *merge;
    struct krait_ctf_cursor *cursor;
    if (krait_ctf_merge_new(&merge, reader, NULL))
        abort();
    krait_ctf_merge_range(merge, from, to);
    while ((cursor = krait_ctf_merge_next(merge))) {
        bool inside = cursor->ns >= from && cursor->ns <= to;
        if (inside ? krait_pretty_event(&pretty, cursor, out) : krait_ctf_event_skip(cursor))
            abort();
    }
    if (krait_ctf_merge_damage(merge)->code)
        abort();
    for (uint32_t i = 0; i < reader->stream_count; i++)
        add_losses(&pretty, reader->streams[i], out);
    krait_ctf_merge_free(merge);
    krait_pretty_done(&pretty);
    krait_ctf_close(reader);
}

static void compare(int64_t from, int64_t to)
{
    KRAIT_AUTO_BUF with = { 0 };
    KRAIT_AUTO_BUF without = { 0 };
    struct krait_ctf_reader *reader = open_reader(true);
    if (!krait_ctf_settle(reader, from, to)) {
        krait_ctf_close(reader);
        reader = open_reader(false);
    }
    read_range(reader, from, to, &with);
    read_range(open_reader(false), from, to, &without);
    if (with.len != without.len || (with.len && memcmp(with.data, without.data, with.len) != 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct krait_ctf_clock clock = { .freq = 1234567, .offset_s = 5 };
    static struct made m;
    m = (struct made){ 0 };
    unsigned packets = take(&data, &size) % MAX_PACKETS, from = take(&data, &size), to = take(&data, &size);
    uint8_t cut = take(&data, &size);
    put_be(&m, 0xC1F1DCC1, 4);
    put_be(&m, 1, 4);
    put_be(&m, 1, 4);
    put_be(&m, INDEX_ENTRY, 4);
    for (unsigned i = 0; i <= packets && i < MAX_PACKETS; i++)
        put_packet(&m, &data, &size);
    change_index(&m, cut, data, size);
    fuzz_write_file("metadata", fuzz_lttng, sizeof(fuzz_lttng) - 1);
    fuzz_write_file("s0", m.stream, m.stream_size);
    fuzz_write_file("index/s0.idx", m.index, m.index_size);
    int64_t first = krait_ctf_ns(&clock, (uint64_t)m.times[from % m.packets]) + from / 16 - 8;
    int64_t last = krait_ctf_ns(&clock, (uint64_t)m.times[to % m.packets]) + to / 16 - 8;
    compare(from % 4 == 1 ? INT64_MIN : first, from % 4 == 2 ? INT64_MAX : last);
    return 0;
}
