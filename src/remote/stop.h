/* SPDX-License-Identifier: Apache-2.0
 *
 * Stops one thread of another process, by ptrace(2), without a signal that the program would see.
 */
#ifndef KRAIT_REMOTE_STOP_H
#define KRAIT_REMOTE_STOP_H

#include "base/base.h"

#include <sys/types.h>

/* Returns 0: it is stopped; then krait_stop_end is due. -EBUSY: the whole program is stopped, by SIGSTOP; -ETIMEDOUT:
 * it does not come out of a system call; -ESRCH: it has ended; -EPERM: krait may not, or another tracer does.
 * *before_ns is when it was last seen to run, by CLOCK_MONOTONIC. */
int krait_stop_begin(pid_t tid, uint64_t *before_ns);
/* Lets it go on. Returns 0 or a negative errno. */
int krait_stop_end(pid_t tid);

#endif
