/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/stop.h"

#include "base/clock.h"
#include "remote/thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

/* What is new of the thread; si_pid is 0 if nothing is. Nothing is taken away: how a child of krait's own has ended is told to who
 * waits for it (ptrace(2): a tracer may take that from the parent), and if krait is killed now, the kernel still delivers the
 * signal at which the thread has stopped (exit_code, in ptrace_stop() and wait_task_stopped() of the kernel). */
static int look(pid_t tid, siginfo_t *seen)
{
    seen->si_pid = 0;
    return waitid(P_PID, (id_t)tid, seen, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL) ? -errno : 0;
}

/* A process that has ended keeps its parent waiting until its tracer has heard of it. */
static void hear_of_end(pid_t tid)
{
    bool is_own_child = krait_task_number(tid, "Tgid") == tid && krait_task_number(tid, "PPid") == getpid();
    if (!is_own_child)
        waitpid(tid, NULL, __WALL | WNOHANG);
}

/* Waits until it has stopped as asked; signals that come meanwhile are passed on. It stops when it next has a CPU, or
 * leaves a system call that nothing breaks off. */
static int wait_for_stop(pid_t tid, uint64_t *before_ns)
{
    enum { SIGNAL = 0xff, EVENT = 8 };
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC), end = now + 2 * KRAIT_NS_PER_S;
    for (*before_ns = now; now < end; now = krait_clock_ns(CLOCK_MONOTONIC)) {
        siginfo_t seen;
        int rc = look(tid, &seen), signal = seen.si_status & SIGNAL;
        if (rc)
            return rc;
        if (!seen.si_pid) {
            *before_ns = now;
            nanosleep(&(struct timespec){ 0, 20000 }, NULL);
        } else if (seen.si_code != CLD_TRAPPED) {
            hear_of_end(tid);
            return -ESRCH;
        } else if (seen.si_status >> EVENT ==
                   PTRACE_EVENT_STOP) { /* of the whole program, by SIGSTOP, unless it is a trap */
            return signal == SIGTRAP ? 0 : -EBUSY;
        } else {
            ptrace(PTRACE_CONT, tid, NULL, (void *)(long)signal);
        }
    }
    return -ETIMEDOUT;
}

/* -EBUSY: it is stopped, and was so before. */
static int stop(pid_t tid, uint64_t *before_ns)
{
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
        return -errno;
    return ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) ? -errno : wait_for_stop(tid, before_ns);
}

int krait_stop_begin(pid_t tid, uint64_t *before_ns)
{
    int rc = stop(tid, before_ns);
    if (rc)
        krait_stop_end(tid);
    return rc;
}

int krait_stop_to_read(pid_t tid, uint64_t *before_ns)
{
    int rc = stop(tid, before_ns);
    if (rc && rc != -EBUSY)
        krait_stop_end(tid);
    return rc == -EBUSY ? 0 : rc;
}

int krait_stop_end(pid_t tid)
{
    return ptrace(PTRACE_DETACH, tid, NULL, NULL) ? -errno : 0;
}

void krait_stop_in_thread(void *(*work)(void *), void *arg)
{
    static const int stops[] = { SIGTSTP, SIGTTIN, SIGTTOU };
    pthread_t tracer;
    sigset_t held, before;
    sigemptyset(&held);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(stops); i++)
        sigaddset(&held, stops[i]);
    pthread_sigmask(SIG_BLOCK, &held, &before); /* the thread's that is made, too */
    if (pthread_create(&tracer, NULL, work, arg) == 0)
        pthread_join(tracer, NULL);
    else
        work(arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
