/* SPDX-License-Identifier: Apache-2.0 */
#include "view/hues.h"

#include "base/map.h"

#include <string.h>

static uint32_t hash_of(const char *text)
{
    return (uint32_t)(krait_hash_bytes(text, strlen(text)) >> 32);
}

static int by_weight(const void *a, const void *b)
{
    const struct krait_package *x = *(struct krait_package *const *)a, *y = *(struct krait_package *const *)b;
    if (x->weight != y->weight)
        return x->weight < y->weight ? 1 : -1;
    return strcmp(x->text, y->text);
}

int krait_hues_give(struct krait_package *packages, uint32_t count)
{
    bool taken[KRAIT_HUES] = { false };
    KRAIT_AUTO_FREE struct krait_package **ranked =
        malloc(KRAIT_MAX(count, 1u) * sizeof(struct krait_package *));
    if (!ranked)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        packages[i].hue = KRAIT_HUES;
        ranked[i] = &packages[i];
    }
    qsort(ranked, count, sizeof(struct krait_package *), by_weight);
    for (uint32_t i = 0; i < count && i < KRAIT_HUES; i++) {
        uint32_t hue = hash_of(ranked[i]->text) % KRAIT_HUES;
        while (taken[hue])
            hue = (hue + 5) % KRAIT_HUES; /* 5 and 12 have no common factor; a neighbour would look alike */
        taken[hue] = true;
        ranked[i]->hue = hue;
    }
    return 0;
}

uint32_t krait_hues_shade(const char *name)
{
    return hash_of(name) % KRAIT_SHADES;
}
