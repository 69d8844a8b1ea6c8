/* SPDX-License-Identifier: Apache-2.0 */
#include "python/compat/running.h"
#include "python/modules.h"
#include "python/patch.h"

#include <structmember.h>

/* ---- the address that a function is called by ---- */

static krait_vectorcall *own_call; /* that of all Python functions: _PyFunction_Vectorcall */

static krait_vectorcall **call_of(PyObject *function)
{
    size_t offset = (size_t)krait_at(krait_compat.function_type, KRAIT_TYPE_VECTORCALL_OFFSET);
    return (krait_vectorcall **)((char *)function + offset);
}

static void set_call(PyObject *function, krait_vectorcall *call)
{
    if (krait_compat.set_vectorcall) /* tells those who have specialised their calls of it */
        krait_compat.set_vectorcall(function, call);
    else
        *call_of(function) = call;
}

/* Whether it is called the usual way. The first function that is asked about tells what that is: it is one of the
 * standard library's. */
static bool is_own_call(PyObject *function)
{
    if (!own_call)
        own_call = *call_of(function);
    return *call_of(function) == own_call;
}

PyObject *krait_call_original(PyObject *function, PyObject *const *args, size_t nargs, PyObject *names)
{
    return own_call(function, args, nargs, names);
}

/* ---- 3.11: stand-ins ----
 *
 * CALL there pushes the frame of whatever has the type of Python functions (Python/ceval.c), and a type of functions
 * cannot be derived from. A stand-in is called as a method like a function, and has all attributes of its function,
 * __class__ included; type() alone tells. */

struct stand_in {
    PyObject ob_base;
    krait_vectorcall *call;
    krait_vectorcall *ours;
    PyObject *function, *weakrefs;
};

static PyObject *function_of(PyObject *self)
{
    return ((struct stand_in *)self)->function;
}

static PyObject *stand_in_call(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    return ((struct stand_in *)self)->ours(function_of(self), args, nargs, names);
}

static PyObject *stand_in_get(PyObject *self, PyObject *obj, PyObject *type)
{
    if (obj && obj != Py_None)
        return PyObject_CallFunctionObjArgs((PyObject *)krait_compat.method_type, self, obj, NULL);
    Py_INCREF(self);
    return self;
}

/* pickle and copy take a function by its name. */
static PyObject *stand_in_reduce(PyObject *self, PyObject *args)
{
    return PyObject_GetAttrString(function_of(self), "__qualname__");
}

static PyMethodDef stand_in_methods[] = {
    { "__reduce__", stand_in_reduce, METH_VARARGS, NULL },
    { "__reduce_ex__", stand_in_reduce, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyObject *stand_in_attr(PyObject *self, PyObject *name)
{
    for (const PyMethodDef *method = stand_in_methods; method->ml_name; method++) {
        if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, method->ml_name) == 0)
            return PyObject_GenericGetAttr(self, name);
    }
    return PyObject_GetAttr(function_of(self), name);
}

static int stand_in_set_attr(PyObject *self, PyObject *name, PyObject *value)
{
    return PyObject_SetAttr(function_of(self), name, value);
}

static PyObject *stand_in_repr(PyObject *self)
{
    return PyObject_Repr(function_of(self));
}

static Py_hash_t stand_in_hash(PyObject *self)
{
    return PyObject_Hash(function_of(self));
}

/* It equals its function, and that it. */
static PyObject *stand_in_compare(PyObject *self, PyObject *other, int how)
{
    PyObject *its = Py_TYPE(other) == Py_TYPE(self) ? function_of(other) : other;
    return PyObject_RichCompare(function_of(self), its, how);
}

static void stand_in_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_ClearWeakRefs(self);
    Py_DECREF(function_of(self));
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *new_stand_in_type(void)
{
    static PyMemberDef members[] = {
        { "__vectorcalloffset__", T_PYSSIZET, offsetof(struct stand_in, call), READONLY, NULL },
        { "__weaklistoffset__", T_PYSSIZET, offsetof(struct stand_in, weakrefs), READONLY, NULL },
        { NULL, 0, 0, 0, NULL },
    };
    PyType_Slot slots[] = {
        { Py_tp_members, members },
        { Py_tp_methods, stand_in_methods },
        { Py_tp_call, (void *)krait_compat.vectorcall_call },
        { Py_tp_descr_get, (void *)stand_in_get },
        { Py_tp_getattro, (void *)stand_in_attr },
        { Py_tp_setattro, (void *)stand_in_set_attr },
        { Py_tp_repr, (void *)stand_in_repr },
        { Py_tp_hash, (void *)stand_in_hash },
        { Py_tp_richcompare, (void *)stand_in_compare },
        { Py_tp_dealloc, (void *)stand_in_free },
        { 0, NULL },
    };
    PyType_Spec spec = {
        .name = "builtins.function",
        .basicsize = sizeof(struct stand_in),
        .flags = Py_TPFLAGS_DEFAULT | KRAIT_TPFLAGS_HAVE_VECTORCALL | KRAIT_TPFLAGS_METHOD_DESCRIPTOR,
        .slots = slots,
    };
    return PyType_FromSpec(&spec);
}

/* New reference. */
static PyObject *new_stand_in(PyObject *function, krait_vectorcall *ours)
{
    struct krait_interp *in = krait_agent_interp();
    if (in && !in->stand_in_type)
        in->stand_in_type = new_stand_in_type();
    PyObject *type = in ? in->stand_in_type : NULL;
    struct stand_in *it = type ? (struct stand_in *)PyType_GenericAlloc((PyTypeObject *)type, 0) : NULL;
    if (!it)
        return NULL;
    Py_INCREF(function);
    it->call = stand_in_call;
    it->ours = ours;
    it->function = function;
    return (PyObject *)it;
}

/* ---- patching ---- */

PyObject *krait_patch_one(PyObject *function, krait_vectorcall *ours)
{
    if (Py_TYPE(function) != krait_compat.function_type || !is_own_call(function))
        return NULL;
    if (!krait_compat.version.inlines_unseen) {
        set_call(function, ours);
        Py_INCREF(function);
        return function;
    }
    PyObject *stand_in = new_stand_in(function, ours);
    PyErr_Clear();
    return stand_in;
}

/* Of the module if it has been imported, or its class; borrowed. A module that is loaded lazily is not touched: its
 * dictionary is read, not its attributes. */
static PyObject *find_owner(const struct krait_patch_python *patch)
{
    PyObject *module = krait_module(patch->module);
    if (!module || !patch->owner)
        return module;
    PyObject *owner = krait_module_item(module, patch->owner);
    return owner && Py_TYPE(owner) == &PyType_Type ? owner : NULL;
}

static const void *identity(PyObject *owner)
{
    return PyModule_Check(owner) ? PyModule_GetDict(owner) : owner;
}

/* New reference or NULL. */
static PyObject *find_function(PyObject *owner, const char *name)
{
    if (!PyModule_Check(owner))
        return PyObject_GetAttrString(owner, name);
    PyObject *function = krait_module_item(owner, name);
    Py_XINCREF(function);
    return function;
}

static int put(PyObject *owner, const char *name, PyObject *function)
{
    return PyModule_Check(owner) ? PyDict_SetItemString(PyModule_GetDict(owner), name, function)
                                 : PyObject_SetAttrString(owner, name, function);
}

static void see(const struct krait_patch_python *patch, struct krait_patched *patched)
{
    PyObject *owner = find_owner(patch);
    if (!owner || identity(owner) == patched->owner)
        return;
    PyObject *function = find_function(owner, patch->name);
    PyObject *instead = function ? krait_patch_one(function, patch->ours) : NULL;
    if (instead && instead != function && put(owner, patch->name, instead))
        Py_CLEAR(instead);
    if (instead) { /* after a reload of the module, the function that was patched before stays patched */
        Py_XDECREF(patched->function);
        *patched = (struct krait_patched){ .owner = identity(owner), .function = function };
        patched->stand_in = instead != function ? instead : NULL;
        function = NULL;
    }
    Py_XDECREF(instead);
    Py_XDECREF(function);
    PyErr_Clear();
}

void krait_patch_python(const struct krait_patch_python *patches, struct krait_patched *patched, size_t count)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    for (size_t i = 0; i < count; i++)
        see(&patches[i], &patched[i]);
    PyErr_Restore(type, value, traceback);
}

static void unpatch(const struct krait_patch_python *patch, struct krait_patched *patched)
{
    PyObject *owner = find_owner(patch);
    PyObject *there = owner && patched->stand_in ? find_function(owner, patch->name) : NULL;
    if (!krait_compat.version.inlines_unseen && *call_of(patched->function) == patch->ours)
        set_call(patched->function, own_call);
    else if (there && there == patched->stand_in)
        put(owner, patch->name, patched->function);
    Py_XDECREF(there);
    Py_DECREF(patched->function);
    *patched = (struct krait_patched){ 0 };
    PyErr_Clear();
}

void krait_unpatch_python(const struct krait_patch_python *patches, struct krait_patched *patched,
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (patched[i].function)
            unpatch(&patches[i], &patched[i]);
    }
}
