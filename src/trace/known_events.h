/* SPDX-License-Identifier: Apache-2.0
 *
 * Which events a trace may have, and their fields: what its metadata declares, whether or not one of them happened. For
 * those who are given names of events and fields, and have to tell which are wrong.
 */
#ifndef KRAIT_TRACE_KNOWN_EVENTS_H
#define KRAIT_TRACE_KNOWN_EVENTS_H

#include "base/suggest.h"
#include "trace/trace.h"

struct krait_known_event {
    const char *name;      /* as analyses see it: "sched_switch", "log:record" */
    bool is_by_name;       /* nobody takes it but by its name */
    uint32_t first, count; /* its fields and those of its contexts, in krait_known_events.fields */
};

struct krait_known_events { /* zeroed memory has none */
    struct krait_known_event *items;
    uint32_t count, cap;
    const char **fields; /* the ways to them: "level", "point.x" */
    uint32_t field_count, field_cap;
    struct krait_arena arena; /* of the texts */
    bool has_own;             /* a process that krait recorded */
    bool is_partial;          /* some metadata cannot be read: there may be other events */
};

/* Reads the metadata of all tracers but krait's own processes, whose events are those of events.def. Returns 0 or
 * -ENOMEM; _done in either case. */
int krait_known_events_read(struct krait_known_events *known, const struct krait_trace *trace);
void krait_known_events_done(struct krait_known_events *known);

/* Whether krait_fields_get may find such a field in the event's text: a field, all of a structure, or something in a
 * field, which may be a JSON object. */
bool krait_known_event_has(const struct krait_known_events *known, const struct krait_known_event *event,
                           const char *path);

/* Whether a glob names events of krait's own that no analysis reads: of calls, and definitions. */
bool krait_known_events_is_unread(const struct krait_known_events *known, const char *glob);

/* Its fields as candidates. */
void krait_known_event_suggest(const struct krait_known_events *known, const struct krait_known_event *event,
                               struct krait_suggest *suggest);

#endif
