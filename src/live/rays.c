/* SPDX-License-Identifier: Apache-2.0
 *
 * The newest calls, as a clock shows them: by the moment of their end and by their duration.
 *
 *     a turn   | place 0 | place 1 | ... | place 719 |     the moment of the end, modulo a turn
 *                  |
 *                  +-- length 0, 1, ... 255                the newest function of each, on a logarithmic scale
 *
 * A program makes millions of calls in a turn; a picture cannot tell more of them apart than there are places and lengths. So the
 * memory and the time of drawing do not depend on the number of calls.
 */
#include "base/array.h"
#include "live/inside.h"

bool live_watch_stack(struct live_stack *stack, uint32_t len)
{
    return KRAIT_GROW_FILLED(stack->begun, stack->begun_cap, KRAIT_MAX(len, stack->cap), 0);
}

static void forget_times(struct live_stack *stack)
{
    free(stack->begun);
    stack->begun = NULL;
    stack->begun_cap = 0;
}

static void end_watch(struct krait_live *live)
{
    for (uint32_t i = 0; i < live->thread_count; i++) {
        struct live_thread *th = live->threads[i];
        forget_times(&th->stack);
        for (uint32_t k = 0; k < th->left_cap; k++)
            forget_times(&th->left[k]);
    }
    free(live->rays);
    live->rays = NULL;
}

static int begin_watch(struct krait_live *live)
{
    live->rays = calloc(1, sizeof(*live->rays));
    bool failed = !live->rays;
    for (uint32_t i = 0; i < live->thread_count && !failed; i++)
        failed = !live_watch_stack(&live->threads[i]->stack, live->threads[i]->stack.len);
    if (failed)
        end_watch(live);
    return failed ? -ENOMEM : 0;
}

int krait_live_watch(struct krait_live *live, uint64_t turn_ns)
{
    if (!turn_ns)
        end_watch(live);
    else if (!live->rays && begin_watch(live))
        return -ENOMEM;
    if (!turn_ns)
        return 0;
    uint64_t ticks = (uint64_t)KRAIT_MAX((double)turn_ns * (double)live->clock->freq / 1e9 / LIVE_PLACES, 1);
    if (live->rays->ticks != ticks)
        *live->rays = (struct live_rays){ .ticks = ticks };
    return 0;
}

void krait_live_hold(struct krait_live *live, bool held)
{
    if (live->rays)
        live->rays->held = held;
}

static double turns(const struct krait_live *live, uint64_t ticks)
{
    return (double)ticks / (double)(live->rays->ticks * LIVE_PLACES);
}

double krait_live_hand(const struct krait_live *live, uint64_t now)
{
    return live->rays ? turns(live, now % (live->rays->ticks * LIVE_PLACES)) : 0;
}

static int each_of_place(const struct krait_live *live, const struct live_place *place, uint64_t now,
                         krait_live_ray_fn *fn, void *ctx)
{
    uint64_t end = place->number * live->rays->ticks;
    int rc = 0;
    for (unsigned i = 0; i < LIVE_LENGTHS && !rc; i++) {
        if (!place->funcs[i])
            continue;
        const struct krait_live_ray ray = {
            .func = live_func(live, place->funcs[i] - 1),
            .angle = turns(live, place->number % LIVE_PLACES * live->rays->ticks),
            .age = turns(live, now > end ? now - end : 0),
            .ns = live_ns(live, (uint64_t)(4 + i % 4) << i / 4 >> 2),
        };
        rc = fn(ctx, &ray);
    }
    return rc;
}

int krait_live_each_ray(const struct krait_live *live, uint64_t now, krait_live_ray_fn *fn, void *ctx)
{
    uint64_t last = live->rays ? now / live->rays->ticks : 0;
    int rc = 0;
    for (uint64_t back = KRAIT_MIN(last, (uint64_t)LIVE_PLACES); live->rays && back-- > 0 && !rc;) {
        const struct live_place *place = &live->rays->places[(last - back) % LIVE_PLACES];
        if (place->number == last - back)
            rc = each_of_place(live, place, now, fn, ctx);
    }
    return rc;
}
