/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of folded stacks, as stackcollapse of FlameGraph, py-spy, Austin, `perf script`'s collapsers and krait's own export
 * write them: one line for each stack, the outermost frame first, then a number.
 *
 *     main;load;read 12
 *
 * They have no times, so they are no tracks: a reader is handed the stacks, and a trace that has their functions alone.
 */
#ifndef KRAIT_TRACE_FOLDED_H
#define KRAIT_TRACE_FOLDED_H

#include "trace/trace.h"

struct krait_folded_frame {
    uint32_t id;   /* of a function; of a group, among the tracks' names (krait_track_text) */
    bool is_group; /* a process or a thread */
};

struct krait_folded_stack {
    const struct krait_folded_frame *frames; /* the outermost first */
    uint32_t depth;                          /* at least 1 */
    uint64_t value;                          /* above 0 */
};

struct krait_folded_facts {
    uint64_t stacks;      /* lines that were handed out */
    uint64_t skipped;     /* lines that are no stack */
    uint64_t first;       /* the number of the first of those */
    bool is_microseconds; /* the file says that its numbers are these: Austin's "# mode: wall" and "cpu" */
};

/* Called with each stack; a value other than 0 ends the reading and is returned. Frames are valid until it returns. */
typedef int krait_folded_fn(void *ctx, const struct krait_folded_stack *stack);

/* Whether the path names such a file to this reader: a file, a pipe, or "-" for standard input, but no folder. */
bool krait_folded_is_file(const char *path);

/* Reads a file in one pass. *trace is made before the first stack is handed out, so that `fn` may look into it, and the
 * caller closes it when this succeeds. Errors: -ENOENT, -EACCES and others of the file; -EINVAL no stack in it; -ENOMEM. */
int krait_folded_read(struct krait_trace **trace, const char *path, krait_folded_fn *fn, void *ctx,
                      struct krait_folded_facts *facts, struct krait_err *err);

#endif
