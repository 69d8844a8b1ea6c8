/* SPDX-License-Identifier: Apache-2.0
 *
 * What follows an event's header, as structs and readers expanded from events.def: a row changed there
 * changes here.
 *
 *   struct krait_payload_code_define      its fields, strings as views into the packet
 *   krait_read_code_define(cursor, &out)  false when the packet ends before the payload does
 *   krait_payload_skip(id, cursor)        steps over any event's
 */
#ifndef KRAIT_TRACE_PAYLOAD_H
#define KRAIT_TRACE_PAYLOAD_H

#include "ctf/format.h"
#include "event/event.h"

#include <string.h>

struct krait_cursor {
    const uint8_t *at;
    const uint8_t *end;
};

/* The types that events.def names; enumerations are u8. */
typedef uint8_t krait_type_u8;
typedef uint16_t krait_type_u16;
typedef uint32_t krait_type_u32;
typedef uint64_t krait_type_u64;
typedef int32_t krait_type_i32;
typedef uint32_t krait_type_code;
typedef const char *krait_type_str;
typedef uint8_t krait_type_code_kind;
typedef uint8_t krait_type_omit_reason;
typedef uint8_t krait_type_process_origin;
typedef uint8_t krait_type_process_end;
typedef uint8_t krait_type_lost_reason;

static inline bool krait_read_bytes(struct krait_cursor *cursor, void *to, size_t n)
{
    if ((size_t)(cursor->end - cursor->at) < n)
        return false;
    memcpy(to, cursor->at, n);
    cursor->at += n;
    return true;
}

static inline bool krait_read_text(struct krait_cursor *cursor, const char **to)
{
    const uint8_t *nul = memchr(cursor->at, 0, (size_t)(cursor->end - cursor->at));
    if (!nul)
        return false;
    *to = (const char *)cursor->at;
    cursor->at = nul + 1;
    return true;
}

/* An event's header (ctf/format.h): its id, and the clock moved on to its time. False when it is not whole.
 * hot path */
static inline bool krait_read_header(struct krait_cursor *cursor, uint32_t *id, uint64_t *ticks)
{
    uint32_t word;
    if (KRAIT_UNLIKELY(cursor->end - cursor->at < (ptrdiff_t)sizeof(word)))
        return false;
    memcpy(&word, cursor->at, sizeof(word));
    *id = word & KRAIT_CTF_ID_MASK;
    if (KRAIT_LIKELY(*id != KRAIT_CTF_EXTENDED)) {
        const uint64_t mask = (1u << KRAIT_CTF_TS_BITS) - 1;
        *ticks += ((word >> KRAIT_CTF_ID_BITS) - *ticks) & mask;
        cursor->at += sizeof(word);
        return true;
    }
    struct krait_event_extended event;
    if (!krait_read_bytes(cursor, &event, sizeof(event)))
        return false;
    *id = event.id;
    *ticks = event.timestamp;
    return true;
}

/* _Generic chooses by the field's C type, so that the rows need no twin here. */
#define KRAIT_READ_FIELD(cursor, to) \
    _Generic(*(to), const char *: krait_read_text((cursor), (void *)(to)), default: krait_read_bytes((cursor), (to), sizeof(*(to))))

#define KRAIT_EVENT(id, symbol, name, doc)    struct krait_payload_##symbol {
#define KRAIT_FIELD(symbol, type, field, doc) krait_type_##type field;
#define KRAIT_EVENT_END(symbol) \
    }                           \
    ;
#include "event/events.def"
#undef KRAIT_EVENT
#undef KRAIT_FIELD
#undef KRAIT_EVENT_END

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
#undef KRAIT_EVENT
#undef KRAIT_FIELD
#undef KRAIT_EVENT_END

/* Steps over an event's payload; false when the packet ends before it does, or the id is not known. */
bool krait_payload_skip(uint32_t id, struct krait_cursor *cursor);

#endif
