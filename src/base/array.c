/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"

enum { FEWEST = 16 };

void *krait_grow(void *items, size_t *cap, size_t need, size_t size, size_t most)
{
    size_t bytes;
    if (need > most)
        return NULL;
    size_t wanted = *cap > most / 2 ? most : KRAIT_MAX(*cap * 2, KRAIT_MIN(FEWEST, most));
    wanted = KRAIT_MAX(wanted, need);
    void *grown = __builtin_mul_overflow(wanted, size, &bytes) ? NULL : realloc(items, bytes);
    if (grown)
        *cap = wanted;
    return grown;
}

void *krait_array_trim(void *items, size_t *cap, size_t count, size_t size)
{
    if (!count) {
        free(items);
        *cap = 0;
        return NULL;
    }
    void *trimmed = realloc(items, count * size);
    if (trimmed)
        *cap = count;
    return trimmed ? trimmed : items;
}
