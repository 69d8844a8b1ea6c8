/* SPDX-License-Identifier: Apache-2.0
 *
 * Events for programs: JSON and CSV, by the same steps as text (print.h).
 *
 * JSON is one object a line:
 *
 *   {"time_ns":"1767225600000000003","stream":0,"event":"sched_switch","hostname":"h","procname":"p","vpid":7,
 *    "packet_context":{"cpu_id":0},"common_context":{},"event_context":{},"payload":{"prev_tid":5,...}}
 *
 * Keys for what an event does not have are left out. Integers of fields up to 53 bits wide are numbers. Times, and
 * integers of wider fields, are strings of decimal digits, whatever their value, because JSON readers that store
 * doubles would round them (RFC 8259, 6; protobuf's JSON form does the same). Enumerations are {"value":N,"label":"L"},
 * with null for no label. Floats are numbers, or null if they are not finite. Texts are UTF-8, with U+FFFD for invalid
 * bytes.
 *
 * CSV (RFC 4180, lines end with LF) has two forms; csv_columns.h has their headings:
 *
 *   long   time_ns,stream,event,packet_context,common_context,event_context,payload    scopes as JSON objects
 *   wide   time_ns,stream,event, and a column for each field: for events with the same fields
 */
#ifndef KRAIT_CTF_TEXT_DATA_EVENT_H
#define KRAIT_CTF_TEXT_DATA_EVENT_H

#include "ctf/read/loss.h"
#include "ctf/text/line.h"

enum krait_data_form { KRAIT_DATA_JSON, KRAIT_DATA_LONG, KRAIT_DATA_WIDE };

enum { KRAIT_DATA_PREFIX = 48 }; /* bytes */

/* For the events of one reader. Zero all but the first two members. */
struct krait_data {
    enum krait_data_form form;
    bool time_is_number; /* in JSON, not a string of digits */
    struct krait_lines lines;
    /* The tenth of a second of the last event: */
    bool prefix_known;
    int64_t prefix_ns;
    char prefix[KRAIT_DATA_PREFIX]; /* the text before the last eight digits of the time */
    size_t prefix_len;
};

void krait_data_done(struct krait_data *data);

/* Appends the cursor's event and a newline, and skips its fields. On failure out is unchanged and cursor->err is
 * set. */
int krait_data_event(struct krait_data *data, struct krait_ctf_cursor *cursor, struct krait_buf *out);

/* {"lost":"events","count":3,"stream":0,"begin_ns":"1","end_ns":"2"} and a newline. An unknown count is null; unknown
 * times are left out. */
void krait_data_json_loss(const struct krait_data *data, const struct krait_ctf_loss *loss,
                          struct krait_buf *out);

/* Their keys and columns. */
extern const char *const krait_data_scope_names[KRAIT_SCOPES];

#endif
