/* SPDX-License-Identifier: Apache-2.0
 *
 * Events as JSON, one object a line:
 *
 *   {"time_ns":"1767225600000000003","stream":0,"event":"sched_switch","hostname":"h","procname":"p","vpid":7,
 *    "packet_context":{"cpu_id":0},"common_context":{},"event_context":{},"payload":{"prev_tid":5,...}}
 *
 * What an event has not is left out. Integers of fields up to 53 bits wide are numbers; of wider fields, and
 * times, strings of decimal digits, whatever their value: JSON readers with doubles would round them (RFC
 * 8259, 6; protobuf's JSON form does the same). Enumerations are {"value":N,"label":"L"}, with null for no
 * label; floats are numbers, null where they are no finite number; texts are UTF-8, with U+FFFD for what is
 * not.
 */
#ifndef KRAIT_CTF_TEXT_JSON_EVENT_H
#define KRAIT_CTF_TEXT_JSON_EVENT_H

#include "ctf/read/loss.h"
#include "ctf/read/value.h"

/* Zeroed memory is ready. */
struct krait_json_events {
    struct krait_arena arena;
    struct krait_map classes; /* struct krait_event_class * to struct json_class * */
};

void krait_json_events_done(struct krait_json_events *events);

/* Appends the cursor's event, which was passed, and a newline. Returns 0 or -ENOMEM, out is then as before.
 */
int krait_json_event(struct krait_json_events *events, struct krait_ctf_cursor *cursor,
                     struct krait_buf *out);

/* {"lost":"events","count":3,"stream":0,"begin_ns":"1","end_ns":"2"} and a newline; null for a
 * count and no times where they are not known. */
void krait_json_loss(const struct krait_ctf_loss *loss, struct krait_buf *out);

/* -- parts, for other forms -- */

enum { KRAIT_JSON_SCOPES = 4 }; /* numbered in the order above */

const char *krait_json_scope_name(int scope);
/* Whether a scope's member is told: not those of a packet's context that are the reader's own. */
bool krait_json_shows(int scope, const struct krait_fc *fc);
/* Of the event's class, by scope; NULL for one that it has not. NULL: out of memory. */
const struct krait_locator *const *krait_json_scopes(struct krait_json_events *events,
                                                     const struct krait_ctf_cursor *cursor);
/* A scope as an object. */
void krait_json_scope(const struct krait_value *value, int scope, struct krait_buf *out);
/* One value of any kind. */
void krait_json_value(const struct krait_value *value, struct krait_buf *out);

#endif
