/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's functions that a thread is in while it waits, from /proc/PID/task/TID/stack (proc(5)). That file needs
 * CAP_SYS_ADMIN and a kernel with CONFIG_STACKTRACE.
 */
#ifndef KRAIT_REMOTE_KERNEL_STACK_H
#define KRAIT_REMOTE_KERNEL_STACK_H

#include "remote/remote.h"

enum { KRAIT_KERNEL_DEPTH_MAX = 64 };

/* Whether such stacks of the process can be read. Returns 0, or a negative errno with the reason in err. */
int krait_kernel_stack_check(pid_t pid, struct krait_err *err);

/* Reads the stack of a proved thread into `frames`, innermost first: functions of the file [kernel]. Returns how many; 0 if it
 * cannot be read, or the thread has run since its own stack was read. Codes live as long as `remote`. */
uint32_t krait_kernel_stack_read(struct krait_remote *remote, const struct krait_remote_thread *thread,
                                 struct krait_remote_frame frames[KRAIT_KERNEL_DEPTH_MAX]);

#endif
