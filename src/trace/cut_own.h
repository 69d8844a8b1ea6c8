/* SPDX-License-Identifier: Apache-2.0
 *
 * What krait's own recordings need beyond a copy of their events to be a part of a recording: see ctf/format.h.
 */
#ifndef KRAIT_TRACE_CUT_OWN_H
#define KRAIT_TRACE_CUT_OWN_H

#include "base/buf.h"
#include "trace/cut.h"
#include "trace/gil_holders.h"
#include "trace/tasks.h"

/* How the tasks of a process are when the range begins, and who has the GIL. */
struct krait_cut_then {
    struct krait_task_then *tasks;
    uint32_t task_count;
    uint32_t process;              /* + 1; 0: of none */
    struct krait_gil_holders *gil; /* of all processes; NULL: nobody has asked yet */
};

/* Appends the events that say how a thread, and the tasks that it ran last, are when the range begins, at the time `ticks`.
 * `then` keeps what is known of a process from call to call. Returns 0 or -ENOMEM. */
int krait_cut_before(struct krait_buf *events, const struct krait_trace *trace, uint32_t thread,
                     uint64_t from_ns, uint64_t ticks, struct krait_cut_then *then);
void krait_cut_then_done(struct krait_cut_then *then);

/* A range and the ticks at its edges, one before it and the first behind it; 0 and UINT64_MAX if it has none. */
struct krait_cut_edges {
    struct krait_range range;
    uint64_t before, behind;
};

/* Of a trace with one clock, whose times are rounded as `time` does. */
struct krait_cut_edges krait_cut_edges_of(const struct krait_ctf_trace *trace, struct krait_range range,
                                          krait_copy_time_fn *time);

/* The definitions of a process, those from outside the range at its edges, to DIR/definitions. Returns 0, or a negative errno
 * with err set. */
int krait_cut_definitions(struct krait_copied *copied, const struct krait_trace *trace, uint32_t process,
                          const struct krait_cut_edges *edges, const char *dir, struct krait_err *err);

/* A process's metadata with the range in its env. */
void krait_cut_metadata(struct krait_buf *out, const char *text, struct krait_range range);

#endif
