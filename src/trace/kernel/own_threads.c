/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/own_threads.h"

#include "base/array.h"
/* By number, then as they began. */
static int by_tid_and_begin(const void *a, const void *b, void *threads)
{
    const struct krait_thread *x = (const struct krait_thread *)threads + *(const uint32_t *)a;
    const struct krait_thread *y = (const struct krait_thread *)threads + *(const uint32_t *)b;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

static int sort_threads(struct krait_own_threads *own)
{
    uint32_t count = own->trace->thread_count;
    own->sorted = calloc((size_t)count + 1, sizeof(*own->sorted));
    if (!own->sorted)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        own->sorted[i] = i;
    qsort_r(own->sorted, count, sizeof(*own->sorted), by_tid_and_begin, own->trace->threads);
    return 0;
}

/* By the number that it knows itself, then as they were born. */
static int by_id_and_birth(const void *a, const void *b)
{
    const struct krait_kthread *x = *(const struct krait_kthread *const *)a;
    const struct krait_kthread *y = *(const struct krait_kthread *const *)b;
    int32_t x_id = krait_kthread_own_id(x), y_id = krait_kthread_own_id(y);
    if (x_id != y_id)
        return x_id < y_id ? -1 : 1;
    return (x->born_ns > y->born_ns) - (x->born_ns < y->born_ns);
}

static int sort_lives(struct krait_own_threads *own, const struct krait_kernel_states *states)
{
    int rc = 0;
    own->lives = calloc((size_t)states->thread_count + 1, sizeof(*own->lives));
    if (!own->lives)
        return -ENOMEM;
    for (uint32_t i = 0; !rc && i < states->thread_count; i++) {
        const struct krait_kthread *t = states->threads[i];
        if (!t->is_kernel)
            own->lives[own->life_count++] = t;
        if (krait_kthread_is_elsewhere(t))
            rc = krait_map_put(&own->elsewhere, (uint32_t)t->own_tid, (uint32_t)t->tid);
    }
    qsort(own->lives, own->life_count, sizeof(*own->lives), by_id_and_birth);
    return rc;
}

int krait_own_threads_init(struct krait_own_threads *own, const struct krait_trace *trace,
                           const struct krait_kernel_states *states)
{
    *own = (struct krait_own_threads){ .trace = trace };
    int rc = trace ? sort_threads(own) : 0;
    return rc || !states ? rc : sort_lives(own, states);
}

void krait_own_threads_done(struct krait_own_threads *own)
{
    free(own->sorted);
    free(own->lives);
    krait_map_done(&own->elsewhere);
    *own = (struct krait_own_threads){ 0 };
}

static bool begins_by(const struct krait_thread *thread, uint32_t id, uint64_t t_ns)
{
    return thread->tid < id || (thread->tid == id && thread->begin_ns <= t_ns);
}

uint32_t krait_own_threads_last(const struct krait_own_threads *own, uint32_t id, uint64_t t_ns)
{
    const struct krait_thread *threads = own->trace ? own->trace->threads : NULL;
    uint32_t count = own->trace ? own->trace->thread_count : 0;
    size_t behind = KRAIT_PARTITION_POINT(i, count, begins_by(&threads[own->sorted[i]], id, t_ns));
    return behind && threads[own->sorted[behind - 1]].tid == id ? own->sorted[behind - 1] : KRAIT_NO_ID;
}

uint32_t krait_own_thread_at(const struct krait_own_threads *own, const struct krait_kthread *t,
                             uint64_t t_ns)
{
    uint32_t id = (uint32_t)krait_kthread_own_id(t);
    bool is_anothers = !krait_kthread_is_elsewhere(t) && krait_map_get(&own->elsewhere, id);
    if (t->is_kernel || is_anothers)
        return KRAIT_NO_ID;
    uint32_t last = krait_own_threads_last(own, id, KRAIT_MIN(t_ns, (uint64_t)t->gone_ns));
    bool is_it = last != KRAIT_NO_ID && own->trace->threads[last].begin_ns >= (uint64_t)t->born_ns;
    return is_it ? last : KRAIT_NO_ID;
}

/* The first of the lives of a number, or where it would be. */
static uint32_t first_life(const struct krait_own_threads *own, int32_t id)
{
    return (uint32_t)KRAIT_PARTITION_POINT(i, own->life_count, krait_kthread_own_id(own->lives[i]) < id);
}

const struct krait_kthread *krait_own_threads_life(const struct krait_own_threads *own, int32_t id,
                                                   uint64_t t_ns)
{
    const struct krait_kthread *found = NULL;
    bool found_own = false;
    for (uint32_t i = first_life(own, id); i < own->life_count; i++) {
        const struct krait_kthread *t = own->lives[i];
        if (krait_kthread_own_id(t) != id || (uint64_t)t->born_ns > t_ns)
            break;
        bool is_own = krait_own_thread_at(own, t, t_ns) != KRAIT_NO_ID;
        found = is_own >= found_own ? t : found;
        found_own = found_own || is_own;
    }
    return found;
}

const char *krait_own_thread_name(const struct krait_own_threads *own, const struct krait_kthread *t)
{
    uint32_t found = krait_own_thread_at(own, t, UINT64_MAX);
    const char *name = found == KRAIT_NO_ID ? "" : own->trace->threads[found].name;
    return *name ? name : NULL;
}

uint32_t krait_own_threads_kernels_id(const struct krait_own_threads *own, uint32_t id)
{
    const uint64_t *found = krait_map_get(&own->elsewhere, id);
    return found ? (uint32_t)*found : id;
}
