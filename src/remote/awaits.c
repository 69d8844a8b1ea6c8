/* SPDX-License-Identifier: Apache-2.0
 *
 * Which tasks of asyncio await which. A task keeps those that await it: one as it is, more of them as a set
 * (future_awaited_by_add in Modules/_asynciomodule.c); asyncio.gather() and TaskGroup say it too. What is read may be of
 * several moments, so only tasks count that are in the list.
 */
#include "remote/awaits.h"

#include "base/array.h"
#include "remote/memory.h"

#include <string.h>

enum { SET_MAX = 1 << 20, ENTRY_WORDS = 2 };

/* Addresses of objects, as they were read. */
struct found {
    uint64_t *items;
    uint32_t count, cap;
};

static void found_done(struct found *found)
{
    free(found->items);
}

static int read_words(const struct krait_remote *remote, uint64_t addr, uint64_t *words, size_t count)
{
    return krait_memory_read(remote->pid, addr, words, count * sizeof(*words));
}

/* The table of a set: for each entry the object, or NULL, and its hash. */
static int read_set(const struct krait_remote *remote, uint64_t set, struct found *found)
{
    uint64_t mask = 0, table = 0;
    int rc = read_words(remote, set + KRAIT_SET_MASK, &mask, 1);
    rc = rc ? rc : read_words(remote, set + KRAIT_SET_TABLE, &table, 1);
    if (rc || mask >= SET_MAX)
        return rc ? rc : -EFAULT;
    uint32_t words = (uint32_t)(mask + 1) * ENTRY_WORDS;
    if (!KRAIT_GROW(found->items, found->cap, words))
        return -ENOMEM;
    rc = read_words(remote, table, found->items, words);
    for (uint32_t i = 0; i < words && !rc; i += ENTRY_WORDS) {
        if (found->items[i])
            found->items[found->count++] = found->items[i];
    }
    return rc;
}

static int read_once(const struct krait_remote *remote, const struct krait_asyncio_table *table,
                     uint64_t task, struct found *found)
{
    uint64_t object = 0;
    uint8_t is_set = 0;
    found->count = 0;
    int rc = read_words(remote, task + table->task_awaited_by, &object, 1);
    if (!rc)
        rc = krait_memory_read(remote->pid, task + table->task_awaited_by_is_set, &is_set, sizeof(is_set));
    if (rc || !object)
        return rc;
    if (is_set)
        return read_set(remote, object, found);
    if (!KRAIT_GROW(found->items, found->cap, 1))
        return -ENOMEM;
    found->items[found->count++] = object;
    return 0;
}

/* Until it is the same twice. -EAGAIN: it never was. */
static int read_found(const struct krait_remote *remote, const struct krait_asyncio_table *table,
                      uint64_t task, struct found *found)
{
    enum { TRIES = 20 };
    KRAIT_CLEANUP(found_done) struct found before = { 0 };
    int rc = -EAGAIN;
    for (int i = 0; i < TRIES && rc != -ENOMEM; i++) {
        int first = read_once(remote, table, task, &before);
        rc = read_once(remote, table, task, found);
        bool same =
            !first && !rc && before.count == found->count &&
            (!found->count || memcmp(before.items, found->items, found->count * sizeof(*found->items)) == 0);
        if (same)
            return 0;
        rc = rc == -ENOMEM || first == -ENOMEM ? -ENOMEM : -EAGAIN;
    }
    return rc;
}

static int add_awaiters(struct krait_remote_stacks *stacks, const struct krait_map *places,
                        const struct found *found, struct krait_remote_task *task)
{
    task->by_first = stacks->awaiter_count;
    task->by_count = 0;
    if (!KRAIT_GROW(stacks->awaiters, stacks->awaiter_cap, stacks->awaiter_count + found->count))
        return -ENOMEM;
    for (uint32_t i = 0; i < found->count; i++) {
        const uint64_t *place = krait_map_get(places, found->items[i]);
        if (place)
            stacks->awaiters[task->by_first + task->by_count++] = (uint32_t)*place;
    }
    stacks->awaiter_count += task->by_count;
    return 0;
}

int krait_awaits_read(const struct krait_remote *remote, const struct krait_asyncio_table *table,
                      struct krait_remote_stacks *stacks)
{
    KRAIT_CLEANUP(krait_map_done) struct krait_map places = { 0 };
    KRAIT_CLEANUP(found_done) struct found found = { 0 };
    int rc = 0;
    stacks->awaiter_count = 0;
    for (uint32_t i = 0; i < stacks->coroutine_count && !rc; i++)
        rc = krait_map_put(&places, stacks->coroutines[i].addr, i);
    for (uint32_t i = 0; i < stacks->coroutine_count && !rc; i++) {
        rc = read_found(remote, table, stacks->coroutines[i].addr, &found);
        if (rc == -EAGAIN) {
            found.count = 0;
            rc = 0;
        }
        rc = rc ? rc : add_awaiters(stacks, &places, &found, &stacks->coroutines[i]);
    }
    return rc;
}
