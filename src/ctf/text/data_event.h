/* SPDX-License-Identifier: Apache-2.0
 *
 * Events for programs: JSON and CSV, by the same steps as text (print.h).
 *
 * JSON is one object a line:
 *
 *   {"time_ns":"1767225600000000003","stream":0,"event":"sched_switch","hostname":"h","procname":"p","vpid":7,
 *    "packet_context":{"cpu_id":0},"common_context":{},"event_context":{},"payload":{"prev_tid":5,...}}
 *
 * What an event has not is left out. Integers of fields up to 53 bits wide are numbers; of wider fields, and times,
 * strings of decimal digits, whatever their value: JSON readers with doubles would round them (RFC 8259, 6;
 * protobuf's JSON form does the same). Enumerations are {"value":N,"label":"L"}, with null for no label; floats are
 * numbers, null where they are no finite number; texts are UTF-8, with U+FFFD for what is not.
 *
 * CSV (RFC 4180, lines end with LF) is in one of two forms; csv_columns.h has their first lines:
 *
 *   long   time_ns,stream,event,packet_context,common_context,event_context,payload    scopes as JSON objects
 *   wide   time_ns,stream,event, and a column a field: for events that have the same fields
 */
#ifndef KRAIT_CTF_TEXT_DATA_EVENT_H
#define KRAIT_CTF_TEXT_DATA_EVENT_H

#include "ctf/read/loss.h"
#include "ctf/text/line.h"

enum krait_data_form { KRAIT_DATA_JSON, KRAIT_DATA_LONG, KRAIT_DATA_WIDE };

enum { KRAIT_DATA_PREFIX = 48 }; /* bytes */

/* Of one reader's events. Zeroed memory but for the first two. */
struct krait_data {
    enum krait_data_form form;
    bool time_is_number; /* in JSON, not a string of digits */
    struct krait_lines lines;
    /* The tenth of a second that the last event was in: */
    bool prefix_known;
    int64_t prefix_ns;
    char prefix[KRAIT_DATA_PREFIX]; /* what is before the time's last eight digits */
    size_t prefix_len;
};

void krait_data_done(struct krait_data *data);

/* Appends the cursor's event and a newline, and passes its fields. On failure out is as before and cursor->err is set.
 */
int krait_data_event(struct krait_data *data, struct krait_ctf_cursor *cursor, struct krait_buf *out);

/* {"lost":"events","count":3,"stream":0,"begin_ns":"1","end_ns":"2"} and a newline; null for a
 * count and no times where they are not known. */
void krait_data_json_loss(const struct krait_data *data, const struct krait_ctf_loss *loss,
                          struct krait_buf *out);

/* Their keys and columns. */
extern const char *const krait_data_scope_names[KRAIT_SCOPES];

#endif
