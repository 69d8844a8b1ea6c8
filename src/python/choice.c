/* SPDX-License-Identifier: Apache-2.0 */
#include "python/choice.h"

#include <stdlib.h>

/* Of so many events' cost; event_ticks are of two. */
static uint64_t ticks_of_events(uint64_t events, uint64_t event_ticks)
{
    return events * event_ticks / 2;
}

static bool is_short(uint64_t ticks, uint64_t calls, uint64_t event_ticks)
{
    return ticks <= ticks_of_events(KRAIT_SHORT_EVENTS, event_ticks) * calls;
}

bool krait_choice_is_short(const struct krait_timed *timed, uint64_t event_ticks)
{
    return timed->calls >= KRAIT_KNOWN_CALLS &&
           is_short(timed->ticks + timed->open_ticks, timed->calls, event_ticks);
}

bool krait_choice_is_sure(const struct krait_timed *timed, uint64_t event_ticks)
{
    uint64_t unseen = KRAIT_UNSEEN * ticks_of_events(KRAIT_LONG_EVENTS, event_ticks);
    return is_short(timed->ticks + timed->open_ticks + unseen, timed->calls + 1, event_ticks);
}

struct krait_candidate krait_choice_candidate(const struct krait_timed *timed, uint32_t id,
                                              uint64_t event_ticks)
{
    uint64_t mean = (timed->ticks + timed->open_ticks) / KRAIT_MAX(timed->calls, (uint64_t)1);
    uint64_t half_events = mean * 4 / (event_ticks + 1);
    return (struct krait_candidate){
        .id = id,
        .sure = krait_choice_is_sure(timed, event_ticks),
        .rank = half_events ? 64 - (uint32_t)__builtin_clzll(half_events) : 0,
        .recent = timed->recent,
    };
}

uint64_t krait_choice_excess(uint64_t begins, uint64_t spent, uint64_t allowed)
{
    if (spent <= allowed)
        return 0;
    return (uint64_t)((1 - (double)allowed / (double)spent) * (double)begins) + 1;
}

static int surest_and_shortest_first(const void *a, const void *b)
{
    const struct krait_candidate *x = a, *y = b;
    if (x->sure != y->sure)
        return x->sure ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->recent < y->recent) - (x->recent > y->recent);
}

size_t krait_choice_pick(struct krait_candidate *candidates, size_t n, uint64_t excess)
{
    uint64_t fair = n ? excess / (8 * n) : 0, gone = 0, sure = 0;
    size_t picked = 0;
    qsort(candidates, n, sizeof(*candidates), surest_and_shortest_first);
    for (size_t i = 0; i < n && gone < excess; i++) {
        if (!candidates[i].sure && sure >= excess / 2)
            break;
        if (candidates[i].recent <= fair)
            continue;
        gone += candidates[i].recent;
        sure += candidates[i].sure ? candidates[i].recent : 0;
        candidates[picked++] = candidates[i];
    }
    return picked;
}

void krait_choice_begin_probes(struct krait_timed *timed)
{
    timed->ticks += timed->open_ticks;
    timed->ticks = krait_timed_mean(timed) * KRAIT_KNOWN_CALLS;
    timed->open_ticks = 0;
    timed->calls = KRAIT_KNOWN_CALLS;
    timed->recent = 0;
    timed->recent_ticks = 0;
}

static bool is_long(uint64_t ticks, uint64_t calls, uint64_t event_ticks)
{
    return ticks >
           ticks_of_events(KRAIT_LONG_EVENTS, event_ticks) * KRAIT_MAX(calls, (uint64_t)KRAIT_KNOWN_CALLS);
}

bool krait_choice_add_probe(struct krait_timed *timed, uint32_t calls, uint64_t ticks, uint64_t event_ticks)
{
    enum { OLD = 16 * KRAIT_KNOWN_CALLS };
    timed->recent += calls;
    timed->recent_ticks += ticks;
    timed->calls += calls;
    timed->ticks += ticks;
    if (timed->calls >= OLD) {
        timed->calls /= 2;
        timed->ticks /= 2;
    }
    return is_long(timed->recent_ticks, timed->recent, event_ticks) ||
           is_long(timed->ticks, timed->calls, event_ticks);
}

bool krait_choice_round_is_over(struct krait_timed *timed)
{
    if (timed->recent < KRAIT_KNOWN_CALLS)
        return false;
    timed->recent = 0;
    timed->recent_ticks = 0;
    return true;
}
