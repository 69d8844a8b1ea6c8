/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/thread_events.h"

#include "base/array.h"
#include "event/payload.h"

#include <stdlib.h>
#include <string.h>

void krait_thread_events_want(struct krait_thread_events *events, const char *prefix)
{
    for (size_t i = 0; i < krait_event_count; i++)
        events->wanted[krait_events[i].id] |= strncmp(krait_events[i].name, prefix, strlen(prefix)) == 0;
}

/* The metadata tells of them apart from the other events. */
static bool wants_gil(const struct krait_thread_events *events)
{
    return events->wanted[KRAIT_EVENT_gil_wait] || events->wanted[KRAIT_EVENT_gil_take] ||
           events->wanted[KRAIT_EVENT_gil_drop] || events->wanted[KRAIT_EVENT_gil_switch];
}

static bool may_have_any(const struct krait_thread_events *events, const struct krait_image *image)
{
    if (!image->other_events || (!image->has_no_gil_waits && wants_gil(events)))
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
                       struct krait_ticks *clock, const char *path, struct krait_damage *damage)
{
    struct krait_cursor cursor = { packet->body, packet->end };
    struct krait_event_head head = { .t = packet->head.timestamp_begin };
    int rc = 0;
    while (!rc && cursor.at < cursor.end) {
        const uint8_t *event = cursor.at;
        bool is_whole = krait_head_read(&cursor, &head);
        uint32_t id = head.id;
        uint32_t size = krait_event_bytes(id);
        struct krait_cursor payload = cursor;
        if (KRAIT_LIKELY(is_whole && size < KRAIT_PAYLOAD_VARIES &&
                         cursor.end - cursor.at >= (ptrdiff_t)size)) {
            cursor.at += size;
        } else if (!is_whole || !krait_payload_skip(id, &cursor)) {
            krait_packet_damaged(packet, event, id, path, damage);
            return 0;
        }
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
        rc = read_packet(events, &packet, &clock, file->path, damage);
        krait_packets_release(&packets);
    }
    krait_packets_close(&packets);
    return rc;
}

struct krait_breaks krait_breaks_from(const struct krait_trace *trace, uint32_t thread, uint64_t from_ns)
{
    const struct krait_thread_file *file = &krait_recordings_of(trace)->files[thread];
    const struct krait_process *process = &trace->processes[trace->threads[thread].process];
    struct krait_breaks breaks = { .file = file, .process = process };
    breaks.packet = (uint32_t)KRAIT_PARTITION_POINT(i, file->goes_back ? 0 : file->packet_count,
                                                    file->packets[i].begin_ns < from_ns);
    breaks.gap = (uint32_t)KRAIT_PARTITION_POINT(i, process->gap_count, process->gaps[i].to_ns < from_ns);
    return breaks;
}

bool krait_breaks_pass(struct krait_breaks *breaks, uint64_t t_ns)
{
    const struct krait_process *process = breaks->process;
    uint64_t after_ns;
    bool some = krait_thread_file_lost(breaks->file, &breaks->packet, t_ns, &after_ns);
    breaks->since_ns = some ? after_ns : UINT64_MAX;
    for (; breaks->gap < process->gap_count && process->gaps[breaks->gap].from_ns <= t_ns; breaks->gap++) {
        some = true;
        breaks->since_ns = KRAIT_MIN(breaks->since_ns, process->gaps[breaks->gap].from_ns);
    }
    return some;
}
