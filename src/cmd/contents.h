/* SPDX-License-Identifier: Apache-2.0
 *
 * What a recording has besides calls, to name the verbs that show it.
 */
#ifndef KRAIT_CMD_CONTENTS_H
#define KRAIT_CMD_CONTENTS_H

#include "trace/trace.h"

enum krait_contents {
    KRAIT_CONTENTS_MARKS = 1, /* also log records, warnings, exceptions and audit events */
    KRAIT_CONTENTS_SPANS = 2,
    KRAIT_CONTENTS_COUNTERS = 4,
};

/* The bits of what there is in the range. Finds the trace's tracks, and reads each kind up to the first. What cannot be read is
 * none. */
unsigned krait_contents_of(struct krait_trace *trace, struct krait_range range);

/* Whether any thread has a call. Reads up to the first. */
bool krait_contents_has_calls(const struct krait_trace *trace);

#endif
