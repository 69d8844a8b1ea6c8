/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the packet that a thread's ring has open, from the side that writes it: what was recorded last says
 * what is open, and how long calls took, without a store on the way of an event.
 */
#ifndef KRAIT_PYTHON_PACKET_H
#define KRAIT_PYTHON_PACKET_H

#include "event/event.h"
#include "record/writer.h"

/* Bits of the events that open a call, end one, and say the stack; others are of no call. */
enum {
    KRAIT_CALL_BEGINS = 1 << KRAIT_EVENT_python_call | 1 << KRAIT_EVENT_python_resume |
                        1 << KRAIT_EVENT_python_throw | 1 << KRAIT_EVENT_c_call,
    KRAIT_CALL_ENDS = 1 << KRAIT_EVENT_python_return | 1 << KRAIT_EVENT_python_yield |
                      1 << KRAIT_EVENT_python_unwind | 1 << KRAIT_EVENT_python_unwind_of |
                      1 << KRAIT_EVENT_c_return | 1 << KRAIT_EVENT_c_raise | 1 << KRAIT_EVENT_c_raise_of,
    KRAIT_CALL_STACKS = 1 << KRAIT_EVENT_python_frame | 1 << KRAIT_EVENT_python_stack |
                        1 << KRAIT_EVENT_python_deep_frame | 1 << KRAIT_EVENT_python_deep_stack,
};

struct krait_packet_event {
    uint32_t event; /* its id */
    uint32_t code;  /* of an event whose payload begins with one */
    uint64_t t;     /* ticks */
};

/* The first event of the open packet, NULL where none is open; *t is then the packet's first time. The events
 * end at ring->cur. */
static inline const uint8_t *krait_packet_open(const struct krait_writer *writer,
                                               const struct krait_ring *ring, uint64_t *t)
{
    struct krait_packet_head head;
    if (!ring->limit || ring->open_packet == UINT32_MAX)
        return NULL;
    const uint8_t *at = krait_writer_packet(writer, ring, ring->open_packet);
    memcpy(&head, at, sizeof(head));
    *t = head.timestamp_begin;
    return at + sizeof(head);
}

/* Reads the event at `at`, `e` holds the one before. Returns its size, KRAIT_PAYLOAD_VARIES or more where
 * that is not known. */
static inline size_t krait_packet_read(const uint8_t *at, struct krait_packet_event *e)
{
    const uint64_t mask = (1u << KRAIT_CTF_TS_BITS) - 1;
    struct krait_event_extended head;
    uint32_t word;
    size_t n = sizeof(word);
    memcpy(&word, at, sizeof(word));
    e->event = word & KRAIT_CTF_ID_MASK;
    if (KRAIT_UNLIKELY(e->event == KRAIT_CTF_EXTENDED)) {
        memcpy(&head, at, sizeof(head));
        n = sizeof(head);
        e->event = head.id & KRAIT_CTF_ID_MASK;
        e->t = head.timestamp;
    } else {
        e->t += ((word >> KRAIT_CTF_ID_BITS) - e->t) & mask;
    }
    memcpy(&e->code, at + n, sizeof(e->code)); /* a ring's margin follows its last event */
    return n + krait_event_payload_bytes[e->event];
}

#endif
