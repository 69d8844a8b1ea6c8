/* SPDX-License-Identifier: Apache-2.0 */
#include "event/event.h"

#include <string.h>

/* One array of fields per event... */
#define KRAIT_EVENT(id, symbol, name, doc)    static const struct krait_field_row fields_##symbol[] = {
#define KRAIT_FIELD(symbol, type, field, doc) { #type, #field, doc },
#define KRAIT_EVENT_END(symbol) \
    {                           \
        NULL, NULL, NULL        \
    }                           \
    }                           \
    ;
#include "event/events.def"

/* ...and the table that points at them. */
const struct krait_event_row krait_events[] = {
#define KRAIT_EVENT(id, symbol, name, doc) \
    { id, name, doc, fields_##symbol, KRAIT_ARRAY_LEN(fields_##symbol) - 1 },
#include "event/events.def"
};
const size_t krait_event_count = KRAIT_ARRAY_LEN(krait_events);

const struct krait_enum_row krait_enums[] = {
#define KRAIT_ENUM(enumeration, symbol, value, label, doc) { #enumeration, label, value, doc },
#include "event/events.def"
};
const size_t krait_enum_count = KRAIT_ARRAY_LEN(krait_enums);

/* A string counts as KRAIT_PAYLOAD_VARIES bytes, so that the sum shows that there is one. */
#define BYTES_OF(type) \
    _Generic((krait_type_##type)0, const char * : KRAIT_PAYLOAD_VARIES, default : sizeof(krait_stored_##type))

/* Ids that are none keep the first row's value. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
const uint16_t krait_event_payload_bytes[KRAIT_EVENT_IDS] = {
    [0 ... KRAIT_EVENT_IDS - 1] = KRAIT_PAYLOAD_VARIES,
#define KRAIT_EVENT(id, symbol, name, doc)    [id] = 0
#define KRAIT_FIELD(symbol, type, field, doc) +BYTES_OF(type)
#define KRAIT_EVENT_END(symbol)               ,
#include "event/events.def"
};
#pragma GCC diagnostic pop

/* By id: one more than the place in krait_events. */
enum {
#define KRAIT_EVENT(id, symbol, name, doc) ROW_##symbol,
#include "event/events.def"
};
static const uint8_t rows_by_id[KRAIT_EVENT_IDS] = {
#define KRAIT_EVENT(id, symbol, name, doc) [id] = ROW_##symbol + 1,
#include "event/events.def"
};

const struct krait_event_row *krait_event_find(uint32_t id)
{
    return id < KRAIT_EVENT_IDS && rows_by_id[id] ? &krait_events[rows_by_id[id] - 1] : NULL;
}

const struct krait_enum_row *krait_enum_find(const char *enumeration, uint32_t value)
{
    for (size_t i = 0; i < krait_enum_count; i++) {
        if (krait_enums[i].value == value && strcmp(krait_enums[i].enumeration, enumeration) == 0)
            return &krait_enums[i];
    }
    return NULL;
}

bool krait_task_is_named(const char *name)
{
    static const char *const made_up[] = { "Task-", "greenlet-" };
    for (size_t i = 0; i < sizeof(made_up) / sizeof(made_up[0]); i++) {
        size_t n = strlen(made_up[i]);
        if (strncmp(name, made_up[i], n) == 0 && name[n] && !name[n + strspn(name + n, "0123456789")])
            return false;
    }
    return *name && strcmp(name, "?") != 0;
}

bool krait_task_is_hub(const char *name)
{
    return strcmp(name, KRAIT_TASK_HUB) == 0;
}
