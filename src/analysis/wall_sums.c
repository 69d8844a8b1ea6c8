/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/wall_sums.h"

#include "base/array.h"

#include <string.h>

/* An activation that is open. Most end in the state of the thread in which they began: what the thread had done before
 * is written down only when that state ends. */
struct frame {
    /* the thread's time so far in the state that it began in; NOT_OUTERMOST: another of its group is open around it */
    uint64_t begin_ns;
    uint64_t before[KRAIT_WALL_PARTS];
    uint32_t group;
};

#define NOT_OUTERMOST UINT64_MAX

struct krait_wall_sums {
    const struct krait_wall *wall;
    struct krait_wall_track track;
    struct krait_wall_cursor at;
    struct krait_wall_split *splits; /* by group */
    uint32_t group_count;
    uint32_t *open; /* by group: activations */
    struct frame *frames;
    uint32_t depth, cap;
    uint32_t kept; /* frames whose `before` is written down: the outer ones */
};

int krait_wall_sums_new(struct krait_wall_sums **out, const struct krait_wall *wall, uint32_t groups)
{
    struct krait_wall_sums *sums = calloc(1, sizeof(*sums));
    if (!sums)
        return -ENOMEM;
    sums->wall = wall;
    sums->group_count = groups;
    sums->splits = calloc((size_t)groups + 1, sizeof(*sums->splits));
    sums->open = calloc((size_t)groups + 1, sizeof(*sums->open));
    if (!sums->splits || !sums->open) {
        krait_wall_sums_free(sums);
        return -ENOMEM;
    }
    *out = sums;
    return 0;
}

void krait_wall_sums_free(struct krait_wall_sums *sums)
{
    if (!sums)
        return;
    krait_wall_track_done(&sums->track);
    free(sums->splits);
    free(sums->open);
    free(sums->frames);
    free(sums);
}

int krait_wall_sums_thread(struct krait_wall_sums *sums, uint32_t thread)
{
    krait_wall_track_done(&sums->track);
    int rc = krait_wall_track_new(&sums->track, sums->wall, thread);
    if (!rc)
        krait_wall_begin(&sums->at, &sums->track);
    return rc;
}

/* The state ends. All frames that are not kept yet began in it. */
static KRAIT_COLD void keep_frames(struct krait_wall_sums *sums)
{
    const struct krait_wall_cursor *at = &sums->at;
    for (; sums->kept < sums->depth; sums->kept++) {
        struct frame *frame = &sums->frames[sums->kept];
        if (frame->begin_ns == NOT_OUTERMOST)
            continue;
        memcpy(frame->before, at->ns, sizeof(frame->before));
        frame->before[at->at->part] = frame->begin_ns;
    }
}

static inline int begin(struct krait_wall_sums *sums, uint32_t group)
{
    if (!KRAIT_GROW(sums->frames, sums->cap, sums->depth + 1))
        return -ENOMEM;
    struct frame *frame = &sums->frames[sums->depth++];
    frame->group = group;
    frame->begin_ns = sums->open[group]++ ? NOT_OUTERMOST : sums->at.ns[sums->at.at->part];
    return 0;
}

static KRAIT_COLD void end_kept(struct krait_wall_sums *sums, const struct frame *frame)
{
    sums->kept = sums->depth;
    for (unsigned i = 0; i < KRAIT_WALL_PARTS && frame->begin_ns != NOT_OUTERMOST; i++)
        sums->splits[frame->group].total_ns[i] += sums->at.ns[i] - frame->before[i];
}

static inline void end(struct krait_wall_sums *sums)
{
    const struct frame *frame = &sums->frames[--sums->depth];
    sums->open[frame->group]--;
    if (KRAIT_UNLIKELY(sums->depth < sums->kept))
        end_kept(sums, frame);
    else if (frame->begin_ns != NOT_OUTERMOST)
        sums->splits[frame->group].total_ns[sums->at.at->part] +=
            sums->at.ns[sums->at.at->part] - frame->begin_ns;
}

/* hot path */
int krait_wall_sums_add(struct krait_wall_sums *sums, const struct krait_call_batch *ops,
                        const uint32_t *group_of, uint32_t group, struct krait_cost_clock *cost)
{
    uint64_t nobody[KRAIT_WALL_PARTS] = { 0 };
    int rc = 0;
    for (uint32_t i = 0; i < ops->n && !rc; i++) {
        const struct frame *top = sums->depth ? &sums->frames[sums->depth - 1] : NULL;
        if (KRAIT_UNLIKELY(krait_wall_leaves(&sums->at, ops->t_ns[i])))
            keep_frames(sums);
        uint64_t *self_ns = top ? sums->splits[top->group].self_ns : nobody;
        krait_wall_go(&sums->at, ops->t_ns[i], self_ns);
        if (cost)
            krait_wall_take(&sums->at,
                            krait_cost_next(cost, ops, i, krait_wall_lasts(&sums->at, cost->last_ns)),
                            self_ns);
        if (krait_op_is_end(ops->kind[i]))
            end(sums);
        else
            rc = begin(sums, group_of ? group_of[ops->func[i]] : group);
    }
    return rc;
}

void krait_wall_sums_end(struct krait_wall_sums *sums)
{
    for (uint32_t i = 0; i < sums->group_count; i++) {
        krait_wall_gather(sums->splits[i].self_ns);
        krait_wall_gather(sums->splits[i].total_ns);
    }
}

const struct krait_wall_split *krait_wall_sums_of(const struct krait_wall_sums *sums, uint32_t group)
{
    return &sums->splits[group];
}
