/* SPDX-License-Identifier: Apache-2.0
 *
 * The stacks of a thread, which follow the events that a flight recorder drops (newest.c), and are written in their place:
 *
 *   python:frame and python:stack, c:call   the calls that are open
 *   python:switch                           behind the stack of each greenlet that waits, which it leaves
 *
 * The rules are those of readers (trace/stack.h).
 */
#ifndef KRAIT_RECORD_NEWEST_STACKS_H
#define KRAIT_RECORD_NEWEST_STACKS_H

#include "record/newest_tasks.h"
#include "record/omits.h"

/* Of a thread: that of the greenlet that runs, and those that wait, by the numbers of python:switch. */
struct krait_newest_stacks {
    struct krait_newest_calls {
        struct krait_newest_call *items;
        size_t count, cap;
    } now, *left;
    size_t left_count;
    size_t left_calls; /* in all of them, which is bounded */
    bool failed;       /* there was no room for some of them */
    bool in_run;       /* of python:frame, which python:stack ends */
    const struct krait_omits *omits;
    size_t omitted;  /* how many have been applied */
    uint64_t border; /* the time of the next one; UINT64_MAX: there is none */
    struct krait_newest_tasks tasks;
};

/* `omits`: of the thread's process; outlives the stacks. */
void krait_newest_stacks_init(struct krait_newest_stacks *stacks, const struct krait_omits *omits);
void krait_newest_stacks_done(struct krait_newest_stacks *stacks);
/* Follows the events before a time in the next *n bytes of events, of which the first has a time after `begin`. Returns how
 * many these are, and in *n how many bytes. */
uint64_t krait_newest_stacks_follow(struct krait_newest_stacks *stacks, uint64_t begin, uint64_t until,
                                    const uint8_t *events, size_t *n);
/* Whether calls are open in the greenlet that runs, at a time that is not before the last event's. */
bool krait_newest_stacks_have_calls(struct krait_newest_stacks *stacks, uint64_t time);
/* Appends what is open at such a time. Of stacks that wait as many as fit into `room` bytes; most of a long recording's
 * have ended, which shows nowhere. */
void krait_newest_stacks_put(struct krait_newest_stacks *stacks, struct krait_buf *out, uint64_t time,
                             uint64_t room);

#endif
