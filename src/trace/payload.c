/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/payload.h"

bool krait_payload_skip(uint32_t id, struct krait_cursor *cursor)
{
    switch (id) {
#define KRAIT_EVENT(id_, symbol, name, doc)           \
    case id_: {                                       \
        struct krait_payload_##symbol payload;        \
        return krait_read_##symbol(cursor, &payload); \
    }
#define KRAIT_FIELD(symbol, type, field, doc)
#define KRAIT_EVENT_END(symbol)
#include "event/events.def"
#undef KRAIT_EVENT
#undef KRAIT_FIELD
#undef KRAIT_EVENT_END
    default:
        return false;
    }
}
