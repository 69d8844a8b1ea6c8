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
                      /* Range and threads. Its `group` is ignored, because each format has its own. */
    struct krait_calltree_options what;
    enum krait_export_unit unit;
    bool no_kernel; /* leave out kernel events */
    /* The first damage found; may be empty. What is intact is exported. */
    char damage[1024];
    /* The first damage of the kernel's part, or why it is missing; may be empty. Only for formats that have it. */
    char kernel_damage[1024];
    bool some;      /* set by krait_export_run: there was a call */
    uint64_t bytes; /* set by krait_export_run: bytes written */
};

enum krait_export_flags {
    KRAIT_EXPORT_HAS_UNIT = 1 << 0,      /* uses job.unit */
    KRAIT_EXPORT_BINARY = 1 << 1,        /* not for a terminal */
    KRAIT_EXPORT_FOLDS_IMPORTS = 1 << 2, /* takes a tree with nodes that are not functions */
    KRAIT_EXPORT_HAS_KERNEL = 1 << 3,    /* contains kernel events */
    KRAIT_EXPORT_HAS_STATE = 1 << 4,     /* uses job.what.states */
    KRAIT_EXPORT_SUMS = 1 << 6,          /* sums up stacks, so one file can hold several ranges */
    KRAIT_EXPORT_HAS_TRACKS = 1 << 5,    /* needs tracks: krait_tracks_find_kinds with KRAIT_EXPORT_TRACKS */
};

#define KRAIT_EXPORT_TRACKS                                                          \
    (1 << KRAIT_TRACK_STATES | 1 << KRAIT_TRACK_INSTANTS | 1 << KRAIT_TRACK_SLICES | \
     1 << KRAIT_TRACK_COUNTER | 1 << KRAIT_TRACK_FLOWS)

struct krait_export_format {
    const char *name;
    const char *summary;
    uint32_t flags;     /* enum krait_export_flags */
    const char *opener; /* the program that opens the file, for "open it with" */
    const char *names;  /* names of its files: see exports.def */
    /* Writes everything into out->buf, and spills it to the file; does not open or commit the file. Returns 0, or a
     * negative errno with err set. The commit reports failed writes; `write` then returns 0 or out->error. */
    int (*write)(struct krait_export_job *job, struct krait_outfile *out, struct krait_err *err);
};

extern const struct krait_export_format krait_export_formats[]; /* ends with a NULL name */

/* The format with this name, or NULL. */
const struct krait_export_format *krait_export_find(const char *name);

/* The format by a file's name, in upper or lower case; NULL: unknown. */
const struct krait_export_format *krait_export_of_file(const char *path);
/* The name of a recording's file in that format. */
void krait_export_file_name(struct krait_buf *name, const struct krait_export_format *format,
                            const char *recording);

/* Opens `path`, writes and commits it. */
int krait_export_run(const struct krait_export_format *format, struct krait_export_job *job, const char *path,
                     struct krait_err *err);

#endif
