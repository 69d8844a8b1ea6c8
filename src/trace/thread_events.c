/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/thread_events.h"

#include "event/payload.h"

#include <stdlib.h>
#include <string.h>

void krait_thread_events_want(struct krait_thread_events *events, const char *prefix)
{
    for (size_t i = 0; i < krait_event_count; i++)
        events->wanted[krait_events[i].id] |= strncmp(krait_events[i].name, prefix, strlen(prefix)) == 0;
}

static bool may_have_any(const struct krait_thread_events *events, const struct krait_image *image)
{
    if (!image->other_events)
        return true;
    char *end;
    for (const char *at = image->other_events;; at = end) {
        unsigned long id = strtoul(at, &end, 10);
        if (end == at)
            return false;
        if (id < KRAIT_EVENT_IDS && events->wanted[id])
            return true;
    }
}

bool krait_thread_events_may_be(const struct krait_thread_events *events, const struct krait_trace *trace,
                                uint32_t thread)
{
    return may_have_any(events, krait_image_of(trace, thread));
}

/* Most events are calls, which have a compact header and no string. hot path */
static int read_packet(const struct krait_thread_events *events, const struct krait_packet *packet,
                       struct krait_ticks *clock)
{
    struct krait_cursor cursor = { packet->body, packet->end };
    struct krait_event_head head = { .t = packet->head.timestamp_begin };
    int rc = 0;
    while (!rc && cursor.at < cursor.end) {
        if (!krait_head_read(&cursor, &head))
            return 0;
        uint32_t id = head.id;
        uint32_t size = krait_event_bytes(id);
        struct krait_cursor payload = cursor;
        if (KRAIT_LIKELY(size < KRAIT_PAYLOAD_VARIES && cursor.end - cursor.at >= (ptrdiff_t)size))
            cursor.at += size;
        else if (!krait_payload_skip(id, &cursor))
            return 0;
        if (KRAIT_UNLIKELY(id < KRAIT_EVENT_IDS && events->wanted[id]))
            rc = events->fn(events->ctx, id, krait_ticks_ns(clock, head.t), payload);
    }
    return rc;
}

int krait_thread_events_read(const struct krait_thread_events *events, const struct krait_trace *trace,
                             uint32_t thread, struct krait_range range, struct krait_damage *damage)
{
    const struct krait_image *image = krait_image_of(trace, thread);
    const struct krait_thread_file *file = &krait_recordings_of(trace)->files[thread];
    struct krait_ticks clock = image->clock;
    struct krait_packets packets;
    struct krait_packet packet;
    if (!may_have_any(events, image))
        return 0;
    int rc = krait_packets_open(&packets, file->path, image->uuid, NULL);
    if (rc)
        return rc == -ENOMEM ? rc : 0;
    krait_packets_go(&packets, krait_thread_file_seek(file, range.from_ns));
    while (!rc && krait_packets_next(&packets, &packet, damage)) {
        if (!file->goes_back && krait_ticks_ns(&clock, packet.head.timestamp_begin) > range.to_ns)
            break;
        rc = read_packet(events, &packet, &clock);
        krait_packets_release(&packets);
    }
    krait_packets_close(&packets);
    return rc;
}
