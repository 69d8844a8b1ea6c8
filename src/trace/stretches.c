/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/stretches.h"

#include "base/array.h"
#include "event/payload.h"
#include "trace/import.h"

enum { STRETCH_GAP = 1024 };

static bool is_wanted(uint32_t id)
{
    return krait_event_is_other(id) || krait_event_bit(id) & KRAIT_GIL_EVENTS;
}

/* Adds an event to the last stretch, if it is near enough, or begins another. */
static bool add_event(struct krait_noted_stretches *noted, struct krait_noted_stretch event)
{
    struct krait_noted_stretch *last = noted->count ? &noted->items[noted->count - 1] : NULL;
    if (last && last->packet == event.packet && event.offset - (last->offset + last->bytes) <= STRETCH_GAP) {
        last->bytes = event.offset + event.bytes - last->offset;
        return true;
    }
    if (!KRAIT_GROW(noted->items, noted->cap, noted->count + 1))
        return false;
    noted->items[noted->count++] = event;
    return true;
}

/* What is not whole is a stretch up to the packet's end: readers say so. hot path */
int krait_stretches_note(struct krait_noted_stretches *noted, uint32_t index,
                         const struct krait_packet *packet)
{
    struct krait_cursor cursor = { packet->body, packet->end };
    struct krait_event_head head = { .t = packet->head.timestamp_begin };
    while (cursor.at < cursor.end) {
        const uint8_t *begin = cursor.at;
        uint64_t ticks = head.t;
        bool is_whole = krait_head_read(&cursor, &head);
        uint32_t size = krait_event_bytes(head.id);
        if (KRAIT_LIKELY(is_whole && size < KRAIT_PAYLOAD_VARIES &&
                         cursor.end - cursor.at >= (ptrdiff_t)size))
            cursor.at += size;
        else
            is_whole = is_whole && krait_payload_skip(head.id, &cursor);
        if (KRAIT_LIKELY(is_whole && !is_wanted(head.id)))
            continue;
        if (is_whole && head.id < KRAIT_EVENT_IDS)
            noted->ids[head.id] = true;
        const uint8_t *end = is_whole ? cursor.at : cursor.end;
        if (!add_event(noted, (struct krait_noted_stretch){ .ticks = ticks,
                                                            .packet = index,
                                                            .offset = (uint32_t)(begin - packet->body),
                                                            .bytes = (uint32_t)(end - begin) }))
            return -ENOMEM;
        cursor.at = end;
    }
    return 0;
}

int krait_stretches_open(struct krait_stretches *stretches, const struct krait_trace *trace, uint32_t thread,
                         uint64_t from_ns)
{
    const struct krait_image *image = krait_image_of(trace, thread);
    const struct krait_thread_file *file = &krait_recordings_of(trace)->files[thread];
    uint32_t first = krait_thread_file_first(file, from_ns);
    const struct krait_noted_stretches *noted = &file->noted;
    *stretches = (struct krait_stretches){ .file = file, .image = image, .at = KRAIT_NO_ID };
    int rc = krait_packets_open(&stretches->packets, file->path, image->uuid, NULL);
    if (rc)
        return rc;
    stretches->is_anew = noted->is_kept && !krait_thread_file_stays(file, image, &stretches->packets);
    if (stretches->is_anew)
        return 0;
    krait_packets_limit(&stretches->packets, file->size);
    stretches->next = (uint32_t)KRAIT_PARTITION_POINT(i, noted->count, noted->items[i].packet < first);
    krait_packets_go(&stretches->packets, krait_thread_file_seek(file, from_ns));
    return 0;
}

void krait_stretches_close(struct krait_stretches *stretches)
{
    krait_packets_close(&stretches->packets);
}

static bool next_packet(struct krait_stretches *stretches, struct krait_damage *damage)
{
    if (!krait_packets_next(&stretches->packets, &stretches->packet, damage))
        return false;
    stretches->cursor = (struct krait_cursor){ stretches->packet.body, stretches->packet.end };
    stretches->ticks = stretches->packet.head.timestamp_begin;
    return true;
}

bool krait_stretches_next(struct krait_stretches *stretches, struct krait_damage *damage)
{
    const struct krait_noted_stretches *noted = &stretches->file->noted;
    krait_packets_release(&stretches->packets);
    if (stretches->is_anew)
        return next_packet(stretches, damage) &&
               !krait_thread_file_is_behind(stretches->file, stretches->image, &stretches->packet);
    if (!noted->is_kept)
        return next_packet(stretches, damage);
    if (stretches->next == noted->count)
        return false;
    const struct krait_noted_stretch *stretch = &noted->items[stretches->next++];
    if (stretch->packet != stretches->at) {
        krait_packets_go(&stretches->packets, stretches->file->packets[stretch->packet].offset);
        if (!next_packet(stretches, damage))
            return false;
        stretches->at = stretch->packet;
    }
    const uint8_t *body = stretches->packet.body;
    size_t size = (size_t)(stretches->packet.end - body);
    if (stretch->offset > size || stretch->bytes > size - stretch->offset)
        return false; /* somebody has changed the file */
    stretches->cursor =
        (struct krait_cursor){ body + stretch->offset, body + stretch->offset + stretch->bytes };
    stretches->ticks = stretch->ticks;
    return true;
}
