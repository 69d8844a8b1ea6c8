/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/c_stacks.h"

#include "base/array.h"

#include <string.h>

static int by_ident(const void *a, const void *b)
{
    const struct krait_c_stack *x = a, *y = b;
    return (x->ident > y->ident) - (x->ident < y->ident);
}

/* The threads whose ident lies in a mapping; the list is in the order of their idents. */
static void add_mapping(struct krait_c_stacks *list, uint64_t begin, uint64_t end)
{
    size_t i = KRAIT_PARTITION_POINT(k, list->count, list->items[k].ident < begin);
    for (; i < list->count && list->items[i].ident < end; i++) {
        list->items[i].begin = begin;
        list->items[i].end = begin = list->items[i].ident;
    }
}

int krait_c_stacks_find(struct krait_c_stacks *list, pid_t pid)
{
    unsigned long long begin, end;
    uint64_t before = 0;
    char path[64], line[512]; /* of a longer one the rest makes no mapping */
    struct krait_c_stack first = { .tid = pid };
    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    KRAIT_AUTO_FILE FILE *file = fopen(path, "re");
    if (!file)
        return -errno;
    qsort(list->items, list->count, sizeof(*list->items), by_ident);
    while (fgets(line, sizeof(line), file)) {
        if (sscanf(line, "%llx-%llx ", &begin, &end) != 2)
            continue;
        add_mapping(list, begin, end);
        if (strstr(line, " [stack]\n")) { /* it may grow down to the mapping before it */
            first.begin = before;
            first.end = end;
        }
        before = end;
    }
    if (!KRAIT_GROW(list->items, list->cap, list->count + 1))
        return -ENOMEM;
    list->items[list->count++] = first;
    return 0;
}

pid_t krait_c_stack_of(const struct krait_c_stacks *list, uint64_t address)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (address >= list->items[i].begin && address < list->items[i].end)
            return list->items[i].tid;
    }
    return 0;
}
