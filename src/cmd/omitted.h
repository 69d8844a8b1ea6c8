/* SPDX-License-Identifier: Apache-2.0
 *
 * What was not recorded because of --max-overhead, in words.
 */
#ifndef KRAIT_CMD_OMITTED_H
#define KRAIT_CMD_OMITTED_H

#include "base/buf.h"
#include "trace/trace.h"

/* "leaf (C) (after 31 calls), step (after 2 calls), ...": as many as `most`; safe for a terminal. */
void krait_omitted_list(struct krait_buf *out, const struct krait_trace *trace, uint32_t most);

/* Whether recording paused, as it does before Python 3.12. */
bool krait_omitted_paused(const struct krait_trace *trace);
extern const char krait_omitted_pause[]; /* what that means */

/* "omitted":[{...}],"paused":false */
void krait_omitted_json(struct krait_buf *out, const struct krait_trace *trace);

#endif
