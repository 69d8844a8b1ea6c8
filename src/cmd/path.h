/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of `krait path`: choosing the thread and the range (path_pick.c), the members of the path and the columns of its
 * tables (path_rows.c), and printing (path.c).
 */
#ifndef KRAIT_CMD_PATH_H
#define KRAIT_CMD_PATH_H

#include "analysis/critical_path.h"
#include "analysis/why.h"
#include "cmd/select.h"
#include "cmd/sheet.h"
#include "cmd/state.h"
#include "trace/kernel/own_threads.h"

struct path_options {
    struct krait_select select;
    const char *call, *limit, *nth_text;
    uint64_t nth; /* the number in nth_text; 1 if that is NULL */
    uint64_t memory;
    bool segments, csv, json;
};

/* What to follow. */
struct path_pick {
    struct krait_trace *trace; /* owned; may be without calls */
    struct krait_path_options range;
    int64_t zero_ns;               /* printed times count from it */
    struct krait_gil_holders *gil; /* from the recorded calls; or NULL */
    struct krait_why_call call;    /* with --call */
    uint64_t calls;                /* the number of that function's calls; 0: without --call */
};

/* Finds the thread and the range according to the options. Errors: -ENOENT no such thread, call or function; -EINVAL
 * several threads match; errors of reading. Call krait_path_pick_done in any case. */
int krait_path_pick(struct path_pick *pick, const struct path_options *options,
                    struct krait_kernel_events *events, struct krait_err *err);
void krait_path_pick_done(struct path_pick *pick);

/* A thread, or a device that was waited for, with its part of the path. */
struct path_member {
    uint64_t ns[KRAIT_PATH_KIND_COUNT];
    uint64_t total_ns, segments;
    uint32_t thread;           /* index; KRAIT_NO_ID: it is a device, and */
    enum krait_path_kind kind; /* ... this is its kind */
    uint32_t device;           /* see struct krait_path_segment */
    char label[48];            /* the device: "disk vda" */
    uint32_t lane;
};

struct path {
    const struct path_options *options;
    struct path_pick pick;
    struct krait_critical_path *found;
    struct krait_own_threads threads; /* the recorded program's threads */
    struct path_member *members;      /* in the order in which the path reaches them */
    uint32_t member_count, member_cap;
    uint32_t *member_of;              /* by segment */
    struct krait_state_stolen stolen; /* from the CPUs during the path */
    uint64_t lost;
    bool own;   /* recorded without root: only switches of the program's own threads */
    bool blind; /* interrupts were not recorded */
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
/* The thread's Python name if the recording has one, else the kernel's. */
const char *krait_path_thread_name(const struct path *path, const struct krait_kthread *thread);

/* Sums up the segments in path->members. Returns 0 or -ENOMEM. */
int krait_path_sum_members(struct path *path);
/* "worker 4711", or "disk vda". */
void krait_path_member_name(struct krait_buf *out, const struct path *path, const struct path_member *member);

/* Fills the sheet with a row for each segment, ordered by time, or for each member, the greatest time first. Returns 0 or
 * -ENOMEM. Call krait_sheet_done in any case. */
int krait_path_sheet(struct path *path, bool of_segments, struct krait_sheet *sheet);

#endif
