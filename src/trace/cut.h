/* SPDX-License-Identifier: Apache-2.0
 *
 * A range of traces as traces of their own, in the same format (ctf/copy/copy.h). Of krait's recordings the calls that
 * were open before it, and all names, are in the part too (ctf/format.h).
 */
#ifndef KRAIT_TRACE_CUT_H
#define KRAIT_TRACE_CUT_H

#include "ctf/copy/copy.h"
#include "trace/trace.h"

struct krait_cut {
    const char *path, *to;    /* the trace as it was opened; a folder that exists and is empty */
    struct krait_range range; /* in the trace's time; 0 and UINT64_MAX: not said */
    struct krait_copied copied;
    uint32_t parts; /* traces that are written: of krait's own, those of processes that lived in the range */
};

/* Writes the range of `trace` into the folder; trace->progress is told. Returns 0, or a negative errno with
 * err set: -ENOMEM, those of reading and writing. Half of it may then be there. Damage in the trace does not
 * fail it: cut->copied.damage. */
int krait_trace_cut(struct krait_cut *cut, const struct krait_trace *trace, struct krait_err *err);

#endif
