/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/stop.h"

#include "base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

/* Waits until it has stopped as asked; signals that come meanwhile are passed on. It stops when it next has a CPU, or
 * leaves a system call that nothing breaks off. */
static int wait_for_stop(pid_t tid, uint64_t *before_ns)
{
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC), end = now + 2 * KRAIT_NS_PER_S;
    for (*before_ns = now; now < end; now = krait_clock_ns(CLOCK_MONOTONIC)) {
        int status;
        pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
        if (got < 0)
            return -errno;
        if (!got) {
            *before_ns = now;
            nanosleep(&(struct timespec){ 0, 20000 }, NULL);
        } else if (!WIFSTOPPED(status)) {
            return -ESRCH;
        } else if (status >> 16 ==
                   PTRACE_EVENT_STOP) { /* of the whole program, by SIGSTOP, unless it is a trap */
            return WSTOPSIG(status) == SIGTRAP ? 0 : -EBUSY;
        } else {
            ptrace(PTRACE_CONT, tid, NULL, (void *)(long)WSTOPSIG(status));
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
