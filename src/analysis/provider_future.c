/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes that state providers make at a later time: <futureTime>. Each has its value from the event that asked for it, and
 * is made before the first event that is not earlier, or at the end (Trace Compass's AbstractTmfStateProvider).
 */
#include "analysis/provider_own.h"

#include "base/array.h"

#include <string.h>

static bool is_before(const struct krait_future *a, const struct krait_future *b)
{
    return a->t_ns != b->t_ns ? a->t_ns < b->t_ns : a->number < b->number;
}

static void swap(struct krait_future *a, struct krait_future *b)
{
    struct krait_future kept = *a;
    *a = *b;
    *b = kept;
}

int krait_provider_later(struct krait_run *run, const struct krait_buf *path, struct krait_future future,
                         const char *value)
{
    struct krait_provider *provider = run->provider;
    future.number = provider->future_number++;
    future.path = krait_provider_attribute(provider, path);
    future.value = value ? krait_strtab_add(&provider->values, value, strlen(value)) : KRAIT_NO_ID;
    if (future.path == KRAIT_NO_ID || (value && future.value == KRAIT_NO_ID) ||
        !KRAIT_GROW(provider->futures, provider->future_cap, provider->future_count + 1))
        return -ENOMEM;
    uint32_t at = provider->future_count++;
    provider->futures[at] = future;
    for (; at && is_before(&provider->futures[at], &provider->futures[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&provider->futures[at], &provider->futures[(at - 1) / 2]);
    return 0;
}

static struct krait_future take_first(struct krait_provider *provider)
{
    struct krait_future *all = provider->futures, first = all[0];
    uint32_t count = --provider->future_count;
    all[0] = all[count];
    for (uint32_t at = 0, least = 0;; at = least) {
        for (uint32_t of = 2 * at + 1; of < count && of <= 2 * at + 2; of++)
            least = is_before(&all[of], &all[least]) ? of : least;
        if (least == at)
            return first;
        swap(&all[at], &all[least]);
    }
}

static int make(struct krait_run *run, const struct krait_future *future)
{
    KRAIT_AUTO_BUF path = { 0 };
    struct krait_provider *provider = run->provider;
    const char *value = future->value == KRAIT_NO_ID ? NULL : provider->values.texts[future->value];
    int rc = 0;
    krait_buf_str(&path, provider->paths.texts[future->path]);
    for (uint32_t i = 0; i < future->times && !rc; i++)
        rc = path.failed ? -ENOMEM : krait_provider_put(run, &path, future->how, value);
    return rc;
}

int krait_provider_catch_up(struct krait_run *run, uint64_t until_ns, uint64_t last_ns)
{
    struct krait_provider *provider = run->provider;
    int rc = 0;
    while (!rc && provider->future_count && provider->futures[0].t_ns <= until_ns) {
        struct krait_future future = take_first(provider);
        run->t_ns = KRAIT_MIN(future.t_ns, last_ns);
        rc = make(run, &future);
    }
    return rc;
}

void krait_provider_forget_later(struct krait_provider *provider)
{
    provider->future_count = 0;
    provider->future_number = 0;
}
