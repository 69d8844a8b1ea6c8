/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel_block.h"
#include "trace/kernel/kernel_machine.h"

#include <string.h>

typedef struct krait_kernel_states machine;

uint32_t krait_kernel_call_named(machine *m, const char *name, size_t n)
{
    uint32_t id = n ? krait_strtab_add(&m->calls, name, n) : KRAIT_NO_ID;
    if (id == KRAIT_NO_ID || !KRAIT_KERNEL_GROW(m, m->kinds, m->kind_cap, id + 1)) {
        m->failed |= n > 0;
        return KRAIT_NO_ID;
    }
    m->kinds[id] = krait_kernel_kind_of_call(m->calls.texts[id]);
    return id;
}

bool krait_kernel_locks(const machine *m, uint32_t call, int64_t cmd)
{
    return call != KRAIT_NO_ID && m->kinds[call].is_of_records && krait_kernel_is_lock(cmd);
}

int krait_kernel_know_calls(machine *m, const struct krait_kernel_event_class *classes, uint32_t count)
{
    m->call_of = krait_arena_alloc(&m->arena, KRAIT_MAX(count, 1u) * sizeof(*m->call_of));
    if (!m->call_of)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        bool is_call = classes[i].kind == KRAIT_KERNEL_EVENT_CALL_BEGIN ||
                       classes[i].kind == KRAIT_KERNEL_EVENT_CALL_END;
        m->call_of[i] = KRAIT_NO_ID;
        if (!is_call || !*classes[i].rest)
            continue;
        m->call_of[i] = krait_kernel_call_named(m, classes[i].rest, strlen(classes[i].rest));
        if (m->call_of[i] == KRAIT_NO_ID)
            return -ENOMEM;
        m->has_calls = true;
    }
    m->gettid = krait_strtab_find(&m->calls, "gettid", strlen("gettid"));
    return 0;
}

static KRAIT_COLD bool find_stats(machine *m, struct krait_kthread *t)
{
    uint64_t key = (uint64_t)t->process << 32 | t->call;
    const uint64_t *found = krait_map_get(&m->by_call, key);
    t->stats_call = t->call;
    if (found) {
        t->stats = (uint32_t)*found;
        return true;
    }
    if (!KRAIT_KERNEL_GROW(m, m->stats, m->stats_cap, m->stats_count + 1) ||
        krait_map_put(&m->by_call, key, m->stats_count)) {
        t->stats_call = KRAIT_NO_ID;
        m->failed = true;
        return false;
    }
    m->stats[m->stats_count] = (struct krait_kcalls){ .process = t->process, .call = t->call };
    t->stats = m->stats_count++;
    return true;
}

/* The thread's call has ended, and its begin is known. */
static void count_call(machine *m, struct krait_kthread *t, const struct krait_kernel_event *ev)
{
    enum { MOST_ERRNO = 4095 };
    int64_t ret = krait_kernel_event_int(ev, 0);
    if (m->ahead || (t->stats_call != t->call && !find_stats(m, t)))
        return;
    if (t->call == m->gettid && !t->is_kernel)
        t->own_tid = (int32_t)ret;
    if (!krait_kernel_counts(m))
        return;
    struct krait_kcalls *calls = &m->stats[t->stats];
    calls->errors += ret < 0 && ret >= -MOST_ERRNO;
    if (krait_spread_add(&calls->took, (uint64_t)(m->now - t->call_ns)))
        m->failed = true;
}

/* Who is about to enter the kernel or to leave it. Interrupts have ended, also where that was lost. */
static inline struct krait_kthread *caller(struct krait_kcpu *cpu)
{
    cpu->irqs = cpu->softirqs = 0;
    return cpu->current;
}

static void leave_call(struct krait_kcpu *cpu, struct krait_kthread *t)
{
    cpu->base = KRAIT_CS_USER;
    t->call = KRAIT_NO_ID;
    t->call_counts = t->call_dumped = false;
    t->call_known = true;
}

/* It counts as over at once. */
static KRAIT_COLD void pass_call(const machine *m, struct krait_kcpu *cpu, struct krait_kthread *t)
{
    if (m->watch && m->watch->left)
        m->watch->left(m->watch->ctx, t, false, 0, m->now);
    leave_call(cpu, t);
}

void krait_kernel_begin_call(machine *m, struct krait_kcpu *cpu, const struct krait_kernel_event *ev)
{
    struct krait_kthread *t = caller(cpu);
    cpu->base = KRAIT_CS_SYSTEM;
    if (!t)
        return;
    uint32_t was = t->call_counts ? t->call : KRAIT_NO_ID;
    t->call = m->call_of[ev->cls->index];
    t->call_ns = m->now;
    t->call_counts = t->call_known = t->makes_calls = true;
    t->call_dumped = false;
    t->call_locks = krait_kernel_locks(m, t->call, krait_kernel_event_int(ev, 0));
    if (m->watch && m->watch->entered)
        m->watch->entered(m->watch->ctx, t, was, m->now);
    if (t->call != KRAIT_NO_ID && KRAIT_UNLIKELY(m->kinds[t->call].has_no_end))
        pass_call(m, cpu, t);
}

void krait_kernel_hand_over_call(const machine *m, struct krait_kthread *from, struct krait_kthread *to)
{
    bool counts = from->call_counts;
    to->call = from->call;
    to->call_ns = from->call_ns;
    to->call_counts = counts;
    to->call_known = from->call_known;
    to->call_locks = from->call_locks;
    if (counts && m->watch && m->watch->left)
        m->watch->left(m->watch->ctx, from, false, 0, m->now);
    from->call = KRAIT_NO_ID;
    from->call_counts = false;
    if (counts && m->watch && m->watch->entered)
        m->watch->entered(m->watch->ctx, to, KRAIT_NO_ID, m->now);
}

void krait_kernel_end_call(machine *m, struct krait_kcpu *cpu, const struct krait_kernel_event *ev)
{
    struct krait_kthread *t = caller(cpu);
    cpu->base = KRAIT_CS_USER;
    if (!t)
        return;
    uint32_t call = m->call_of[ev->cls->index];
    bool own = t->call != KRAIT_NO_ID && t->call_counts && (call == KRAIT_NO_ID || call == t->call);
    if (own)
        count_call(m, t, ev);
    if (m->watch && m->watch->left)
        m->watch->left(m->watch->ctx, t, own, krait_kernel_event_int(ev, 0), m->now);
    leave_call(cpu, t);
}
