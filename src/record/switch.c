/* SPDX-License-Identifier: Apache-2.0 */
#include "record/switch.h"

#include <linux/futex.h>
#include <sys/syscall.h>

bool krait_switch(struct krait_control *control, bool on)
{
    uint32_t from = on ? KRAIT_SESSION_OFF : KRAIT_SESSION_RUN;
    uint32_t to = on ? KRAIT_SESSION_RUN : KRAIT_SESSION_OFF;
    if (!atomic_compare_exchange_strong(&control->state, &from, to))
        return from == to;
    krait_switch_wake(control, UINT32_MAX);
    return true;
}

void krait_switch_stop(struct krait_control *control)
{
    if (atomic_exchange(&control->state, KRAIT_SESSION_STOP) != KRAIT_SESSION_STOP)
        krait_switch_wake(control, UINT32_MAX);
}

void krait_switch_sleep(struct krait_control *control, uint32_t wakes, uint32_t group)
{
    syscall(SYS_futex, &control->wakes, FUTEX_WAIT_BITSET, wakes, NULL, NULL, group);
}

void krait_switch_wake(struct krait_control *control, uint32_t groups)
{
    atomic_fetch_add(&control->wakes, 1);
    syscall(SYS_futex, &control->wakes, FUTEX_WAKE_BITSET, INT32_MAX, NULL, NULL, groups);
}
