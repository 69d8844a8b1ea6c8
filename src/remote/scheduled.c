/* SPDX-License-Identifier: Apache-2.0
 *
 * Before Python 3.14 the module asyncio.tasks has all tasks (Lib/asyncio/tasks.py):
 *
 *     interpreter ── sys.modules ── asyncio.tasks ─┬─ _all_tasks, from 3.12 on _scheduled_tasks: a WeakSet ── data: a set ── weak
 *                                                  │                                                          references ── tasks
 *                                                  └─ from 3.12 on _eager_tasks: a set of tasks that run their first step
 *
 * A task of asyncio's C part has its fields in it, one of the class in asyncio.tasks that is written in Python has attributes. Each
 * has its event loop; which loop a thread runs is in its state or that one's dict (Modules/_asynciomodule.c).
 */
#include "remote/scheduled.h"

#include "base/array.h"
#include "remote/lookup.h"
#include "remote/memory.h"
#include "remote/object.h"

#include <string.h>

/* -- kinds of objects -- */

/* A subclass is what its base is. */
static enum krait_future_kind kind_of_type(const struct krait_remote *remote, uint64_t type)
{
    static const struct {
        const char *name;
        enum krait_future_kind kind;
    } kinds[] = { { "_asyncio.Task", KRAIT_FUTURE_TASK }, { "_asyncio.Future", KRAIT_FUTURE_NATIVE } };
    enum { BASES_MAX = 32 };
    char name[KRAIT_TYPE_NAME_MAX];
    for (int i = 0; i < BASES_MAX && type && krait_type_name(remote, type, name); i++) {
        for (size_t k = 0; k < KRAIT_ARRAY_LEN(kinds); k++) {
            if (strcmp(kinds[k].name, name) == 0)
                return kinds[k].kind;
        }
        type = krait_pointer_at(remote, type + KRAIT_TYPE_BASE);
    }
    return KRAIT_FUTURE_OTHER;
}

enum krait_future_kind krait_future_kind(const struct krait_remote *remote, struct krait_future_types *types,
                                         uint64_t object)
{
    uint64_t type = krait_pointer_at(remote, object + KRAIT_OBJECT_TYPE);
    const uint64_t *known = krait_map_get(&types->kinds, type);
    if (known)
        return (enum krait_future_kind) * known;
    enum krait_future_kind kind = kind_of_type(remote, type);
    krait_map_put(&types->kinds, type, kind);
    return kind;
}

/* -- which tasks there are -- */

/* The objects that weak references in `found` from `begin` on refer to. */
static int follow_weak(const struct krait_remote *remote, struct krait_found *found, uint32_t begin)
{
    uint32_t count = found->count - begin;
    KRAIT_AUTO_FREE struct krait_memory_piece *pieces = calloc((size_t)count + 1, sizeof(*pieces));
    KRAIT_AUTO_FREE uint64_t *objects = calloc((size_t)count + 1, sizeof(*objects));
    if (!pieces || !objects)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        pieces[i] = (struct krait_memory_piece){ found->items[begin + i] + KRAIT_WEAK_OBJECT, &objects[i],
                                                 sizeof(*objects) };
    int rc = krait_memory_pieces(remote->pid, pieces, count);
    memcpy(found->items + begin, objects, count * sizeof(*objects));
    return rc;
}

static int add_collection(const struct krait_remote *remote, uint64_t object, bool is_weak,
                          struct krait_found *found)
{
    uint32_t begin = found->count;
    uint64_t set = is_weak ? krait_pointer_at(remote, krait_attribute_place(remote, object, "data")) : object;
    int rc = set ? krait_set_items(remote, set, found) : 0;
    return rc || !is_weak ? rc : follow_weak(remote, found, begin);
}

static uint64_t find_module(const struct krait_remote *remote, uint64_t interp, const char *name)
{
    uint64_t modules = krait_pointer_at(remote, interp + remote->layout.at[KRAIT_AT_INTERP_MODULES]);
    return krait_pointer_at(remote, krait_dict_place(remote, modules, name));
}

struct search {
    const struct krait_remote *remote;
    bool has_module;
};

static int add_interpreter(struct search *search, uint64_t interp, struct krait_found *found)
{
    static const struct {
        const char *name;
        bool is_weak;
    } collections[] = { { "_all_tasks", true }, { "_scheduled_tasks", true }, { "_eager_tasks", false } };
    const struct krait_remote *remote = search->remote;
    uint64_t module = find_module(remote, interp, "asyncio.tasks");
    int rc = 0;
    search->has_module |= module != 0;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(collections) && !rc && module; i++) {
        uint64_t place = krait_module_place(remote, module, collections[i].name);
        if (place)
            rc = add_collection(remote, krait_pointer_at(remote, place), collections[i].is_weak, found);
    }
    return rc;
}

static int find_once(void *ctx, struct krait_found *found)
{
    enum { INTERPRETERS_MAX = 1024 };
    struct search *search = ctx;
    const struct krait_remote *remote = search->remote;
    uint64_t interp = krait_pointer_at(remote, remote->runtime + remote->layout.at[KRAIT_AT_INTERPRETERS]);
    int rc = 0;
    for (unsigned i = 0; interp && i < INTERPRETERS_MAX && !rc; i++) {
        rc = add_interpreter(search, interp, found);
        interp = krait_pointer_at(remote, interp + remote->layout.at[KRAIT_AT_INTERP_NEXT]);
    }
    return rc;
}

/* -- what they have -- */

struct reader {
    const struct krait_remote *remote;
    struct krait_future_types types;
    struct krait_map loops; /* address of a loop -> the thread that runs it */
    struct krait_map seen;  /* tasks */
};

static void reader_done(struct reader *reader)
{
    krait_future_types_done(&reader->types);
    krait_map_done(&reader->loops);
    krait_map_done(&reader->seen);
}

/* The event loop that a thread state runs; 0: none. */
static uint64_t loop_of(const struct krait_remote *remote, uint64_t state)
{
    const uint32_t *at = remote->layout.at;
    if (at[KRAIT_AT_THREAD_LOOP] != KRAIT_NOWHERE)
        return krait_pointer_at(remote, state + at[KRAIT_AT_THREAD_LOOP]);
    uint64_t dict = krait_pointer_at(remote, state + at[KRAIT_AT_THREAD_DICT]);
    uint64_t place = krait_dict_place(remote, dict, "__asyncio_running_event_loop__");
    uint64_t loop = krait_pointer_at(remote, place);
    bool is_holder = loop && remote->layout.version->loop_in_holder;
    return is_holder ? krait_pointer_at(remote, loop + KRAIT_HOLDER_LOOP) : loop;
}

static int find_loops(struct reader *reader, const struct krait_remote_stacks *stacks)
{
    int rc = 0;
    for (uint32_t i = 0; i < stacks->state_count && !rc; i++) {
        const struct krait_remote_state *state = &stacks->states[i];
        uint64_t loop = loop_of(reader->remote, state->addr);
        if (loop)
            rc = krait_map_put(&reader->loops, loop, (uint64_t)state->tid);
    }
    return rc;
}

static pid_t thread_of(const struct reader *reader, uint64_t loop)
{
    const uint64_t *tid = krait_map_get(&reader->loops, loop);
    return tid ? (pid_t)*tid : 0;
}

/* False: it has ended. */
static bool place_native(const struct reader *reader, uint64_t task, struct krait_task_place *place)
{
    const struct krait_task_layout *at = &reader->remote->layout.version->task;
    uint32_t state = 0;
    if (krait_memory_read(reader->remote->pid, task + at->state, &state, sizeof(state)) ||
        state != KRAIT_FUTURE_PENDING)
        return false;
    _Static_assert(KRAIT_FUTURE_PENDING == 0, "is_zero");
    *place = (struct krait_task_place){
        .addr = task,
        .coroutine = task + at->coroutine,
        .name = task + at->coroutine + sizeof(task),
        .mark = { task + at->state, sizeof(state), true },
        .tid = thread_of(reader, krait_pointer_at(reader->remote, task + KRAIT_FUTURE_LOOP))
    };
    return true;
}

/* Until it ends its class has the state. */
static bool is_pending(const struct krait_remote *remote, uint64_t task)
{
    KRAIT_AUTO_BUF text = { 0 };
    uint64_t place = krait_attribute_place(remote, task, "_state");
    uint64_t state = krait_pointer_at(remote, place);
    return !place || (krait_object_text(remote, state, KRAIT_TYPE_NAME_MAX, &text) == 0 && text.data &&
                      strcmp(text.data, "PENDING") == 0);
}

/* False: it has ended, or is no task at all. */
static bool place_python(const struct reader *reader, uint64_t task, struct krait_task_place *place)
{
    const struct krait_remote *remote = reader->remote;
    uint64_t coroutine = krait_attribute_place(remote, task, "_coro");
    if (!coroutine || !is_pending(remote, task))
        return false;
    uint64_t loop = krait_pointer_at(remote, krait_attribute_place(remote, task, "_loop"));
    *place = (struct krait_task_place){ .addr = task,
                                        .coroutine = coroutine,
                                        .name = krait_attribute_place(remote, task, "_name"),
                                        .tid = thread_of(reader, loop) };
    return true;
}

/* One that runs its first step may be in two of the collections. */
static int add_once(struct reader *reader, uint64_t task, struct krait_task_places *tasks)
{
    struct krait_task_place place;
    if (!task || krait_map_get(&reader->seen, task))
        return 0;
    bool is_native = krait_future_kind(reader->remote, &reader->types, task) == KRAIT_FUTURE_TASK;
    bool is_task = is_native ? place_native(reader, task, &place) : place_python(reader, task, &place);
    if (!is_task)
        return 0;
    if (!KRAIT_GROW(tasks->items, tasks->cap, tasks->count + 1))
        return -ENOMEM;
    tasks->items[tasks->count++] = place;
    return krait_map_put(&reader->seen, task, 1);
}

int krait_scheduled_read(const struct krait_remote *remote, const struct krait_remote_stacks *stacks,
                         struct krait_task_places *tasks)
{
    KRAIT_CLEANUP(krait_found_done) struct krait_found found = { 0 };
    KRAIT_CLEANUP(reader_done) struct reader reader = { .remote = remote };
    struct search search = { .remote = remote };
    int rc = krait_found_read(find_once, &search, &found);
    if (rc == -ENOMEM)
        return rc;
    if (!search.has_module)
        return -ENOENT;
    rc = find_loops(&reader, stacks); /* of a list that changes all the time, the tasks that it had last */
    for (uint32_t i = 0; i < found.count && !rc; i++)
        rc = add_once(&reader, found.items[i], tasks);
    return rc;
}
