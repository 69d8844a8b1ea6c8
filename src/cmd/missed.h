/* SPDX-License-Identifier: Apache-2.0
 *
 * The Python programs below the command that are not recorded, and cannot tell why: krait's library is not in them, or does
 * not reach krait. While krait records, it looks from outside for programs that run Python and are not part of the recording. A
 * program that ends before krait has looked at it is not found. Looking takes at most a hundredth of a CPU.
 */
#ifndef KRAIT_CMD_MISSED_H
#define KRAIT_CMD_MISSED_H

#include "record/collector.h"
#include "remote/thread.h"

#include <limits.h>
#include <sys/types.h>

/* All zeros, but for the first four, is one that has found nothing. */
struct krait_missed {
    const struct krait_collector *collector;
    pid_t root;             /* krait looks at this process, and at what it has started */
    char preload[PATH_MAX]; /* the path of krait's library */
    bool first_only;        /* --no-children: what a recorded program starts is not missed */
    struct krait_missed_process *items;
    uint32_t count, cap;
    uint32_t named, more;     /* of the items; those that were found when there were too many */
    struct krait_pids pids;   /* of the look that goes on */
    uint32_t at;              /* the next of them */
    uint64_t next_ns, new_ns; /* when to look next; when the last new program was seen: CLOCK_MONOTONIC */
};

/* After a round of the collector: looks, if it is time, for about a millisecond; the next call continues. */
void krait_missed_look(struct krait_missed *missed);
/* How many were found, and have not joined the recording since. */
uint32_t krait_missed_count(const struct krait_missed *missed);
/* Prints them to stderr with the reason and what to do. */
void krait_missed_print(const struct krait_missed *missed);
/* Prints that `count` processes more were not recorded; nothing if it is 0. */
void krait_missed_say_more(uint32_t count);
void krait_missed_done(struct krait_missed *missed);

#endif
