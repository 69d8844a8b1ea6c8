/* SPDX-License-Identifier: Apache-2.0
 *
 * What is expanded from events.def: ids, enumerations, and the table of events and fields.
 */
#ifndef KRAIT_EVENT_EVENT_H
#define KRAIT_EVENT_EVENT_H

#include "base/base.h"

/* Before Python 3.12, a pause for --max-overhead is recorded as a call of this made-up function. */
#define KRAIT_PAUSE_MODULE "krait"
#define KRAIT_PAUSE_NAME   "<paused by --max-overhead>"

/* How the file's name begins of the wrapper that the package krait puts around a function decorated with krait.recording() or
 * krait.span(). It is on the stack in recordings, but no verb shows it (trace/own.h). The function follows, and the line is its
 * line. linecache looks for no source of files whose names begin with < and end with >:
 *
 *     <krait>MODULE:QUALNAME:FILE> */
#define KRAIT_OWN_MODULE "krait"
#define KRAIT_OWN_FILE   "<krait>"

enum krait_event_id {
#define KRAIT_EVENT(id, symbol, name, doc) KRAIT_EVENT_##symbol = (id),
#include "event/events.def"
    KRAIT_EVENT_COUNT,
};

/* What an event means for a thread's calls: bits, in its row KRAIT_KINDS. */
enum krait_event_kind {
    KRAIT_KIND_BEGINS = 1 << 0, /* a call */
    KRAIT_KIND_ENDS = 1 << 1,   /* one */
    KRAIT_KIND_RAISES = 1 << 2, /* ends one by an exception */
    KRAIT_KIND_IN_C = 1 << 3,   /* of a C function */
    KRAIT_KIND_STACKS = 1 << 4, /* states or changes the stack */
    KRAIT_KIND_GIL = 1 << 5,
};

/* KRAIT_code_kind_c and so on. */
enum krait_event_enum_value {
#define KRAIT_ENUM(enumeration, symbol, value, label, doc) KRAIT_##enumeration##_##symbol = (value),
#include "event/events.def"
};

/* How many values an enumeration has: KRAIT_COUNT_lost_reason and so on. */
#define KRAIT_ENUM_BEGIN(enumeration)                      enum {
#define KRAIT_ENUM(enumeration, symbol, value, label, doc) KRAIT_ROW_##enumeration##_##symbol,
#define KRAIT_ENUM_END(enumeration) \
    KRAIT_COUNT_##enumeration       \
    }                               \
    ;
#include "event/events.def"

/* How many events and values of enumerations there are. This is the minor version of the format (ctf/format.h). */
enum {
    KRAIT_EVENT_ROWS = 0
#define KRAIT_EVENT(id, symbol, name, doc)                 +1
#define KRAIT_ENUM(enumeration, symbol, value, label, doc) +1
#include "event/events.def"
};

/* The C types of fields, in memory and as they are stored. */
#define KRAIT_TYPE(type, c_type, stored_as) \
    typedef c_type krait_type_##type;       \
    typedef stored_as krait_stored_##type;
#define KRAIT_ENUM_BEGIN(enumeration)         \
    typedef uint8_t krait_type_##enumeration; \
    typedef uint8_t krait_stored_##enumeration;
#include "event/events.def"

struct krait_field_row {
    const char *type; /* as in events.def: "u32", "str", "code", or an enumeration's name */
    const char *name;
    const char *doc;
};

struct krait_event_row {
    uint32_t id;
    const char *name; /* as in the trace: "python:call" */
    const char *doc;
    const struct krait_field_row *fields;
    size_t field_count;
};

struct krait_enum_row {
    const char *enumeration;
    const char *label;
    uint32_t value;
    const char *doc;
};

extern const struct krait_event_row krait_events[];
extern const size_t krait_event_count;
extern const struct krait_enum_row krait_enums[];
extern const size_t krait_enum_count;

/* Bytes of an event's fields, by its id; KRAIT_PAYLOAD_VARIES or more if it has a string, and for unknown ids. */
#define KRAIT_PAYLOAD_VARIES 1000
#define KRAIT_EVENT_IDS      256 /* all ids are below */
extern const uint16_t krait_event_payload_bytes[KRAIT_EVENT_IDS];
_Static_assert(KRAIT_EVENT_COUNT <= KRAIT_EVENT_IDS, "events.def: ids that KRAIT_EVENT_IDS has room for");

/* The same of any id. hot path */
static inline uint32_t krait_event_bytes(uint32_t id)
{
    return KRAIT_LIKELY(id < KRAIT_EVENT_IDS) ? krait_event_payload_bytes[id] : KRAIT_PAYLOAD_VARIES;
}

/* The row of an event, or NULL. */
const struct krait_event_row *krait_event_find(uint32_t id);

/* Whether a task's name is one that the program gave it. Task-7, which asyncio makes up, is none, nor is greenlet-7, which
 * krait makes up; "?" stands for an empty or unknown one. */
bool krait_task_is_named(const char *name);

/* What krait calls gevent's hub: a task whose step lasts as long as no other can run. No program calls a task so. */
#define KRAIT_TASK_HUB "gevent.hub"
bool krait_task_is_hub(const char *name);
/* The row of a value of an enumeration, or NULL. */
const struct krait_enum_row *krait_enum_find(const char *enumeration, uint32_t value);

#endif
