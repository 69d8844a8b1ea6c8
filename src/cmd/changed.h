/* SPDX-License-Identifier: Apache-2.0
 *
 * When krait ctl set changed what was recorded, in words.
 */
#ifndef KRAIT_CMD_CHANGED_H
#define KRAIT_CMD_CHANGED_H

#include "base/buf.h"
#include "trace/trace.h"

/* "from 1.204 s on include=app.* c-calls=on; ...": as many changes as `most`, those of several processes that are alike once; safe
 * for a terminal. Returns how many changes there are, counted in the same way; 0: none. */
uint32_t krait_changed_list(struct krait_buf *out, const struct krait_trace *trace, uint32_t most);
/* How many changes there are. */
uint32_t krait_changed_count(const struct krait_trace *trace);
/* One of them, which begins at trace->sets[i]; returns where the next one begins. */
uint32_t krait_changed_add(struct krait_buf *out, const struct krait_trace *trace, uint32_t i);
extern const char krait_changed_why[]; /* what that means for the numbers */

/* "sets":[{...}], one for each process; nothing without any. */
void krait_changed_json(struct krait_buf *out, const struct krait_trace *trace);

#endif
