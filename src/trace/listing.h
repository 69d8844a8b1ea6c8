/* SPDX-License-Identifier: Apache-2.0
 *
 * Single events of a trace in the order of time, each as krait cat prints it: whatever recorded them, and also those
 * that are in no track.
 *
 *     struct krait_listing_cursor *cursor;
 *     int rc = krait_listing_cursor_new(&cursor, listing, "name == \"sched_*\"", err);
 *     rc = rc ? rc : krait_listing_range(cursor, INT64_MIN, INT64_MAX, err);
 *     while (!rc && krait_listing_next(cursor, &t_ns))
 *         if (krait_listing_wants(cursor))
 *             krait_listing_json(cursor, &text);
 *
 * Several threads may use a listing at a time, each with a cursor of its own.
 */
#ifndef KRAIT_TRACE_LISTING_H
#define KRAIT_TRACE_LISTING_H

#include "base/buf.h"
#include "trace/trace.h"

struct krait_listing;
struct krait_listing_cursor;

/* Reads the heads of all packets anew: of a recording that goes on, there are those that the trace has not. The trace need not
 * outlive it. Returns 0, or a negative errno with err set: those of opening files, -EINVAL where times of streams cannot
 * be compared, -EBADMSG, -ENOMEM. */
int krait_listing_open(struct krait_listing **out, const struct krait_trace *trace, struct krait_err *err);
void krait_listing_close(struct krait_listing *listing);

/* `filter` is an expression as `krait cat --filter` takes it; NULL or empty: all events. -EINVAL: it is none; -ENOMEM. */
int krait_listing_cursor_new(struct krait_listing_cursor **out, const struct krait_listing *listing,
                             const char *filter, struct krait_err *err);
void krait_listing_cursor_free(struct krait_listing_cursor *cursor);

/* Appends the lines of krait_filter_unmet_names (ctf/read/filter.h): event names of the filter that no event of the trace has.
 * Nothing without a filter. Check out->failed. */
void krait_listing_unmet_names(const struct krait_listing_cursor *cursor, struct krait_buf *out);

/* Begins a range, until_ns excluded and greater than from_ns; also behind or before one that was read. Returns 0 or -ENOMEM
 * with err set. */
int krait_listing_range(struct krait_listing_cursor *cursor, int64_t from_ns, int64_t until_ns,
                        struct krait_err *err);

/* Moves to the next event of the range, whether the filter selects it or not. Returns false at the end. */
bool krait_listing_next(struct krait_listing_cursor *cursor, int64_t *t_ns);

/* Whether the filter selects the event. Asked once. */
bool krait_listing_wants(struct krait_listing_cursor *cursor);

/* Either of these, once for an event. */
/* Appends it as `krait cat --json` prints it, without the line's end. Returns false, and leaves `out` as it was, where
 * the event is damaged. */
bool krait_listing_json(struct krait_listing_cursor *cursor, struct krait_buf *out);
/* The line that krait cat prints, from the name on; valid until the next event. NULL where the event is damaged, or
 * memory is out. */
const char *krait_listing_text(struct krait_listing_cursor *cursor);

/* The first damage met in the ranges that were read; code 0: none. */
const struct krait_err *krait_listing_damage(const struct krait_listing_cursor *cursor);

#endif
