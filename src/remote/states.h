/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal to remote/: which thread states (PyThreadState) a process has, and which threads they make.
 *
 * A thread that runs code in a subinterpreter has a state in each of the two interpreters:
 *
 *     interpreters ──> interpreter 1 ──> interpreter 0 (the main one)
 *                           │                 │
 *                        state c           state b ──> state a
 *                        thread 12         thread 13   thread 12
 *
 *     threads:  12: a, c    13: b
 *
 * The number that a state has for its thread is that of the thread which has made the state. Up to 3.12 that need not be the one
 * that runs it: run_string(), of the module _xxsubinterpreters, takes any state of the interpreter, mostly the one that create()
 * has made. So the second and later states of a number are of the thread whose C stack they are on (remote/c_stacks.h).
 */
#ifndef KRAIT_REMOTE_STATES_H
#define KRAIT_REMOTE_STATES_H

#include "remote/remote.h"

/* Reads the list of states, whether a collector runs, and the kernel's data on the threads, with_calls as for krait_tasks_read;
 * makes stacks->states and stacks->threads, the oldest first, without those that have not begun, or have ended. Returns 0, -ENOMEM,
 * or the errors of krait_memory_read. */
int krait_states_find(struct krait_remote *remote, struct krait_remote_stacks *stacks, bool with_calls);

/* Whether states or interpreters are new since krait_states_find, in a process that has had several interpreters. Always false for
 * other processes, which costs nothing. */
bool krait_states_changed(const struct krait_remote *remote, const struct krait_remote_stacks *stacks);

/* Which of the threads that were found hold a GIL now, and whether a collector runs. Returns 0; -EFAULT: an interpreter is gone. */
int krait_states_look_at_gil(const struct krait_remote *remote, struct krait_remote_stacks *stacks);

#endif
