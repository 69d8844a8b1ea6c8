/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/own_threads.h"

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

int krait_own_threads_init(struct krait_own_threads *own, const struct krait_trace *trace,
                           const struct krait_kernel_states *states)
{
    *own = (struct krait_own_threads){ .trace = trace };
    int rc = trace ? sort_threads(own) : 0;
    for (uint32_t i = 0; !rc && i < states->thread_count; i++) {
        const struct krait_kthread *t = states->threads[i];
        if (krait_kthread_is_elsewhere(t))
            rc = krait_map_put(&own->elsewhere, (uint32_t)t->own_tid, (uint32_t)t->tid);
    }
    return rc;
}

void krait_own_threads_done(struct krait_own_threads *own)
{
    free(own->sorted);
    krait_map_done(&own->elsewhere);
    *own = (struct krait_own_threads){ 0 };
}

uint32_t krait_own_thread_at(const struct krait_own_threads *own, const struct krait_kthread *t,
                             uint64_t t_ns)
{
    const struct krait_trace *trace = own->trace;
    uint32_t id = (uint32_t)krait_kthread_own_id(t), low = 0, high = trace ? trace->thread_count : 0;
    bool is_anothers = !krait_kthread_is_elsewhere(t) && krait_map_get(&own->elsewhere, id);
    if (t->is_kernel || is_anothers)
        return KRAIT_NO_ID;
    t_ns = KRAIT_MIN(t_ns, (uint64_t)t->gone_ns);
    while (low < high) { /* behind the last of that number that had begun */
        uint32_t mid = low + (high - low) / 2;
        const struct krait_thread *thread = &trace->threads[own->sorted[mid]];
        if (thread->tid < id || (thread->tid == id && thread->begin_ns <= t_ns))
            low = mid + 1;
        else
            high = mid;
    }
    uint32_t found = low ? own->sorted[low - 1] : KRAIT_NO_ID;
    bool is_it =
        low && trace->threads[found].tid == id && trace->threads[found].begin_ns >= (uint64_t)t->born_ns;
    return is_it ? found : KRAIT_NO_ID;
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
