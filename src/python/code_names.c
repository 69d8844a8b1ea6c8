/* SPDX-License-Identifier: Apache-2.0 */
#include "python/code_names.h"

#include "python/codes.h"
#include "python/text.h"

#include <string.h>

uint32_t krait_code_attr_u32(PyObject *obj, const char *name)
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

bool krait_code_is_function(PyObject *code)
{
    return krait_code_attr_u32(code, "co_flags") & 1; /* CO_OPTIMIZED: class bodies and modules have it not */
}

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

static void module_of(PyObject *globals, char *text, size_t size)
{
    text[0] = '\0';
    if (globals && PyDict_Check(globals))
        krait_text_name(PyDict_GetItemString(globals, "__name__"), text, size);
    PyErr_Clear();
}

static void module_of_frame(PyObject *frame, char *text, size_t size)
{
    PyObject *globals = PyObject_GetAttrString(frame, "f_globals");
    module_of(globals, text, size);
    Py_XDECREF(globals);
}

/* ---- qualified names before 3.11 ----
 *
 * Code objects have none there. But every code object is a constant of the one that defines it, which runs
 * before it: when a code object is defined, its constants are named after it, as the compiler of 3.11 does.
 */

/* `qualname` is allocated and given away. */
static void know_qualname(struct krait_interp *in, PyObject *code, char *qualname)
{
    uint64_t *old = krait_map_get(&in->names, (uintptr_t)code);
    if (old)
        free((void *)*old);
    if (krait_map_put(&in->names, (uintptr_t)code, (uintptr_t)qualname))
        free(qualname);
}

static void name_constants(struct krait_interp *in, PyObject *code, const char *qualname)
{
    bool is_module = strcmp(qualname, "<module>") == 0;
    bool in_function = krait_code_is_function(code);
    PyObject *constants = PyObject_GetAttrString(code, "co_consts");
    Py_ssize_t n = constants && PyTuple_Check(constants) ? PyTuple_Size(constants) : 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *inner = PyTuple_GetItem(constants, i);
        if (Py_TYPE(inner) != Py_TYPE(code))
            continue;
        char name[KRAIT_CODE_NAME_BYTES];
        krait_text_attr(inner, "co_name", name, sizeof(name));
        char *full = NULL;
        if (asprintf(&full, "%s%s%s", is_module ? "" : qualname,
                     is_module     ? ""
                     : in_function ? ".<locals>."
                                   : ".",
                     name) < 0)
            continue;
        know_qualname(in, inner, full);
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
        char key[KRAIT_CODE_NAME_BYTES];
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
    char name[KRAIT_CODE_NAME_BYTES];
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

void krait_code_describe(struct krait_interp *in, PyObject *code, PyObject *frame, struct krait_code_text *t)
{
    frame = frame_of(code, frame);
    t->module[0] = '\0';
    t->site = t->site_line = 0;
    if (frame)
        module_of_frame(frame, t->module, sizeof(t->module));
    qualname_of(in, code, frame, t->name, sizeof(t->name));
    krait_text_attr(code, "co_filename", t->file, sizeof(t->file));
    t->line = krait_code_attr_u32(code, "co_firstlineno");
    if (!krait_compat.version.has_qualname)
        name_constants(in, code, t->name);
}

/* Whether `qualname` is that of something called `name`, and has more than it. */
static bool is_qualified(const char *qualname, const char *name)
{
    size_t a = strlen(qualname), b = strlen(name);
    return a > b + 1 && qualname[a - b - 1] == '.' && strcmp(qualname + a - b, name) == 0;
}

/* What defines it may not have been seen. Its calls will have the same name. A decorator may have set that of another one. */
static void qualname_of_function(struct krait_interp *in, PyObject *function, PyObject *code, char *text,
                                 size_t size)
{
    char its[KRAIT_CODE_NAME_BYTES];
    qualname_of(in, code, NULL, text, size);
    if (krait_compat.version.has_qualname || strchr(text, '.'))
        return;
    krait_text_attr(function, "__qualname__", its, sizeof(its));
    char *own = is_qualified(its, text) ? strdup(its) : NULL;
    if (!own)
        return;
    know_qualname(in, code, own);
    snprintf(text, size, "%s", its);
}

void krait_code_describe_function(struct krait_interp *in, PyObject *function, struct krait_code_text *t)
{
    memset(t, 0, sizeof(*t));
    module_of(krait_compat.function_globals(function), t->module, sizeof(t->module));
    qualname_of_function(in, function, krait_compat.function_code(function), t->name, sizeof(t->name));
}

/* ---- types, and functions written in C ---- */

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
void krait_code_describe_type(PyObject *cls, const char *suffix, struct krait_code_text *t)
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

static void describe_builtin(PyObject *callable, struct krait_code_text *t)
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
    krait_code_describe_type(owner, suffix, t);
    Py_DECREF(owner);
}

/* A method descriptor or a function of a type of its own: qualified name, and its module or that
 * of the type that it belongs to. */
static void describe_other(PyObject *callable, struct krait_code_text *t)
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

void krait_code_describe_c(PyObject *callable, struct krait_code_text *t)
{
    const PyTypeObject *type = Py_TYPE(callable);
    memset(t, 0, sizeof(*t));
    if (type == krait_compat.cfunction_type || type == krait_compat.cmethod_type)
        describe_builtin(callable, t);
    else
        describe_other(callable, t);
}
