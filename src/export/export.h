/* SPDX-License-Identifier: Apache-2.0
 *
 * Recordings in other tools' formats. A format is one file here and one row in exports.def.
 *
 * Formats of single calls are streamed, so memory does not grow with the trace. The others are written from the call
 * tree, whose size depends on the program's distinct stacks. Names are untrusted: each format escapes them, so that
 * no name can break it.
 */
#ifndef KRAIT_EXPORT_EXPORT_H
#define KRAIT_EXPORT_EXPORT_H

#include "analysis/calltree.h"
#include "base/outfile.h"
#include "trace/track.h"

/* What values are measured in, for the formats that have a choice. */
enum krait_export_unit {
    KRAIT_EXPORT_NS = 0,
    KRAIT_EXPORT_US,
    KRAIT_EXPORT_CALLS,
};

struct krait_export_job {
    const struct krait_trace *trace;
    uint64_t zero_ns; /* krait_trace_zero: formats without absolute times count from it */
    /* Range and threads; its `group` is each format's own affair and is ignored. */
    struct krait_calltree_options what;
    enum krait_export_unit unit;
    bool no_kernel; /* what the kernel recorded is left out */
    /* Damage met on the way, the first (empty when none). What was whole is exported. */
    char damage[1024];
    /* Of the kernel's part, where the format has it: how many events its tracer lost, and the first damage,
     * or why there is nothing of it (empty when none). */
    char kernel_damage[1024];
    bool some;      /* set by krait_export_run: there was a call */
    uint64_t bytes; /* and so many were written */
};

enum krait_export_flags {
    KRAIT_EXPORT_HAS_UNIT = 1 << 0,      /* looks at job.unit */
    KRAIT_EXPORT_BINARY = 1 << 1,        /* nothing for a terminal */
    KRAIT_EXPORT_FOLDS_IMPORTS = 1 << 2, /* takes a tree with nodes that are no functions */
    KRAIT_EXPORT_HAS_KERNEL = 1 << 3,    /* holds what the kernel recorded */
    KRAIT_EXPORT_HAS_STATE = 1 << 4,     /* heeds job.what.states */
    KRAIT_EXPORT_SUMS = 1 << 6,          /* of stacks, without their times: several ranges go into one */
    KRAIT_EXPORT_HAS_TRACKS = 1 << 5,    /* needs tracks: krait_tracks_find_kinds of KRAIT_EXPORT_TRACKS */
};

#define KRAIT_EXPORT_TRACKS                                                          \
    (1 << KRAIT_TRACK_STATES | 1 << KRAIT_TRACK_INSTANTS | 1 << KRAIT_TRACK_SLICES | \
     1 << KRAIT_TRACK_COUNTER | 1 << KRAIT_TRACK_FLOWS)

struct krait_export_format {
    const char *name;
    const char *summary;
    uint32_t flags;     /* enum krait_export_flags */
    const char *opener; /* what opens the file, for "open it with" */
    const char *names;  /* of its files: see exports.def */
    /* Writes all into out->buf, spilling; neither opens nor commits. 0 or a negative errno with err set;
     * failures of writing are left to the commit (returns 0 or out->error then). */
    int (*write)(struct krait_export_job *job, struct krait_outfile *out, struct krait_err *err);
};

extern const struct krait_export_format krait_export_formats[]; /* ends with a NULL name */

/* NULL when there is none of that name. */
const struct krait_export_format *krait_export_find(const char *name);

/* The format that a file's name tells, whatever its case; NULL where it tells none. */
const struct krait_export_format *krait_export_of_file(const char *path);
/* The name of a recording's file in that format. */
void krait_export_file_name(struct krait_buf *name, const struct krait_export_format *format,
                            const char *recording);

/* Opens `path`, writes, commits. */
int krait_export_run(const struct krait_export_format *format, struct krait_export_job *job, const char *path,
                     struct krait_err *err);

#endif
