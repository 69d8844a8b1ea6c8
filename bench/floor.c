/* SPDX-License-Identifier: Apache-2.0
 *
 * The recording floor: what no recorder of Python calls can be faster than on this machine and this Python.
 *
 * Per event the interpreter's hook, one read of the clock and one store (8 bytes for a begin, 4 for an end)
 * into a small buffer of the thread's own that stays in the first-level cache. No ids, no shared memory, no
 * file, and what is written is never read. Nothing that a recorder needs for being right is here either: no
 * re-entry guard, no loss counter, no other threads before 3.12.
 *
 * One file serves every CPython from 3.8 (stable ABI); what the stable ABI lacks is looked up when the module
 * is made.
 *
 *     import krait_floor
 *     krait_floor.callbacks()        {event name: callable} for sys.monitoring
 *     krait_floor.set_profile(1)     PyEval_SetProfile with (1) or without (0) C calls; -1 takes it off
 *     krait_floor.counts()           (begins, ends): only counted by a build with -DFLOOR_COUNT
 */
#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <dlfcn.h>
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <structmember.h>

enum { BUFFER = 16384, SLACK = 16 };

/* Py_TPFLAGS_HAVE_VECTORCALL: in the stable ABI's headers from 3.12 on, the same bit since 3.9. */
#define HAVE_VECTORCALL (1UL << 11)

/* Initial-exec: one load off the thread register, without a call, as in a library that is there from the start. */
static __thread uint8_t *cur __attribute__((tls_model("initial-exec")));
static __thread uint8_t *end __attribute__((tls_model("initial-exec")));
static __thread uint8_t *begin __attribute__((tls_model("initial-exec")));

#ifdef FLOOR_COUNT
static uint64_t begins, ends;
#define COUNT(x) ((x)++)
#else
#define COUNT(x) ((void)0)
#endif

static inline uint64_t now(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
}

/* The buffer's end, and a thread's first event. */
static __attribute__((cold, noinline)) void wrap(void)
{
    if (!begin) {
        begin = malloc(BUFFER + SLACK);
        if (!begin)
            abort();
        end = begin + BUFFER;
    }
    cur = begin;
}

static inline void put_begin(const void *what)
{
    uint64_t word = (uint32_t)now() | (uint64_t)(uintptr_t)what << 32;
    if (__builtin_expect(cur >= end, 0))
        wrap();
    __builtin_memcpy(cur, &word, sizeof(word));
    cur += sizeof(word);
    COUNT(begins);
}

static inline void put_end(void)
{
    uint32_t word = (uint32_t)now();
    if (__builtin_expect(cur >= end, 0))
        wrap();
    __builtin_memcpy(cur, &word, sizeof(word));
    cur += sizeof(word);
    COUNT(ends);
}

/* ---- sys.monitoring: callables of a type of our own, called by vectorcall ---- */

typedef PyObject *(*vectorcall)(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names);

struct callback {
    PyObject ob_base;
    vectorcall call;
};

static PyTypeObject *cfunction_type;
static PyTypeObject *method_descr_type;

/* None is immortal on every version with sys.monitoring: no reference is counted. */
static PyObject *on_begin(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    put_begin(args[0]);
    return Py_None;
}

static PyObject *on_end(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    put_end();
    return Py_None;
}

/* CALL, C_RETURN and C_RAISE come for every callable: args[2]. What counts as a call of C code is as docs/calls.md
 * says for krait: builtin functions and methods; Python functions have PY_START, and classes and objects with a
 * __call__ are none. */
static inline int is_recorded(const PyObject *callable)
{
    const PyTypeObject *type = callable->ob_type;
    return type == cfunction_type || type == method_descr_type;
}

static PyObject *on_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    if (is_recorded(args[2]))
        put_begin(args[2]);
    return Py_None;
}

static PyObject *on_c_end(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    if (is_recorded(args[2]))
        put_end();
    return Py_None;
}

static PyMemberDef callback_members[] = {
    { "__vectorcalloffset__", T_PYSSIZET, offsetof(struct callback, call), READONLY, NULL },
    { NULL, 0, 0, 0, NULL },
};

static PyType_Slot callback_slots[] = {
    { Py_tp_members, callback_members },
    { Py_tp_call, NULL }, /* PyVectorcall_Call, which the 3.8 stable ABI has not: set below */
    { 0, NULL },
};

static PyType_Spec callback_spec = {
    .name = "krait_floor.callback",
    .basicsize = sizeof(struct callback),
    .flags = Py_TPFLAGS_DEFAULT | HAVE_VECTORCALL,
    .slots = callback_slots,
};

static const struct {
    const char *event;
    vectorcall call;
} events[] = {
    { "PY_START", on_begin }, { "PY_RESUME", on_begin }, { "PY_THROW", on_begin },
    { "PY_RETURN", on_end },  { "PY_YIELD", on_end },    { "PY_UNWIND", on_end },
    { "CALL", on_call },      { "C_RETURN", on_c_end },  { "C_RAISE", on_c_end },
};

static int add_callback(PyObject *dict, PyObject *type, const char *event, vectorcall call)
{
    PyObject *object = PyType_GenericAlloc((PyTypeObject *)type, 0);
    if (!object)
        return -1;
    ((struct callback *)object)->call = call;
    int rc = PyDict_SetItemString(dict, event, object);
    Py_DecRef(object);
    return rc;
}

static PyObject *callbacks(PyObject *module, PyObject *unused)
{
    callback_slots[1].pfunc = dlsym(RTLD_DEFAULT, "PyVectorcall_Call");
    PyObject *type = PyType_FromSpec(&callback_spec);
    PyObject *dict = PyDict_New();
    for (size_t i = 0; type && dict && i < sizeof(events) / sizeof(events[0]); i++) {
        if (add_callback(dict, type, events[i].event, events[i].call))
            return NULL;
    }
    return type ? dict : NULL;
}

/* ---- PyEval_SetProfile ---- */

typedef int (*tracefunc)(PyObject *arg, void *frame, int what, PyObject *object);
enum { TRACE_CALL = 0, TRACE_RETURN = 3, TRACE_C_CALL = 4, TRACE_C_EXCEPTION = 5, TRACE_C_RETURN = 6 };

static int profile_python(PyObject *arg, void *frame, int what, PyObject *object)
{
    if (what == TRACE_CALL)
        put_begin(frame);
    else if (what == TRACE_RETURN)
        put_end();
    return 0;
}

static int profile_all(PyObject *arg, void *frame, int what, PyObject *object)
{
    if (what == TRACE_CALL || what == TRACE_C_CALL)
        put_begin(frame);
    else
        put_end();
    return 0;
}

static PyObject *set_profile(PyObject *module, PyObject *arg)
{
    void (*set)(tracefunc, PyObject *) =
        (void (*)(tracefunc, PyObject *))dlsym(RTLD_DEFAULT, "PyEval_SetProfile");
    long mode = PyLong_AsLong(arg);
    if (mode == -1 && PyErr_Occurred())
        return NULL;
    if (!set) {
        PyErr_SetString(PyExc_RuntimeError, "this Python does not export PyEval_SetProfile");
        return NULL;
    }
    set(mode < 0 ? NULL : mode ? profile_all : profile_python, NULL);
    Py_IncRef(Py_None);
    return Py_None;
}

static PyObject *counts(PyObject *module, PyObject *unused)
{
#ifdef FLOOR_COUNT
    return Py_BuildValue("(KK)", (unsigned long long)begins, (unsigned long long)ends);
#else
    PyErr_SetString(PyExc_RuntimeError, "built without -DFLOOR_COUNT");
    return NULL;
#endif
}

static PyMethodDef methods[] = {
    { "callbacks", callbacks, METH_NOARGS, NULL },
    { "set_profile", set_profile, METH_O, NULL },
    { "counts", counts, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "krait_floor",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_krait_floor(void);

PyMODINIT_FUNC PyInit_krait_floor(void)
{
    cfunction_type = dlsym(RTLD_DEFAULT, "PyCFunction_Type");
    method_descr_type = dlsym(RTLD_DEFAULT, "PyMethodDescr_Type");
    return PyModule_Create(&module_def);
}
