/* SPDX-License-Identifier: Apache-2.0
 *
 * Notes: events of a thread that are neither calls nor waits. Each costs a slow path.
 *
 *   struct krait_note note;
 *   if (krait_note_begin(&note, in, krait_moment_now())) {
 *       const struct krait_payload_audit_event event = { .name = krait_code_name(in, name), .args = "[]" };
 *       krait_note_put(&note, KRAIT_EVENT_audit_event, payload, krait_put_audit_event(payload, &event));
 *   }
 *   krait_note_end(&note);
 *
 * All: GIL held; they keep errno and the current exception.
 */
#ifndef KRAIT_PYTHON_NOTES_H
#define KRAIT_PYTHON_NOTES_H

#include "python/agent.h"

/* When something happened that is noted later. */
struct krait_moment {
    uint64_t t;
    const uint8_t *cur; /* the ring's end then */
};
struct krait_moment krait_moment_now(void);

struct krait_note {
    struct krait_interp *in;
    struct krait_moment moment;
    struct krait_kept kept;
};

enum {
    KRAIT_NOTE_BYTES = 24 * 1024, /* less than the smallest packet */
};

/* Returns whether this thread records; then ids may be defined and krait_note_put called. krait_note_end ends it in
 * either case. */
bool krait_note_begin(struct krait_note *note, struct krait_interp *in, struct krait_moment moment);
/* Writes an event of n bytes, KRAIT_NOTE_BYTES at most: at the moment, or now where the thread has written others
 * since. */
void krait_note_put(struct krait_note *note, uint32_t event, const void *payload, size_t n);
void krait_note_end(struct krait_note *note);

/* Writes an event now if nothing but calls has to take a slow path; else returns false, and it has to be a note. An id in the
 * payload must have been known already. hot path */
bool krait_note_quick(const struct krait_interp *in, uint32_t event, const void *payload, size_t n);

/* Whether something waits for the next slow path of a call of the ring's thread. */
bool krait_note_waits(const struct krait_ring *ring);

/* Whether this thread is in a note: what it does is krait's. */
bool krait_note_is_open(void);

/* A span begins. Returns its id. `fields` is a JSON object. */
uint64_t krait_note_begin_span(struct krait_interp *in, enum krait_event_enum_value category,
                               const char *name, const char *fields);
/* A number for a span. No GIL. */
uint64_t krait_note_span_id(enum krait_event_enum_value category);
void krait_note_end_span(struct krait_interp *in, uint64_t id, const char *fields);

#endif
