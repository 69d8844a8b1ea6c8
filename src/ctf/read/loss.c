/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/read/loss.h"

#include "ctf/read/packets.h"

/* How far a counter of a packet's context went: it wraps at its width, and where it goes backward it tells
 * nothing. */
static uint64_t advance(const struct krait_stream_class *cls, enum krait_meaning meaning, uint64_t from,
                        uint64_t to)
{
    const struct krait_fc *counter = krait_fc_meant(cls->packet_context, meaning);
    unsigned unused = counter ? 64u - counter->bits : 0;
    uint64_t way = (to - from) << unused >> unused;
    return way << unused >> 63 ? 0 : way;
}

/* Whether both ends of a loss have times that can be said. */
static bool has_times(const struct krait_ctf_loss *loss)
{
    const struct krait_ctf_clock *clock = loss->stream->cls->clock;
    return loss->has_times &&
           (!clock || (krait_ctf_has_time(clock, loss->begin) && krait_ctf_has_time(clock, loss->end)));
}

unsigned krait_ctf_losses(const struct krait_ctf_stream *stream, uint32_t i, struct krait_ctf_loss losses[2])
{
    const struct krait_ctf_packet *packet = &stream->packets[i], *before = i ? packet - 1 : NULL;
    struct krait_ctf_counters to = krait_ctf_counters_of(stream, i), from = { 0 };
    const uint32_t times = 1u << KRAIT_MEANING_BEGIN | 1u << KRAIT_MEANING_END;
    struct krait_ctf_loss loss = { .stream = stream, .has_times = (packet->said & times) == times };
    bool counts = packet->said & 1u << KRAIT_MEANING_DISCARDED,
         numbers = packet->said & 1u << KRAIT_MEANING_SEQ;
    if (before)
        from = krait_ctf_counters_of(stream, i - 1);
    uint64_t events =
        counts && before ? advance(stream->cls, KRAIT_MEANING_DISCARDED, from.discarded, to.discarded) : 0;
    uint64_t packets = numbers && before ? advance(stream->cls, KRAIT_MEANING_SEQ, from.seq, to.seq) : 0;
    unsigned n = 0;
    if (events || (counts && !before && to.discarded)) {
        loss.kind = "event";
        loss.count = events;
        loss.begin = before ? before->end : packet->begin;
        loss.end = packet->end;
        losses[n++] = loss;
    }
    if (packets > 1) {
        loss.kind = "packet";
        loss.count = packets - 1;
        loss.begin = before->end;
        loss.end = packet->begin;
        losses[n++] = loss;
    }
    for (unsigned k = 0; k < n; k++)
        losses[k].has_times = has_times(&losses[k]);
    return n;
}
