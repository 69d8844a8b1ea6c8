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
    struct krait_cursor payload;
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

/* Where the event that ends at `end`, in the open packet of `ring`, begins, if it is `event`, whose payload is the type of an
 * exception, and that is not known yet; else NULL. */
static inline uint8_t *krait_packet_untyped(const struct krait_ring *ring, uint8_t *end, uint32_t event)
{
    struct krait_event_extended extended;
    uint32_t word, type;
    if (!ring->limit || !end)
        return NULL;
    uint8_t *payload = end - sizeof(type); /* behind a packet's head, at least */
    memcpy(&type, payload, sizeof(type));
    memcpy(&word, payload - sizeof(word), sizeof(word));
    memcpy(&extended, payload - sizeof(extended), sizeof(extended));
    if (type)
        return NULL;
    if (extended.tag == KRAIT_CTF_EXTENDED && extended.id == event)
        return payload - sizeof(extended);
    return krait_head_unpack(word, 0).id == event ? payload - sizeof(word) : NULL;
}

/* Reads the next event; `e` holds the one before. Returns false if it is not whole or its id not known. */
static inline bool krait_packet_read(struct krait_cursor *cursor, struct krait_packet_event *e)
{
    e->code = 0;
    if (!krait_head_read(cursor, &e->head) || e->head.id >= KRAIT_EVENT_IDS)
        return false;
    e->payload = *cursor;
    if (KRAIT_UNLIKELY(krait_event_payload_bytes[e->head.id] >= KRAIT_PAYLOAD_VARIES))
        return krait_payload_skip(e->head.id, cursor);
    memcpy(&e->code, cursor->at, sizeof(e->code)); /* the ring's last event is followed by a margin */
    cursor->at += krait_event_payload_bytes[e->head.id];
    return true;
}

#endif
