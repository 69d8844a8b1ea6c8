/* SPDX-License-Identifier: Apache-2.0
 *
 * What threads do while calls are open, as somebody outside sees it from time to time. A look waits until the events of its thread
 * have reached its time: then the stack is the one of that moment.
 */
#include "base/array.h"
#include "live/inside.h"

static uint64_t key_of(pid_t pid, pid_t tid)
{
    return (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
}

void krait_live_look(struct krait_live *live, const struct krait_live_look *look)
{
    const uint64_t *known = krait_map_get(&live->by_tid, key_of(look->pid, look->tid));
    struct live_thread *th = known ? (struct live_thread *)(uintptr_t)*known : NULL;
    if (!th)
        return;
    if (!KRAIT_GROW(th->looks, th->look_cap, th->look_count + 1)) {
        live->failed = true;
        return;
    }
    th->looks[th->look_count++] = *look;
}

void live_know_thread(struct krait_live *live, struct live_thread *th)
{
    if (krait_map_put(&live->by_tid, key_of(th->about.pid, th->about.tid), (uintptr_t)th))
        live->failed = true;
}

void live_forget_thread(struct krait_live *live, const struct live_thread *th)
{
    uint64_t *known = krait_map_get(&live->by_tid, key_of(th->about.pid, th->about.tid));
    if (known && *known == (uintptr_t)th) /* a number may be another thread's by now */
        *known = 0;
}

void live_count_look(struct krait_live *live, struct live_thread *th)
{
    const struct krait_live_look look = th->looks[0];
    uint8_t state = th->wait_t && th->wait_t <= look.t ? look.gil : look.state;
    memmove(th->looks, th->looks + 1, --th->look_count * sizeof(*th->looks));
    if (!KRAIT_GROW_FILLED(th->states, th->state_cap, th->row_count, 0)) {
        live->failed = true;
        return;
    }
    th->stamp++;
    live->now.looks++;
    for (uint32_t i = 1; i < th->stack.len; i++) {
        struct live_states *states = &th->states[th->stack.items[i] >> 1];
        states->all[state] += states->stamp != th->stamp;
        states->stamp = th->stamp;
    }
}

void live_turn_looks(struct live_thread *th)
{
    for (uint32_t row = 1; row < KRAIT_MIN(th->row_count, th->state_cap); row++) {
        struct live_states *states = &th->states[row];
        for (size_t i = 0; i < KRAIT_LIVE_STATES; i++)
            states->last[i] = states->all[i] - states->mark[i];
        memcpy(states->mark, states->all, sizeof(states->mark));
    }
}

void live_reset_looks(struct live_thread *th)
{
    for (uint32_t row = 1; row < th->state_cap; row++)
        th->states[row] = (struct live_states){ .stamp = th->states[row].stamp };
}

void live_add_states(struct live_thread *to, uint32_t to_row, const struct live_thread *from, uint32_t row)
{
    if (row >= from->state_cap || !KRAIT_GROW_FILLED(to->states, to->state_cap, to_row + 1, 0))
        return;
    struct live_states *sum = &to->states[to_row];
    for (size_t i = 0; i < KRAIT_LIVE_STATES; i++) {
        sum->all[i] += from->states[row].all[i];
        sum->mark[i] += from->states[row].mark[i];
        sum->last[i] += from->states[row].last[i];
    }
}
