/* SPDX-License-Identifier: Apache-2.0
 *
 * The lives of threads: they are made, execute other programs, end, or were there before the recording.
 */
#include "trace/kernel/kernel_block.h"
#include "trace/kernel/kernel_machine.h"
#include "trace/kernel/kernel_states.h"

typedef struct krait_kernel_states machine;

static void turn(machine *m, struct krait_kthread *t, enum krait_thread_state to)
{
    if (t->state != to)
        krait_kernel_leave(m, t, to);
}

/* A thread is made now. Returns NULL where that is no thread's number, and when memory is out. */
struct krait_kthread *krait_kernel_make_thread(machine *m, int64_t tid, const struct krait_kthread *parent)
{
    enum { KTHREADD = 2 };
    if (tid <= 0 || tid > INT32_MAX)
        return NULL;
    const uint64_t *before = krait_map_get(&m->by_tid, (uint64_t)tid);
    if (before)
        turn(m, (struct krait_kthread *)(uintptr_t)*before, KRAIT_TS_GONE);
    struct krait_kthread *t = krait_kernel_new_thread(m, (int32_t)tid, KRAIT_TS_GONE);
    if (!t)
        return NULL;
    t->born_ns = m->now;
    t->is_kernel = parent && parent->tid == KTHREADD;
    t->call = parent ? parent->call : KRAIT_NO_ID; /* it returns from it too, which is no call of its own */
    krait_kernel_leave_as(m, t, KRAIT_TS_GONE, KRAIT_TS_WOKEN,
                          krait_kernel_waker(m, krait_kernel_by(parent)));
    return t;
}

void krait_kernel_on_fork(void *ctx, const struct krait_kernel_event *ev)
{
    machine *m = ctx;
    const struct krait_kthread *parent = krait_kernel_thread_of(m, krait_kernel_event_int(ev, 2));
    krait_kernel_tick(m, ev);
    m->here = NULL;
    struct krait_kthread *t = krait_kernel_make_thread(m, krait_kernel_event_int(ev, 0), parent);
    if (!t)
        return;
    t->newborn = true;
    krait_kernel_name_thread(t, ev, 3);
    krait_kernel_set_process(m, t, krait_kernel_event_int(ev, 1));
}

void krait_kernel_on_thread_exit(void *ctx, const struct krait_kernel_event *ev)
{
    struct krait_kthread *t = krait_kernel_thread_of(ctx, krait_kernel_event_int(ev, 0));
    if (t)
        t->exiting = true;
}

void krait_kernel_on_free(void *ctx, const struct krait_kernel_event *ev)
{
    machine *m = ctx;
    krait_kernel_tick(m, ev);
    m->here = NULL;
    struct krait_kthread *t = krait_kernel_thread_of(m, krait_kernel_event_int(ev, 0));
    if (!t || krait_thread_runs((enum krait_thread_state)t->state))
        return;
    turn(m, t, KRAIT_TS_GONE);
    t->ended = t->freed = true;
}

struct krait_kthread *krait_kernel_dumped_thread(machine *m, const struct krait_kernel_event *ev)
{
    struct krait_kthread *t = krait_kernel_thread_of(m, krait_kernel_event_int(ev, 0));
    if (!t)
        return NULL;
    krait_kernel_tick(m, ev);
    m->here = NULL;
    return t;
}

void krait_kernel_on_statedump(void *ctx, const struct krait_kernel_event *ev)
{
    machine *m = ctx;
    struct krait_kthread *t = krait_kernel_dumped_thread(m, ev);
    if (!t)
        return;
    t->is_kernel = krait_kernel_event_int(ev, 2) == KRAIT_DUMPED_KERNEL_THREAD;
    krait_kernel_set_process(m, t, krait_kernel_event_int(ev, 1));
    if (!t->name[0])
        krait_kernel_name_thread(t, ev, 4);
    if (t->state == KRAIT_TS_UNKNOWN)
        turn(m, t, krait_kernel_dumped_state(krait_kernel_event_int(ev, 3)));
}

/* It waits in that call since it is blocked, or it would have run meanwhile. */
void krait_kernel_on_dumped_wait(void *ctx, const struct krait_kernel_event *ev)
{
    machine *m = ctx;
    struct krait_kthread *t = krait_kernel_thread_of(m, krait_kernel_event_int(ev, 0));
    m->dumping = m->has_dumped = true;
    if (!t || t->state != KRAIT_TS_BLOCKED || t->call_known)
        return;
    size_t n;
    const char *call = krait_kernel_event_text(ev, 1, &n);
    t->call = t->state_call = krait_kernel_call_named(m, call, strnlen(call, n));
    t->call_counts = false;
    t->call_known = t->call_dumped = true;
    t->call_locks = krait_kernel_locks(m, t->call, krait_kernel_event_int(ev, 2));
    t->asleep = (uint8_t)krait_kernel_asleep_on(t, krait_kernel_event_int(ev, 3));
    t->deep = krait_kernel_is_deep(krait_kernel_event_int(ev, 3));
}

/* A thread that executes another program takes over the number of its process' first, which is gone by then
 * (de_thread() in fs/exec.c). What happens before it is told may bear the new number already. */
void krait_kernel_exec_thread(machine *m, struct krait_kcpu *cpu, const struct krait_kernel_event *ev)
{
    struct krait_kthread *t = krait_kernel_thread_of(m, krait_kernel_event_int(ev, 0));
    struct krait_kthread *from =
        krait_kernel_event_has(ev, 2) ? krait_kernel_thread_of(m, krait_kernel_event_int(ev, 2)) : NULL;
    if (!t || !from || t == from)
        return;
    t->exiting = t->ended = t->freed = false;
    from->ended = true;
    if (cpu->current != t)
        krait_kernel_leave_as(m, t, (enum krait_thread_state)t->state, KRAIT_TS_WOKEN,
                              krait_kernel_waker(m, krait_kernel_by(from)));
    krait_kernel_hand_over_call(m, from, t);
    krait_kernel_leave_as(
        m, from, from->state == KRAIT_TS_UNKNOWN ? KRAIT_TS_GONE : (enum krait_thread_state)from->state,
        KRAIT_TS_GONE, 0);
    krait_kernel_put_on(m, cpu, t);
}
