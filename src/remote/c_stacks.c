/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/c_stacks.h"

#include "base/array.h"
#include "remote/memory.h"

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

/* -- threads whose ident is not known -- */

/* The mapping that has this address; false: none has. */
static bool find_mapping(pid_t pid, uint64_t address, struct krait_c_stack *stack)
{
    unsigned long long begin, end;
    char path[64], line[512];
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    KRAIT_AUTO_FILE FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof(line), file))
        found = sscanf(line, "%llx-%llx ", &begin, &end) == 2 && address >= begin && address < end;
    stack->begin = found ? begin : 0;
    stack->end = found ? end : 0;
    return found;
}

static bool has(const struct krait_c_stacks *list, pid_t tid)
{
    uint32_t i = 0;
    while (i < list->count && list->items[i].tid != tid)
        i++;
    return i < list->count;
}

/* The thread that has this number in its struct pthread; 0: none that is not in the list. Behind it lies the process's number or 0
 * in glibc (nptl/descr.h), errno in musl. */
static pid_t unknown_thread(const struct krait_c_stacks *list, const struct krait_os_tasks *tasks,
                            uint64_t word)
{
    enum { ERRNO_MAX = 4096 };
    uint32_t number = (uint32_t)word, behind = (uint32_t)(word >> 32);
    uint32_t i = 0;
    while (i < tasks->count && (uint32_t)tasks->items[i].inner != number)
        i++;
    bool fits = i < tasks->count && (behind < ERRNO_MAX || behind == (uint32_t)tasks->items[0].inner);
    return fits && !has(list, tasks->items[i].tid) ? tasks->items[i].tid : 0;
}

pid_t krait_c_stacks_add(struct krait_c_stacks *list, pid_t pid, const struct krait_os_tasks *tasks,
                         uint64_t address)
{
    enum { WORDS = 1024 };
    uint64_t words[WORDS]; /* of the end of the stack's mapping */
    struct krait_c_stack stack = { 0 };
    bool certain = true;
    size_t count = find_mapping(pid, address, &stack)
                       ? KRAIT_MIN((stack.end - address) / sizeof(*words), (uint64_t)WORDS)
                       : 0;
    if (krait_memory_read(pid, stack.end - count * sizeof(*words), words, count * sizeof(*words)))
        return 0;
    for (size_t i = 0; i < count && certain; i++) {
        pid_t tid = unknown_thread(list, tasks, words[i]);
        certain = !tid || !stack.tid || tid == stack.tid;
        stack.tid = tid ? tid : stack.tid;
    }
    if (!certain || !stack.tid || !KRAIT_GROW(list->items, list->cap, list->count + 1))
        return 0;
    list->items[list->count++] = stack;
    return stack.tid;
}
