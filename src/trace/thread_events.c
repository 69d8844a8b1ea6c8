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

static bool wants_any(const struct krait_thread_events *events, const struct krait_noted_stretches *noted)
{
    bool any = false;
    for (uint32_t id = 0; id < KRAIT_EVENT_IDS && !any; id++)
        any = events->wanted[id] && noted->ids[id];
    return any;
}

static bool may_have_any(const struct krait_thread_events *events, const struct krait_image *image,
                         const struct krait_noted_stretches *noted)
{
    if (noted->is_kept)
        return wants_any(events, noted);
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
    return may_have_any(events, krait_image_of(trace, thread),
                        &krait_recordings_of(trace)->files[thread].noted);
}

/* Most events are calls, which have a compact header and no string. hot path */
static int read_stretch(const struct krait_thread_events *events, const struct krait_stretches *stretches,
                        struct krait_ticks *clock, struct krait_damage *damage)
{
    struct krait_cursor cursor = stretches->cursor;
    struct krait_event_head head = { .t = stretches->ticks };
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
            krait_packet_damaged(&stretches->packet, event, id, stretches->file->path, damage);
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
    struct krait_stretches stretches;
    if (!may_have_any(events, image, &file->noted))
        return 0;
    int rc = krait_stretches_open(&stretches, trace, thread, range.from_ns);
    if (rc)
        return rc == -ENOMEM ? rc : 0;
    while (!rc && krait_stretches_next(&stretches, damage)) {
        if (!file->goes_back && krait_ticks_ns(&clock, stretches.packet.head.timestamp_begin) > range.to_ns)
            break;
        rc = read_stretch(events, &stretches, &clock, damage);
    }
    krait_stretches_close(&stretches);
    return rc;
}

struct krait_breaks krait_breaks_from(const struct krait_trace *trace, uint32_t thread, uint64_t from_ns)
{
    const struct krait_thread_file *file = &krait_recordings_of(trace)->files[thread];
    const struct krait_process *process = &trace->processes[trace->threads[thread].process];
    struct krait_breaks breaks = { .file = file, .process = process };
    breaks.packet = (uint32_t)KRAIT_PARTITION_POINT(i, file->goes_back ? 0 : file->packet_count,
                                                    file->packets[i].begin_ns < from_ns);
    breaks.gap =
        (uint32_t)KRAIT_PARTITION_POINT(i, process->unrecorded_count, process->unrecorded[i].to_ns < from_ns);
    return breaks;
}

bool krait_breaks_pass(struct krait_breaks *breaks, uint64_t t_ns)
{
    const struct krait_process *process = breaks->process;
    uint64_t after_ns;
    bool some = krait_thread_file_lost(breaks->file, &breaks->packet, t_ns, &after_ns);
    breaks->since_ns = some ? after_ns : UINT64_MAX;
    const struct krait_range *gaps = process->unrecorded;
    for (; breaks->gap < process->unrecorded_count && gaps[breaks->gap].from_ns <= t_ns; breaks->gap++) {
        some = true;
        breaks->since_ns = KRAIT_MIN(breaks->since_ns, gaps[breaks->gap].from_ns);
    }
    return some;
}
