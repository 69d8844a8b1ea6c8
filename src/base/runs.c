/* SPDX-License-Identifier: Apache-2.0 */
#include "base/runs.h"

#include "base/array.h"

#include <string.h>

struct runs {
    size_t *ends; /* of each run, in items */
    size_t count, cap;
    size_t size; /* of an item */
    int (*compare)(const void *, const void *);
};

static int find_runs(struct runs *runs, const char *items, size_t count)
{
    for (size_t i = 1; i <= count; i++) {
        if (i < count && runs->compare(items + (i - 1) * runs->size, items + i * runs->size) <= 0)
            continue;
        if (!KRAIT_GROW(runs->ends, runs->cap, runs->count + 1))
            return -ENOMEM;
        runs->ends[runs->count++] = i;
    }
    return 0;
}

/* Two runs that lie one after the other, into `to`. */
static void merge(const struct runs *runs, char *to, const char *at, const char *middle, const char *end)
{
    const char *second = middle;
    while (at < middle && second < end) {
        const char **least = runs->compare(at, second) <= 0 ? &at : &second;
        memcpy(to, *least, runs->size);
        *least += runs->size;
        to += runs->size;
    }
    to = mempcpy(to, at, (size_t)(middle - at));
    memcpy(to, second, (size_t)(end - second));
}

/* Each two neighbours become one. */
static void merge_pairs(struct runs *runs, char *to, const char *from)
{
    size_t begin = 0, kept = 0;
    for (size_t i = 0; i < runs->count; i += 2) {
        size_t middle = runs->ends[i], end = i + 1 < runs->count ? runs->ends[i + 1] : middle;
        merge(runs, to + begin * runs->size, from + begin * runs->size, from + middle * runs->size,
              from + end * runs->size);
        runs->ends[kept++] = begin = end;
    }
    runs->count = kept;
}

int krait_runs_sort(void *items, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    struct runs runs = { .size = size, .compare = compare };
    char *from = items, *to = NULL;
    int rc = find_runs(&runs, items, count);
    if (!rc && runs.count > 1)
        rc = (to = malloc(count * size)) ? 0 : -ENOMEM;
    char *extra = to;
    while (!rc && runs.count > 1) {
        merge_pairs(&runs, to, from);
        char *merged = to;
        to = from;
        from = merged;
    }
    if (!rc && from != items)
        memcpy(items, from, count * size);
    free(extra);
    free(runs.ends);
    return rc;
}
