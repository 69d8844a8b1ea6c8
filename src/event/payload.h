/* SPDX-License-Identifier: Apache-2.0
 *
 * Payloads: what follows an event's header (ctf/format.h). Expanded from events.def, for writers and readers:
 *
 *   struct krait_payload_code_define       the fields; strings are views, into the packet if they were read
 *   KRAIT_BYTES_code_define                the size in bytes, with all strings empty
 *   krait_put_code_define(to, &in)         writes the payload, returns its size in bytes
 *   krait_read_code_define(cursor, &out)   reads it; false if the packet ends before the payload does
 *
 *   krait_payload_skip(id, cursor)         steps over the payload of any event
 *
 * Example: the collector counts lost events.
 *
 *   uint8_t payload[KRAIT_BYTES_lost];
 *   krait_put_lost(payload, &(struct krait_payload_lost){ .reason = reason, .count = count });
 */
#ifndef KRAIT_EVENT_PAYLOAD_H
#define KRAIT_EVENT_PAYLOAD_H

#include "base/cursor.h"
#include "event/event.h"

/* The largest payload of any event. Longer strings are cut to fit. */
#ifndef KRAIT_PAYLOAD_MAX
#define KRAIT_PAYLOAD_MAX 3072
#endif

/* The fields as structs, in memory and as they are in the packet, and the size of the latter. */
#define KRAIT_EVENT(id, symbol, name, doc)    struct krait_payload_##symbol {
#define KRAIT_FIELD(symbol, type, field, doc) krait_type_##type field;
#define KRAIT_EVENT_END(symbol) \
    }                           \
    ;
#include "event/events.def"

#define KRAIT_EVENT(id, symbol, name, doc)    struct krait_layout_##symbol {
#define KRAIT_FIELD(symbol, type, field, doc) krait_stored_##type field;
#define KRAIT_EVENT_END(symbol) \
    }                           \
    __attribute__((packed));
#include "event/events.def"

enum krait_payload_bytes {
#define KRAIT_EVENT(id, symbol, name, doc) KRAIT_BYTES_##symbol = sizeof(struct krait_layout_##symbol),
#include "event/events.def"
};

/* ---- kinds ---- */

/* Bits of the events that begin a call, end one, end one by an exception, are of a C function's, state or change the stack,
 * and are of the GIL. Other events, among them all with ids above 31 (krait_event_bit), concern neither. */
#define KRAIT_BIT_IF(symbol, kinds, kind) | ((kinds)&KRAIT_KIND_##kind ? 1 << KRAIT_EVENT_##symbol : 0)
enum {
#define KRAIT_KINDS(symbol, kinds) KRAIT_BIT_IF(symbol, kinds, BEGINS)
    KRAIT_CALL_BEGINS = 0
#include "event/events.def"
    ,
#define KRAIT_KINDS(symbol, kinds) KRAIT_BIT_IF(symbol, kinds, ENDS)
    KRAIT_CALL_ENDS = 0
#include "event/events.def"
    ,
#define KRAIT_KINDS(symbol, kinds) KRAIT_BIT_IF(symbol, kinds, RAISES)
    KRAIT_CALL_RAISES = 0
#include "event/events.def"
    ,
#define KRAIT_KINDS(symbol, kinds) KRAIT_BIT_IF(symbol, kinds, IN_C)
    KRAIT_CALL_IN_C = 0
#include "event/events.def"
    ,
#define KRAIT_KINDS(symbol, kinds) KRAIT_BIT_IF(symbol, kinds, STACKS)
    KRAIT_CALL_STACKS = 0
#include "event/events.def"
    ,
#define KRAIT_KINDS(symbol, kinds) KRAIT_BIT_IF(symbol, kinds, GIL)
    KRAIT_GIL_EVENTS = 0
#include "event/events.def"
    ,
};
#undef KRAIT_BIT_IF

/* The event's bit in these; 0 where none can have it. */
static inline uint32_t krait_event_bit(uint32_t id)
{
    return id < 32 ? 1u << id : 0;
}

/* Whether an event concerns neither calls nor the GIL: the metadata tells which of these a trace has (ctf/format.h). */
static inline bool krait_event_is_other(uint32_t id)
{
    const uint32_t known = KRAIT_CALL_BEGINS | KRAIT_CALL_ENDS | KRAIT_CALL_STACKS | KRAIT_GIL_EVENTS;
    return !(krait_event_bit(id) & known);
}

/* The begins have one field, their code. */
_Static_assert(KRAIT_BYTES_python_call == sizeof(krait_type_code) &&
                   KRAIT_BYTES_python_resume == sizeof(krait_type_code) &&
                   KRAIT_BYTES_python_throw == sizeof(krait_type_code) &&
                   KRAIT_BYTES_c_call == sizeof(krait_type_code),
               "events.def: a begin has one field, its code");

/* ---- write ---- */

/* A field of n bytes. */
static inline uint8_t *krait_put_bytes(uint8_t *to, const void *field, size_t n, size_t most)
{
    (void)most;
    memcpy(to, field, n);
    return to + n;
}

/* A string: at most `most` bytes of it and a NUL; a UTF-8 character is not cut in two. */
uint8_t *krait_put_text(uint8_t *to, const void *field, size_t n, size_t most);

/* _Generic chooses by the C type of the field, so that nothing here repeats the rows. A string may take the room that
 * the fields after it do not need. */
#define KRAIT_PUT_FIELD(to, from, most) \
    _Generic(*(from), const char *: krait_put_text, default: krait_put_bytes)((to), (from), sizeof(*(from)), (most))

#define KRAIT_EVENT(id, symbol, name, doc)                                                        \
    static inline size_t krait_put_##symbol(uint8_t *to, const struct krait_payload_##symbol *in) \
    {                                                                                             \
        uint8_t *at = to;                                                                         \
        (void)in;
#define KRAIT_FIELD(symbol, type, field, doc)                                           \
    at = KRAIT_PUT_FIELD(at, &in->field,                                                \
                         KRAIT_PAYLOAD_MAX - KRAIT_BYTES_##symbol - (size_t)(at - to) + \
                             offsetof(struct krait_layout_##symbol, field));
#define KRAIT_EVENT_END(symbol) \
    return (size_t)(at - to);   \
    }
#include "event/events.def"

/* ---- read ---- */

#define KRAIT_READ_FIELD(cursor, to) \
    _Generic(*(to), const char *: krait_read_text((cursor), (void *)(to)), default: krait_read_bytes((cursor), (to), sizeof(*(to))))

#define KRAIT_EVENT(id, symbol, name, doc)                                                                  \
    static inline bool krait_read_##symbol(struct krait_cursor *cursor, struct krait_payload_##symbol *out) \
    {                                                                                                       \
        (void)cursor, (void)out;
#define KRAIT_FIELD(symbol, type, field, doc)  \
    {                                          \
        krait_type_##type value;               \
        if (!KRAIT_READ_FIELD(cursor, &value)) \
            return false;                      \
        out->field = value;                    \
    }
#define KRAIT_EVENT_END(symbol) \
    return true;                \
    }
#include "event/events.def"

/* Steps over the payload of an event. Returns false if the packet ends before the payload, or the id is unknown. */
bool krait_payload_skip(uint32_t id, struct krait_cursor *cursor);

#endif
