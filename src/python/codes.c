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
    NAME_MAX_BYTES = 900,
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
}

void krait_codes_forget(struct krait_interp *in)
{
    krait_codes_forget_ids(in);
    for (size_t i = 0; i < 1ull << (64 - in->code_shift); i++) {
        if (in->codes[i].key)
            in->codes[i].flags &= ~(uint32_t)(KRAIT_CODE_OMIT | KRAIT_CODE_HOT | KRAIT_CODE_ARGS);
    }
    krait_map_done(&in->args);
    krait_map_done(&in->works);
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
    krait_map_done(&in->works);
    krait_map_done(&in->name_ids);
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

/* ---- names ---- */

static uint32_t attr_u32(PyObject *obj, const char *name)
{
    PyObject *value = PyObject_GetAttrString(obj, name);
    unsigned long n = value ? PyLong_AsUnsignedLong(value) : 0;
    Py_XDECREF(value);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        n = 0;
    }
    return (uint32_t)n;
}

static bool is_function(PyObject *code)
{
    return attr_u32(code, "co_flags") & 1; /* CO_OPTIMIZED: class bodies and modules have it not */
}

struct code_text {
    char module[NAME_MAX_BYTES];
    char name[NAME_MAX_BYTES];
    char file[NAME_MAX_BYTES];
    uint32_t line;
    uint32_t site, site_line; /* with --call-sites: the caller's id, and the line in it */
};

/* The frame of `code` in this thread, borrowed; NULL when it has none (then its module is not known). */
static PyObject *frame_of(PyObject *code, PyObject *frame)
{
    if (!frame)
        frame = (PyObject *)PyEval_GetFrame();
    if (!frame)
        return NULL;
    PyObject *its = krait_frame_code(frame);
    bool same = its == code;
    Py_XDECREF(its);
    return same ? frame : NULL;
}

static void module_of(PyObject *frame, char *text, size_t size)
{
    text[0] = '\0';
    PyObject *globals = PyObject_GetAttrString(frame, "f_globals");
    if (globals && PyDict_Check(globals))
        krait_text_name(PyDict_GetItemString(globals, "__name__"), text, size);
    Py_XDECREF(globals);
    PyErr_Clear();
}

/* ---- qualified names before 3.11 ----
 *
 * Code objects have none there. But every code object is a constant of the one that defines it, which runs
 * before it: when a code object is defined, its constants are named after it, as the compiler of 3.11 does.
 */

static void name_constants(struct krait_interp *in, PyObject *code, const char *qualname)
{
    bool is_module = strcmp(qualname, "<module>") == 0;
    bool in_function = is_function(code);
    PyObject *constants = PyObject_GetAttrString(code, "co_consts");
    Py_ssize_t n = constants && PyTuple_Check(constants) ? PyTuple_Size(constants) : 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *inner = PyTuple_GetItem(constants, i);
        if (Py_TYPE(inner) != Py_TYPE(code))
            continue;
        char name[NAME_MAX_BYTES];
        krait_text_attr(inner, "co_name", name, sizeof(name));
        char *full = NULL;
        if (asprintf(&full, "%s%s%s", is_module ? "" : qualname,
                     is_module     ? ""
                     : in_function ? ".<locals>."
                                   : ".",
                     name) < 0)
            continue;
        uint64_t *old = krait_map_get(&in->names, (uintptr_t)inner);
        if (old)
            free((void *)*old);
        if (krait_map_put(&in->names, (uintptr_t)inner, (uintptr_t)full))
            free(full);
    }
    Py_XDECREF(constants);
    PyErr_Clear();
}

/* For a method whose class body was not seen to run: the class, of those of the first argument, that has the code. */
static bool name_by_self(PyObject *code, PyObject *frame, const char *name, char *text, size_t size)
{
    PyObject *locals = PyObject_GetAttrString(frame, "f_locals");
    PyObject *self = locals && PyDict_Check(locals) ? PyDict_GetItemString(locals, "self") : NULL;
    PyObject *mro = self ? PyObject_GetAttrString((PyObject *)Py_TYPE(self), "__mro__") : NULL;
    bool found = false;
    for (Py_ssize_t i = 0; mro && !found && i < PyTuple_Size(mro); i++) {
        char key[NAME_MAX_BYTES];
        PyObject *cls = PyTuple_GetItem(mro, i);
        krait_text_in_class(cls, name, key, sizeof(key));
        PyObject *dict = PyObject_GetAttrString(cls, "__dict__");
        PyObject *function = dict ? PyMapping_GetItemString(dict, key) : NULL;
        PyObject *its = function ? PyObject_GetAttrString(function, "__code__") : NULL;
        found = its == code;
        if (found) {
            krait_text_attr(function, "__qualname__", text, size);
        }
        Py_XDECREF(its);
        Py_XDECREF(function);
        Py_XDECREF(dict);
        PyErr_Clear();
    }
    Py_XDECREF(mro);
    Py_XDECREF(locals);
    PyErr_Clear();
    return found;
}

static void qualname_of(struct krait_interp *in, PyObject *code, PyObject *frame, char *text, size_t size)
{
    if (krait_compat.version.has_qualname) {
        krait_text_attr(code, "co_qualname", text, size);
        return;
    }
    char name[NAME_MAX_BYTES];
    krait_text_attr(code, "co_name", name, sizeof(name));
    const uint64_t *known = krait_map_get(&in->names, (uintptr_t)code);
    if (known && *known) {
        /* The address may be that of another that died unseen: its own name must be the last part. */
        const char *full = (const char *)*known;
        size_t a = strlen(full), b = strlen(name);
        if (a >= b && strcmp(full + a - b, name) == 0) {
            snprintf(text, size, "%s", full);
            return;
        }
    }
    if (!frame || !name_by_self(code, frame, name, text, size))
        snprintf(text, size, "%s", name);
}

static void describe(struct krait_interp *in, PyObject *code, PyObject *frame, struct code_text *t)
{
    frame = frame_of(code, frame);
    t->module[0] = '\0';
    t->site = t->site_line = 0;
    if (frame)
        module_of(frame, t->module, sizeof(t->module));
    qualname_of(in, code, frame, t->name, sizeof(t->name));
    krait_text_attr(code, "co_filename", t->file, sizeof(t->file));
    t->line = attr_u32(code, "co_firstlineno");
    if (!krait_compat.version.has_qualname)
        name_constants(in, code, t->name);
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
    return len && strncmp(file, own_folder.path, len) == 0 && !strchr(file + len, '/') && is_function(code);
}

/* ---- definitions ---- */

/* No string is empty: babeltrace2 2.0.4 prints the string before in its place. */
static const char *or_else(const char *text, const char *other)
{
    return *text ? text : other;
}

static bool write_definition(struct krait_interp *in, uint32_t id, enum krait_event_enum_value kind,
                             const struct code_text *t)
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
    uint32_t flags = id ? attr_u32(code, "co_flags") & KRAIT_CO_SUSPENDS : 0;
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
                          const struct code_text *t)
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
    struct code_text t = { 0 };
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
                                 bool take, const struct code_text *t)
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
    bool is_coroutine = in->sees_tasks && attr_u32(code, "co_flags") & COROUTINES;
    if (is_coroutine)
        krait_tasks_look(in);
    return is_coroutine;
}

/* Whether it is one in which greenlets wait. */
static void note_green_wait(const struct krait_interp *in, struct krait_code *slot, const struct code_text *t)
{
    uint32_t green = slot && in->agent->tasks ? krait_green_waits_function(t->module, t->name) : 0;
    if (green)
        slot->flags |= green << KRAIT_CODE_GREEN;
}

struct krait_code *krait_code_define(struct krait_interp *in, PyObject *code, PyObject *frame)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    struct code_text t;
    describe(in, code, frame, &t);
    const struct krait_code *old = krait_code_find(in, code);
    if (!old)
        watch(in, code, code);
    /* Such a file's name ends with that of the program's file. */
    const char *file = krait_own_file(t.file) ? "" : t.file;
    bool take = !(old && old->flags & KRAIT_CODE_OMIT) && !is_own(code, t.file) &&
                krait_filters_take(in->agent, t.module, t.name, file);
    bool is_coroutine = in->agent->tasks && look_for_tasks(in, code, t.module);
    struct krait_code *slot = finish(in, code, KRAIT_code_kind_python, take, &t);
    if (slot)
        write_suspends(in, slot->id, code);
    if (slot && is_coroutine)
        slot->flags |= KRAIT_CODE_TASK;
    note_green_wait(in, slot, &t);
    bool may_have_args = krait_args_asked && slot && slot->id && is_function(code);
    uint64_t args = may_have_args ? krait_args_of(in, t.module, t.name, file) : 0;
    bool changes = args || krait_map_get(&in->args, (uintptr_t)code); /* another had its address */
    if (changes && krait_map_put(&in->args, (uintptr_t)code, args) == 0 && args)
        slot = set_aside(in, slot);
    PyErr_Restore(type, value, traceback);
    return slot;
}

PyObject *krait_type_attr(PyObject *cls, const char *name)
{
    PyObject *dict = PyObject_GetAttrString((PyObject *)&PyType_Type, "__dict__");
    PyObject *descr = dict ? PyMapping_GetItemString(dict, name) : NULL;
    PyObject *value =
        descr ? PyObject_CallMethod(descr, "__get__", "OO", cls, (PyObject *)Py_TYPE(cls)) : NULL;
    Py_XDECREF(descr);
    Py_XDECREF(dict);
    PyErr_Clear();
    return value;
}

static void type_text(PyObject *cls, const char *name, char *text, size_t size)
{
    PyObject *value = krait_type_attr(cls, name);
    krait_text_name(value, text, size);
    Py_XDECREF(value);
}

/* The class's name with `suffix`, and its module. */
static void describe_of_type(PyObject *cls, const char *suffix, struct code_text *t)
{
    size_t room = sizeof(t->name) - KRAIT_MIN(strlen(suffix), sizeof(t->name) / 2);
    type_text(cls, "__qualname__", t->name, room);
    type_text(cls, "__module__", t->module, sizeof(t->module));
    size_t n = strlen(t->name);
    snprintf(t->name + n, sizeof(t->name) - n, "%s", suffix);
}

static bool defines(PyObject *cls, const char *name, const void *def)
{
    PyObject *dict = krait_type_attr(cls, "__dict__");
    PyObject *item = dict ? PyMapping_GetItemString(dict, name) : NULL;
    bool found =
        item &&
        (Py_TYPE(item) == krait_compat.method_descr_type || Py_TYPE(item) == &PyClassMethodDescr_Type) &&
        krait_at(item, KRAIT_METHOD_DESCR_DEF) == def;
    Py_XDECREF(item);
    Py_XDECREF(dict);
    PyErr_Clear();
    return found;
}

/* A bound method names the class of what it is bound to; the function is that of the class that defines it.
 * New reference. */
static PyObject *definer(PyObject *cls, const char *name, const void *def)
{
    PyObject *mro = krait_type_attr(cls, "__mro__");
    Py_ssize_t n = mro && PyTuple_Check(mro) ? PyTuple_Size(mro) : 0;
    PyObject *found = cls;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (defines(PyTuple_GetItem(mro, i), name, def)) {
            found = PyTuple_GetItem(mro, i);
            break;
        }
    }
    Py_INCREF(found);
    Py_XDECREF(mro);
    return found;
}

static void describe_builtin(PyObject *callable, struct code_text *t)
{
    const void *def = krait_at(callable, KRAIT_CFUNCTION_ML);
    PyObject *self = krait_at(callable, KRAIT_CFUNCTION_SELF);
    const char *name = krait_at(def, KRAIT_ML_NAME);
    if (!self || PyModule_Check(self)) {
        snprintf(t->name, sizeof(t->name), "%s", name);
        krait_text_attr(callable, "__module__", t->module, sizeof(t->module));
        return;
    }
    PyObject *cls = PyType_Check(self) ? self : (PyObject *)Py_TYPE(self);
    PyObject *owner = definer(cls, name, def);
    char suffix[256];
    snprintf(suffix, sizeof(suffix), ".%s", name);
    describe_of_type(owner, suffix, t);
    Py_DECREF(owner);
}

/* A method descriptor or a function of a type of its own: qualified name, and its module or that
 * of the type that it belongs to. */
static void describe_other(PyObject *callable, struct code_text *t)
{
    krait_text_attr(callable, "__qualname__", t->name, sizeof(t->name));
    krait_text_attr(callable, "__module__", t->module, sizeof(t->module));
    if (t->module[0])
        return;
    PyObject *owner = PyObject_GetAttrString(callable, "__objclass__");
    PyErr_Clear();
    if (!owner)
        owner = PyObject_GetAttrString(callable, "__self__");
    PyErr_Clear();
    if (owner)
        type_text(PyType_Check(owner) ? owner : (PyObject *)Py_TYPE(owner), "__module__", t->module,
                  sizeof(t->module));
    Py_XDECREF(owner);
}

static void describe_c(PyObject *callable, struct code_text *t)
{
    const PyTypeObject *type = Py_TYPE(callable);
    memset(t, 0, sizeof(*t));
    if (type == krait_compat.cfunction_type || type == krait_compat.cmethod_type)
        describe_builtin(callable, t);
    else
        describe_other(callable, t);
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
    struct code_text t;
    describe_c(callable, &t);
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
    struct code_text t = { 0 };
    describe_of_type(cls, "", &t);
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
    struct code_text t;
    if (key)
        describe_c(callee, &t);
    else
        describe(in, callee, NULL, &t);
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
