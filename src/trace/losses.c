/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/losses.h"

#include "ctf/read/cursor.h"
#include "ctf/read/loss.h"
#include "ctf/read/packets.h"

#include <string.h>

uint64_t krait_losses_of(const struct krait_ctf_stream *stream)
{
    uint64_t lost = 0;
    for (uint32_t i = 0; i < stream->packet_count; i++) {
        struct krait_ctf_loss losses[2];
        unsigned n = krait_ctf_losses(stream, i, losses);
        for (unsigned l = 0; l < n; l++)
            lost += strcmp(losses[l].kind, "event") == 0 ? losses[l].count : 0;
    }
    return lost;
}

uint64_t krait_losses_count(const struct krait_ctf_reader *reader)
{
    uint64_t lost = 0;
    for (uint32_t i = 0; i < reader->stream_count; i++)
        lost += krait_losses_of(reader->streams[i]);
    return lost;
}

/* The packet's last event; `otherwise` if it has none. */
static int64_t last_of(struct krait_ctf_reader *reader, const struct krait_ctf_stream *stream,
                       uint32_t packet, int64_t otherwise)
{
    struct krait_ctf_cursor cursor;
    int64_t last = otherwise;
    if (krait_ctf_cursor_init(&cursor, reader, stream))
        return otherwise;
    cursor.next_packet = packet;
    while (krait_ctf_next(&cursor) == 1 && cursor.next_packet == packet + 1 &&
           krait_ctf_event_skip(&cursor) == 0)
        last = cursor.ns;
    krait_ctf_cursor_done(&cursor);
    return last;
}

int64_t krait_losses_behind(struct krait_ctf_reader *reader, const struct krait_ctf_stream *stream,
                            uint32_t packet)
{
    const uint32_t times = 1u << KRAIT_MEANING_BEGIN | 1u << KRAIT_MEANING_END;
    const struct krait_ctf_packet *told = &stream->packets[packet], *before = packet ? told - 1 : NULL;
    const struct krait_ctf_clock *clock = stream->cls->clock;
    struct krait_ctf_loss losses[2];
    if (!krait_ctf_losses(stream, packet, losses) || !clock || (told->said & times) != times)
        return INT64_MIN;
    if (before && before->said & 1u << KRAIT_MEANING_END && before->end < told->begin)
        return krait_ctf_ns(clock, before->end);
    int64_t last = last_of(reader, stream, packet, krait_ctf_ns(clock, told->begin));
    return last < krait_ctf_ns(clock, told->end) ? last : INT64_MIN;
}
