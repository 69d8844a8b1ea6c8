/* SPDX-License-Identifier: Apache-2.0
 *
 * The modules that run tasks, and what tasks.c uses of them.
 */
#include "python/codes.h"
#include "python/compat/running.h"
#include "python/tasks_inside.h"

#include <string.h>

/* Coroutines that wait at the end of a task group, whose tasks are in a set of `self`. Source: Lib/asyncio/taskgroups.py, where
 * __aexit__ has become two, and anyio's _backends/_asyncio.py. */
static const struct {
    const char *module, *name;
} group_exits[KRAIT_TASK_GROUPS] = { { "asyncio.taskgroups", "__aexit__" },
                                     { "asyncio.taskgroups", "_aexit" },
                                     { "anyio._backends._asyncio", "__aexit__" } };

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

/* Borrowed, or NULL. */
static PyObject *imported(const char *name)
{
    PyObject *modules = PySys_GetObject("modules");
    return modules && PyDict_Check(modules) ? PyDict_GetItemString(modules, name) : NULL;
}

/* Keeps a member of the module, if it is of a type, or of one derived from it. */
static void keep_member(PyObject **kept, PyObject *module, const char *name, PyTypeObject *type)
{
    PyObject *value = PyObject_GetAttrString(module, name);
    PyErr_Clear();
    if (value && PyType_IsSubtype(Py_TYPE(value), type))
        *kept = value;
    else
        Py_XDECREF(value);
}

/* Up to 3.13, _asyncio's dictionary has all tasks that run. From 3.14 on, _asyncio.current_task() knows those that run in C
 * alone; asyncio.tasks has a dictionary of its own for the others, such as those of a subclass of its Task that is written in
 * Python. Source: Lib/asyncio/tasks.py, _py_enter_task. */
static void look_for_python_tasks(struct krait_tasks *tasks)
{
    bool may = tasks->current_task && !tasks->current_tasks && !tasks->python_tasks;
    PyObject *module = may ? imported("asyncio.tasks") : NULL;
    if (module)
        keep_member(&tasks->python_tasks, module, "_current_tasks", &PyDict_Type);
}

static void look_for_asyncio(struct krait_tasks *tasks)
{
    PyObject *module = tasks->get_loop ? NULL : imported("_asyncio");
    if (!module)
        return;
    keep_member(&tasks->task_type, module, "Task", &PyType_Type);
    keep_member(&tasks->current_task, module, "current_task", krait_compat.cfunction_type);
    keep_member(&tasks->current_tasks, module, "_current_tasks", &PyDict_Type);
    if (tasks->task_type && (tasks->current_task || tasks->current_tasks))
        keep_member(&tasks->get_loop, module, "_get_running_loop", krait_compat.cfunction_type);
}

/* The code of a function, of a module or of a class in it. New reference or NULL. */
static PyObject *code_in(PyObject *module, const char *class, const char *name)
{
    PyObject *owner = class ? PyObject_GetAttrString(module, class) : module;
    PyObject *function = owner ? PyObject_GetAttrString(owner, name) : NULL;
    PyObject *code = function ? PyObject_GetAttrString(function, "__code__") : NULL;
    Py_XDECREF(function);
    if (class)
        Py_XDECREF(owner);
    PyErr_Clear();
    return code;
}

/* anyio's groups may be imported later than asyncio's. */
static void look_for_groups(struct krait_tasks *tasks)
{
    PyObject *module = tasks->gathering ? NULL : imported("asyncio.tasks");
    if (module)
        keep_member(&tasks->gathering, module, "_GatheringFuture", &PyType_Type);
    for (int i = 0; i < KRAIT_TASK_GROUPS; i++) {
        module = tasks->groups[i] ? NULL : imported(group_exits[i].module);
        if (module)
            tasks->groups[i] = code_in(module, "TaskGroup", group_exits[i].name);
    }
}

/* Source: trio/_core/_traps.py. Its third trap, cancel_shielded_checkpoint, waits for nothing: it says so itself. */
static void look_for_traps(struct krait_tasks *tasks)
{
    static const char *const names[KRAIT_TASK_TRAPS] = { "_async_yield", "wait_task_rescheduled" };
    PyObject *module = imported("trio._core._traps"), *subprocess = imported("trio._subprocess");
    for (int i = 0; module && i < KRAIT_TASK_TRAPS; i++)
        tasks->trio_traps[i] = tasks->trio_traps[i] ? tasks->trio_traps[i] : code_in(module, NULL, names[i]);
    if (subprocess && !tasks->trio_child)
        tasks->trio_child = code_in(subprocess, "Process", "wait");
}

static void look_for_trio(struct krait_tasks *tasks)
{
    PyObject *module = tasks->trio_run ? NULL : imported("trio._core._run");
    if (module)
        keep_member(&tasks->trio_run, module, "GLOBAL_RUN_CONTEXT", &PyBaseObject_Type);
    if (module && !tasks->trio_exit)
        tasks->trio_exit = code_in(module, "Nursery", "_nested_child_finished");
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
    look_for_groups(in->tasks);
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
    return imported("asyncio") || imported("trio");
}
