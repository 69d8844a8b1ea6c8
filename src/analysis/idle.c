/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/idle.h"

#include <string.h>

/* Of recordings without C calls the Python functions around them are the innermost. */
enum where { ALWAYS, WITHOUT_C };

/* Names as krait records them, on CPython 3.8 to 3.15. A star at the front of the name stands for anything. */
static const struct {
    const char *module, *name;
    uint8_t mark;
    enum where where;
} rows[] = {
    { "_socket", "socket._accept", KRAIT_IDLE_ACCEPT, ALWAYS },
    { "select", "select", KRAIT_IDLE_SELECT, ALWAYS },
    { "select", "*poll.poll", KRAIT_IDLE_SELECT, ALWAYS },
    { "_queue", "SimpleQueue.get", KRAIT_IDLE_SELECT, ALWAYS },
    { "asyncio.base_events", "BaseEventLoop._run_once", KRAIT_IDLE_LOOP, ALWAYS },
    { "socketserver", "BaseServer.serve_forever", KRAIT_IDLE_LOOP, ALWAYS },
    { "gunicorn.arbiter", "Arbiter.sleep", KRAIT_IDLE_LOOP, ALWAYS },
    { "gunicorn.workers.sync", "SyncWorker.wait", KRAIT_IDLE_LOOP, ALWAYS },
    { "gunicorn.workers.gthread", "ThreadWorker.run", KRAIT_IDLE_LOOP, ALWAYS },
    { "concurrent.futures.thread", "_worker", KRAIT_IDLE_LOOP, ALWAYS },
    { "_thread", "lock.acquire", KRAIT_IDLE_LOCK, ALWAYS },
    { "_thread", "lock.__enter__", KRAIT_IDLE_LOCK, ALWAYS },
    { "_thread", "_ThreadHandle.join", KRAIT_IDLE_LOCK, ALWAYS },
    { "queue", "Queue.get", KRAIT_IDLE_QUEUE, ALWAYS },
    { "threading", "Thread._bootstrap", KRAIT_IDLE_THREAD, ALWAYS },
    { "threading", "Thread.join", KRAIT_IDLE_JOIN, ALWAYS },
    { "threading", "_shutdown", KRAIT_IDLE_JOIN, ALWAYS },
    { "asyncio.events", "Handle._run", KRAIT_IDLE_WORK, ALWAYS },
    { "socketserver", "BaseServer._handle_request_noblock", KRAIT_IDLE_WORK, ALWAYS },
    { "socketserver", "BaseServer.finish_request", KRAIT_IDLE_WORK, ALWAYS },
    { "gunicorn.workers.sync", "SyncWorker.handle", KRAIT_IDLE_WORK, ALWAYS },
    { "gunicorn.workers.gthread", "ThreadWorker.handle", KRAIT_IDLE_WORK, ALWAYS },
    { "concurrent.futures.thread", "_WorkItem.run", KRAIT_IDLE_WORK, ALWAYS },
    { "selectors", "*Selector.select", KRAIT_IDLE_SELECT, WITHOUT_C },
    { "socket", "socket.accept", KRAIT_IDLE_ACCEPT, WITHOUT_C },
    { "threading", "Condition.wait", KRAIT_IDLE_LOCK, WITHOUT_C },
    { "threading", "Thread._wait_for_tstate_lock", KRAIT_IDLE_LOCK, WITHOUT_C },
};

/* Their socket is listened on where C calls are not recorded. */
static bool listens(const struct krait_func *func)
{
    static const char *const names[][2] = { { "_socket", "socket.listen" },
                                            { "socketserver", "BaseServer.serve_forever" },
                                            { "asyncio.base_events", "Server._start_serving" },
                                            { "gunicorn.arbiter", "Arbiter.run" } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(names); i++) {
        if (strcmp(func->module, names[i][0]) == 0 && strcmp(func->name, names[i][1]) == 0)
            return true;
    }
    return false;
}

static bool is_named(const char *name, const char *pattern)
{
    size_t n = strlen(name), tail = strlen(pattern) - 1;
    if (*pattern != '*')
        return strcmp(name, pattern) == 0;
    return n >= tail && strcmp(name + n - tail, pattern + 1) == 0;
}

static uint8_t mark_of(const struct krait_func *func, enum where where)
{
    uint8_t mark = 0;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(rows); i++) {
        if (rows[i].where <= where && strcmp(func->module, rows[i].module) == 0 &&
            is_named(func->name, rows[i].name))
            mark |= rows[i].mark;
    }
    return mark;
}

int krait_idle_marks(uint8_t **out, const struct krait_trace *trace)
{
    uint8_t *marks = calloc((size_t)trace->func_count + 1, 1);
    enum where where = WITHOUT_C;
    bool serves = false;
    if (!marks)
        return -ENOMEM;
    for (uint32_t i = 0; i < trace->func_count; i++) {
        if (trace->funcs[i].kind == KRAIT_FUNC_C && *trace->funcs[i].module) /* not that of unknown calls */
            where = ALWAYS;
    }
    for (uint32_t i = 0; i < trace->func_count; i++) {
        serves |= listens(&trace->funcs[i]);
        marks[i] = mark_of(&trace->funcs[i], where);
    }
    *out = serves ? marks : NULL;
    if (!serves)
        free(marks);
    return 0;
}
