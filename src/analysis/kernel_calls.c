/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/kernel_block.h"
#include "analysis/kernel_machine.h"

#include <string.h>

typedef struct krait_kernel_states machine;

int krait_kernel_know_calls(machine *m, const struct krait_kev_class *classes, uint32_t count)
{
    m->call_of = krait_arena_alloc(&m->arena, KRAIT_MAX(count, 1u) * sizeof(*m->call_of));
    m->blocks_on = krait_arena_alloc(&m->arena, KRAIT_MAX(count, 1u));
    if (!m->call_of || !m->blocks_on)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        bool is_call = classes[i].kind == KRAIT_KEV_CALL_BEGIN || classes[i].kind == KRAIT_KEV_CALL_END;
        m->call_of[i] = KRAIT_NO_ID;
        if (!is_call || !*classes[i].rest)
            continue;
        uint32_t id = krait_strtab_add(&m->calls, classes[i].rest, strlen(classes[i].rest));
        if (id == KRAIT_NO_ID)
            return -ENOMEM;
        m->call_of[i] = id;
        m->blocks_on[id] = (uint8_t)krait_kernel_blocks_on(classes[i].rest);
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
    if (!krait_kernel_grow(m, &m->stats, m->stats_count, &m->stats_cap, sizeof(*m->stats)) ||
        krait_map_put(&m->by_call, key, m->stats_count)) {
        t->stats_call = KRAIT_NO_ID;
        m->failed = true;
        return false;
    }
    m->stats[m->stats_count] = (struct krait_kcalls){ .process = t->process, .call = t->call };
    t->stats = m->stats_count++;
    return true;
}

void krait_kernel_count_call(machine *m, struct krait_kthread *t, const struct krait_kev *ev)
{
    enum { MOST_ERRNO = 4095 };
    int64_t ret = krait_kev_int(ev, 0);
    if (t->stats_call != t->call && !find_stats(m, t))
        return;
    if (t->call == m->gettid && !t->is_kernel)
        t->own_tid = (int32_t)ret;
    struct krait_kcalls *calls = &m->stats[t->stats];
    calls->errors += ret < 0 && ret >= -MOST_ERRNO;
    if (krait_spread_add(&calls->took, (uint64_t)(m->now - t->call_ns)))
        m->failed = true;
}
