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

uint32_t krait_hues_take(bool taken[KRAIT_HUES], const char *package)
{
    uint32_t hue = hash_of(package) % KRAIT_HUES;
    for (uint32_t i = 0; i < KRAIT_HUES; i++) {
        if (!taken[hue]) {
            taken[hue] = true;
            return hue;
        }
        hue = (hue + 5) % KRAIT_HUES; /* 5 and 12 have no common factor; a neighbour would look alike */
    }
    return KRAIT_HUES;
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
    for (uint32_t i = 0; i < count && i < KRAIT_HUES; i++)
        ranked[i]->hue = krait_hues_take(taken, ranked[i]->text);
    return 0;
}

uint32_t krait_hues_shade(const char *name)
{
    return hash_of(name) % KRAIT_SHADES;
}
