/* SPDX-License-Identifier: Apache-2.0 */
#include "python/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

int krait_worker_start(void *(*work)(void *), void *arg, size_t stack_bytes)
{
    int saved = errno;
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, stack_bytes);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread, &attr, work, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    errno = saved;
    return rc;
}
