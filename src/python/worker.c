/* SPDX-License-Identifier: Apache-2.0 */
#include "python/worker.h"

#include "base/clock.h"

#include "python/compat/running.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int krait_worker_start(void *(*work)(void *), void *arg, size_t stack_bytes)
{
    int saved = errno;
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (stack_bytes)
        pthread_attr_setstacksize(&attr, stack_bytes);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread, &attr, work, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    errno = saved;
    return rc;
}

void krait_worker_await_end(const _Atomic int *phase, int gone, const _Atomic int *tid)
{
    int saved = errno;
    uint64_t last = krait_clock_ns(CLOCK_MONOTONIC) + KRAIT_NS_PER_S;
    while (krait_clock_ns(CLOCK_MONOTONIC) < last) {
        bool ends = atomic_load(phase) == gone;
        if (ends && syscall(SYS_tgkill, getpid(), atomic_load(tid), 0) < 0)
            break;
        sched_yield();
    }
    errno = saved;
}

bool krait_worker_lock(pthread_mutex_t *lock, uint64_t within_ns)
{
    int saved = errno;
    uint64_t until = krait_clock_ns(CLOCK_REALTIME) + within_ns; /* the clock of pthread_mutex_timedlock */
    struct timespec time = { .tv_sec = (time_t)(until / KRAIT_NS_PER_S),
                             .tv_nsec = (long)(until % KRAIT_NS_PER_S) };
    bool mine = pthread_mutex_timedlock(lock, &time) == 0;
    errno = saved;
    return mine;
}

/* ---- in Python ---- */

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER; /* of thread states */
static __thread bool is_making_excluded;

/* A fork waits some microseconds for a state that is being made. From Python 3.13 on it holds the lock of the list
 * itself (PyOS_BeforeFork), and who makes a state may wait for that: then the fork waits no longer than this. */
static void before_fork(void)
{
    is_making_excluded = krait_worker_lock(&making, 20 * KRAIT_NS_PER_MS);
}

static void after_fork(void)
{
    if (is_making_excluded)
        pthread_mutex_unlock(&making);
    is_making_excluded = false;
}

static void after_fork_in_child(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    making = fresh; /* its owner may not be here */
    is_making_excluded = false;
}

/* A fork that has begun before is not held up: it is over a moment later. */
static void watch_forks(void)
{
    enum { MOMENT_NS = 20 * 1000 * 1000 };
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
    nanosleep(&(struct timespec){ .tv_nsec = MOMENT_NS }, NULL);
}

bool krait_worker_enter(PyGILState_STATE *state)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    krait_interp_fn *main_interp = krait_find_interp_main();
    if (!main_interp || PyGILState_GetThisThreadState()) {
        *state = PyGILState_Ensure();
        return true;
    }
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&making);
    /* Not in one that is being finalized, which may have begun in that moment: it clears this first (Py_FinalizeEx in
     * Python/pylifecycle.c), and ends the program for a state that is made when it has deleted the others. */
    PyThreadState *made = Py_IsInitialized() ? PyThreadState_New(main_interp()) : NULL;
    pthread_mutex_unlock(&making);
    if (!made)
        return false;
    PyEval_RestoreThread(made);
    *state = PyGILState_UNLOCKED; /* it counts as ensured once: the last release deletes it */
    return true;
}

void krait_worker_leave(PyGILState_STATE state)
{
    PyGILState_Release(state);
}
