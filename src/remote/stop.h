/* SPDX-License-Identifier: Apache-2.0
 *
 * Stops one thread of another process, by ptrace(2), without a signal that the program would see.
 */
#ifndef KRAIT_REMOTE_STOP_H
#define KRAIT_REMOTE_STOP_H

#include "base/base.h"

#include <sys/types.h>

/* Stops the thread. Returns 0: it is stopped, and the caller has to call krait_stop_end. -EBUSY: SIGSTOP has stopped
 * the whole program; -ETIMEDOUT: the thread does not return from a system call; -ESRCH: it has ended; -EPERM: krait
 * may not stop it, or another tracer has it. *before_ns is the time at which it was last seen to run, by
 * CLOCK_MONOTONIC. Only within krait_stop_in_thread. */
int krait_stop_begin(pid_t tid, uint64_t *before_ns);
/* The same, also of a thread that SIGSTOP has stopped: its memory and registers can be read. */
int krait_stop_to_read(pid_t tid, uint64_t *before_ns);
/* Lets the thread continue, unless SIGSTOP has stopped it (__ptrace_unlink() in kernel/ptrace.c). Returns 0 or a negative errno. */
int krait_stop_end(pid_t tid);

/* Calls work(arg) in a thread of krait's own, and waits for its end. A thread that did not stop in time stops later, and stays
 * so as long as its tracer lives: the thread of krait's that stopped it. When that ends, the kernel lets go of all its tracees
 * (exit_ptrace() in kernel/ptrace.c). If no thread can be made, the caller is the tracer. Ctrl-Z waits until the
 * end, so that the program is not left stopped. */
void krait_stop_in_thread(void *(*work)(void *), void *arg);

#endif
