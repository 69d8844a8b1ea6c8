/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/kernel_block.h"

#include <string.h>

static const struct {
    enum krait_thread_state state;
    const char *calls; /* each between blanks */
} rows[] = {
    { KRAIT_TS_LOCK, " futex futex_time64 futex_wait futex_waitv semop semtimedop flock " },
    { KRAIT_TS_TIMER, " nanosleep clock_nanosleep clock_nanosleep_time64 " },
    { KRAIT_TS_CHILD, " wait4 waitid waitpid vfork " },
    { KRAIT_TS_DISK, " fsync fdatasync sync syncfs sync_file_range msync io_getevents " },
    { KRAIT_TS_NETWORK,
      " recv recvfrom recvmsg recvmmsg send sendto sendmsg sendmmsg accept accept4 connect " },
};

enum krait_thread_state krait_kernel_blocks_on(const char *call)
{
    size_t n = strlen(call);
    if (!n || strchr(call, ' '))
        return KRAIT_TS_BLOCKED; /* no call of the kernel's: a trace may name its events as it likes */
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(rows); i++) {
        for (const char *at = rows[i].calls; (at = strstr(at, call)); at++) {
            if (at[-1] == ' ' && at[n] == ' ')
                return rows[i].state;
        }
    }
    return KRAIT_TS_BLOCKED;
}

/* Numbers of include/linux/interrupt.h. */
enum krait_thread_state krait_kernel_softirq_cause(int64_t vec)
{
    static const uint8_t causes[] = {
        [0] = KRAIT_TS_BLOCKED, /* HI */
        [1] = KRAIT_TS_TIMER,   /* TIMER */
        [2] = KRAIT_TS_NETWORK, /* NET_TX */
        [3] = KRAIT_TS_NETWORK, /* NET_RX */
        [4] = KRAIT_TS_DISK,    /* BLOCK */
        [5] = KRAIT_TS_BLOCKED, /* IRQ_POLL */
        [6] = KRAIT_TS_BLOCKED, /* TASKLET */
        [7] = KRAIT_TS_BLOCKED, /* SCHED */
        [8] = KRAIT_TS_TIMER,   /* HRTIMER */
    };
    return vec >= 0 && vec < (int64_t)KRAIT_ARRAY_LEN(causes) ? (enum krait_thread_state)causes[vec]
                                                              : KRAIT_TS_BLOCKED;
}
