/* SPDX-License-Identifier: Apache-2.0
 *
 * What recording a call took, in words and in JSON.
 */
#ifndef KRAIT_CMD_COST_LINE_H
#define KRAIT_CMD_COST_LINE_H

#include "base/buf.h"
#include "trace/trace.h"

/* What --compensate says in help. */
#define KRAIT_COMPENSATE_HELP \
    "Subtract the estimated cost of recording each call, which krait record measured (docs/report.md)"

/* Whether what recording took is to be taken off this recording's times, into *yes. Returns 0, or -EINVAL with a message where
 * that is wanted and the recording does not tell it. */
int krait_cost_compensate(bool wanted, const struct krait_trace *trace, bool *yes, struct krait_err *err);

/* "63 ns a call, 46 ns a call of a C function"; of several processes "61 to 70 ns". */
void krait_cost_words(struct krait_buf *out, const struct krait_trace *trace);

/* The sentence of a table's notes, with its line's end, where times are corrected. */
void krait_cost_note(struct krait_buf *notes, const struct krait_trace *trace);

/* The key "recording_cost_ns": {"python":..,"c":..}, the mean of the processes that tell it. */
void krait_cost_json(struct krait_buf *out, const struct krait_trace *trace);

#endif
