/* SPDX-License-Identifier: Apache-2.0
 *
 * Native frames of a thread, and how they go together with its Python functions.
 *
 * A thread that waits in a system call is unwound from its stack pointer and its place, which the kernel tells (syscall in proc(5)),
 * while it is proved not to run (remote/still.h). Where this needs other registers, and of one that runs, ptrace(2) stops it.
 *
 * The interpreter's loop is one native function, _PyEval_EvalFrameDefault. From 3.11 on one activation of it runs a Python function
 * and all that this calls without C code between; before, one function:
 *
 *     read (libc) ── os_read ── _PyEval_EvalFrameDefault ── PyObject_Vectorcall ── ... ── _PyEval_EvalFrameDefault ── main
 *                                load, parse                                              main, <module>
 *
 * From 3.12 on the outermost of these functions is called by a frame of no function, a local variable of the loop: it shows which
 * native frame is the loop's, also in a stripped file. Before, its symbol does, which is exported.
 */
#ifndef KRAIT_REMOTE_NATIVE_H
#define KRAIT_REMOTE_NATIVE_H

#include "remote/remote.h"
#include "remote/unwind.h"

struct krait_natives;

void krait_natives_free(struct krait_natives *natives);

/* Finds out what is mapped there, if that is not known yet: before a thread waits for it. Returns 0 or a negative errno. */
int krait_native_prepare(struct krait_remote *remote);

/* Unwinds a thread that does not run, and keeps what it finds. Returns 0; -ENXIO: this needs registers that the kernel does not tell;
 * -EBUSY: it runs; or another negative errno. */
int krait_native_walk_waiting(struct krait_remote *remote, pid_t tid);
/* The same of one that ptrace(2) has stopped. */
int krait_native_walk_stopped(struct krait_remote *remote, pid_t tid);

/* Puts the frames that were found last, and the thread's Python frames, which are the last in `stacks`, together. Returns 0 or
 * -ENOMEM. */
int krait_native_merge(struct krait_remote *remote, struct krait_remote_stacks *stacks,
                       struct krait_remote_thread *thread);

#endif
