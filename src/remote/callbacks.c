/* SPDX-License-Identifier: Apache-2.0
 *
 * Before Python 3.14 a task does not keep those that await it, but its callbacks lead to them, as those of any future:
 *
 *     await task            task_wakeup, a method of the task that awaits (Task.__wakeup of one that is written in Python)
 *     TaskGroup             _on_task_done, a method of the group, which has the task that made it
 *     gather, wait, shield  a function inside of them, which has in a cell the future that their caller awaits
 *     wait_for              up to 3.11 a partial with that future: _release_waiter
 *
 * A future that is found in this way has callbacks too. Functions of Lib/asyncio/tasks.py and taskgroups.py alone count: what
 * another callback does with a future is not known.
 */
#include "remote/callbacks.h"

#include "base/array.h"
#include "remote/memory.h"
#include "remote/object.h"
#include "remote/running_task.h"
#include "remote/stack.h"

#include <string.h>

enum { LEVELS_MAX = 4, CALLBACKS_MAX = 1 << 17 };

struct walk {
    struct krait_remote *remote;
    struct krait_future_types *types;
    struct krait_found *found;
    uint32_t level, steps;
};

/* A callable that is written in Python, with what it was made of. */
struct callback {
    struct walk *walk;
    uint64_t function, self, arguments;
};

static int walk_future(struct walk *walk, uint64_t future);

static int add_awaiter(struct walk *walk, uint64_t task)
{
    if (!KRAIT_GROW(walk->found->items, walk->found->cap, walk->found->count + 1))
        return -ENOMEM;
    walk->found->items[walk->found->count++] = task;
    return 0;
}

/* -- what the callbacks of asyncio lead to -- */

static int take_self(const struct callback *callback)
{
    return callback->self ? add_awaiter(callback->walk, callback->self) : 0;
}

static int take_group(const struct callback *callback)
{
    const struct krait_remote *remote = callback->walk->remote;
    uint64_t task = krait_pointer_at(remote, krait_attribute_place(remote, callback->self, "_parent_task"));
    return task ? add_awaiter(callback->walk, task) : 0;
}

static int take_arguments(const struct callback *callback)
{
    KRAIT_CLEANUP(krait_found_done) struct krait_found arguments = { 0 };
    int rc =
        callback->arguments ? krait_tuple_items(callback->walk->remote, callback->arguments, &arguments) : 0;
    for (uint32_t i = 0; i < arguments.count && !rc; i++)
        rc = walk_future(callback->walk, arguments.items[i]);
    return rc;
}

static int take_cells(const struct callback *callback)
{
    KRAIT_CLEANUP(krait_found_done) struct krait_found cells = { 0 };
    const struct krait_remote *remote = callback->walk->remote;
    uint64_t closure =
        krait_pointer_at(remote, callback->function + remote->layout.version->lookup.function_closure);
    int rc = closure ? krait_tuple_items(remote, closure, &cells) : 0;
    for (uint32_t i = 0; i < cells.count && !rc; i++)
        rc = walk_future(callback->walk, krait_pointer_at(remote, cells.items[i] + KRAIT_CELL_VALUE));
    return rc;
}

static const struct {
    const char *function, *file;
    int (*take)(const struct callback *callback);
} known[] = {
    { "__wakeup", "/asyncio/tasks.py", take_self },
    { "_on_task_done", "/asyncio/taskgroups.py", take_group },
    { "_done_callback", "/asyncio/tasks.py", take_cells },       /* of gather() */
    { "_on_completion", "/asyncio/tasks.py", take_cells },       /* of wait() */
    { "_inner_done_callback", "/asyncio/tasks.py", take_cells }, /* of shield() */
    { "_release_waiter", "/asyncio/tasks.py", take_arguments },
};

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), n = strlen(end);
    return size >= n && strcmp(text + size - n, end) == 0;
}

static int take_function(const struct callback *callback)
{
    struct krait_remote *remote = callback->walk->remote;
    uint64_t addr =
        krait_pointer_at(remote, callback->function + remote->layout.version->lookup.function_code);
    const struct krait_remote_code *code = addr ? krait_code_read(remote, addr) : NULL;
    const char *dot = code ? strrchr(code->name, '.') : NULL;
    for (size_t i = 0; code && i < KRAIT_ARRAY_LEN(known); i++) {
        if (strcmp(dot ? dot + 1 : code->name, known[i].function) == 0 &&
            ends_with(code->file, known[i].file))
            return known[i].take(callback);
    }
    return 0;
}

/* -- futures and their callbacks -- */

static int take_callback(struct walk *walk, uint64_t object)
{
    static const struct {
        const char *type;
        uint8_t function, self, arguments; /* where they are; 0: it is one, or it has none */
    } kinds[] = { { "function", 0, 0, 0 },
                  { "method", KRAIT_BOUND_FUNCTION, KRAIT_BOUND_SELF, 0 },
                  { "functools.partial", KRAIT_PARTIAL_FUNCTION, 0, KRAIT_PARTIAL_ARGUMENTS } };
    char type[KRAIT_TYPE_NAME_MAX];
    if (!object || ++walk->steps > CALLBACKS_MAX)
        return 0;
    uint64_t task = krait_step_task(walk->remote, object);
    if (task)
        return add_awaiter(walk, task);
    for (size_t i = 0; krait_object_type(walk->remote, object, type) && i < KRAIT_ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i].type, type) != 0)
            continue;
        struct callback callback = { .walk = walk, .function = object };
        if (kinds[i].function)
            callback.function = krait_pointer_at(walk->remote, object + kinds[i].function);
        if (kinds[i].self)
            callback.self = krait_pointer_at(walk->remote, object + kinds[i].self);
        if (kinds[i].arguments)
            callback.arguments = krait_pointer_at(walk->remote, object + kinds[i].arguments);
        return take_function(&callback);
    }
    return 0;
}

static bool is_list(const struct krait_remote *remote, uint64_t object)
{
    char type[KRAIT_TYPE_NAME_MAX];
    return object && krait_object_type(remote, object, type) && strcmp(type, "list") == 0;
}

/* A list of tuples, each of a callback and its context. */
static int take_list(struct walk *walk, uint64_t list)
{
    KRAIT_CLEANUP(krait_found_done) struct krait_found tuples = { 0 };
    const struct krait_remote *remote = walk->remote;
    int rc = is_list(remote, list) ? krait_list_items(remote, list, &tuples) : 0;
    for (uint32_t i = 0; i < tuples.count && !rc; i++) {
        uint64_t first = tuples.items[i] + remote->layout.at[KRAIT_AT_TUPLE_ITEMS];
        rc = take_callback(walk, krait_pointer_at(remote, first));
    }
    return rc;
}

/* An object that is no future has no callbacks. */
static int walk_future(struct walk *walk, uint64_t future)
{
    const struct krait_remote *remote = walk->remote;
    if (!future || walk->level == LEVELS_MAX)
        return 0;
    bool is_native = krait_future_kind(remote, walk->types, future) != KRAIT_FUTURE_OTHER;
    uint64_t list = is_native ? krait_pointer_at(remote, future + KRAIT_FUTURE_CALLBACKS)
                              : krait_pointer_at(remote, krait_attribute_place(remote, future, "_callbacks"));
    walk->level++;
    int rc = is_native ? take_callback(walk, krait_pointer_at(remote, future + KRAIT_FUTURE_CALLBACK)) : 0;
    rc = rc ? rc : take_list(walk, list);
    walk->level--;
    return rc;
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Several callbacks may lead to one task. */
static void leave_one_of_each(struct krait_found *found, uint32_t begin)
{
    uint32_t count = begin;
    if (found->count > begin)
        qsort(found->items + begin, found->count - begin, sizeof(*found->items), by_address);
    for (uint32_t i = begin; i < found->count; i++) {
        if (i == begin || found->items[i] != found->items[count - 1])
            found->items[count++] = found->items[i];
    }
    found->count = count;
}

int krait_callbacks_read(struct krait_remote *remote, struct krait_future_types *types, uint64_t task,
                         struct krait_found *found)
{
    struct walk walk = { .remote = remote, .types = types, .found = found };
    uint32_t begin = found->count;
    int rc = walk_future(&walk, task);
    leave_one_of_each(found, begin);
    return rc;
}
