/* SPDX-License-Identifier: Apache-2.0
 *
 * A switch of greenlets puts another stack under the thread without an event of the interpreter. greenlet
 * tells its trace function, one for each thread: krait's, which says the new stack before the next event and
 * then calls the program's.
 *
 * The program sees its own alone: greenlet's settrace and gettrace are led to functions of krait's, by their
 * PyMethodDef, which CPython reads at each call of them, whatever name the program has them by. settrace puts
 * the program's function behind krait's, and gettrace gives that. krait keeps no note of it: krait's trace
 * function is a built-in whose self is the program's, or None.
 */
#include "python/agent.h"
#include "python/codes.h"

#include <link.h>

static PyCFunction real_settrace, real_gettrace; /* greenlet's; NULL: they are called as they are */

/* ---- the trace function ---- */

/* Since the last look: then the trace function is in, and a switch need not look for it again. */
static __thread bool just_called;

/* GIL held; called by greenlet in the greenlet that was switched to, with hooks off. Where the program's
 * function raises, greenlet takes ours away too: the next event comes by the slow path, which sees to that. */
static PyObject *on_switch(PyObject *program, PyObject *args)
{
    krait_thread_resync();
    PyObject *result = program == Py_None ? Py_None : PyObject_CallObject(program, args);
    if (program == Py_None)
        Py_INCREF(result);
    just_called = result != NULL;
    return result;
}

static PyMethodDef switch_method = { "krait_greenlet_switched", on_switch, METH_VARARGS, NULL };

static bool is_ours(PyObject *trace)
{
    return trace && PyCFunction_Check(trace) && PyCFunction_GetFunction(trace) == on_switch;
}

/* What the program has set, of what greenlet has; steals `trace`, new reference or NULL. */
static PyObject *without_ours(PyObject *trace)
{
    if (!is_ours(trace))
        return trace;
    PyObject *program = PyCFunction_GetSelf(trace); /* borrowed */
    Py_INCREF(program);
    Py_DECREF(trace);
    return program;
}

/* ---- greenlet's functions ---- */

static PyObject *on_settrace(PyObject *module, PyObject *args)
{
    PyObject *program;
    if (!atomic_load_explicit(&krait_agent.running, memory_order_relaxed) ||
        !PyArg_ParseTuple(args, "O:settrace", &program)) {
        PyErr_Clear(); /* greenlet says what is wrong */
        return without_ours(real_settrace(module, args));
    }
    PyObject *ours = PyCFunction_NewEx(&switch_method, program, NULL);
    PyObject *with_ours = ours ? PyTuple_Pack(1, ours) : NULL;
    PyObject *before = with_ours ? real_settrace(module, with_ours) : NULL;
    Py_XDECREF(with_ours);
    Py_XDECREF(ours);
    return without_ours(before);
}

static PyObject *on_gettrace(PyObject *module, PyObject *args)
{
    return without_ours(real_gettrace(module, args));
}

struct method {
    const char *name;
    PyCFunction ours;
    PyCFunction *real;
    int flags; /* how it is called */
};

static const struct method methods[] = {
    { "settrace", on_settrace, &real_settrace, METH_VARARGS },
    { "gettrace", on_gettrace, &real_gettrace, METH_NOARGS },
};

/* Whether the loader left `address` writable: constant tables are not. */
static int is_writable(struct dl_phdr_info *info, size_t size, void *address)
{
    bool writable = false;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        bool here = (uintptr_t)address - (info->dlpi_addr + part->p_vaddr) < part->p_memsz;
        if (here && part->p_type == PT_LOAD)
            writable = part->p_flags & PF_W;
        if (here && part->p_type == PT_GNU_RELRO)
            return 0;
    }
    return writable;
}

/* The method's definition in greenlet, where it is as expected. */
static PyMethodDef *find_def(PyObject *module, const struct method *method)
{
    PyObject *function = PyObject_GetAttrString(module, method->name);
    PyMethodDef *def =
        function && PyCFunction_Check(function) ? krait_at(function, KRAIT_CFUNCTION_ML) : NULL;
    Py_XDECREF(function);
    PyErr_Clear();
    return def && def->ml_flags == method->flags && dl_iterate_phdr(is_writable, def) ? def : NULL;
}

/* Once: the definitions are the same for all interpreters. Returns false when it was tried before. */
static bool lead_methods(PyObject *module)
{
    static bool tried;
    PyMethodDef *defs[KRAIT_ARRAY_LEN(methods)];
    if (tried)
        return false;
    tried = true;
    bool found = true;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(methods); i++)
        found &= (defs[i] = find_def(module, &methods[i])) != NULL;
    for (size_t i = 0; found && i < KRAIT_ARRAY_LEN(methods); i++) {
        *methods[i].real = defs[i]->ml_meth;
        defs[i]->ml_meth = methods[i].ours;
    }
    return true;
}

/* ---- putting it in ---- */

/* greenlet's C part, if the program has imported it; borrowed. */
static PyObject *greenlet_module(void)
{
    PyObject *modules = PySys_GetObject("modules");
    return modules && PyDict_Check(modules) ? PyDict_GetItemString(modules, "greenlet._greenlet") : NULL;
}

/* greenlet's own, whatever `name` leads to. New reference or NULL. */
static PyObject *call_real(PyObject *module, PyCFunction real, const char *name, PyObject *argument)
{
    PyObject *args = argument ? PyTuple_Pack(1, argument) : NULL;
    if (argument && !args)
        return NULL;
    PyObject *function = real ? NULL : PyObject_GetAttrString(module, name);
    PyObject *result = real ? real(module, args) : function ? PyObject_CallObject(function, args) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(args);
    return result;
}

/* Returns whether it had to be done. */
static bool trace_this_thread(PyObject *module)
{
    PyObject *trace = call_real(module, real_gettrace, "gettrace", NULL);
    PyObject *ours = trace && !is_ours(trace) ? PyCFunction_NewEx(&switch_method, trace, NULL) : NULL;
    PyObject *done = ours ? call_real(module, real_settrace, "settrace", ours) : NULL;
    bool traced = done != NULL;
    Py_XDECREF(done);
    Py_XDECREF(ours);
    Py_XDECREF(trace);
    PyErr_Clear(); /* it is being imported: the next slow path tries again */
    return traced;
}

void krait_greenlets_see(void)
{
    if (just_called) {
        just_called = false;
        return;
    }
    PyObject *module = greenlet_module();
    if (!module)
        return;
    Py_INCREF(module);
    if (lead_methods(module))
        krait_threads_look(); /* others may switch too */
    if (trace_this_thread(module))
        krait_thread_resync(); /* it may have switched already */
    Py_DECREF(module);
}
