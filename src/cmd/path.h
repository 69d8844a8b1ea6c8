/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait path` in its parts: which thread and which time to follow (path_pick.c), who takes part in the path and the
 * columns of its tables (path_rows.c), and what is printed (path.c).
 */
#ifndef KRAIT_CMD_PATH_H
#define KRAIT_CMD_PATH_H

#include "analysis/critical_path.h"
#include "analysis/why.h"
#include "cmd/select.h"
#include "cmd/sheet.h"
#include "trace/kernel/own_threads.h"

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
 * function; -EINVAL it is not told which; what reading returns. The caller calls krait_path_pick_done in any case. */
int krait_path_pick(struct path_pick *pick, const struct path_options *options,
                    struct krait_kernel_events *events, struct krait_err *err);
void krait_path_pick_done(struct path_pick *pick);

/* A thread, or a kind of thing that is waited for, and its part of the path. */
struct path_member {
    uint64_t ns[KRAIT_PATH_KIND_COUNT];
    uint64_t total_ns, segments;
    uint32_t thread;           /* index; KRAIT_NO_ID: */
    enum krait_path_kind kind; /* what is waited for */
    uint32_t device;           /* see struct krait_path_segment */
    char label[48];            /* what is waited for: "disk vda" */
    uint32_t lane;
};

struct path {
    const struct path_options *options;
    struct path_pick pick;
    struct krait_critical_path *found;
    struct krait_own_threads threads; /* of the calls' part */
    struct path_member *members;      /* in the order in which the path meets them */
    uint32_t member_count, member_cap;
    uint32_t *member_of; /* by segment */
    uint64_t lost;
    bool own;   /* nothing but the program's own switches is known */
    bool blind; /* interrupts are not known */
    struct krait_err damage;
    uint32_t limit;
    struct krait_table_look look;
    struct krait_arena texts; /* of cells */
    struct krait_buf out, notes;
};

/* The time of the whole path. */
uint64_t krait_path_duration(const struct path *path);
const struct krait_kthread *krait_path_thread(const struct path *path, uint32_t thread);
/* NULL: not known. */
const struct krait_kprocess *krait_path_process(const struct path *path, const struct krait_kthread *thread);
/* Python's name for it where the recording has one, else the kernel's. */
const char *krait_path_thread_name(const struct path *path, const struct krait_kthread *thread);

/* Sums up the segments by who takes part, in path->members. Returns 0 or -ENOMEM. */
int krait_path_sum_members(struct path *path);
/* "worker 4711", or "disk vda". */
void krait_path_member_name(struct krait_buf *out, const struct path *path, const struct path_member *member);

/* A row for each segment in the order of time; or for each member, the greatest time first. The caller ends it with
 * krait_sheet_done, whatever is returned: 0 or -ENOMEM. */
int krait_path_sheet(struct path *path, bool of_segments, struct krait_sheet *sheet);

#endif
