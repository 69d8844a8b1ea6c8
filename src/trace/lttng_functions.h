/* SPDX-License-Identifier: Apache-2.0
 *
 * LTTng's function events, for importers that read other events of the same traces.
 */
#ifndef KRAIT_TRACE_LTTNG_FUNCTIONS_H
#define KRAIT_TRACE_LTTNG_FUNCTIONS_H

#include "ctf/meta/metadata.h"

/* Whether an event of that name is one of those that make calls, or name them. */
bool krait_lttng_functions_reads(const char *name);
/* Whether a trace has such calls: what it lost is then told with them. */
bool krait_lttng_functions_has(const struct krait_ctf_metadata *metadata);

/* So many events that LTTng dropped, as struct krait_trace_lost. */
#define KRAIT_LTTNG_LOST(n)                                                                            \
    ((struct krait_trace_lost){ .reason = "sub-buffers full",                                          \
                                .advice = "LTTng dropped them; larger or more sub-buffers keep them: " \
                                          "lttng enable-channel --subbuf-size, --num-subbuf",          \
                                .count = (n) })

#endif
