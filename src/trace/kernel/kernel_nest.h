/* SPDX-License-Identifier: Apache-2.0
 *
 * Slices of what threads did in the kernel, from what the machine of kernel_states.h tells: system calls, and the
 * kernel's functions in them and outside. Exports and tracks are made of them.
 *
 *     read ─┬── vfs_read ──┬─ ...        nested; handed out when they begin, and when they have ended
 *           └─ ext4_read ──┘
 *
 * A call whose end was lost goes as far as is known: to its begin, or to the last function within. More would be
 * guessed, and might lie across the calls that follow.
 */
#ifndef KRAIT_TRACE_KERNEL_NEST_H
#define KRAIT_TRACE_KERNEL_NEST_H

#include "trace/kernel/kernel_states.h"

/* In one thread they nest, in each other and, times of lost events aside, in the thread's calls. */
struct krait_kernel_slice {
    uint64_t begin_ns, end_ns; /* the latter only once it has ended */
    int64_t ret;               /* of a system call that was seen to return */
    uint32_t place;            /* whose it is: what `place` of struct krait_kernel_nest says */
    uint32_t name;             /* what `name` says */
    bool is_call;              /* a system call; else a function of the kernel's */
    bool live;                 /* it had begun before the range */
    bool cut;                  /* its end was lost, or is outside of the range, or never came */
};

struct krait_kernel_open_slices; /* of a thread */

/* One run of the machine. Zeroed memory, but for what its user sets; it is the first member of the user's own struct, so
 * that each `ctx` points to both. */
struct krait_kernel_nest {
    struct krait_kernel_events *events;
    uint32_t (*place)(void *ctx, const struct krait_kthread *thread,
                      uint64_t t_ns);               /* KRAIT_NO_ID: not asked for */
    uint64_t (*last_ns)(void *ctx, uint32_t place); /* nothing of it goes on behind that */
    uint32_t (*name)(void *ctx, const char *text);  /* KRAIT_NO_ID: memory is out */
    int (*begin)(void *ctx,
                 const struct krait_kernel_slice *slice);          /* NULL: nobody asks; may fail, as `end` */
    int (*end)(void *ctx, const struct krait_kernel_slice *slice); /* NULL: nobody asks for slices */

    /* What else the machine tells, as struct krait_kernel_watch says; `event` may be NULL. */
    void (*started)(void *ctx, const struct krait_kernel_states *states);
    void (*changed)(void *ctx, const struct krait_kchange *change);
    void (*event)(void *ctx, const struct krait_kernel_event *event, int64_t ns);
    void (*finished)(void *ctx, uint64_t end_ns); /* the range ends, unless the run failed */

    struct krait_kernel_watch watch;
    const struct krait_kernel_states *states; /* once the range has begun */
    struct krait_kernel_open_slices *open;    /* by the thread's index */
    uint32_t open_count;
    int rc; /* the first failure: nothing is told any more */
};

/* Keeps the first failure, which ends the run. 0 is none. */
static inline void krait_kernel_nest_fail(struct krait_kernel_nest *nest, int rc)
{
    nest->rc = nest->rc ? nest->rc : rc;
    nest->watch.done = nest->rc;
}

/* Runs the machine over a range of time, in ns after the first event. Returns 0, also if there is nothing in that time;
 * the first failure; or what krait_kernel_states_new returns. krait_kernel_nest_done in any case. */
int krait_kernel_nest_run(struct krait_kernel_nest *nest, uint64_t from_ns, uint64_t until_ns);

/* Of a recording that goes on: as krait_kernel_states_go_on, with the states of this run, which the caller keeps. What is open
 * at the end stays open, and `finished` is not called. */
int krait_kernel_nest_go_on(struct krait_kernel_nest *nest, struct krait_kernel_states **states,
                            int64_t until_ns);
/* Ends what is open at a time, and leaves it open nevertheless: `end` is told the slices, cut. Returns 0 or the failure. */
int krait_kernel_nest_now(struct krait_kernel_nest *nest, uint64_t ns);

void krait_kernel_nest_done(struct krait_kernel_nest *nest);

#endif
