/* SPDX-License-Identifier: Apache-2.0
 *
 * When krait ctl set changed what was recorded, in words.
 */
#ifndef KRAIT_CMD_CHANGED_H
#define KRAIT_CMD_CHANGED_H

#include "base/buf.h"
#include "trace/trace.h"

/* Changes inside a range: what changed at its begin or before holds for all of it. Those of several processes that are alike are
 * one. */

/* "from 1.204 s on include=app.* c-calls=on; ...": as many changes as `most`; safe for a terminal. Returns how many changes there
 * are; 0: none. */
uint32_t krait_changed_list(struct krait_buf *out, const struct krait_trace *trace, struct krait_range range,
                            uint32_t most);
/* How many changes there are. */
uint32_t krait_changed_count(const struct krait_trace *trace, struct krait_range range);
/* The first change from trace->sets[i] on; trace->set_count: there is none. */
uint32_t krait_changed_next(const struct krait_trace *trace, struct krait_range range, uint32_t i);
/* Appends that change; returns where the next one begins, for krait_changed_next. */
uint32_t krait_changed_add(struct krait_buf *out, const struct krait_trace *trace, uint32_t i);
extern const char krait_changed_why[]; /* what that means for the numbers */

/* "sets":[{...}], one for each process; nothing without any. */
void krait_changed_json(struct krait_buf *out, const struct krait_trace *trace, struct krait_range range);

#endif
