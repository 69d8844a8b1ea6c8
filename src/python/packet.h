/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the open packet of a thread's ring, on the side that writes it. The last recorded events tell which calls are
 * open and how long calls took, at no cost for recording them.
 */
#ifndef KRAIT_PYTHON_PACKET_H
#define KRAIT_PYTHON_PACKET_H

#include "event/payload.h"
#include "record/writer.h"

struct krait_packet_event {
    struct krait_event_head head;
    uint32_t code; /* if the payload begins with one */
};

/* The events of the open packet, up to the ring's last one; `at` is NULL if no packet is open. Sets *t to the packet's
 * first time. */
static inline struct krait_cursor krait_packet_open(const struct krait_writer *writer,
                                                    const struct krait_ring *ring, uint64_t *t)
{
    struct krait_packet_head head;
    if (!ring->limit || ring->open_packet == UINT32_MAX)
        return (struct krait_cursor){ NULL, NULL };
    const uint8_t *at = krait_writer_packet(writer, ring, ring->open_packet);
    memcpy(&head, at, sizeof(head));
    *t = head.timestamp_begin;
    return (struct krait_cursor){ at + sizeof(head), ring->cur };
}

/* Reads the next event; `e` holds the one before. Returns false if it is not whole or its id not known. */
static inline bool krait_packet_read(struct krait_cursor *cursor, struct krait_packet_event *e)
{
    e->code = 0;
    if (!krait_head_read(cursor, &e->head) || e->head.id >= KRAIT_EVENT_IDS)
        return false;
    if (KRAIT_UNLIKELY(krait_event_payload_bytes[e->head.id] >= KRAIT_PAYLOAD_VARIES))
        return krait_payload_skip(e->head.id, cursor);
    memcpy(&e->code, cursor->at, sizeof(e->code)); /* the ring's last event is followed by a margin */
    cursor->at += krait_event_payload_bytes[e->head.id];
    return true;
}

#endif
