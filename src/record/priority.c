/* SPDX-License-Identifier: Apache-2.0
 *
 * The collector runs for moments and must have them soon: rings fill meanwhile. So must the sampler, which reads a
 * thread on that thread's CPU. A niceness below the program's needs CAP_SYS_NICE or RLIMIT_NICE. A short slice needs
 * nothing: from Linux 6.12 on who asks for less time at once gets it earlier (kernel/sched/fair.c, EEVDF;
 * kernel/sched/syscalls.c, sched_runtime of SCHED_OTHER).
 */
#include "record/collector.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { NICER_BY = 10, SLICE_NS = 100 * 1000 };

/* The kernel's struct sched_attr in its first version, which is not in every libc. */
struct attr {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static bool set(int nice)
{
    struct attr attr = { .size = sizeof(attr), .policy = SCHED_OTHER, .nice = nice, .runtime = SLICE_NS };
    return syscall(SYS_sched_setattr, 0, &attr, 0) == 0;
}

/* The lowest niceness that RLIMIT_NICE allows (getrlimit(2)). */
static int lowest_nice(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NICE, &limit) || limit.rlim_cur > 40)
        return -20;
    return 20 - (int)limit.rlim_cur;
}

void krait_raise_priority(void)
{
    int now = getpriority(PRIO_PROCESS, 0);
    int wanted = KRAIT_MAX(now - NICER_BY, -20);
    if (sched_getscheduler(0) == SCHED_OTHER && !set(wanted) && !set(KRAIT_MIN(now, lowest_nice())))
        set(now);
}
