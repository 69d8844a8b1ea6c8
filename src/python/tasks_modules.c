/* SPDX-License-Identifier: Apache-2.0
 *
 * The modules that run tasks, and what tasks.c uses of them.
 */
#include "python/codes.h"
#include "python/compat/running.h"
#include "python/modules.h"
#include "python/tasks_inside.h"

#include <string.h>

bool krait_tasks_are_of(const char *module)
{
    static const char *const names[] = { "asyncio", "trio" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(names); i++) {
        size_t n = strlen(names[i]);
        if (strncmp(module, names[i], n) == 0 && (!module[n] || module[n] == '.'))
            return true;
    }
    return false;
}

bool krait_tasks_is_waker(const char *module, const char *name)
{
    static const char *const wakers[] = { "Future.set_result", "Future.set_exception", "Future.cancel",
                                          "Task.cancel" };
    bool is = false;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(wakers) && strcmp(module, "_asyncio") == 0; i++)
        is |= strcmp(name, wakers[i]) == 0;
    return is;
}

/* Keeps a member of the module, if it is of a type, or of one derived from it. */
static void keep_member(PyObject **kept, PyObject *module, const char *name, PyTypeObject *type)
{
    PyObject *value = krait_module_item(module, name);
    if (value && PyType_IsSubtype(Py_TYPE(value), type)) {
        Py_INCREF(value);
        *kept = value;
    }
}

/* Up to 3.13, _asyncio's dictionary has all tasks that run. From 3.14 on, _asyncio.current_task() knows those that run in C
 * alone; asyncio.tasks has a dictionary of its own for the others, such as those of a subclass of its Task that is written in
 * Python. Source: Lib/asyncio/tasks.py, _py_enter_task. */
static void look_for_python_tasks(struct krait_tasks *tasks)
{
    bool may = tasks->current_task && !tasks->current_tasks && !tasks->python_tasks;
    PyObject *module = may ? krait_module("asyncio.tasks") : NULL;
    if (module)
        keep_member(&tasks->python_tasks, module, "_current_tasks", &PyDict_Type);
}

static void look_for_asyncio(struct krait_tasks *tasks)
{
    PyObject *module = tasks->get_loop ? NULL : krait_module("_asyncio");
    if (!module)
        return;
    keep_member(&tasks->task_type, module, "Task", &PyType_Type);
    keep_member(&tasks->current_task, module, "current_task", krait_compat.cfunction_type);
    keep_member(&tasks->current_tasks, module, "_current_tasks", &PyDict_Type);
    if (tasks->task_type && (tasks->current_task || tasks->current_tasks))
        keep_member(&tasks->get_loop, module, "_get_running_loop", krait_compat.cfunction_type);
}

/* The code of a function that is made in another one. New reference or NULL; `outer` is given away. */
static PyObject *code_within(PyObject *outer, const char *name)
{
    PyObject *consts = PyObject_GetAttrString(outer, "co_consts"), *found = NULL;
    for (Py_ssize_t i = 0; consts && !found && i < PyTuple_Size(consts); i++) {
        PyObject *code = PyTuple_GetItem(consts, i);
        PyObject *its = Py_TYPE(code) == Py_TYPE(outer) ? PyObject_GetAttrString(code, "co_name") : NULL;
        if (its && PyUnicode_CompareWithASCIIString(its, name) == 0) {
            Py_INCREF(code);
            found = code;
        }
        Py_XDECREF(its);
    }
    Py_XDECREF(consts);
    Py_DECREF(outer);
    return found;
}

PyObject *krait_tasks_code(PyObject *module, const char *class, const char *name, const char *inner)
{
    PyObject *owner = krait_module_item(module, class ? class : name);
    PyObject *function = owner && class ? PyObject_GetAttrString(owner, name) : owner;
    PyObject *code = function ? PyObject_GetAttrString(function, "__code__") : NULL;
    if (code && inner)
        code = code_within(code, inner);
    if (class)
        Py_XDECREF(function);
    PyErr_Clear();
    return code;
}

void krait_tasks_look_for_code(PyObject **kept, const char *module, const char *class, const char *name,
                               const char *inner)
{
    PyObject *imported = *kept ? NULL : krait_module(module);
    if (imported)
        *kept = krait_tasks_code(imported, class, name, inner);
}

/* Source: trio/_core/_traps.py. Its third trap, cancel_shielded_checkpoint, waits for nothing: it says so itself. */
static void look_for_traps(struct krait_tasks *tasks)
{
    static const char *const names[KRAIT_TASK_TRAPS] = { "_async_yield", "wait_task_rescheduled" };
    PyObject *module = krait_module("trio._core._traps"), *subprocess = krait_module("trio._subprocess");
    for (int i = 0; module && i < KRAIT_TASK_TRAPS; i++)
        tasks->trio_traps[i] =
            tasks->trio_traps[i] ? tasks->trio_traps[i] : krait_tasks_code(module, NULL, names[i], NULL);
    if (subprocess && !tasks->trio_child)
        tasks->trio_child = krait_tasks_code(subprocess, "Process", "wait", NULL);
}

static void look_for_trio(struct krait_tasks *tasks)
{
    PyObject *module = tasks->trio_run ? NULL : krait_module("trio._core._run");
    if (module)
        keep_member(&tasks->trio_run, module, "GLOBAL_RUN_CONTEXT", &PyBaseObject_Type);
    if (module && !tasks->trio_exit)
        tasks->trio_exit = krait_tasks_code(module, "Nursery", "_nested_child_finished", NULL);
    look_for_traps(tasks);
}

void krait_tasks_look(struct krait_interp *in)
{
    if (!in->tasks)
        in->tasks = calloc(1, sizeof(*in->tasks));
    if (!in->tasks)
        return;
    if (!in->tasks->count)
        in->tasks->first_free = KRAIT_NO_ID;
    look_for_asyncio(in->tasks);
    look_for_python_tasks(in->tasks);
    krait_several_look(in->tasks);
    krait_tasks_root_look(in->tasks);
    look_for_trio(in->tasks);
}

void krait_tasks_see(struct krait_interp *in)
{
    in->sees_tasks = true;
    if (krait_compat.version.monitoring)
        krait_monitoring_see_tasks(in);
}

bool krait_tasks_are_imported(void)
{
    return krait_module("asyncio") || krait_module("trio");
}

void krait_tasks_done(struct krait_interp *in)
{
    struct krait_tasks *tasks = in->tasks;
    in->tasks = NULL;
    if (!tasks)
        return;
    Py_XDECREF(tasks->get_loop);
    Py_XDECREF(tasks->current_task);
    Py_XDECREF(tasks->current_tasks);
    Py_XDECREF(tasks->python_tasks);
    Py_XDECREF(tasks->task_type);
    krait_several_done(tasks);
    krait_tasks_root_done(tasks);
    Py_XDECREF(tasks->trio_run);
    for (int i = 0; i < KRAIT_TASK_TRAPS; i++)
        Py_XDECREF(tasks->trio_traps[i]);
    Py_XDECREF(tasks->trio_child);
    Py_XDECREF(tasks->trio_exit);
    krait_map_done(&tasks->by_address);
    krait_map_done(&tasks->members);
    free(tasks->tasks);
    free(tasks);
}
