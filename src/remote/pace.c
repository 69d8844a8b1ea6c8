/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/pace.h"

#include "base/clock.h"

#include <sys/timerfd.h>

static struct timespec time_of(uint64_t ns)
{
    return (struct timespec){ (time_t)(ns / KRAIT_NS_PER_S), (long)(ns % KRAIT_NS_PER_S) };
}

static uint64_t gap(struct krait_pace *pace)
{
    uint64_t period = KRAIT_NS_PER_S / pace->rate;
    pace->random = pace->random * 1664525u + 1013904223u; /* Knuth, TAOCP 2, 3.3.4 */
    return period / 2 + period * (pace->random >> 16) / 65536;
}

static void arm(struct krait_pace *pace, uint32_t i, uint64_t due_ns)
{
    struct itimerspec at = { .it_value = time_of(due_ns) };
    pace->due[i] = due_ns;
    if (pace->timers[i] >= 0)
        timerfd_settime(pace->timers[i], TFD_TIMER_ABSTIME, &at, NULL);
}

void krait_pace_begin(struct krait_pace *pace, uint64_t now_ns)
{
    pace->turn = 0;
    arm(pace, 0, now_ns);
    arm(pace, 1, now_ns + gap(pace));
}

void krait_pace_open(struct krait_pace *pace, uint64_t rate)
{
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
    *pace = (struct krait_pace){ .random = (uint32_t)now, .rate = rate };
    for (uint32_t i = 0; i < KRAIT_ARRAY_LEN(pace->timers); i++)
        pace->timers[i] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    krait_pace_begin(pace, now);
}

void krait_pace_close(struct krait_pace *pace)
{
    for (uint32_t i = 0; i < KRAIT_ARRAY_LEN(pace->timers); i++) {
        if (pace->timers[i] >= 0)
            close(pace->timers[i]);
        pace->timers[i] = -1;
    }
}

uint64_t krait_pace_due(const struct krait_pace *pace)
{
    return pace->due[pace->turn];
}

int krait_pace_fd(const struct krait_pace *pace)
{
    return pace->timers[pace->turn];
}

void krait_pace_wait(const struct krait_pace *pace, uint64_t until_ns)
{
    uint64_t due = krait_pace_due(pace), times;
    struct timespec until = time_of(KRAIT_MIN(due, until_ns));
    int fd = due <= until_ns ? krait_pace_fd(pace) : -1;
    ssize_t rc = fd < 0 ? clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL)
                        : read(fd, &times, sizeof(times));
    (void)rc; /* a signal's handler tells what it wants */
}

void krait_pace_next(struct krait_pace *pace, uint64_t now_ns)
{
    uint32_t past = pace->turn;
    pace->turn = !past;
    arm(pace, past, KRAIT_MAX(krait_pace_due(pace) + gap(pace), now_ns));
}
