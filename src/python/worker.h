/* SPDX-License-Identifier: Apache-2.0
 *
 * Short-lived threads of the agent's own in the program.
 */
#ifndef KRAIT_PYTHON_WORKER_H
#define KRAIT_PYTHON_WORKER_H

#include "python/compat/running.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Runs work(arg) in a new thread, which nobody joins and none of the program's signals come to. stack_bytes: 0 for the usual
 * size. Returns 0 or a positive errno. Keeps errno. */
int krait_worker_start(void *(*work)(void *), void *arg, size_t stack_bytes);

/* Waits until the kernel does not count a thread any more that sets *phase to `gone` as it ends and whose number *tid is; at
 * most a second, where it gets no CPU. Keeps errno. */
void krait_worker_await_end(const _Atomic int *phase, int gone, const _Atomic int *tid);

/* Locks it, or returns false when that takes longer. Keeps errno. */
bool krait_worker_lock(pthread_mutex_t *lock, uint64_t within_ns);

/* As PyGILState_Ensure and PyGILState_Release, for a thread of the agent's own. The thread's state is made while no thread
 * forks: a child whose parent was just making one waits for ever for the lock of the list of states, up to Python 3.12
 * (PyOS_AfterFork_Child takes it in _PyEval_ReInitThreads, before _PyRuntimeState_ReInitThread makes it anew). False
 * where there is no memory for it, or the interpreter is being finalized: PyGILState_Ensure would end the program. */
bool krait_worker_enter(PyGILState_STATE *state);
void krait_worker_leave(PyGILState_STATE state);

#endif
