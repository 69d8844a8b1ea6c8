/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of the garbage collector, with --gc: a span in the thread that it stops. CPython tells their begin and end to
 * those in gc.callbacks alone.
 */
#include "base/json.h"
#include "python/compat/running.h"
#include "python/notes.h"
#include "python/optional.h"
#include "python/text.h"

#include <string.h>

static __thread uint64_t open_span; /* the collector does not run twice at once in an interpreter */

static long item(PyObject *info, const char *name)
{
    PyObject *value = PyDict_Check(info) ? PyDict_GetItemString(info, name) : NULL;
    long n = value && PyLong_Check(value) ? PyLong_AsLong(value) : 0;
    PyErr_Clear();
    return n;
}

static void begin(struct krait_interp *in, PyObject *info)
{
    char name[64];
    snprintf(name, sizeof(name), "gc generation %ld", item(info, "generation"));
    open_span = krait_note_begin_span(in, KRAIT_span_category_gc, name, KRAIT_NO_FIELDS);
}

static void end(struct krait_interp *in, PyObject *info)
{
    char fields[128];
    int n = snprintf(fields, sizeof(fields), KRAIT_JSON_FIRST("generation") "%ld", item(info, "generation"));
    snprintf(fields + n, sizeof(fields) - (size_t)n,
             KRAIT_JSON_NEXT("collected") "%ld" KRAIT_JSON_NEXT("uncollectable") "%ld}",
             item(info, "collected"), item(info, "uncollectable"));
    krait_note_end_span(in, open_span, fields);
    open_span = 0;
}

/* callback(phase, info). */
static PyObject *on_collection(PyObject *self, PyObject *args)
{
    struct krait_interp *in = krait_agent_interp();
    PyObject *phase = PyTuple_Size(args) == 2 ? PyTuple_GetItem(args, 0) : NULL;
    if (in && phase && PyUnicode_Check(phase) && krait_agent_records(in)) {
        bool begins = PyUnicode_CompareWithASCIIString(phase, "start") == 0;
        if (begins &&
            !open_span) /* in 3.8 all interpreters share the list, and each may have put one into it */
            begin(in, PyTuple_GetItem(args, 1));
        else if (!begins && open_span)
            end(in, PyTuple_GetItem(args, 1));
    }
    Py_RETURN_NONE;
}

static PyMethodDef collection_method = { "krait_gc", on_collection, METH_VARARGS, NULL };

/* The list gc.callbacks; new reference or NULL. */
static PyObject *callbacks(void)
{
    PyObject *gc = PyImport_ImportModule("gc"); /* a built-in module: nothing is searched for */
    PyObject *list = gc ? PyObject_GetAttrString(gc, "callbacks") : NULL;
    Py_XDECREF(gc);
    if (list && !PyList_Check(list))
        Py_CLEAR(list);
    PyErr_Clear();
    return list;
}

/* Once in a recording: a program that empties the list means us too. */
void krait_collections_see(struct krait_interp *in)
{
    if (in->collected)
        return;
    open_span = 0; /* its end came after that of another recording */
    PyObject *list = callbacks();
    PyObject *ours = list ? PyCFunction_NewEx(&collection_method, NULL, NULL) : NULL;
    if (ours && PyList_Append(list, ours) == 0) {
        Py_INCREF(ours);
        in->collected = ours;
    }
    Py_XDECREF(ours);
    Py_XDECREF(list);
    PyErr_Clear();
}

void krait_collections_end(struct krait_interp *in)
{
    PyObject *list = in->collected ? callbacks() : NULL;
    for (Py_ssize_t i = list ? PyList_Size(list) : 0; i-- > 0;) {
        if (PyList_GetItem(list, i) == in->collected)
            PyList_SetSlice(list, i, i + 1, NULL);
    }
    Py_XDECREF(list);
    Py_CLEAR(in->collected);
    PyErr_Clear();
}
