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

/* Zeroed memory, but for what who uses it says: */
struct krait_kernel_nest {
    void *ctx;
    const struct krait_kernel_events *events; /* for functions' names */
    uint32_t (*place)(void *ctx, const struct krait_kthread *thread,
                      uint64_t t_ns);               /* KRAIT_NO_ID: not asked for */
    uint64_t (*last_ns)(void *ctx, uint32_t place); /* nothing of it goes on behind that */
    uint32_t (*name)(void *ctx, const char *text);  /* KRAIT_NO_ID: memory is out */
    int (*begin)(void *ctx,
                 const struct krait_kernel_slice *slice); /* NULL: nobody asks; these two may fail */
    int (*end)(void *ctx, const struct krait_kernel_slice *slice);
    const struct krait_kernel_states *states; /* once the range has begun */
    struct krait_kernel_open_slices *open;    /* by the thread's index */
    uint32_t open_count;
    int rc; /* the first failure: nothing is told any more */
};

/* What the machine tells its watcher (krait_kernel_watch), in the order of time, and at the range's begin and end.
 * Return 0, -ENOMEM, or what `begin` or `end` returned. */
int krait_kernel_nest_begin(struct krait_kernel_nest *nest, const struct krait_kernel_states *states);
int krait_kernel_nest_entered(struct krait_kernel_nest *nest, const struct krait_kthread *t, uint32_t was,
                              uint64_t ns);
int krait_kernel_nest_left(struct krait_kernel_nest *nest, const struct krait_kthread *t, bool own,
                           int64_t ret, uint64_t ns);
int krait_kernel_nest_function(struct krait_kernel_nest *nest, const struct krait_kthread *t,
                               const struct krait_kernel_event *ev, uint64_t ns);
int krait_kernel_nest_gone(struct krait_kernel_nest *nest, const struct krait_kthread *t, uint64_t ns);
int krait_kernel_nest_finish(struct krait_kernel_nest *nest, uint64_t ns);
void krait_kernel_nest_done(struct krait_kernel_nest *nest);

#endif
