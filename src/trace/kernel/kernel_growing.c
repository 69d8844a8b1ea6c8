/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel_growing.h"

#include "base/map.h"
#include "ctf/read/packets.h"
#include "trace/growing.h"

/* What the recorder may be late in addition, because it does other things too. */
#define SPARE_NS (KRAIT_NS_PER_S / 4)

int64_t krait_kernel_written(const struct krait_ctf_reader *reader, int64_t *end_ns)
{
    int64_t last_ns = INT64_MIN;
    for (uint32_t i = 0; i < reader->stream_count; i++) {
        const struct krait_ctf_stream *stream = reader->streams[i];
        const struct krait_ctf_clock *clock = stream->cls->clock;
        uint32_t count = stream->packet_count;
        if (count && clock && stream->packets[count - 1].said & 1u << KRAIT_MEANING_END)
            last_ns = KRAIT_MAX(last_ns, krait_ctf_ns(clock, stream->packets[count - 1].end));
    }
    int64_t late_ns = (int64_t)(krait_clock_ns(CLOCK_REALTIME) - KRAIT_GROWING_LATE_NS - SPARE_NS);
    *end_ns = KRAIT_MIN(last_ns, late_ns);
    return last_ns < late_ns && last_ns != INT64_MIN ? last_ns + 1 : *end_ns;
}

static uint64_t add(uint64_t print, uint64_t number)
{
    return krait_hash_u64(print ^ number) + number;
}

static uint64_t add_packet(uint64_t print, const struct krait_ctf_stream *stream, uint32_t i)
{
    const struct krait_ctf_packet *packet = &stream->packets[i];
    const struct krait_ctf_counters counters = krait_ctf_counters_of(stream, i);
    const uint64_t numbers[] = { packet->begin, packet->end, packet->content, counters.seq,
                                 counters.discarded };
    for (size_t n = 0; n < KRAIT_ARRAY_LEN(numbers); n++)
        print = add(print, numbers[n]);
    return print;
}

uint64_t krait_kernel_print(const struct krait_ctf_reader *reader, const struct krait_kernel_marks *marks,
                            int64_t ns)
{
    uint64_t print = 0;
    for (uint32_t i = 0; i < reader->stream_count; i++) {
        const struct krait_ctf_stream *stream = reader->streams[i];
        const struct krait_ctf_clock *clock = stream->cls->clock;
        print = add(print, i);
        for (uint32_t p = 0; p < stream->packet_count; p++) {
            if (!clock || krait_ctf_ns(clock, stream->packets[p].begin) < ns)
                print = add_packet(print, stream, p);
        }
    }
    for (uint32_t i = 0; i < marks->count && marks->items[i].ns < ns; i++) {
        print = add(print, (uint64_t)marks->items[i].ns);
        print = add(print, (uint64_t)marks->items[i].cpu << 1 | marks->items[i].lost);
        print = add(print, (uint64_t)marks->items[i].tid);
    }
    return print;
}
