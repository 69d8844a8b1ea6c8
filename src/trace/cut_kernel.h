/* SPDX-License-Identifier: Apache-2.0
 *
 * What krait's own traces of the kernel need beyond a copy of their events to be a part: how threads and CPUs are when the range
 * begins, names of devices, and what follows the range and belongs to it. That is a stream of its own (kernel/kernel_carried.h).
 */
#ifndef KRAIT_TRACE_CUT_KERNEL_H
#define KRAIT_TRACE_CUT_KERNEL_H

#include "ctf/read/reader.h"
#include "trace/trace.h"

/* Whether it is such a trace. */
bool krait_cut_is_kernels(const struct krait_ctf_trace *trace);
/* Whether a stream of such a trace is the one of which this file tells: it is made anew for each part. */
bool krait_cut_is_carried(const struct krait_ctf_stream *stream);

/* The range, and of a trace that is a part itself no more than that. */
struct krait_range krait_cut_kernel_clip(const struct krait_ctf_trace *trace, struct krait_range range);

/* Writes the metadata of the part, with the range in its env, and that stream to the existing folder `dir`, which may be the
 * trace's own. `trace` is the model that has `of`, `reader` has its streams. `bytes` are added to. Returns 0, or a negative errno
 * with err set. */
int krait_cut_kernel(const struct krait_trace *trace, struct krait_ctf_reader *reader,
                     const struct krait_ctf_trace *of, struct krait_range range, const char *dir,
                     uint64_t *bytes, struct krait_err *err);

/* For a recorder that is about to drop the packets of the trace in the folder `dir` that ended before the tick `since`: writes
 * what is known then, as if it were a part from there on. `meanwhile` is called all the time, which may take some;
 * NULL: nothing is. Returns 0, or a negative errno with err set; the trace is then as it was. */
int krait_cut_kernel_keep(const char *dir, uint64_t since, bool (*meanwhile)(void *ctx, uint64_t bytes),
                          void *ctx, struct krait_err *err);
/* The same in the metadata alone, where the recorder has written that anew. Does nothing if nothing was kept so. */
int krait_cut_kernel_describe(const char *dir, struct krait_err *err);

#endif
