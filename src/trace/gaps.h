/* SPDX-License-Identifier: Apache-2.0
 *
 * Times in which a recording was switched off: krait ctl stop, krait.pause(), --toggle-signal.
 */
#ifndef KRAIT_TRACE_GAPS_H
#define KRAIT_TRACE_GAPS_H

#include "trace/trace.h"

struct krait_recorded {
    uint64_t ns;    /* in which at least one process was recorded */
    uint64_t of_ns; /* from the first process's begin to the last one's end, inside the range */
    uint32_t gaps;  /* how often a process was switched off; 0: never, and the times are 0 */
};

/* Of the part of the trace inside a range. Returns 0 or -ENOMEM. */
int krait_trace_recorded(const struct krait_trace *trace, struct krait_range range,
                         struct krait_recorded *out);

#endif
