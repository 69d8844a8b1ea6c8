/* SPDX-License-Identifier: Apache-2.0
 *
 * Which program a process runs, to notice that it has executed another: even the same one again, at the same addresses.
 */
#ifndef KRAIT_REMOTE_EXECUTED_H
#define KRAIT_REMOTE_EXECUTED_H

#include "base/base.h"

#include <sys/types.h>

/* Random bytes that the kernel gives each program that is executed, and where they lie: AT_RANDOM of getauxval(3). */
struct krait_executed {
    uint64_t addr; /* 0: not known */
    uint64_t random;
};

/* What the process runs now; not known while it is executing another program, and if this user may not read its memory. */
struct krait_executed krait_executed_read(pid_t pid);

/* Whether a process that ran `before` now runs another program, as far as that is known. */
bool krait_executed_is_other(struct krait_executed before, struct krait_executed now);

/* Whether a process was forked just now, 0.2 s ago at most, and runs what its parent runs: it may be about to execute another
 * program. */
bool krait_executed_is_to_come(pid_t pid);

#endif
