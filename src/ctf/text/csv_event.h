/* SPDX-License-Identifier: Apache-2.0
 *
 * Events as CSV (RFC 4180, lines end with LF), in one of two forms:
 *
 *   long   time_ns,stream,event,packet_context,common_context,event_context,payload    scopes as JSON objects
 *   wide   time_ns,stream,event, and a column a field: where all events are of one name and have the same
 * fields
 *
 * In the wide form a field whose name another column bears has its scope before it ("payload.event").
 */
#ifndef KRAIT_CTF_TEXT_CSV_EVENT_H
#define KRAIT_CTF_TEXT_CSV_EVENT_H

#include "ctf/read/filter.h"
#include "ctf/text/json_event.h"

struct krait_csv_events {
    struct krait_json_events json; /* how scopes are found */
    bool wide;
};

void krait_csv_events_done(struct krait_csv_events *events);

/* Chooses the form by the classes that the filter may want (NULL: all), and appends the line of names. */
void krait_csv_begin(struct krait_csv_events *events, const struct krait_ctf_reader *reader,
                     const struct krait_filter *filter, struct krait_buf *out);

/* Appends the cursor's event, which was passed. Returns 0 or -ENOMEM, out is then as before. */
int krait_csv_event(struct krait_csv_events *events, struct krait_ctf_cursor *cursor, struct krait_buf *out);

#endif
