/* SPDX-License-Identifier: Apache-2.0
 *
 * Flows that a program tells (krait.flow), and of work for executors: from each place that an id passes to the next
 * one. Links of OpenTelemetry's spans: from the begin of the span that is named to that of the one that names it. The
 * tracks of flows have those from one thread to another; here are those from one task to another, too, and from place
 * to place in one: while a thread does the work.
 *
 *   Task-1   flow 7 ──────────┐
 *   Task-2                    └─→ flow 7 ────→ flow 7       all in one thread
 */
#ifndef KRAIT_TRACE_FLOWS_H
#define KRAIT_TRACE_FLOWS_H

#include "trace/trace.h"

enum krait_flow_kind { KRAIT_FLOW_USER, KRAIT_FLOW_WORK, KRAIT_FLOW_LINK };

#define KRAIT_FLOW_LINK_NAME "link" /* in tracks */

struct krait_flow {
    uint64_t t_ns, end_ns;
    uint32_t from, to;           /* threads */
    uint32_t from_task, to_task; /* indices of the tasks in whose steps it is; KRAIT_NO_ID: not known */
    const char *function;        /* what work calls, as the trace names it; NULL: not known, or no work */
    uint32_t chain;              /* the same for all of one id; each link has its own */
    uint8_t kind;                /* enum krait_flow_kind */
    bool is_work;                /* it leads from the begin of work to its end: work:start, work:done */
};

/* Whether it leads to another thread or task. */
static inline bool krait_flow_leads(const struct krait_flow *flow)
{
    return flow->from != flow->to || flow->from_task != flow->to_task;
}

/* Calls fn for those that overlap a range, in the order of their begins. Tracks of flows must have been found. What fn returns
 * other than 0 ends it, and is returned. */
int krait_flows_each(const struct krait_trace *trace, struct krait_range range,
                     int (*fn)(void *ctx, const struct krait_flow *flow), void *ctx);

#endif
