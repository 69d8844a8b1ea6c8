/* SPDX-License-Identifier: Apache-2.0 */
#include "event/waits.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void krait_waits_done(struct krait_waits *waits)
{
    krait_map_done(&waits->last);
    free(waits->of);
    *waits = (struct krait_waits){ 0 };
}

int krait_waits_begin(struct krait_waits *waits, uint32_t task, uint64_t key)
{
    krait_waits_end(waits, task);
    if (!key)
        return 0;
    krait_map_trim(&waits->last, &waits->most);
    uint32_t older = krait_waits_last(waits, key);
    if (!KRAIT_GROW_FILLED(waits->of, waits->cap, task + 1, 0) ||
        krait_map_put(&waits->last, key, (uint64_t)task + 1))
        return -ENOMEM;
    waits->of[task] = (struct krait_wait){ .key = key, .older = older + 1 }; /* KRAIT_NO_ID + 1 is 0 */
    if (older != KRAIT_NO_ID)
        waits->of[older].later = task + 1;
    return 0;
}

void krait_waits_end(struct krait_waits *waits, uint32_t task)
{
    const struct krait_wait wait = task < waits->cap ? waits->of[task] : (struct krait_wait){ 0 };
    if (!wait.key)
        return;
    if (wait.older)
        waits->of[wait.older - 1].later = wait.later;
    if (wait.later)
        waits->of[wait.later - 1].older = wait.older;
    else
        *krait_map_get(&waits->last, wait.key) = wait.older;
    waits->of[task] = (struct krait_wait){ 0 };
}

uint32_t krait_waits_last(const struct krait_waits *waits, uint64_t key)
{
    const uint64_t *last = krait_map_get(&waits->last, key);
    return last ? (uint32_t)*last - 1 : KRAIT_NO_ID;
}

uint32_t krait_waits_older(const struct krait_waits *waits, uint32_t task)
{
    return waits->of[task].older - 1;
}
