/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces of `perf data convert --to-ctf`.
 */
#ifndef KRAIT_TRACE_PERF_H
#define KRAIT_TRACE_PERF_H

#include "ctf/meta/metadata.h"

#include <string.h>

/* The tracepoints' events are perf's recording. With --all, what perf itself tells ("perf_mmap", "perf_comm") comes before the
 * first of them: what it found, at its clock's time 0 (tools/perf/util/synthetic-events.c), and what happened until it
 * enabled the tracepoints. */
static inline bool krait_perf_tells(const struct krait_ctf_metadata *metadata, const char *event)
{
    return strncmp(event, "perf_", strlen("perf_")) == 0 &&
           strcmp(krait_ctf_env_text(metadata, "tracer_name", ""), "perf") == 0;
}

#endif
