/* SPDX-License-Identifier: Apache-2.0 */
#include "python/green_tasks.h"

#include "event/payload.h"
#include "python/codes.h"
#include "python/compat/running.h"
#include "python/gil.h"
#include "python/green_waits.h"
#include "python/modules.h"
#include "python/tasks.h"
#include "python/text.h"

#include <string.h>

/* ---- what is read of a greenlet ----
 *
 * The getters of greenlet's own type, which no subclass replaces: gevent has its own `dead`. Source: PyGreenlet.cpp, and
 * greenlet.c before 2.0. */

static struct type {
    const PyTypeObject *address;
    Py_ssize_t dict_offset;
    PyGetSetDef *dead, *parent, *frame; /* of a library, which stays */
} type;

static PyGetSetDef *find_getter(PyObject *dict, const char *name)
{
    PyObject *descr = PyMapping_GetItemString(dict, name);
    PyGetSetDef *def =
        descr && Py_TYPE(descr) == &PyGetSetDescr_Type ? krait_at(descr, KRAIT_GETSET_DESCR_DEF) : NULL;
    Py_XDECREF(descr);
    return def;
}

static void find_getters(PyObject *cls)
{
    PyObject *dict = PyObject_GetAttrString(cls, "__dict__");
    PyObject *offset = PyObject_GetAttrString(cls, "__dictoffset__");
    struct type found = { .address = (PyTypeObject *)cls };
    if (dict && offset) {
        found.dict_offset = PyLong_AsSsize_t(offset);
        found.dead = find_getter(dict, "dead");
        found.parent = find_getter(dict, "parent");
        found.frame = find_getter(dict, "gr_frame");
    }
    Py_XDECREF(offset);
    Py_XDECREF(dict);
    if (found.dead && found.parent && found.frame)
        type = found;
}

static void find_type(PyObject *module)
{
    PyObject *cls = type.address ? NULL : krait_module_item(module, "greenlet");
    if (cls && PyType_Check(cls))
        find_getters(cls);
    PyErr_Clear();
}

/* New reference, or NULL for None. */
static PyObject *get(PyObject *greenlet, const PyGetSetDef *def)
{
    PyObject *value = def->get(greenlet, def->closure);
    if (value == Py_None)
        Py_CLEAR(value);
    return value;
}

static bool is_dead(PyObject *greenlet)
{
    PyObject *dead = get(greenlet, type.dead);
    Py_XDECREF(dead);
    return dead == Py_True;
}

static bool is_main(PyObject *greenlet)
{
    PyObject *parent = get(greenlet, type.parent);
    Py_XDECREF(parent);
    return !parent;
}

/* ---- this thread's greenlets ---- */

enum {
    FRAMELESS = 1, /* it was left when it had no frame */
    IS_MAIN = 2,
    FLAG_BITS = 2,
};

struct greens {
    uint32_t epoch, forks;       /* of which recording, and of which process, all is */
    uint32_t current;            /* id of the task that the thread runs; 0: none */
    PyObject *begun;             /* it has begun, and is not defined; borrowed: it runs */
    struct krait_map by_address; /* to an id << FLAG_BITS and flags; 0: it has ended */
    size_t most;                 /* of krait_map_trim */
    struct krait_green_waits waits;
};

static __thread struct greens *of_thread;
static _Atomic uint32_t forks;

bool krait_green_tasks_are_new(void)
{
    return type.address && (!of_thread || of_thread->epoch != atomic_load(&krait_agent.epoch) ||
                            of_thread->forks != atomic_load(&forks));
}

void krait_green_tasks_forked(void)
{
    atomic_fetch_add(&forks, 1);
}

void krait_green_tasks_thread_end(void)
{
    if (of_thread) {
        krait_map_done(&of_thread->by_address);
        krait_green_waits_done(&of_thread->waits);
    }
    free(of_thread);
    of_thread = NULL;
}

static struct greens *get_greens(void)
{
    if (!krait_green_tasks_are_new())
        return of_thread;
    krait_green_tasks_thread_end();
    of_thread = calloc(1, sizeof(*of_thread));
    if (of_thread) {
        of_thread->epoch = atomic_load(&krait_agent.epoch);
        of_thread->forks = atomic_load(&forks);
    }
    return of_thread;
}

/* ---- definitions ---- */

/* Borrowed, or NULL. */
static PyObject *hub_type(void)
{
    PyObject *hub = krait_module_item(krait_module("gevent.hub"), "Hub");
    return hub && PyType_Check(hub) ? hub : NULL;
}

/* What was given to it is in its dictionary. */
static void read_name(PyObject *greenlet, char *text, size_t size)
{
    PyObject *dict = type.dict_offset > 0 ? krait_at(greenlet, (size_t)type.dict_offset) : NULL;
    PyObject *name = dict && PyDict_Check(dict) ? PyDict_GetItemString(dict, "name") : NULL;
    krait_text_name(name, text, size);
}

static void define(struct krait_interp *in, uint32_t id, PyObject *greenlet, uint32_t function)
{
    char text[256] = "";
    if (Py_TYPE(greenlet) != type.address) {
        PyObject *hub = hub_type();
        read_name(greenlet, text, sizeof(text));
        if (!text[0] && hub && PyType_IsSubtype(Py_TYPE(greenlet), (PyTypeObject *)hub))
            snprintf(text, sizeof(text), KRAIT_TASK_HUB);
    }
    if (!text[0])
        snprintf(text, sizeof(text), "greenlet-%u", id);
    krait_tasks_write_definition(in, id, function, text);
    PyErr_Clear();
}

/* The outermost function of this thread's stack that is recorded. */
static uint32_t outermost(struct krait_interp *in)
{
    uint32_t id = 0;
    PyObject *frame = krait_thread_frame(KRAIT_TOP_IS_OLD);
    while (frame) {
        PyObject *code = krait_frame_code(frame), *back = krait_frame_back(frame);
        const struct krait_code *slot = code ? krait_code_find(in, code) : NULL;
        if (code && !krait_code_is_defined(slot))
            slot = krait_code_define(in, code, frame);
        id = slot && slot->id ? slot->id : id;
        Py_XDECREF(code);
        Py_DECREF(frame);
        frame = back;
    }
    return id;
}

static void settle_begun(struct krait_interp *in, uint32_t function)
{
    PyObject *greenlet = of_thread->begun;
    of_thread->begun = NULL;
    if (greenlet && of_thread->current)
        define(in, of_thread->current, greenlet, function);
}

void krait_green_tasks_begun(struct krait_interp *in)
{
    if (of_thread && of_thread->begun && !krait_green_tasks_are_new())
        settle_begun(in, outermost(in));
}

/* ---- switches ---- */

static uint32_t id_of(uint64_t entry)
{
    return (uint32_t)(entry >> FLAG_BITS);
}

static uint64_t keep(PyObject *greenlet, uint64_t entry)
{
    if (entry)
        krait_map_trim(&of_thread->by_address, &of_thread->most);
    return krait_map_put(&of_thread->by_address, (uintptr_t)greenlet, entry) ? 0 : entry;
}

/* The entry of a greenlet that nothing is known of, or 0. */
static uint64_t add(struct krait_interp *in, PyObject *greenlet)
{
    if (is_main(greenlet))
        return keep(greenlet, IS_MAIN);
    return keep(greenlet, (uint64_t)krait_tasks_next_id(in) << FLAG_BITS);
}

/* Of one that is not there any more, or has waited since before krait looked, the function is not known. */
static uint64_t entry_of(struct krait_interp *in, PyObject *greenlet, bool runs)
{
    const uint64_t *known = krait_map_get(&of_thread->by_address, (uintptr_t)greenlet);
    if (known && *known)
        return *known;
    uint64_t entry = add(in, greenlet);
    if (id_of(entry))
        define(in, id_of(entry), greenlet, runs ? outermost(in) : 0);
    return entry;
}

static void leave(struct krait_interp *in, PyObject *greenlet, bool threw, struct krait_green_switch *of)
{
    uint64_t entry = entry_of(in, greenlet, false);
    of->left = id_of(entry);
    if (!of->left)
        return;
    if (is_dead(greenlet)) {
        krait_green_waits_end(&of_thread->waits, of->left, greenlet);
        keep(greenlet, 0);
        of->reason = threw ? KRAIT_task_leave_reason_raised : KRAIT_task_leave_reason_returned;
        return;
    }
    PyObject *frame = get(greenlet, type.frame), *code = frame ? krait_frame_code(frame) : NULL;
    uint64_t flags = frame ? 0 : FRAMELESS;
    of->at = code ? krait_code_id(in, code) : 0;
    of->reason = KRAIT_task_leave_reason_switched;
    krait_green_waits_leave(&of_thread->waits, of->left, frame);
    if ((entry & FRAMELESS) != flags)
        keep(greenlet, (entry & ~(uint64_t)FRAMELESS) | flags);
    Py_XDECREF(code);
    Py_XDECREF(frame);
}

/* One that has no frame begins, or was left so. */
static uint32_t enter(struct krait_interp *in, PyObject *greenlet)
{
    const uint64_t *known = krait_map_get(&of_thread->by_address, (uintptr_t)greenlet);
    bool begins = !PyEval_GetFrame() && !(known && *known & (FRAMELESS | IS_MAIN));
    if (!begins)
        return id_of(entry_of(in, greenlet, true));
    uint32_t id = id_of(add(in, greenlet));
    of_thread->begun = id ? greenlet : NULL;
    return id;
}

struct krait_green_switch krait_green_tasks_switch(struct krait_interp *in, PyObject *origin,
                                                   PyObject *target, bool threw)
{
    struct krait_green_switch of = { 0 };
    if (!type.address || !get_greens())
        return of;
    settle_begun(in, 0);
    leave(in, origin, threw, &of);
    of.entered = of_thread->current = enter(in, target);
    of.by = of.entered ? krait_green_waits_go_on(&of_thread->waits, of.entered) : 0;
    PyErr_Clear();
    return of;
}

void krait_green_tasks_put_leave(struct krait_ring *ring, uint64_t t, const struct krait_green_switch *of)
{
    uint8_t payload[KRAIT_BYTES_task_leave];
    const struct krait_payload_task_leave event = {
        .task = of->left,
        .reason = (uint8_t)of->reason,
        .on = of->reason == KRAIT_task_leave_reason_switched ? of->entered : 0,
        .at = of->at,
    };
    if (of->left)
        krait_writer_put_small(ring, t, KRAIT_EVENT_task_leave, payload,
                               krait_put_task_leave(payload, &event));
}

void krait_green_tasks_call(uint32_t function, PyObject *object)
{
    if (of_thread && !krait_green_tasks_are_new())
        krait_green_waits_call(&of_thread->waits, function, object, of_thread->current);
}

static void put_wake(struct krait_ring *ring, uint64_t t, const struct krait_green_switch *of)
{
    uint8_t payload[KRAIT_BYTES_task_wake_by];
    const struct krait_payload_task_wake_by event = { .task = of->entered, .by = of->by };
    krait_writer_put_small(ring, t, KRAIT_EVENT_task_wake_by, payload,
                           krait_put_task_wake_by(payload, &event));
}

void krait_green_tasks_put_run(struct krait_ring *ring, uint64_t t, const struct krait_green_switch *of)
{
    uint8_t payload[KRAIT_BYTES_task_run];
    if (of->by)
        put_wake(ring, t, of);
    const struct krait_payload_task_run event = { .task = of->entered };
    if (of->entered)
        krait_writer_put_small(ring, t, KRAIT_EVENT_task_run, payload, krait_put_task_run(payload, &event));
}

/* ---- switches that were not told ---- */

/* That of which nobody knows when it was left. */
static void put_unseen(struct krait_interp *in, uint32_t id)
{
    struct krait_ring *ring = krait_this_ring;
    struct krait_green_switch of = { .left = id, .reason = KRAIT_task_leave_reason_unseen };
    uint64_t t = KRAIT_MAX(krait_writer_now(&in->agent->writer), krait_gil_last());
    if (krait_writer_room(&in->agent->writer, ring, t, KRAIT_GREEN_BYTES) != KRAIT_ROOM_NONE)
        krait_green_tasks_put_leave(ring, t, &of);
}

void krait_green_tasks_pause(struct krait_interp *in)
{
    if (!of_thread || krait_green_tasks_are_new() || !of_thread->current || krait_this_ring == &krait_no_ring)
        return;
    settle_begun(in, 0);
    krait_thread_tell_pause(in);
    put_unseen(in, of_thread->current);
    of_thread->current = 0;
    krait_green_waits_done(&of_thread->waits); /* who goes on now is not told */
}

void krait_green_tasks_look(struct krait_interp *in, PyObject *module)
{
    find_type(module);
    PyObject *greenlet = type.address ? PyObject_CallMethod(module, "getcurrent", NULL) : NULL;
    if (greenlet && get_greens()) {
        uint32_t was = of_thread->current;
        settle_begun(in, 0);
        of_thread->current = id_of(entry_of(in, greenlet, true));
        if (was && was != of_thread->current)
            put_unseen(in, was);
    }
    Py_XDECREF(greenlet);
    PyErr_Clear();
}

bool krait_green_tasks_say(struct krait_interp *in, struct krait_ring *ring, uint64_t t)
{
    if (!of_thread || krait_green_tasks_are_new() || !of_thread->current)
        return true;
    const struct krait_green_switch of = { .entered = of_thread->current };
    if (krait_writer_room(&in->agent->writer, ring, t, KRAIT_GREEN_BYTES) == KRAIT_ROOM_NONE)
        return false;
    krait_green_tasks_put_run(ring, t, &of);
    return true;
}
