/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread that ends a pause of --max-overhead (governor.c): it sleeps, takes the GIL as any thread does, puts the hooks
 * back, and ends. A pending call would not do: where another thread than the main one adds it, 3.9 to 3.11 leave the eval
 * breaker as it is (_Py_ThreadCanHandlePendingCalls in COMPUTE_EVAL_BREAKER, Python/ceval.c), and a program of one thread
 * never gets to it.
 *
 *   GONE ──start──→ ASLEEP ──time is up──→ AWAKE ──→ GONE
 *                      └──────fork──→ LEAVES ──→ GONE
 *
 * From 3.12 on CPython warns of a fork in a process of several threads, which it counts in /proc/self/stat
 * (warn_about_fork_with_threads in Modules/posixmodule.c). So a fork ends the pause, and waits until the thread is gone.
 * Until the fork comes, no other pause begins: the GIL may change hands first, and functions of os.register_at_fork run.
 */
#include "python/agent.h"
#include "python/compat/running.h"
#include "python/worker.h"

#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum phase { GONE, ASLEEP, AWAKE, LEAVES };

/* In this time a fork comes that was told, or not at all: another audit hook may forbid it. */
#define FORK_COMES_NS (10 * KRAIT_NS_PER_S)
/* The kernel counts a thread for a moment after it has said that it ends; not for as long as this. */
#define COUNTED_NS (10 * KRAIT_NS_PER_S)

static void sleep_for(struct krait_pause_thread *thread)
{
    uint64_t last = krait_clock_ns(CLOCK_MONOTONIC) + thread->ns, now;
    while (atomic_load(&thread->phase) == ASLEEP && (now = krait_clock_ns(CLOCK_MONOTONIC)) < last) {
        struct timespec left = { .tv_sec = (time_t)((last - now) / KRAIT_NS_PER_S),
                                 .tv_nsec = (long)((last - now) % KRAIT_NS_PER_S) };
        syscall(SYS_futex, &thread->phase, FUTEX_WAIT_PRIVATE, ASLEEP, &left, NULL, 0);
    }
}

static void on_end(void *arg)
{
    struct krait_interp *in = arg;
    atomic_store(&in->pause_thread.ended_ns, krait_clock_ns(CLOCK_MONOTONIC));
    atomic_store(&in->pause_thread.phase, GONE);
}

static void resume(struct krait_interp *in)
{
    PyGILState_STATE state;
    if (!Py_IsInitialized() ||
        !krait_worker_enter(&state)) /* from the moment the interpreter begins to end */
        return;
    if (atomic_load(&in->agent->running) && !atomic_load(&in->agent->forked) && !in->ended)
        krait_governor_resume(in);
    krait_worker_leave(state);
}

static void *sleep_and_resume(void *arg)
{
    struct krait_interp *in = arg;
    int asleep = ASLEEP;
    atomic_store(&in->pause_thread.tid, (int)syscall(SYS_gettid));
    prctl(PR_SET_NAME, "krait");
    pthread_cleanup_push(on_end, in); /* CPython up to 3.13 ends a thread that takes the GIL too late */
    sleep_for(&in->pause_thread);
    if (atomic_compare_exchange_strong(&in->pause_thread.phase, &asleep, AWAKE))
        resume(in);
    pthread_cleanup_pop(1);
    return NULL;
}

int krait_pause_start_thread(struct krait_interp *in, uint64_t ns)
{
    enum { STACK_BYTES = 64 * 1024 };
    int gone = GONE;
    uint64_t fork_ns = atomic_load(&in->pause_thread.fork_ns);
    if (fork_ns && krait_clock_ns(CLOCK_MONOTONIC) < fork_ns)
        return -EBUSY;
    if (!atomic_compare_exchange_strong(&in->pause_thread.phase, &gone, ASLEEP))
        return -EBUSY;
    in->pause_thread.ns = ns;
    atomic_store(&in->pause_thread.tid, 0);
    int rc = krait_worker_start(sleep_and_resume, in, STACK_BYTES);
    if (rc)
        on_end(in);
    return -rc;
}

/* Whether the kernel may still count a thread that has ended. Later its number may be another thread's. */
static bool may_be_counted(const struct krait_pause_thread *thread)
{
    uint64_t ended_ns = atomic_load(&thread->ended_ns);
    return atomic_load(&thread->tid) && krait_clock_ns(CLOCK_MONOTONIC) < ended_ns + COUNTED_NS;
}

void krait_pause_end_thread(struct krait_interp *in)
{
    struct krait_pause_thread *thread = &in->pause_thread;
    int asleep = ASLEEP, saved = errno;
    atomic_store(&thread->fork_ns, krait_clock_ns(CLOCK_MONOTONIC) + FORK_COMES_NS);
    bool leaves = atomic_compare_exchange_strong(&thread->phase, &asleep, LEAVES);
    if (leaves)
        syscall(SYS_futex, &thread->phase, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    if (leaves || asleep != GONE || may_be_counted(thread)) {
        PyThreadState *state = leaves ? NULL : PyEval_SaveThread(); /* it may wait for the GIL */
        krait_worker_await_end(&thread->phase, GONE, &thread->tid);
        if (state)
            PyEval_RestoreThread(state);
    }
    atomic_store(&thread->tid, 0);
    errno = saved;
}

void krait_pause_fork_is_over(void)
{
    for (struct krait_interp *in = atomic_load(&krait_agent.interps); in; in = in->next)
        atomic_store(&in->pause_thread.fork_ns, 0);
}

void krait_pause_forked(void)
{
    for (struct krait_interp *in = atomic_load(&krait_agent.interps); in; in = in->next) {
        atomic_store(&in->pause_thread.phase, GONE);
        atomic_store(&in->pause_thread.tid, 0);
    }
    krait_pause_fork_is_over();
}
