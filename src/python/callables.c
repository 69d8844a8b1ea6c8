/* SPDX-License-Identifier: Apache-2.0 */
#include "python/callables.h"

#include "python/args.h"
#include "python/code_names.h"
#include "python/codes.h"
#include "python/modules.h"
#include "python/text.h"

#include <string.h>

/* What is called, and its arguments from `first` on. */
struct callee {
    PyObject *function, *args; /* references; args: NULL, or a tuple */
    Py_ssize_t first;
};

/* `function` is given away; NULL: it stays. Returns whether it is another one. */
static bool become(struct callee *c, PyObject *function)
{
    if (!function)
        return false;
    Py_DECREF(c->function);
    c->function = function;
    return true;
}

/* Borrowed, or NULL. */
static PyObject *first_argument(const struct callee *c)
{
    return c->args && PyTuple_Size(c->args) > c->first ? PyTuple_GetItem(c->args, c->first) : NULL;
}

/* ---- functools ---- */

enum { PARTIAL_TYPE, PARTIAL_FUNC, PARTIAL_ARGS };

/* A member that `type` itself defines. New reference or NULL. */
static PyObject *member_of(PyObject *type, const char *name)
{
    PyObject *dict = krait_type_attr(type, "__dict__");
    PyObject *descr = dict ? PyMapping_GetItemString(dict, name) : NULL;
    if (descr && Py_TYPE(descr) != &PyMemberDescr_Type)
        Py_CLEAR(descr);
    Py_XDECREF(dict);
    PyErr_Clear();
    return descr;
}

void krait_callables_done(struct krait_interp *in)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(in->partial); i++)
        Py_CLEAR(in->partial[i]);
}

/* Whether `obj` is a functools.partial, or of a subclass: what that defines does not matter. */
static bool is_partial(struct krait_interp *in, PyObject *obj)
{
    PyObject *type = krait_module_item(krait_module("_functools"), "partial");
    if (!type || !PyType_Check(type) || !PyType_IsSubtype(Py_TYPE(obj), (PyTypeObject *)type))
        return false;
    if (type != in->partial[PARTIAL_TYPE]) {
        krait_callables_done(in);
        Py_INCREF(type);
        in->partial[PARTIAL_TYPE] = type;
        in->partial[PARTIAL_FUNC] = member_of(type, "func");
        in->partial[PARTIAL_ARGS] = member_of(type, "args");
    }
    return in->partial[PARTIAL_FUNC] && in->partial[PARTIAL_ARGS];
}

/* New reference or NULL. */
static PyObject *of_partial(const struct krait_interp *in, PyObject *obj, int member)
{
    PyObject *value =
        krait_compat.member((const char *)obj, krait_at(in->partial[member], KRAIT_MEMBER_DESCR_DEF));
    PyErr_Clear();
    return value;
}

static bool leave_partial(struct krait_interp *in, struct callee *c)
{
    if (!is_partial(in, c->function))
        return false;
    PyObject *args = of_partial(in, c->function, PARTIAL_ARGS);
    bool has_own = args && PyTuple_Check(args) && PyTuple_Size(args);
    bool left = become(c, of_partial(in, c->function, PARTIAL_FUNC));
    if (!left || !has_own) {
        Py_XDECREF(args);
        return left;
    }
    Py_XDECREF(c->args);
    c->args = args; /* what follows them is not asked for */
    c->first = 0;
    return true;
}

static bool leave_cache(struct callee *c)
{
    PyObject *type = krait_module_item(krait_module("_functools"), "_lru_cache_wrapper");
    return (PyObject *)Py_TYPE(c->function) == type &&
           become(c, krait_args_plain_attr(c->function, "__wrapped__"));
}

/* ---- functions that call what they are given ---- */

static bool leave_method(struct callee *c)
{
    PyObject *function = krait_at(c->function, KRAIT_METHOD_FUNC);
    Py_XINCREF(function);
    return become(c, function);
}

static bool leave_context(struct callee *c)
{
    PyObject *self = krait_at(c->function, KRAIT_CFUNCTION_SELF), *next = first_argument(c);
    const char *name = krait_at(krait_at(c->function, KRAIT_CFUNCTION_ML), KRAIT_ML_NAME);
    if (!self || !next || Py_TYPE(self) != krait_compat.context_type || strcmp(name, "run") != 0)
        return false;
    Py_INCREF(next);
    c->first++;
    return become(c, next);
}

/* New reference or NULL. */
static PyObject *closed_over(PyObject *function, PyObject *code, const char *name)
{
    PyObject *cells = krait_compat.function_closure(function), *found = NULL;
    PyObject *names = PyObject_GetAttrString(code, "co_freevars");
    Py_ssize_t count = cells && names && PyTuple_Check(names) ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; i < count && !found; i++) {
        if (PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, i), name) == 0)
            found = PyObject_GetAttrString(PyTuple_GetItem(cells, i), "cell_contents");
    }
    Py_XDECREF(names);
    PyErr_Clear();
    return found;
}

/* An argument, or the first item of it; new reference or NULL. */
static PyObject *handed(const struct callee *c)
{
    PyObject *arg = first_argument(c);
    if (arg && PyTuple_CheckExact(arg))
        arg = PyTuple_Size(arg) ? PyTuple_GetItem(arg, 0) : NULL;
    Py_XINCREF(arg);
    return arg;
}

/* Sources: concurrent/futures/process.py, multiprocessing/pool.py, trio/_threads.py, anyio/_backends/_trio.py. */
static const struct {
    const char *module, *name; /* co_name */
    const char *variable;      /* of its closure; NULL: what is handed */
} wrappers[] = {
    { "concurrent.futures.process", "_process_chunk", NULL }, { "multiprocessing.pool", "mapstar", NULL },
    { "multiprocessing.pool", "starmapstar", NULL },          { "trio._threads", "worker_fn", "sync_fn" },
    { "anyio._backends._trio", "wrapper", "func" },
};

static bool is_of_module(PyObject *function, const char *name)
{
    PyObject *module = krait_module(name);
    return module && PyModule_GetDict(module) == krait_compat.function_globals(function);
}

static bool leave_wrapper(struct callee *c)
{
    PyObject *code = krait_compat.function_code(c->function);
    PyObject *name = PyObject_GetAttrString(code, "co_name");
    bool left = false;
    for (size_t i = 0; name && i < KRAIT_ARRAY_LEN(wrappers) && !left; i++) {
        if (PyUnicode_CompareWithASCIIString(name, wrappers[i].name) == 0 &&
            is_of_module(c->function, wrappers[i].module))
            left = become(c, wrappers[i].variable ? closed_over(c->function, code, wrappers[i].variable)
                                                  : handed(c));
    }
    Py_XDECREF(name);
    PyErr_Clear();
    return left;
}

/* Whether it was something around what is called. */
static bool leave(struct krait_interp *in, struct callee *c)
{
    const PyTypeObject *type = Py_TYPE(c->function);
    if (type == krait_compat.function_type)
        return leave_wrapper(c);
    if (type == krait_compat.method_type)
        return leave_method(c);
    if (type == krait_compat.cfunction_type)
        return leave_context(c);
    return !PyType_Check(c->function) && (leave_partial(in, c) || leave_cache(c));
}

/* ---- the name ---- */

static void describe(struct krait_interp *in, PyObject *function, struct krait_code_text *t)
{
    PyTypeObject *type = Py_TYPE(function);
    bool is_of_c = type == krait_compat.cfunction_type || type == krait_compat.cmethod_type ||
                   type == krait_compat.wrapper_descr_type ||
                   PyType_GetFlags(type) & KRAIT_TPFLAGS_METHOD_DESCRIPTOR;
    if (type == krait_compat.function_type)
        krait_code_describe_function(in, function, t);
    else if (is_of_c)
        krait_code_describe_c(function, t);
    else
        krait_code_describe_type(PyType_Check(function) ? function : (PyObject *)type, "", t);
}

static uint32_t id_of_name(struct krait_interp *in, PyObject *function)
{
    struct krait_code_text t = { 0 };
    char name[2 * KRAIT_CODE_NAME_BYTES];
    describe(in, function, &t);
    snprintf(name, sizeof(name), "%s.%s", *t.module ? t.module : "<unknown>", *t.name ? t.name : "<unknown>");
    return krait_code_name(in, name);
}

static uint32_t id_of(struct krait_interp *in, PyObject *function)
{
    const void *key = Py_TYPE(function) == krait_compat.function_type ? krait_compat.function_code(function)
                                                                      : krait_code_key(function);
    uint32_t id = key ? krait_code_id(in, key) : 0;
    return id ? id : id_of_name(in, function);
}

uint32_t krait_callable_id(struct krait_interp *in, PyObject *callable, PyObject *args)
{
    enum { MOST = 16 }; /* a partial may be its own function */
    if (!callable || !krait_compat.function_code || !krait_compat.function_globals ||
        !krait_compat.function_closure || !krait_compat.member)
        return 0;
    struct callee c = { .function = callable, .args = args && PyTuple_Check(args) ? args : NULL };
    Py_INCREF(c.function);
    Py_XINCREF(c.args);
    for (int i = 0; i < MOST && leave(in, &c); i++)
        continue;
    uint32_t id = id_of(in, c.function);
    Py_XDECREF(c.args);
    Py_DECREF(c.function);
    return id;
}
