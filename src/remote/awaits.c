/* SPDX-License-Identifier: Apache-2.0
 *
 * Which tasks of asyncio await which. From 3.14 on a task keeps those that await it: one as it is, more of them as a set
 * (future_awaited_by_add in Modules/_asynciomodule.c); asyncio.gather() and TaskGroup say it too. Before, its callbacks tell them
 * (callbacks.h). What is read may be of several moments, so only tasks count that are in the list.
 */
#include "remote/awaits.h"

#include "base/array.h"
#include "remote/callbacks.h"
#include "remote/memory.h"

#include <string.h>

struct source {
    struct krait_remote *remote;
    const struct krait_asyncio_table *table; /* NULL: before 3.14 */
    struct krait_future_types types;
    uint64_t task;
};

static void source_done(struct source *source)
{
    krait_future_types_done(&source->types);
}

static int read_kept(const struct source *source, struct krait_found *found)
{
    const struct krait_remote *remote = source->remote;
    uint64_t object = 0;
    uint8_t is_set = 0;
    int rc = krait_memory_read(remote->pid, source->task + source->table->task_awaited_by, &object,
                               sizeof(object));
    if (!rc)
        rc = krait_memory_read(remote->pid, source->task + source->table->task_awaited_by_is_set, &is_set,
                               sizeof(is_set));
    if (rc || !object)
        return rc;
    if (is_set)
        return krait_set_items(remote, object, found);
    if (!KRAIT_GROW(found->items, found->cap, found->count + 1))
        return -ENOMEM;
    found->items[found->count++] = object;
    return 0;
}

static int read_once(void *ctx, struct krait_found *found)
{
    struct source *source = ctx;
    return source->table ? read_kept(source, found)
                         : krait_callbacks_read(source->remote, &source->types, source->task, found);
}

static int add_awaiters(struct krait_remote_stacks *stacks, const struct krait_map *places,
                        const struct krait_found *found, struct krait_remote_task *task)
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

int krait_awaits_read(struct krait_remote *remote, const struct krait_asyncio_table *table,
                      struct krait_remote_stacks *stacks)
{
    KRAIT_CLEANUP(krait_map_done) struct krait_map places = { 0 };
    KRAIT_CLEANUP(krait_found_done) struct krait_found found = { 0 };
    KRAIT_CLEANUP(source_done) struct source source = { .remote = remote, .table = table };
    int rc = 0;
    stacks->awaiter_count = 0;
    for (uint32_t i = 0; i < stacks->coroutine_count && !rc; i++)
        rc = krait_map_put(&places, stacks->coroutines[i].addr, i);
    for (uint32_t i = 0; i < stacks->coroutine_count && !rc; i++) {
        source.task = stacks->coroutines[i].addr;
        rc = krait_found_read(read_once, &source, &found);
        if (rc == -EAGAIN) {
            found.count = 0;
            rc = 0;
        }
        rc = rc ? rc : add_awaiters(stacks, &places, &found, &stacks->coroutines[i]);
    }
    return rc;
}
