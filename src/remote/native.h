/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread's native frames, and how krait merges them with its Python functions.
 *
 * Where the records of a thread's switches have its registers (remote/switches.h), krait unwinds it from them. Otherwise it
 * unwinds a thread that waits in a system call from the stack pointer and the instruction that the kernel reports
 * (syscall in proc(5)), and proves that it did not run meanwhile (remote/still.h). If this needs other registers, or
 * the thread runs, krait stops it by ptrace(2). What a function with a frame pointer needs is told by the first stop: that
 * register's distance from the stack pointer is the same whenever the thread waits at the same place of the same stack.
 *
 * The interpreter's loop is one native function, _PyEval_EvalFrameDefault. From 3.11 on, one activation of it
 * runs a Python function and all functions that this one calls without C code in between; before, only one
 * function:
 *
 *     read (libc) ── os_read ── _PyEval_EvalFrameDefault ── PyObject_Vectorcall ── ... ── _PyEval_EvalFrameDefault ── main
 *                                load, parse                                              main, <module>
 *
 * From 3.12 on, the outermost of these functions is called by an entry frame, a local variable of the loop. Its address shows which
 * native frame is the loop's, even in a stripped file. Before 3.12, krait uses the loop's symbol, which is exported.
 */
#ifndef KRAIT_REMOTE_NATIVE_H
#define KRAIT_REMOTE_NATIVE_H

#include "remote/remote.h"
#include "remote/unwind.h"

struct krait_natives;

void krait_natives_free(struct krait_natives *natives);

/* Reads which files the process has mapped, or sees whether it still has them: call it now and then, before a thread is stopped.
 * Returns 0 or a negative errno. */
int krait_native_prepare(struct krait_remote *remote);

/* Unwinds a thread that is not running from its registers, and keeps the frames. Returns 0 or a negative errno. */
int krait_native_walk(struct krait_remote *remote, struct krait_registers *registers);
/* The same for one that waits in a system call. Returns 0; -ENXIO: this needs registers that the kernel does not report;
 * -EBUSY: the thread runs; or another negative errno. */
int krait_native_walk_waiting(struct krait_remote *remote, pid_t tid);
/* The same for a thread that ptrace(2) has stopped. `waited`: in a system call, where it may be again next time; then what the
 * kernel does not report is kept for krait_native_walk_waiting. */
int krait_native_walk_stopped(struct krait_remote *remote, pid_t tid, bool waited);

/* Merges the frames that were unwound last with the thread's Python frames, which are the last in `stacks`. Returns
 * 0 or -ENOMEM. */
int krait_native_merge(struct krait_remote *remote, struct krait_remote_stacks *stacks,
                       struct krait_remote_thread *thread);

#endif
