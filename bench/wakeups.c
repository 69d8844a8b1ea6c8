/* SPDX-License-Identifier: Apache-2.0
 *
 * What waking up on a thread's CPU takes from that thread, before anything is done there: for bench/wakeups.py, as a library.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { S = 1000000000, PERIOD = 1000000 };

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * S + (uint64_t)t.tv_nsec;
}

static struct timespec time_of(uint64_t ns)
{
    return (struct timespec){ (time_t)(ns / S), (long)(ns % S) };
}

/* Half to one and a half periods, as krait's samples have it. */
static uint64_t gap(void)
{
    return PERIOD / 2 + (uint64_t)rand() % PERIOD;
}

/* Looks at the clock for `ns`; returns the time of the pauses between two looks. Longer ones are no wake-up's: there the machine
 * itself did not run. */
uint64_t lost(uint64_t ns)
{
    enum { LEAST = 1000, MOST = 400000 };
    uint64_t sum = 0, begin = now(), last = begin;
    while (last - begin < ns) {
        uint64_t t = now(), pause = t - last;
        sum += pause > LEAST && pause < MOST ? pause : 0;
        last = t;
    }
    return sum;
}

static void rise(void)
{
    setpriority(PRIO_PROCESS, 0, -10);
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

/* Wakes up a thousand times a second, and does nothing: by sleeping. */
void wake_by_sleeping(void)
{
    rise();
    for (uint64_t due = now();;) {
        due += gap();
        struct timespec at = time_of(due);
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    }
}

static void arm(int timer, uint64_t due)
{
    struct itimerspec at = { .it_value = time_of(due) };
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
}

/* The same by two timers that are armed in turns, each for the instant after the other's: src/remote/pace.h. */
void wake_by_two_timers(void)
{
    int timers[2] = { timerfd_create(CLOCK_MONOTONIC, 0), timerfd_create(CLOCK_MONOTONIC, 0) };
    uint64_t due[2] = { now() + PERIOD, now() + 2 * PERIOD }, times;
    rise();
    for (int i = 0; i < 2; i++)
        arm(timers[i], due[i]);
    for (int i = 0; read(timers[i], &times, sizeof(times)) > 0; i = !i) {
        due[i] = due[!i] + gap();
        arm(timers[i], due[i]);
    }
}

static void do_nothing(int number)
{
    (void)number;
}

static timer_t timer;

/* A signal in the calling thread itself, a thousand times a second, whose handler does nothing. */
void signal_begin(void)
{
    struct sigevent event;
    memset(&event, 0, sizeof(event));
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGPROF;
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    signal(SIGPROF, do_nothing);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &(struct itimerspec){ { 0, PERIOD }, { 0, PERIOD } }, NULL);
}

void signal_end(void)
{
    timer_delete(timer);
}
