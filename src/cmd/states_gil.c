/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait states`: waits for the GIL, which the kernel takes for waits for a lock, or for time in which a thread is ready.
 */
#include "analysis/wall.h"
#include "cmd/states.h"
#include "trace/gil.h"

static int add_threads(struct states *s, const struct krait_wall *wall,
                       const struct krait_kernel_states *found)
{
    const struct krait_ranges *parts = s->options->select.parts.count ? &s->options->select.parts : NULL;
    const struct krait_range range = { (uint64_t)found->begin_ns, (uint64_t)found->end_ns };
    int rc = 0;
    for (uint32_t i = 0; i < s->trace->thread_count && !rc; i++) {
        const struct krait_thread *own = &s->trace->threads[i];
        const struct krait_kthread *t = krait_own_threads_life(&s->threads, (int32_t)own->tid, own->end_ns);
        if (t)
            rc = krait_wall_gil_times(wall, i, range, parts, s->gil[t->index]);
    }
    return rc;
}

int krait_states_find_gil(struct states *s, const struct krait_kernel_states *found, struct krait_err *err)
{
    struct krait_wall *wall = NULL;
    int waited = s->trace ? krait_gil_was_waited_for(s->trace) : 0;
    if (waited <= 0)
        return waited ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
    int rc = krait_wall_new(&wall, s->trace, KRAIT_WALL_KERNEL | KRAIT_WALL_WAITS, err);
    if (rc)
        return rc == -ENODATA ? 0 : rc; /* without switches, no state is known */
    s->gil = calloc((size_t)found->thread_count + 1, sizeof(*s->gil));
    if (!s->gil || add_threads(s, wall, found))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    krait_wall_free(wall);
    return rc;
}

void krait_states_add(const struct states *s, const struct krait_kthread *t, uint64_t ns[STATES_COUNT])
{
    for (unsigned i = 0; i < KRAIT_TS_COUNT; i++) {
        uint64_t gil = s->gil ? KRAIT_MIN(s->gil[t->index][i], t->ns[i]) : 0;
        ns[i] += t->ns[i] - gil;
        ns[STATES_GIL] += gil;
    }
}
