/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/task_waits.h"

#include "base/array.h"

#include <string.h>

/* Modules whose functions wait for one kind of thing; `name`: one function of the module alone. The first row that
 * matches counts. */
struct wait {
    const char *module, *name;
    enum krait_task_state state;
};

/* Source: CPython's Lib/asyncio, trio/_core, trio/_*.py and anyio/_backends. */
static const struct wait coroutines[] = {
    { "asyncio.tasks", "sleep", KRAIT_TASK_TIMER },
    { "asyncio.tasks", NULL, KRAIT_TASK_TASK }, /* wait, wait_for, gather, shield ... */
    { "asyncio.locks", NULL, KRAIT_TASK_LOCK },
    { "asyncio.queues", NULL, KRAIT_TASK_QUEUE },
    { "asyncio.streams", NULL, KRAIT_TASK_SOCKET },
    { "asyncio.selector_events", NULL, KRAIT_TASK_SOCKET },
    { "asyncio.base_subprocess", NULL, KRAIT_TASK_CHILD },
    { "asyncio.subprocess", NULL, KRAIT_TASK_CHILD },
    { "asyncio.taskgroups", NULL, KRAIT_TASK_TASK },
    { "trio._timeouts", NULL, KRAIT_TASK_TIMER },
    { "trio._core._parking_lot", NULL, KRAIT_TASK_LOCK },
    { "trio._sync", NULL, KRAIT_TASK_LOCK },
    { "trio._channel", NULL, KRAIT_TASK_QUEUE },
    { "trio._subprocess", NULL, KRAIT_TASK_CHILD },
    { "trio._core._io_epoll", NULL, KRAIT_TASK_SOCKET },
    { "trio._core._run", NULL, KRAIT_TASK_TASK },    /* a nursery, for its tasks */
    { "trio._core._traps", NULL, KRAIT_TASK_READY }, /* a checkpoint */
    { "anyio._backends._asyncio", "Lock.acquire", KRAIT_TASK_LOCK },
    { "anyio._backends._asyncio", "Semaphore.acquire", KRAIT_TASK_LOCK },
    { "anyio._backends._asyncio", "TaskGroup.__aexit__", KRAIT_TASK_TASK },
};

/* Source: gevent's src/gevent. */
static const struct wait functions[] = {
    { "gevent.hub", "sleep", KRAIT_TASK_TIMER },
    { "gevent.hub", "idle", KRAIT_TASK_READY },
    { "gevent._socket3", NULL, KRAIT_TASK_SOCKET },
    { "gevent._socketcommon", NULL, KRAIT_TASK_SOCKET },
    { "gevent._ssl3", NULL, KRAIT_TASK_SOCKET },
    { "gevent.ssl", NULL, KRAIT_TASK_SOCKET },
    { "gevent.select", NULL, KRAIT_TASK_SOCKET },
    { "gevent.selectors", NULL, KRAIT_TASK_SOCKET },
    { "gevent._fileobjectcommon", NULL, KRAIT_TASK_SOCKET },
    { "gevent._fileobjectposix", NULL, KRAIT_TASK_SOCKET },
    { "gevent.os", NULL, KRAIT_TASK_SOCKET },
    { "gevent.subprocess", NULL, KRAIT_TASK_CHILD },
    { "gevent.thread", NULL, KRAIT_TASK_LOCK },
    { "gevent.lock", NULL, KRAIT_TASK_LOCK },
    { "gevent.threadpool", NULL, KRAIT_TASK_FUTURE },
    { "gevent.resolver.thread", NULL, KRAIT_TASK_FUTURE },
    { "gevent.resolver.ares", NULL, KRAIT_TASK_SOCKET },
};

/* Of C: the functions of the modules that gevent compiles, where the program calls them itself. */
static const struct wait c_functions[] = {
    { "gevent._gevent_c_semaphore", NULL, KRAIT_TASK_LOCK },
    { "gevent._gevent_cevent", "Event.wait", KRAIT_TASK_LOCK },
    { "gevent._gevent_cevent", NULL, KRAIT_TASK_FUTURE },
    { "gevent._gevent_cqueue", NULL, KRAIT_TASK_QUEUE },
    { "gevent._gevent_cgreenlet", NULL, KRAIT_TASK_TASK },
    { "gevent._gevent_c_hub_primitives", "wait_on_objects", KRAIT_TASK_TASK },
    { "gevent._gevent_c_hub_primitives", "_WaitIterator.__next__", KRAIT_TASK_TASK },
    { "gevent._gevent_c_hub_primitives", "wait_read", KRAIT_TASK_SOCKET },
    { "gevent._gevent_c_hub_primitives", "wait_write", KRAIT_TASK_SOCKET },
    { "gevent._gevent_c_hub_primitives", "wait_readwrite", KRAIT_TASK_SOCKET },
};

/* sleep(0), as the C function tells that gevent.hub.sleep has called: it lets others run. */
static const struct wait turns[] = {
    { "gevent._gevent_c_waiter", "Waiter.get", KRAIT_TASK_READY },
};

static bool is_of(const struct wait *wait, const struct krait_func *func)
{
    return strcmp(wait->module, func->module) == 0 && (!wait->name || strcmp(wait->name, func->name) == 0);
}

static enum krait_task_state find(const struct wait *waits, size_t count, const struct krait_func *func,
                                  enum krait_task_state otherwise)
{
    for (size_t i = 0; func && i < count; i++) {
        if (is_of(&waits[i], func))
            return waits[i].state;
    }
    return otherwise;
}

enum krait_task_state krait_task_waits(const struct krait_func *coroutine)
{
    return find(coroutines, KRAIT_ARRAY_LEN(coroutines), coroutine, KRAIT_TASK_FUTURE);
}

enum krait_task_state krait_greenlet_waits(const struct krait_func *function, const struct krait_func *c)
{
    enum krait_task_state in_c = find(c_functions, KRAIT_ARRAY_LEN(c_functions), c, KRAIT_TASK_SWITCH);
    enum krait_task_state state = find(functions, KRAIT_ARRAY_LEN(functions), function, in_c);
    return state == KRAIT_TASK_TIMER ? find(turns, KRAIT_ARRAY_LEN(turns), c, state) : state;
}
