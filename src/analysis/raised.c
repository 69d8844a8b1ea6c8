/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/raised.h"

#include <string.h>

int krait_raised_add(struct krait_map *counts, uint32_t group, uint32_t exception, uint64_t count)
{
    uint64_t key = (uint64_t)group << 32 | exception, *known = krait_map_get(counts, key);
    if (!known)
        return krait_map_put(counts, key, count);
    *known += count;
    return 0;
}

static int by_group_and_count(const void *a, const void *b)
{
    const struct krait_raises *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->raised.count != y->raised.count)
        return x->raised.count > y->raised.count ? -1 : 1;
    return strcmp(x->raised.type, y->raised.type);
}

struct krait_raises *krait_raised_sorted(const struct krait_map *counts, const struct krait_trace *trace,
                                         size_t *count)
{
    struct krait_raises *raises = calloc(counts->len + 1, sizeof(*raises));
    *count = 0;
    for (size_t i = 0; raises && i < counts->cap; i++) {
        const struct krait_map_slot *slot = &counts->slots[i];
        uint32_t id = (uint32_t)slot->key;
        if (!slot->used)
            continue;
        raises[(*count)++] =
            (struct krait_raises){ (uint32_t)(slot->key >> 32),
                                   { id == KRAIT_NO_ID ? "?" : trace->exceptions[id], slot->value } };
    }
    if (raises)
        qsort(raises, *count, sizeof(*raises), by_group_and_count);
    return raises;
}
