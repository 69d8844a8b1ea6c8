/* SPDX-License-Identifier: Apache-2.0 */
#include "python/green_tasks.h"

#include "event/payload.h"
#include "python/args.h"
#include "python/codes.h"
#include "python/compat/running.h"
#include "python/gil.h"
#include "python/green_lets.h"
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
    PyObject *active;                   /* its __bool__: it has begun, and not ended */
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
        found.active = PyMapping_GetItemString(dict, "__bool__");
    }
    Py_XDECREF(offset);
    Py_XDECREF(dict);
    if (found.dead && found.parent && found.frame && found.active)
        type = found;
    else
        Py_XDECREF(found.active);
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

static bool is_active(PyObject *greenlet)
{
    PyObject *active = PyObject_CallFunctionObjArgs(type.active, greenlet, NULL);
    Py_XDECREF(active);
    return active == Py_True;
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
    UNBEGUN = 4, /* another one waits for it: krait_green_lets_is_named */
    FLAG_BITS = 3,
};

struct greens {
    uint32_t epoch, forks;       /* of which recording, and of which process, all is */
    uint32_t current;            /* id of the task that the thread runs; 0: none */
    PyObject *begun;             /* it has begun, and is not defined; borrowed: it runs */
    struct krait_map by_address; /* to an id << FLAG_BITS and flags; 0: it has ended */
    size_t most;                 /* of krait_map_trim */
    struct krait_green_waits waits;
    struct krait_green_lets lets;
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
        krait_green_lets_done(&of_thread->lets);
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

static uint32_t id_of(uint64_t entry)
{
    return (uint32_t)(entry >> FLAG_BITS);
}

/* 0: nothing is known of it. */
static uint64_t known_entry(PyObject *greenlet)
{
    const uint64_t *known = krait_map_get(&of_thread->by_address, (uintptr_t)greenlet);
    return known ? *known : 0;
}

static void write_parent(struct krait_interp *in, uint32_t id, uint32_t parent)
{
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    size_t n = krait_put_task_parent(payload, &(struct krait_payload_task_parent){ id, parent });
    if (in->definitions)
        krait_writer_event(&in->agent->writer, in->definitions, KRAIT_EVENT_task_parent, payload, n);
}

/* One that krait does not know, such as one that has ended, says nothing new. */
static void note_parent(struct krait_interp *in, struct krait_green_let *let, PyObject *greenlet)
{
    PyObject *parent = get(greenlet, type.parent);
    uint64_t entry = parent ? known_entry(parent) : 0;
    uint32_t id = id_of(entry);
    if (id != let->parent && parent && (id || entry & IS_MAIN || is_main(parent))) {
        let->parent = id;
        write_parent(in, let->id, id);
    }
    Py_XDECREF(parent);
}

static void name_of(PyObject *greenlet, uint32_t id, char *text, size_t size)
{
    text[0] = '\0';
    if (Py_TYPE(greenlet) != type.address) {
        PyObject *hub = hub_type();
        read_name(greenlet, text, size);
        if (!text[0] && hub && PyType_IsSubtype(Py_TYPE(greenlet), (PyTypeObject *)hub))
            snprintf(text, size, KRAIT_TASK_HUB);
    }
    if (!text[0])
        snprintf(text, size, "greenlet-%u", id);
}

static void define(struct krait_interp *in, uint32_t id, PyObject *greenlet, uint32_t function)
{
    struct krait_green_let *let = krait_green_lets_add(&of_thread->lets, id);
    char text[256];
    name_of(greenlet, id, text, sizeof(text));
    krait_tasks_write_definition(in, id, function, text);
    if (let)
        note_parent(in, let, greenlet);
    PyErr_Clear();
}

bool krait_green_tasks_name(char *text, size_t size)
{
    bool is_known = type.address && !krait_green_tasks_are_new() && of_thread->current;
    PyObject *module = is_known ? krait_module("greenlet._greenlet") : NULL;
    PyObject *greenlet = module ? PyObject_CallMethod(module, "getcurrent", NULL) : NULL;
    if (greenlet)
        name_of(greenlet, of_thread->current, text, size);
    Py_XDECREF(greenlet);
    PyErr_Clear();
    return greenlet;
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

/* ---- greenlets by address ---- */

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
    uint64_t entry = known_entry(greenlet);
    if (entry)
        return entry;
    entry = add(in, greenlet);
    if (id_of(entry))
        define(in, id_of(entry), greenlet, runs ? outermost(in) : 0);
    return entry;
}

/* ---- for whom one waits ---- */

/* The id of a greenlet of this thread that has not ended; 0: it is none, or it began before krait looked. */
static uint32_t awaited(struct krait_interp *in, const struct krait_green_let *by, PyObject *object)
{
    if (!PyType_IsSubtype(Py_TYPE(object), (PyTypeObject *)type.address) || is_dead(object))
        return 0;
    uint64_t entry = known_entry(object);
    uint32_t id = id_of(entry);
    if (is_active(object) || entry & IS_MAIN)
        return entry & UNBEGUN ? 0 : id;
    if (!(entry & UNBEGUN) || !krait_green_lets_is_named(&of_thread->lets, id)) {
        krait_green_lets_end(&of_thread->lets, id);
        id = id_of(keep(object, (uint64_t)krait_tasks_next_id(in) << FLAG_BITS | UNBEGUN));
        if (id)
            define(in, id, object, 0);
    }
    struct krait_green_let *let = krait_green_lets_find(&of_thread->lets, id);
    if (let) {
        let->named_by = by->id;
        let->named_at = by->waits;
    }
    return id;
}

/* A list of what a builtin collection has. New reference or NULL. */
static PyObject *list_of(PyObject *collection)
{
    const PyTypeObject *types[] = { &PyList_Type,      &PyTuple_Type,    &PySet_Type,
                                    &PyFrozenSet_Type, &PyDictKeys_Type, &PyDictValues_Type };
    bool is = false;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        is |= Py_TYPE(collection) == types[i];
    return is ? PySequence_List(collection) : NULL;
}

static void await_several(struct krait_interp *in, struct krait_green_let *let, PyObject *collection)
{
    PyObject *list = list_of(collection);
    Py_ssize_t count = list ? PyList_Size(list) : 0;
    uint32_t *ids = count > 0 ? malloc((size_t)count * sizeof(*ids)) : NULL;
    for (Py_ssize_t i = 0; ids && i < count; i++)
        ids[i] = awaited(in, let, PyList_GetItem(list, i));
    if (ids)
        krait_green_lets_await(in, &of_thread->lets, let, ids, (size_t)count);
    free(ids);
    Py_XDECREF(list);
}

static void await_object(struct krait_interp *in, struct krait_green_let *let, enum krait_green_await how,
                         PyObject *object)
{
    if (object && how == KRAIT_GREEN_ONE)
        let->on = awaited(in, let, object);
    else if (object && how == KRAIT_GREEN_SEVERAL)
        await_several(in, let, object);
}

/* A function of C is called that may wait, or switch. */
static void note_call(struct krait_interp *in, enum krait_green_await how, PyObject *object)
{
    struct krait_green_let *let = krait_green_lets_find(&of_thread->lets, of_thread->current);
    PyObject *frame = let && (how || let->frame) ? (PyObject *)PyEval_GetFrame() : NULL; /* borrowed */
    if (!frame || (!how && let->frame != frame))
        return;
    krait_green_let_forget(let);
    if (!how)
        return;
    let->frame = frame;
    let->lasti = krait_green_lasti(frame);
    await_object(in, let, how, object);
}

/* What a function of Python waits for; new reference or NULL. */
static PyObject *local_object(PyObject *frame, const struct krait_green_awaiting *awaiting)
{
    PyObject *local = krait_args_frame_local(frame, awaiting->local);
    PyObject *attr = local && awaiting->attr ? krait_args_plain_attr(local, awaiting->attr) : NULL;
    if (!awaiting->attr)
        return local;
    Py_XDECREF(local);
    return attr;
}

/* It is left in `frame`. */
static void note_wait(struct krait_interp *in, struct krait_green_let *let, PyObject *frame, PyObject *code)
{
    const struct krait_code *slot = code ? krait_code_find(in, code) : NULL;
    uint32_t function = slot ? slot->flags >> KRAIT_CODE_GREEN : 0;
    struct krait_green_awaiting awaiting = { 0 };
    if (function)
        awaiting = krait_green_waits_awaiting(function);
    bool is_there = frame && let->frame == frame && let->lasti == krait_green_lasti(frame);
    if (!is_there)
        krait_green_let_forget(let);
    if (!awaiting.local)
        return;
    PyObject *object = local_object(frame, &awaiting);
    let->frame = frame;
    let->lasti = krait_green_lasti(frame);
    let->on = 0;
    let->has_several = false;
    await_object(in, let, awaiting.how, object);
    Py_XDECREF(object);
}

static void tell_wait(struct krait_interp *in, PyObject *greenlet, PyObject *frame, PyObject *code,
                      struct krait_green_switch *of)
{
    struct krait_green_let *let = krait_green_lets_find(&of_thread->lets, of->left);
    if (!let)
        return;
    note_parent(in, let, greenlet);
    note_wait(in, let, frame, code);
    of->awaits = let->on;
    of->set = let->has_several && let->members ? let->own : 0;
}

/* ---- switches ---- */

static void leave(struct krait_interp *in, PyObject *greenlet, bool threw, struct krait_green_switch *of)
{
    uint64_t entry = entry_of(in, greenlet, false);
    of->left = id_of(entry);
    if (!of->left)
        return;
    if (is_dead(greenlet)) {
        krait_green_waits_end(&of_thread->waits, of->left, greenlet);
        krait_green_lets_end(&of_thread->lets, of->left);
        keep(greenlet, 0);
        of->reason = threw ? KRAIT_task_leave_reason_raised : KRAIT_task_leave_reason_returned;
        return;
    }
    PyObject *frame = get(greenlet, type.frame), *code = frame ? krait_frame_code(frame) : NULL;
    uint64_t flags = frame ? 0 : FRAMELESS;
    of->at = code ? krait_code_id(in, code) : 0;
    of->reason = KRAIT_task_leave_reason_switched;
    krait_green_waits_leave(&of_thread->waits, of->left, frame);
    tell_wait(in, greenlet, frame, code, of);
    if ((entry & FRAMELESS) != flags)
        keep(greenlet, (entry & ~(uint64_t)FRAMELESS) | flags);
    Py_XDECREF(code);
    Py_XDECREF(frame);
}

/* One that has no frame begins, or was left so. */
static uint32_t enter(struct krait_interp *in, PyObject *greenlet)
{
    uint64_t entry = known_entry(greenlet);
    bool begins = !PyEval_GetFrame() && !(entry & (FRAMELESS | IS_MAIN));
    if (!begins)
        return id_of(entry_of(in, greenlet, true));
    bool is_named = entry & UNBEGUN && krait_green_lets_is_named(&of_thread->lets, id_of(entry));
    if (!is_named)
        krait_green_lets_end(&of_thread->lets, id_of(entry));
    uint32_t id = id_of(is_named ? keep(greenlet, entry & ~(uint64_t)UNBEGUN) : add(in, greenlet));
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

void krait_green_tasks_put_await(struct krait_ring *ring, uint64_t t, const struct krait_green_switch *of)
{
    uint8_t payload[KRAIT_BYTES_task_await];
    const struct krait_payload_task_await event = { .task = of->left, .on = of->awaits, .set = of->set };
    if (of->left && (of->awaits || of->set))
        krait_writer_put_small(ring, t, KRAIT_EVENT_task_await, payload,
                               krait_put_task_await(payload, &event));
}

void krait_green_tasks_call(struct krait_interp *in, uint32_t function, PyObject *object)
{
    if (!of_thread || krait_green_tasks_are_new())
        return;
    struct krait_kept kept = krait_keep();
    krait_green_waits_call(&of_thread->waits, function, object, of_thread->current);
    note_call(in, krait_green_waits_awaiting(function).how, object);
    PyErr_Clear();
    krait_restore(&kept);
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
    krait_green_lets_forget(&of_thread->lets);
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
