/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/read/range.h"

#include "ctf/read/file.h"
#include "ctf/read/packets.h"

static const struct krait_ctf_clock *packet_clock(const struct krait_ctf_stream *stream,
                                                  const struct krait_ctf_packet *packet)
{
    const struct krait_ctf_trace *trace = krait_ctf_file_of(stream, packet)->trace;
    const struct krait_stream_class *cls = stream->cls;
    if (trace != stream->trace)
        cls = krait_ctf_stream(trace->metadata, cls->id);
    return cls->clock;
}

static int64_t packet_ns(const struct krait_ctf_stream *stream, const struct krait_ctf_packet *packet,
                         uint64_t ticks)
{
    return krait_ctf_ns(packet_clock(stream, packet), ticks);
}

static int64_t said_ns(const struct krait_ctf_stream *stream, const struct krait_ctf_packet *packet,
                       enum krait_meaning meaning, uint64_t ticks)
{
    const struct krait_ctf_clock *clock = packet_clock(stream, packet);
    bool is_said = clock && packet->said & 1u << meaning && krait_ctf_has_time(clock, ticks);
    return is_said ? krait_ctf_ns(clock, ticks) : INT64_MIN;
}

int64_t krait_ctf_packet_turn(const struct krait_ctf_stream *stream, uint32_t i)
{
    const struct krait_ctf_packet *packet = &stream->packets[i];
    bool begins_late = krait_ctf_file_of(stream, packet)->trace->begins_late;
    int64_t begin = begins_late ? INT64_MIN : said_ns(stream, packet, KRAIT_MEANING_BEGIN, packet->begin);
    int64_t end = i ? said_ns(stream, packet - 1, KRAIT_MEANING_END, packet[-1].end) : INT64_MIN;
    return KRAIT_MAX(begin, end);
}

bool krait_ctf_packet_is_independent(const struct krait_ctf_stream *stream, uint32_t i)
{
    return i == 0 || !stream->cls->clock || stream->packets[i].whole_begin;
}

/* Events of a packet lie before the next one's begin: its own end may be 0, or too early by an event
 * (babeltrace2 mends both, of LTTng's). The next one begins the clock anew. The last is always read. */
bool krait_ctf_packet_ends_before(const struct krait_ctf_stream *stream, uint32_t i, int64_t ns)
{
    const struct krait_ctf_packet *packet = &stream->packets[i], *next = packet + 1;
    return i + 1 < stream->packet_count && packet->whole_begin && next->whole_begin && !packet->cut &&
           next->begin >= packet->begin && (!packet->whole_end || next->begin >= packet->end) &&
           packet_ns(stream, next, next->begin) < ns;
}

bool krait_ctf_packet_says_it_ended(const struct krait_ctf_stream *stream, uint32_t i, int64_t ns)
{
    const struct krait_ctf_packet *packet = &stream->packets[i];
    int64_t end = said_ns(stream, packet, KRAIT_MEANING_END, packet->end);
    return end != INT64_MIN && end < ns && packet->end >= packet->begin && !packet->cut;
}

bool krait_ctf_packet_begins_after(const struct krait_ctf_stream *stream, uint32_t i, int64_t ns)
{
    const struct krait_ctf_packet *packet = &stream->packets[i];
    return packet->whole_begin && !packet->cut && packet_ns(stream, packet, packet->begin) > ns;
}

uint32_t krait_ctf_first_packet(const struct krait_ctf_stream *stream, int64_t ns)
{
    uint32_t i = 0;
    while (i < stream->packet_count && krait_ctf_packet_ends_before(stream, i, ns))
        i++;
    return i;
}

/* -- packets that an index told of -- */

/* Whether packet i may tell of a loss. */
static bool counts_on(const struct krait_ctf_stream *stream, uint32_t i)
{
    if (!i || i >= stream->packet_count)
        return false;
    struct krait_ctf_counters at = krait_ctf_counters_of(stream, i),
                              before = krait_ctf_counters_of(stream, i - 1);
    bool numbered = stream->packets[i].said & 1u << KRAIT_MEANING_SEQ;
    return at.discarded != before.discarded || (numbered && at.seq != before.seq + 1);
}

/* Reads the packet again; the decoder is then where its events begin. */
static bool is_true(const struct krait_ctf_stream *stream, uint32_t i, struct krait_decoder *d)
{
    const struct krait_stream_class *cls;
    struct krait_ctf_packet *packet = &stream->packets[i];
    struct krait_ctf_head told = { *packet, krait_ctf_counters_of(stream, i) }, found;
    const struct krait_ctf_file *file = krait_ctf_file_of(stream, packet);
    bool same = !krait_ctf_read_packet(file, packet->offset, d, &found, &cls) && cls->id == stream->cls->id &&
                krait_ctf_head_is(&told, &found);
    packet->unread = packet->unread && !same;
    return same;
}

/* Looks at the packets that a cursor of the range enters (behind the range: up to the first that has an
 * event), and at those whose counters are told. Where begins and counters are right at both ends and go up,
 * those between hide nothing. */
static bool settle_stream(const struct krait_ctf_stream *stream, struct krait_decoder *d, int64_t from_ns,
                          int64_t to_ns)
{
    KRAIT_CLEANUP(krait_ctf_way_done) struct krait_ctf_way way = { 0 };
    bool over = false;
    for (uint32_t i = 0; i < stream->packet_count; i++) {
        struct krait_ctf_packet *packet = &stream->packets[i];
        bool behind = krait_ctf_packet_begins_after(stream, i, to_ns);
        over = over && behind;
        bool entered = !over && !krait_ctf_packet_ends_before(stream, i, from_ns);
        if (!entered && !(packet->unread && (counts_on(stream, i) || counts_on(stream, i + 1))))
            continue;
        krait_ctf_way_to(&way, krait_ctf_file_of(stream, packet), packet->offset, KRAIT_CTF_WAY_HOLDS);
        if (!is_true(stream, i, d))
            return false;
        over = over || (entered && behind && d->at < packet->content);
    }
    return true;
}

bool krait_ctf_settle(struct krait_ctf_reader *reader, int64_t from_ns, int64_t to_ns)
{
    uint32_t slot_count = 0;
    for (uint32_t i = 0; i < reader->trace_count; i++)
        slot_count = KRAIT_MAX(slot_count, reader->traces[i]->metadata->slot_count);
    KRAIT_AUTO_FREE uint64_t *slots = calloc(slot_count + 1, sizeof(*slots));
    struct krait_decoder d = { .slots = slots };
    bool good = slots;
    for (uint32_t i = 0; i < reader->stream_count && good; i++)
        good = settle_stream(reader->streams[i], &d, from_ns, to_ns);
    return good;
}
