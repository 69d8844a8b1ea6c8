/* SPDX-License-Identifier: Apache-2.0
 *
 * The progress of a verb that takes long, on a terminal: "krait export: 37%, about 12 s left". The line disappears at
 * the end.
 */
#ifndef KRAIT_CMD_PROGRESS_H
#define KRAIT_CMD_PROGRESS_H

#include "trace/trace.h"

struct krait_progress {
    const char *verb;
    struct krait_trace *trace;
    uint64_t total, done; /* bytes */
    uint64_t begin_ns, told_ns;
};

/* From here on walks over the trace are followed; what takes less than half a second, or tells no terminal, is not told of. */
void krait_progress_begin(struct krait_progress *progress, const char *verb, struct krait_trace *trace);
void krait_progress_end(struct krait_progress *progress);

#endif
