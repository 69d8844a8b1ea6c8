/* SPDX-License-Identifier: Apache-2.0
 *
 * A switch of greenlets puts another stack under the thread without an event of the interpreter. greenlet
 * tells its trace function, one for each thread: krait's says the new stack before the next event, and calls
 * the one that was there before. A program that sets its own later gets krait's as the one before; where it
 * does not call that, the next slow path puts krait's before it again.
 */
#include "python/agent.h"

/* GIL held; called by greenlet in the greenlet that was switched to, with hooks off. */
static PyObject *on_switch(PyObject *before, PyObject *args)
{
    krait_thread_resync();
    if (before == Py_None)
        Py_RETURN_NONE;
    return PyObject_CallObject(before, args);
}

static PyMethodDef switch_method = { "krait_greenlet_switched", on_switch, METH_VARARGS, NULL };

/* greenlet's C part, if the program has imported it; borrowed. */
static PyObject *greenlet_module(void)
{
    PyObject *modules = PySys_GetObject("modules");
    return modules && PyDict_Check(modules) ? PyDict_GetItemString(modules, "greenlet._greenlet") : NULL;
}

static bool is_ours(PyObject *trace)
{
    return trace && PyCFunction_Check(trace) && PyCFunction_GetFunction(trace) == on_switch;
}

/* Returns whether it had to be done. */
static bool trace_this_thread(PyObject *module)
{
    PyObject *before = PyObject_CallMethod(module, "gettrace", NULL);
    PyObject *ours = before && !is_ours(before) ? PyCFunction_NewEx(&switch_method, before, NULL) : NULL;
    PyObject *done = ours ? PyObject_CallMethod(module, "settrace", "O", ours) : NULL;
    bool traced = done != NULL;
    Py_XDECREF(done);
    Py_XDECREF(ours);
    Py_XDECREF(before);
    PyErr_Clear(); /* it is being imported: the next slow path tries again */
    return traced;
}

void krait_greenlets_see(void)
{
    PyObject *module = greenlet_module();
    if (!module)
        return;
    Py_INCREF(module);
    if (trace_this_thread(module))
        krait_thread_resync(); /* it may have switched already */
    Py_DECREF(module);
}
