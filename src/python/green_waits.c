/* SPDX-License-Identifier: Apache-2.0 */
#include "python/green_waits.h"

#include "base/array.h"
#include "python/compat/running.h"

#include <string.h>

/* What waits for what. */
enum kind { NOTHING, EVENT, RESULT, LOCK, ITEM, ROOM, LET };

/* ".get": of any class. Source: gevent's src/gevent: event.py, _semaphore.py, queue.py, greenlet.py, _hub_primitives.py,
 * pool.py, thread.py. Those of Python tell for whom they wait by a local variable. */
static const struct function {
    const char *module, *name;
    enum kind waits, wakes;
    bool all; /* it wakes all that wait */
    struct krait_green_awaiting awaiting;
} functions[] = {
    { "gevent._gevent_cevent", "Event.wait", .waits = EVENT },
    { "gevent._gevent_cevent", "Event.set", .wakes = EVENT, .all = true },
    { "gevent._gevent_cevent", "AsyncResult.get", .waits = RESULT },
    { "gevent._gevent_cevent", "AsyncResult.wait", .waits = RESULT },
    { "gevent._gevent_cevent", "AsyncResult.set", .wakes = RESULT, .all = true },
    { "gevent._gevent_cevent", "AsyncResult.set_exception", .wakes = RESULT, .all = true },
    { "gevent._gevent_c_semaphore", ".acquire", .waits = LOCK },
    { "gevent._gevent_c_semaphore", ".release", .wakes = LOCK },
    { "gevent._gevent_c_semaphore", ".__enter__", .waits = LOCK }, /* 3.14: of a with statement */
    { "gevent._gevent_c_semaphore", ".__exit__", .wakes = LOCK },
    { "gevent._gevent_cqueue", ".get", .waits = ITEM, .wakes = ROOM },
    { "gevent._gevent_cqueue", ".get_nowait", .wakes = ROOM },
    { "gevent._gevent_cqueue", ".put", .waits = ROOM, .wakes = ITEM },
    { "gevent._gevent_cqueue", ".put_nowait", .wakes = ITEM },
    { "gevent._gevent_cgreenlet", "Greenlet.join", .waits = LET, .awaiting.how = KRAIT_GREEN_ONE },
    { "gevent._gevent_cgreenlet", "Greenlet.get", .waits = LET, .awaiting.how = KRAIT_GREEN_ONE },
    { "gevent._gevent_cgreenlet", "Greenlet.kill", .waits = LET, .awaiting.how = KRAIT_GREEN_ONE },
    { "gevent._gevent_cgreenlet", "joinall", .awaiting.how = KRAIT_GREEN_SEVERAL },
    { "gevent._gevent_cgreenlet", "killall", .awaiting.how = KRAIT_GREEN_SEVERAL },
    { "gevent._gevent_c_hub_primitives", "wait_on_objects", .awaiting.how = KRAIT_GREEN_SEVERAL },
    { "gevent.pool", "Group.join", .awaiting = { KRAIT_GREEN_SEVERAL, "self", "greenlets" } },
    { "gevent.thread", "_ThreadHandle.join", .awaiting = { KRAIT_GREEN_ONE, "glet", NULL } },
    /* Others that may switch: what was called before at the same place is over. */
    { "greenlet", "greenlet.switch", .waits = NOTHING },
    { "greenlet", "greenlet.throw", .waits = NOTHING },
    { "gevent._gevent_c", NULL, .waits = NOTHING },
};

static bool is_named(const struct function *function, const char *module, const char *name)
{
    const char *last = strrchr(name, '.');
    if (!function->name)
        return strncmp(function->module, module, strlen(function->module)) == 0;
    return strcmp(function->module, module) == 0 &&
           (strcmp(function->name, name) == 0 || (last && strcmp(function->name, last) == 0));
}

bool krait_green_waits_are_of(const char *module)
{
    return strncmp(module, "gevent.", strlen("gevent.")) == 0;
}

uint32_t krait_green_waits_function(const char *module, const char *name)
{
    if (!krait_green_waits_are_of(module) && strcmp(module, "greenlet") != 0)
        return 0;
    for (uint32_t i = 0; i < KRAIT_ARRAY_LEN(functions); i++) {
        if (is_named(&functions[i], module, name))
            return i + 1;
    }
    return 0;
}

struct krait_green_awaiting krait_green_waits_awaiting(uint32_t function)
{
    return functions[function - 1].awaiting;
}

/* ---- records: one for all that wait for an object ---- */

/* NULL: nobody waits for it. */
static struct krait_green_record *find_record(const struct krait_green_waits *waits, uint64_t object,
                                              uint32_t kind)
{
    const uint64_t *index = krait_map_get(&waits->objects, object);
    struct krait_green_record *record = index && *index ? &waits->records[*index - 1] : NULL;
    return record && record->kind == kind ? record : NULL;
}

/* NULL: memory is out. */
static struct krait_green_record *new_record(struct krait_green_waits *waits, uint64_t object, uint32_t kind)
{
    uint32_t index = waits->first_free;
    if (!index && !KRAIT_GROW(waits->records, waits->cap, waits->count + 1))
        return NULL;
    index = index ? index : waits->count + 1;
    krait_map_trim(&waits->objects, &waits->most_objects);
    if (krait_map_put(&waits->objects, object, index))
        return NULL;
    struct krait_green_record *record = &waits->records[index - 1];
    waits->first_free = index > waits->count ? 0 : record->next;
    waits->count = KRAIT_MAX(waits->count, index);
    *record = (struct krait_green_record){ .object = object, .kind = kind };
    return record;
}

/* Who comes from now on waits for another time. */
static void seal(struct krait_green_waits *waits, const struct krait_green_record *record)
{
    uint64_t *index = krait_map_get(&waits->objects, record->object);
    if (index && *index && &waits->records[*index - 1] == record)
        *index = 0;
}

static void free_record(struct krait_green_waits *waits, struct krait_green_record *record)
{
    seal(waits, record);
    record->next = waits->first_free;
    waits->first_free = (uint32_t)(record - waits->records) + 1;
}

static void wake(struct krait_green_waits *waits, uint64_t object, enum kind kind, bool all, uint32_t by)
{
    struct krait_green_record *record = find_record(waits, object, kind);
    if (!record)
        return;
    record->is_mixed |= record->releases && record->by != by;
    record->by = by;
    record->releases = all ? record->waiting : KRAIT_MIN(record->releases + 1, record->waiting);
    if (all)
        seal(waits, record);
}

static void wait_for(struct krait_green_waits *waits, uint64_t object, uint32_t kind, uint32_t task)
{
    struct krait_green_record *record = find_record(waits, object, kind);
    record = record ? record : new_record(waits, object, kind);
    if (!record)
        return;
    krait_map_trim(&waits->waiting, &waits->most_waiting);
    if (krait_map_put(&waits->waiting, task, (uint64_t)(record - waits->records) + 1) == 0)
        record->waiting++;
    else if (!record->waiting)
        free_record(waits, record);
}

/* ---- calls and switches ---- */

long krait_green_lasti(PyObject *frame)
{
    PyObject *lasti = PyObject_GetAttrString(frame, "f_lasti");
    long at = lasti ? PyLong_AsLong(lasti) : -1;
    Py_XDECREF(lasti);
    PyErr_Clear();
    return at;
}

static void note_call(struct krait_green_waits *waits, enum kind kind, PyObject *object, uint32_t task)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame(); /* borrowed */
    waits->call = (struct krait_green_call){ .object = (uintptr_t)object, .task = task, .frame = frame };
    if (!frame)
        return;
    waits->call.kind = kind;
    waits->call.lasti = krait_green_lasti(frame);
}

void krait_green_waits_call(struct krait_green_waits *waits, uint32_t function, PyObject *object,
                            uint32_t task)
{
    const struct function *it = &functions[function - 1];
    int saved_errno = errno;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (it->wakes || it->waits)
        waits->call.kind = NOTHING;
    if (it->wakes)
        wake(waits, (uintptr_t)object, it->wakes, it->all, task);
    if (it->waits && task)
        note_call(waits, it->waits, object, task);
    PyErr_Restore(type, value, traceback);
    errno = saved_errno;
}

void krait_green_waits_leave(struct krait_green_waits *waits, uint32_t task, PyObject *frame)
{
    const struct krait_green_call call = waits->call;
    waits->call.kind = NOTHING;
    if (call.kind && call.task == task && frame && call.frame == frame &&
        call.lasti == krait_green_lasti(frame))
        wait_for(waits, call.object, call.kind, task);
}

void krait_green_waits_end(struct krait_green_waits *waits, uint32_t task, const void *greenlet)
{
    wake(waits, (uintptr_t)greenlet, LET, true, task);
}

uint32_t krait_green_waits_go_on(struct krait_green_waits *waits, uint32_t task)
{
    uint64_t *index = krait_map_get(&waits->waiting, task);
    struct krait_green_record *record = index && *index ? &waits->records[*index - 1] : NULL;
    if (!record)
        return 0;
    *index = 0;
    uint32_t by = record->releases && !record->is_mixed ? record->by : 0;
    record->releases -= record->releases ? 1 : 0;
    record->is_mixed &= record->releases > 0;
    if (!--record->waiting)
        free_record(waits, record);
    return by;
}

void krait_green_waits_done(struct krait_green_waits *waits)
{
    krait_map_done(&waits->objects);
    krait_map_done(&waits->waiting);
    free(waits->records);
    *waits = (struct krait_green_waits){ 0 };
}
