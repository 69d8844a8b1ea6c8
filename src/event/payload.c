/* SPDX-License-Identifier: Apache-2.0 */
#include "event/payload.h"

#include "base/json.h"

uint8_t *krait_put_text(uint8_t *to, const void *field, size_t n, size_t most)
{
    const char *text;
    memcpy(&text, field, sizeof(text));
    n = krait_utf8_whole(text, strlen(text), most);
    memcpy(to, text, n);
    to[n] = '\0';
    return to + n + 1;
}

bool krait_payload_skip(uint32_t id, struct krait_cursor *cursor)
{
    switch (id) {
#define KRAIT_EVENT(id_, symbol, name, doc)           \
    case id_: {                                       \
        struct krait_payload_##symbol payload;        \
        return krait_read_##symbol(cursor, &payload); \
    }
#include "event/events.def"
    default:
        return false;
    }
}
