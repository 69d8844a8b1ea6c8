/* SPDX-License-Identifier: Apache-2.0
 *
 * Code objects and types die and their addresses are used again: each has a weak reference whose callback
 * frees its slot. Weak references exist in every version, and cost nothing until the object dies
 * (PyCode_AddWatcher is 3.12 and has 8 places that others want; co_extra slows every code object's death).
 *
 * A C function is known by its PyMethodDef, which is static data of its module: bound methods come and go,
 * that stays.
 */
#include "python/codes.h"

#include "event/own.h"
#include "python/args.h"
#include "python/callables.h"
#include "python/code_names.h"
#include "python/compat/running.h"
#include "python/green_waits.h"
#include "python/tasks.h"
#include "python/text.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>

enum {
    FIRST_SHIFT = 64 - 14, /* 16384 slots: 512 KiB, of which touched pages alone cost memory */
    LOAD = 8, /* a slot in so many is used at most: a function whose place is taken costs twice as much */
};

/* ---- the table ---- */

/* Whoever has its place taken changes places with the taker now and then: of two that want one place the one that is
 * called more has it most of the time. What lies between stays as it is, so that probes still find both. */
static struct krait_code *change_places(struct krait_interp *in, struct krait_code *home,
                                        struct krait_code *slot)
{
    enum { EVERY = 8 };
    if (slot->flags & KRAIT_CODE_ARGS || ++in->code_misses % EVERY)
        return slot;
    struct krait_code taker = *home;
    *home = *slot;
    *slot = taker;
    return home;
}

struct krait_code *krait_code_peek(const struct krait_interp *in, const void *key)
{
    uint32_t mask = (uint32_t)((1ull << (64 - in->code_shift)) - 1);
    for (uint32_t i = krait_code_hash(in, key); in->codes[i].key; i = (i + 1) & mask) {
        if (in->codes[i].key == key)
            return &in->codes[i];
    }
    return NULL;
}

struct krait_code *krait_code_probe(struct krait_interp *in, const void *key)
{
    uint32_t mask = (uint32_t)((1ull << (64 - in->code_shift)) - 1);
    uint32_t home = krait_code_hash(in, key);
    for (uint32_t i = home;; i = (i + 1) & mask) {
        if (in->codes[i].key == key)
            return i == home ? &in->codes[i] : change_places(in, &in->codes[home], &in->codes[i]);
        if (!in->codes[i].key)
            return NULL;
    }
}

int krait_codes_init(struct krait_interp *in)
{
    in->code_shift = FIRST_SHIFT;
    in->codes = calloc(1ull << (64 - FIRST_SHIFT), sizeof(*in->codes));
    return in->codes ? 0 : -ENOMEM;
}

/* Where a key that is not in the table goes. The place of a dead one is taken again: a new code object is
 * often where an old one was. */
static struct krait_code *free_slot(struct krait_interp *in, const void *key, uint32_t flags)
{
    uint32_t mask = (uint32_t)((1ull << (64 - in->code_shift)) - 1);
    uint32_t i = krait_code_hash(in, key);
    if (flags & KRAIT_CODE_ARGS) { /* set aside */
        in->code_used += in->codes[i].key == NULL;
        in->codes[i].key = in->codes[i].key ? in->codes[i].key : KRAIT_CODE_DEAD;
        i = (i + 1) & mask;
    }
    while (in->codes[i].key && in->codes[i].key != KRAIT_CODE_DEAD)
        i = (i + 1) & mask;
    return &in->codes[i];
}

static bool is_live(const struct krait_code *slot)
{
    return slot->key && slot->key != KRAIT_CODE_DEAD;
}

/* A program that makes functions and drops them fills the table with dead slots: then it stays as large as it is. */
static int grow(struct krait_interp *in)
{
    size_t cap = 1ull << (64 - in->code_shift);
    uint32_t live = 0;
    for (size_t i = 0; i < cap; i++)
        live += is_live(&in->codes[i]);
    bool double_it = live * (uint64_t)LOAD * 2 >= cap;
    struct krait_interp bigger = { .code_shift = in->code_shift - double_it };
    bigger.codes = calloc(cap << double_it, sizeof(*bigger.codes));
    if (!bigger.codes)
        return -ENOMEM;
    for (size_t i = 0; i < cap; i++) {
        if (is_live(&in->codes[i]))
            *free_slot(&bigger, in->codes[i].key, in->codes[i].flags) = in->codes[i];
    }
    in->code_used = live + bigger.code_used;
    free(in->codes);
    in->codes = bigger.codes;
    in->code_shift = bigger.code_shift;
    return 0;
}

static struct krait_code *add_slot(struct krait_interp *in, const void *key)
{
    if (in->code_used * (uint64_t)LOAD >= 1ull << (64 - in->code_shift) && grow(in))
        return NULL;
    struct krait_code *slot = free_slot(in, key, 0);
    in->code_used += slot->key == NULL;
    *slot = (struct krait_code){ .key = key };
    return slot;
}

void krait_code_lend(struct krait_interp *in, const void *key, uint32_t id)
{
    struct krait_code *slot = krait_code_peek(in, key);
    if (!slot && id)
        slot = add_slot(in, key);
    if (slot)
        *slot = (struct krait_code){ .key = id ? key : KRAIT_CODE_DEAD, .id = id };
}

/* The hooks' short way looks into a function's own slot alone: a function that is elsewhere takes the other one. */
static struct krait_code *set_aside(struct krait_interp *in, struct krait_code *slot)
{
    struct krait_code its = *slot;
    if (its.flags & KRAIT_CODE_ARGS)
        return slot;
    its.flags |= KRAIT_CODE_ARGS;
    struct krait_code *aside = free_slot(in, its.key, its.flags);
    in->code_used += aside->key == NULL;
    slot->key = KRAIT_CODE_DEAD;
    *aside = its;
    return aside;
}

void krait_code_add_args(struct krait_interp *in, PyObject *code, uint64_t which)
{
    struct krait_code *slot = krait_code_find(in, code);
    const uint64_t *known = krait_map_get(&in->args, (uintptr_t)code);
    if (slot && slot->id && krait_map_put(&in->args, (uintptr_t)code, which | (known ? *known : 0)) == 0)
        set_aside(in, slot);
}

void krait_codes_forget_ids(struct krait_interp *in)
{
    for (size_t i = 0; i < 1ull << (64 - in->code_shift); i++) {
        if (!in->codes[i].key)
            continue; /* not even touched */
        in->codes[i].id = 0;
        in->codes[i].calls = 0;
    }
    krait_map_done(&in->sites);
    krait_map_done(&in->places);
    krait_map_done(&in->name_ids);
    krait_work_forget_functions(in);
}

void krait_codes_forget(struct krait_interp *in)
{
    krait_codes_forget_ids(in);
    for (size_t i = 0; i < 1ull << (64 - in->code_shift); i++) {
        if (in->codes[i].key)
            in->codes[i].flags &= ~(uint32_t)(KRAIT_CODE_OMIT | KRAIT_CODE_HOT | KRAIT_CODE_ARGS);
    }
    krait_map_done(&in->args);
    krait_work_forget(in);
}

void krait_codes_done(struct krait_interp *in)
{
    static struct krait_code nothing[2];
    free(in->codes);
    in->codes = nothing;
    in->code_shift = 63;
    struct krait_map weakrefs = in->weakrefs, names = in->names;
    in->weakrefs = in->names = (struct krait_map){ 0 };
    for (size_t i = 0; i < weakrefs.cap; i++) {
        if (weakrefs.slots[i].used && weakrefs.slots[i].value)
            Py_DECREF((PyObject *)weakrefs.slots[i].key);
    }
    for (size_t i = 0; i < names.cap; i++) {
        if (names.slots[i].used)
            free((void *)names.slots[i].value);
    }
    krait_map_done(&weakrefs);
    krait_map_done(&names);
    krait_map_done(&in->sites);
    krait_map_done(&in->args);
    krait_work_forget(in);
    krait_map_done(&in->name_ids);
    krait_callables_done(in);
    Py_CLEAR(in->weakref_callback);
}

/* ---- death ---- */

static struct krait_interp *interp_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, NULL);
}

static PyObject *on_death(PyObject *self, PyObject *weakref)
{
    struct krait_interp *in = interp_of(self);
    uint64_t *watched = krait_map_get(&in->weakrefs, (uintptr_t)weakref);
    struct krait_code *slot = watched && *watched ? krait_code_find(in, (const void *)*watched) : NULL;
    if (slot)
        *slot = (struct krait_code){ .key = KRAIT_CODE_DEAD };
    if (watched && *watched) {
        uint64_t *name = krait_map_get(&in->names, *watched);
        if (name) {
            free((void *)*name);
            *name = 0;
        }
        *watched = 0;
        Py_DECREF(weakref);
    }
    Py_RETURN_NONE;
}

static PyMethodDef death_method = { "krait_code_died", on_death, METH_O, NULL };

/* Frees the slot when `obj` dies. gc.get_objects() would show the program a weak reference for each function that it
 * calls; those of code objects need not be known to the collector, for it never finds a code object in a cycle
 * (Modules/gcmodule.c, handle_weakrefs). Objects without weak references are kept alive instead: they are few (types
 * and codes have them). */
static void watch(struct krait_interp *in, PyObject *obj, const void *key)
{
    if (!in->weakref_callback) {
        PyObject *self = PyCapsule_New(in, NULL, NULL);
        in->weakref_callback = self ? PyCFunction_NewEx(&death_method, self, NULL) : NULL;
        Py_XDECREF(self);
    }
    PyObject *weakref = in->weakref_callback ? PyWeakref_NewRef(obj, in->weakref_callback) : NULL;
    if (!weakref || krait_map_put(&in->weakrefs, (uintptr_t)weakref, (uintptr_t)key)) {
        PyErr_Clear();
        Py_XDECREF(weakref);
        Py_INCREF(obj);
        return;
    }
    if (Py_TYPE(obj) == krait_compat.code_type)
        PyObject_GC_UnTrack(weakref);
}

/* ---- krait's own functions ---- */

/* The folder of the package krait, with its slash. */
static struct {
    char path[PATH_MAX];
    size_t len; /* 0: not known */
} own_folder;

void krait_codes_find_own(void)
{
    Dl_info info;
    const char *slash = dladdr(&krait_agent, &info) && info.dli_fname ? strrchr(info.dli_fname, '/') : NULL;
    size_t len = slash ? (size_t)(slash - info.dli_fname) + 1 : 0;
    if (!len || len > sizeof(own_folder.path))
        return;
    memcpy(own_folder.path, info.dli_fname, len);
    own_folder.len = len;
}

/* Whether it is of the package krait and a function: what the bodies of its module and classes do happens
 * once, at the import. */
static bool is_own(PyObject *code, const char *file)
{
    size_t len = own_folder.len;
    return len && strncmp(file, own_folder.path, len) == 0 && !strchr(file + len, '/') &&
           krait_code_is_function(code);
}

/* ---- definitions ---- */

/* No string is empty: babeltrace2 2.0.4 prints the string before in its place. */
static const char *or_else(const char *text, const char *other)
{
    return *text ? text : other;
}

static bool write_definition(struct krait_interp *in, uint32_t id, enum krait_event_enum_value kind,
                             const struct krait_code_text *t)
{
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    size_t n = krait_put_code_define(payload, &(struct krait_payload_code_define){
                                                  .id = id,
                                                  .kind = (uint8_t)kind,
                                                  .line = t->line,
                                                  .module = or_else(t->module, "<unknown>"),
                                                  .qualname = or_else(t->name, "<unknown>"),
                                                  .file = or_else(t->file, "<built-in>"),
                                                  .site = t->site,
                                                  .site_line = t->site_line,
                                              });
    return in->definitions &&
           krait_writer_event(&in->agent->writer, in->definitions, KRAIT_EVENT_code_define, payload, n);
}

/* A recording without it shows steps instead of calls. */
static void write_suspends(struct krait_interp *in, uint32_t id, PyObject *code)
{
    uint32_t flags = id ? krait_code_attr_u32(code, "co_flags") & KRAIT_CO_SUSPENDS : 0;
    uint8_t payload[KRAIT_BYTES_code_suspends];
    enum krait_event_enum_value as = flags & KRAIT_CO_COROUTINE         ? KRAIT_suspends_as_coroutine
                                     : flags & KRAIT_CO_ASYNC_GENERATOR ? KRAIT_suspends_as_async_generator
                                                                        : KRAIT_suspends_as_generator;
    size_t n = krait_put_code_suspends(payload, &(struct krait_payload_code_suspends){ id, (uint8_t)as });
    if (flags)
        krait_writer_event(&in->agent->writer, in->definitions, KRAIT_EVENT_code_suspends, payload, n);
}

/* Hands out an id and writes what it stands for; 0 when that is not possible now. */
static uint32_t define_id(struct krait_interp *in, enum krait_event_enum_value kind,
                          const struct krait_code_text *t)
{
    uint32_t id = krait_writer_new_code(&in->agent->writer);
    if (id && write_definition(in, id, kind, t))
        return id;
    krait_writer_lost(&in->agent->writer, KRAIT_lost_reason_undefined, 1);
    return 0;
}

uint32_t krait_code_define_name(struct krait_interp *in, enum krait_event_enum_value kind, const char *module,
                                const char *name)
{
    struct krait_code_text t = { 0 };
    snprintf(t.module, sizeof(t.module), "%s", module);
    snprintf(t.name, sizeof(t.name), "%s", name);
    return define_id(in, kind, &t);
}

uint32_t krait_code_name_known(const struct krait_interp *in, const char *name)
{
    const uint64_t *known = krait_map_get(&in->name_ids, krait_hash_bytes(name, strlen(name)));
    return known ? (uint32_t)*known : 0;
}

uint32_t krait_code_name(struct krait_interp *in, const char *name)
{
    enum { MOST_NAMES = 20000 };
    static const char more[] = "(more names)";
    uint32_t id = krait_code_name_known(in, name);
    if (id)
        return id;
    if (in->name_ids.len >= MOST_NAMES && name != more)
        return krait_code_name(in, more);
    uint64_t key = krait_hash_bytes(name, strlen(name));
    id = krait_code_define_name(in, KRAIT_code_kind_name, "", name);
    if (id)
        krait_map_put(&in->name_ids, key, id);
    return id;
}

/* Gives the slot an id, unless it is left out. Naming may have run Python code and moved the table: `key`
 * finds it. */
static struct krait_code *finish(struct krait_interp *in, const void *key, enum krait_event_enum_value kind,
                                 bool take, const struct krait_code_text *t)
{
    struct krait_code *slot = krait_code_find(in, key);
    if (!slot)
        slot = add_slot(in, key);
    if (!slot)
        return NULL;
    slot->flags |= KRAIT_CODE_KNOWN;
    if (!take) {
        slot->flags |= KRAIT_CODE_OMIT;
        return slot;
    }
    slot->id = define_id(in, kind, t);
    if (slot->id)
        krait_governor_know(in, slot->id, key, slot->id);
    return slot->id ? slot : NULL;
}

/* Whether it is a coroutine, of a program that has tasks. */
static bool look_for_tasks(struct krait_interp *in, PyObject *code, const char *module)
{
    enum { COROUTINES = KRAIT_CO_COROUTINE | KRAIT_CO_ITERABLE_COROUTINE };
    if (!in->sees_tasks && krait_tasks_are_of(module))
        krait_tasks_see(in);
    if (!in->sees_green_calls && krait_green_waits_are_of(module))
        krait_monitoring_see_green_calls(in);
    bool is_coroutine = in->sees_tasks && krait_code_attr_u32(code, "co_flags") & COROUTINES;
    if (is_coroutine)
        krait_tasks_look(in);
    return is_coroutine;
}

/* Whether it is one in which greenlets wait. */
static void note_green_wait(const struct krait_interp *in, struct krait_code *slot,
                            const struct krait_code_text *t)
{
    uint32_t green = slot && in->agent->tasks ? krait_green_waits_function(t->module, t->name) : 0;
    if (green)
        slot->flags |= green << KRAIT_CODE_GREEN;
}

struct krait_code *krait_code_define(struct krait_interp *in, PyObject *code, PyObject *frame)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    struct krait_code_text t;
    krait_code_describe(in, code, frame, &t);
    const struct krait_code *old = krait_code_find(in, code);
    if (!old)
        watch(in, code, code);
    /* Such a file's name ends with that of the program's file. */
    const char *file = krait_own_file(t.file) ? "" : t.file;
    bool take = !(old && old->flags & KRAIT_CODE_OMIT) && !is_own(code, t.file) &&
                krait_filters_take(in->agent, t.module, t.name, file);
    if (KRAIT_UNLIKELY(take && in->agent->none_taken))
        krait_switch_note_taken();
    bool is_coroutine = in->agent->tasks && look_for_tasks(in, code, t.module);
    struct krait_code *slot = finish(in, code, KRAIT_code_kind_python, take, &t);
    if (slot)
        write_suspends(in, slot->id, code);
    if (slot && is_coroutine)
        slot->flags |= KRAIT_CODE_TASK;
    note_green_wait(in, slot, &t);
    bool may_have_args = krait_args_asked && slot && slot->id && krait_code_is_function(code);
    uint64_t args = may_have_args ? krait_args_of(in, t.module, t.name, file) : 0;
    bool changes = args || krait_map_get(&in->args, (uintptr_t)code); /* another had its address */
    if (changes && krait_map_put(&in->args, (uintptr_t)code, args) == 0 && args)
        slot = set_aside(in, slot);
    PyErr_Restore(type, value, traceback);
    return slot;
}

/* functools.lru_cache's objects and NumPy's dispatchers stand before a Python function, which tells its calls
 * itself: together they would be two levels of one function. */
static bool wraps_python(PyObject *callable)
{
    PyObject *inner = PyObject_GetAttrString(callable, "__wrapped__");
    bool wraps = inner && Py_TYPE(inner) == krait_compat.function_type;
    Py_XDECREF(inner);
    PyErr_Clear();
    return wraps;
}

struct krait_code *krait_code_define_c(struct krait_interp *in, const void *key, PyObject *callable)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    struct krait_code_text t;
    krait_code_describe_c(callable, &t);
    const struct krait_code *old = krait_code_find(in, key);
    if (!old && key == callable)
        watch(in, callable, key);
    else if (!old && (uintptr_t)key & KRAIT_NEW_OF)
        watch(in, krait_at(callable, KRAIT_CFUNCTION_SELF), key);
    bool take = !(old && old->flags & KRAIT_CODE_OMIT) && !(key == callable && wraps_python(callable)) &&
                krait_filters_take_c(in->agent, t.module, t.name);
    struct krait_code *slot = finish(in, key, KRAIT_code_kind_c, take, &t);
    if (slot && krait_tasks_is_waker(t.module, t.name))
        slot->flags |= KRAIT_CODE_WAKES;
    note_green_wait(in, slot, &t);
    PyErr_Restore(type, value, traceback);
    return slot;
}

uint32_t krait_code_exception(struct krait_interp *in, PyObject *exception)
{
    PyObject *cls = (PyObject *)Py_TYPE(exception);
    const struct krait_code *slot = krait_code_find(in, cls);
    if (KRAIT_LIKELY(slot && slot->id))
        return slot->id;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    struct krait_code_text t = { 0 };
    krait_code_describe_type(cls, "", &t);
    if (!slot)
        watch(in, cls, cls);
    slot = finish(in, cls, KRAIT_code_kind_exception, true, &t);
    PyErr_Restore(type, value, traceback);
    return slot ? slot->id : 0;
}

/* ---- call sites ----
 *
 * With --call-sites a function has an id for each line that it is called from. */

/* The id of the function that `frame` runs; 0 when it is left out. */
static uint32_t frame_id(struct krait_interp *in, PyObject *frame)
{
    PyObject *code = krait_frame_code(frame);
    struct krait_code *slot = code ? krait_code_find(in, code) : NULL;
    if (code && !krait_code_is_defined(slot))
        slot = krait_code_define(in, code, frame);
    Py_XDECREF(code);
    return slot ? slot->id : 0;
}

uint32_t krait_code_at_site(struct krait_interp *in, uint32_t id, const void *key, PyObject *callee,
                            PyObject *caller)
{
    uint32_t site = caller && id ? frame_id(in, caller) : 0;
    if (!site)
        return id;
    int line = PyFrame_GetLineNumber((PyFrameObject *)caller);
    uint64_t place = krait_hash_u64((uint64_t)id << 32 | site) ^ (uint64_t)line * 0x9e3779b97f4a7c15ull;
    const uint64_t *known = krait_map_get(&in->sites, place);
    if (known)
        return (uint32_t)*known;
    struct krait_code_text t;
    if (key)
        krait_code_describe_c(callee, &t);
    else
        krait_code_describe(in, callee, NULL, &t);
    t.site = site;
    t.site_line = line > 0 ? (uint32_t)line : 0;
    uint32_t here = define_id(in, key ? KRAIT_code_kind_c : KRAIT_code_kind_python, &t);
    if (here && !key)
        write_suspends(in, here, callee);
    if (here) {
        krait_map_put(&in->sites, place, here);
        krait_governor_know(in, here, key ? key : callee, id);
    }
    return here ? here : id;
}

/* ---- C callables ---- */

const void *krait_code_key_rare(PyObject *callable)
{
    PyTypeObject *type = Py_TYPE(callable);
    const struct krait_compat *c = &krait_compat;
    if (type == &PyType_Type || type == c->wrapper_descr_type)
        return NULL;
    if (type == c->cmethod_type)
        return krait_code_key_new(krait_at(callable, KRAIT_CFUNCTION_ML), callable);
    bool is_function_like = c->version.monitoring && PyType_GetFlags(type) & KRAIT_TPFLAGS_METHOD_DESCRIPTOR;
    return is_function_like ? callable : NULL;
}
