/* SPDX-License-Identifier: Apache-2.0
 *
 * One LTTng-UST tracepoint with the field of a Python call: a 32-bit code.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER krait_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_events.h"

#if !defined(LTTNG_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LTTNG_EVENTS_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(krait_bench, call, LTTNG_UST_TP_ARGS(unsigned int, code),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned int, code, code)))

#endif

#include <lttng/tracepoint-event.h>
