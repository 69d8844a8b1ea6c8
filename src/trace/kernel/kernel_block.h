/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernel's numbers and names imply for the state of a thread: the system call in which it blocks, the soft
 * interrupt that wakes it, the state in a switch, the state dump.
 */
#ifndef KRAIT_TRACE_KERNEL_BLOCK_H
#define KRAIT_TRACE_KERNEL_BLOCK_H

#include "trace/kernel/kernel_states.h"

/* By the call's name without prefixes. Blocks on KRAIT_TS_BLOCKED: who wakes the thread has to tell. Of a
 * signal handler's return no tracer tells the end: the call's number is then that of none
 * (arch/x86/kernel/signal_64.c sets orig_ax to -1, trace_syscalls.c passes over what is below 0). */
struct krait_kcall_kind krait_kernel_kind_of_call(const char *call);

/* What those wait for that are woken in a soft interrupt of this number. */
enum krait_thread_state krait_kernel_softirq_cause(int64_t vec);

/* Whether fcntl(2) waits for a lock on part of a file, by its `cmd`. */
bool krait_kernel_is_lock(int64_t cmd);

/* What a thread does after a switch away from it, by its prev_state; whether that is its end, where it is
 * gone; what it waits for where that tells (KRAIT_TS_STOPPED, or of a page KRAIT_TS_FAULT), else
 * KRAIT_TS_BLOCKED; and whether signals are not to disturb it. */
enum krait_thread_state krait_kernel_state_after(const struct krait_kthread *thread, int64_t prev_state);
bool krait_kernel_is_end(const struct krait_kthread *thread, int64_t prev_state);
enum krait_thread_state krait_kernel_asleep_on(const struct krait_kthread *thread, int64_t prev_state);
bool krait_kernel_is_deep(int64_t prev_state);

/* What a thread is in by the state dump, where that says it; else KRAIT_TS_UNKNOWN. */
enum { KRAIT_DUMPED_KERNEL_THREAD = 1 }; /* its type */
enum krait_thread_state krait_kernel_dumped_state(int64_t status);

#endif
