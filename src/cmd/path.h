/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait path` in its parts: which thread and which time are meant (path_pick.c), and what is shown of the
 * path (path.c).
 */
#ifndef KRAIT_CMD_PATH_H
#define KRAIT_CMD_PATH_H

#include "analysis/critical_path.h"
#include "analysis/why.h"
#include "cmd/select.h"

struct path_options {
    struct krait_select select;
    const char *call, *limit, *nth_text;
    uint64_t nth; /* of nth_text; 1 without */
    uint64_t memory;
    bool segments, csv, json;
};

/* What is meant. */
struct path_pick {
    struct krait_trace *trace; /* owned; it has calls or not */
    struct krait_path_options range;
    int64_t zero_ns;               /* times after the start count from it */
    struct krait_gil_holders *gil; /* of the calls' part; or NULL */
    struct krait_why_call call;    /* with --call */
    uint64_t calls;                /* how many there are of it; 0: without --call */
};

/* Finds the thread and the range that the options mean in the traces. Errors: -ENOENT no such thread, call or
 * function; -EINVAL it is not told which; what reading returns. The caller calls krait_path_pick_done in any
 * case. */
int krait_path_pick(struct path_pick *pick, const struct path_options *options,
                    struct krait_kernel_events *events, struct krait_err *err);
void krait_path_pick_done(struct path_pick *pick);

#endif
