/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks of asyncio that wait for others through a future: by gather(), wait(), wait_for(), shield(), or at the end of a
 * task group. Which ones is read where the wait begins:
 *
 *   gather()              its future has a list of them
 *   shield()              so has a callback of its future, in a cell
 *   wait(), wait_for()    they are local variables of the innermost coroutine, as is the future
 *   a task group          likewise, in `self`
 *
 * A loop calls wait() again and again, each time for those that are left. Its tasks are told to be in a set of the task that
 * waits, which stays the same while all of it that have not ended are awaited again: so each is told once, and not at each
 * wait.
 *
 * The loop ends such a wait, outside of all steps: it calls a callback with the task that has ended, which ends the wait
 * or does not. So whose end it was is in that function's frame.
 */
#include "python/args.h"
#include "python/codes.h"
#include "python/compat/running.h"
#include "python/modules.h"
#include "python/tasks_inside.h"

#include <string.h>

/* gather() of gather() ..., and how many futures of inner ones are looked at: one may be in many. */
enum { DEEPEST = 8, MOST_INNER = 1 << 18 };

/* What tasks are told to be in: the future; what has the variables, because more tasks may come; or a set of the task that
 * waits, because it may wait for the same ones again. */
enum told { IN_FUTURE, IN_OWNER, IN_SET };

/* Source: Lib/asyncio/tasks.py, Lib/asyncio/taskgroups.py, where __aexit__ has become two, and anyio's
 * _backends/_asyncio.py. */
static const struct wait {
    const char *module, *class, *name;
    const char *of; /* a local variable that has them; NULL: they are local variables themselves */
    const char *future, *children;
    enum told told;
} waits[KRAIT_TASK_WAITS] = {
    { "asyncio.taskgroups", "TaskGroup", "__aexit__", "self", "_on_completed_fut", "_tasks", IN_OWNER },
    { "asyncio.taskgroups", "TaskGroup", "_aexit", "self", "_on_completed_fut", "_tasks", IN_OWNER },
    { "anyio._backends._asyncio", "TaskGroup", "__aexit__", "self", "_on_completed_fut", "_tasks", IN_OWNER },
    { "asyncio.tasks", NULL, "_wait", NULL, "waiter", "fs", IN_SET },
    { "asyncio.tasks", NULL, "wait_for", NULL, "waiter", "fut", IN_FUTURE }, /* up to 3.11 */
    { "asyncio.tasks", NULL, "_cancel_and_wait", NULL, "waiter", "fut", IN_FUTURE },
};

static const struct callback {
    const char *module, *class, *name, *inner;
    const char *done; /* the local variable that has the task, or a tuple of it alone */
    const char *all;  /* one that is set where all of them have ended; gather() uses `done` again then */
} callbacks[KRAIT_TASK_CALLBACKS] = {
    { "asyncio.tasks", NULL, "gather", "_done_callback", "fut", "results" },
    { "asyncio.tasks", NULL, "_gather", "_done_callback", "fut", "results" }, /* 3.9 */
    { "asyncio.tasks", NULL, "_wait", "_on_completion", "f", NULL },
    { "asyncio.tasks", NULL, "shield", "_inner_done_callback", "inner", NULL },
    { "asyncio.tasks", NULL, "_release_waiter", NULL, "args", NULL },
    { "asyncio.tasks", NULL, "as_completed", "_on_completion", "f", NULL }, /* up to 3.12 */
    { "asyncio.tasks", "_AsCompletedIterator", "_handle_completion", NULL, "f", NULL },
    { "asyncio.taskgroups", "TaskGroup", "_on_task_done", NULL, "task", NULL },
    { "anyio._backends._asyncio", "TaskGroup", "_spawn", "task_done", "_task", NULL },
    { "trio._core._run", "Runner", "task_exited", NULL, "task", NULL }, /* the nursery's last one */
};

/* as_completed() has a queue of those that have ended. */
static const struct {
    const char *class, *name, *inner;
} collects[KRAIT_TASK_COLLECTS] = {
    { NULL, "as_completed", "_wait_for_one" }, /* up to 3.12 */
    { "_AsCompletedIterator", "_wait_for_one", NULL },
};

/* ---- the tasks that a future stands for ---- */

static bool is_pending(PyObject *future)
{
    PyObject *state = krait_args_plain_attr(future, "_state");
    bool is = state && PyUnicode_Check(state) && PyUnicode_CompareWithASCIIString(state, "PENDING") == 0;
    Py_XDECREF(state);
    return is;
}

/* A list or a tuple of futures; `children` is such, or a set, or one future. New reference or NULL. */
static PyObject *list_of(PyObject *children)
{
    if (!children || children == Py_None)
        return NULL;
    bool are_many = Py_TYPE(children) == &PyList_Type || Py_TYPE(children) == &PySet_Type;
    return are_many ? PySequence_List(children)
                    : Py_BuildValue("[O]", children); /* without the program's code */
}

/* A task that has not ended, or NULL. */
static struct krait_agent_task *pending_task(struct krait_interp *in, PyObject *child)
{
    struct krait_agent_task *task = krait_tasks_find(in->tasks, child);
    bool is_new = !task && krait_tasks_is_of_asyncio(in->tasks, child) && is_pending(child);
    return is_new ? krait_tasks_define(in, child, NULL) : task;
}

static PyObject *stood_for(struct krait_interp *in, PyObject *future);

struct noting {
    const void *on; /* what they are known to be in */
    int deep;
    uint32_t inner;
};

static bool note_children(struct krait_interp *in, PyObject *children, struct noting *n);

/* By whose end it is done matters from now on. */
static void note_future(struct krait_tasks *tasks, PyObject *future)
{
    const uint64_t *known = krait_map_get(&tasks->by_address, (uintptr_t)future);
    uint32_t ignored;
    if (!krait_is_known(known, KRAIT_KNOWN_AWAITED, &ignored))
        krait_map_put(&tasks->by_address, (uintptr_t)future, krait_known(KRAIT_KNOWN_DONE, 0));
}

/* Returns whether it is a task, or stands for some. */
static bool note_child(struct krait_interp *in, PyObject *child, struct noting *n)
{
    struct krait_agent_task *task = pending_task(in, child);
    if (task && task->nursery != n->on)
        krait_tasks_write_nursery(in, task, n->on);
    if (task || krait_tasks_is_of_asyncio(in->tasks, child))
        return task;
    note_future(in->tasks, child);
    PyObject *inner = stood_for(in, child);
    n->deep++;
    bool any = n->deep <= DEEPEST && note_children(in, inner, n);
    n->deep--;
    Py_XDECREF(inner);
    return any;
}

static bool note_children(struct krait_interp *in, PyObject *children, struct noting *n)
{
    PyObject *list = list_of(children);
    bool any = false;
    for (Py_ssize_t i = 0; list && i < PyList_Size(list) && n->inner < MOST_INNER; i++) {
        n->inner += n->deep > 0;
        any |= note_child(in, PyList_GetItem(list, i), n);
    }
    Py_XDECREF(list);
    return any;
}

/* The id of the only task among them, or 0. */
static uint32_t only_task(struct krait_interp *in, PyObject *children)
{
    PyObject *list = list_of(children);
    PyObject *child = list && PyList_Size(list) == 1 ? PyList_GetItem(list, 0) : NULL;
    const struct krait_agent_task *task = child ? pending_task(in, child) : NULL;
    uint32_t id = task ? task->id : 0;
    Py_XDECREF(list);
    return id;
}

/* How many of them are in a set. */
static uint64_t count_in(struct krait_interp *in, PyObject *children, uint64_t set)
{
    PyObject *list = list_of(children);
    uint64_t n = 0;
    for (Py_ssize_t i = 0; list && i < PyList_Size(list); i++) {
        const struct krait_agent_task *task = krait_tasks_find(in->tasks, PyList_GetItem(list, i));
        n += task && (uintptr_t)task->nursery == set;
    }
    Py_XDECREF(list);
    return n;
}

/* The number of the set that the tasks of wait() are in, or are to be in. It is above all that krait_awaited_task() makes of
 * ids. 0: nobody waits. */
static uint64_t set_of(struct krait_interp *in, PyObject *children)
{
    struct krait_agent_task *waiter = krait_tasks_running(in);
    uint64_t own = waiter ? waiter->own : 0, found = count_in(in, children, own);
    const uint64_t *members = krait_map_get(&in->tasks->members, own);
    waiter = krait_tasks_running(in);
    if (waiter && !(found && members && found == *members))
        waiter->own = ((uint64_t)waiter->id << 32 | ++waiter->sets) << 1 | 1;
    return waiter ? waiter->own : 0;
}

/* `wait` may be NULL; `owner` is what has the variables. */
static struct krait_several several_of(struct krait_interp *in, const void *future, PyObject *children,
                                       const struct wait *wait, const void *owner)
{
    struct krait_several several = { .future = future, .on = future };
    enum told told = wait ? wait->told : IN_FUTURE;
    several.only = told == IN_OWNER ? 0 : only_task(in, children);
    uint64_t set = told == IN_SET && !several.only ? set_of(in, children) : 0;
    if (told == IN_OWNER || set)
        several.on = set ? (const void *)(uintptr_t)set : owner;
    several.any = several.only || note_children(in, children, &(struct noting){ .on = several.on });
    PyErr_Clear();
    return several;
}

/* ---- where a coroutine waits ---- */

/* A local variable of the innermost frame, or an attribute of the one that has it. New reference or NULL. */
static PyObject *variable(PyObject *code, PyObject *owner, const char *name)
{
    return owner ? krait_args_plain_attr(owner, name) : krait_args_local(code, name);
}

static struct krait_several read_wait(struct krait_interp *in, const struct wait *wait, PyObject *code)
{
    struct krait_several several = { 0 };
    PyObject *owner = wait->of ? krait_args_local(code, wait->of) : NULL;
    bool is_there = owner || !wait->of;
    PyObject *future = is_there ? variable(code, owner, wait->future) : NULL;
    PyObject *children = future && future != Py_None ? variable(code, owner, wait->children) : NULL;
    if (children)
        several = several_of(in, future, children, wait, owner);
    Py_XDECREF(children);
    Py_XDECREF(future);
    Py_XDECREF(owner);
    return several;
}

struct krait_several krait_several_of_frame(struct krait_interp *in, PyObject *code)
{
    const struct wait *wait = NULL;
    for (int i = 0; in->tasks && i < KRAIT_TASK_WAITS; i++)
        wait = code == in->tasks->waits[i] ? &waits[i] : wait;
    if (KRAIT_LIKELY(!wait))
        return (struct krait_several){ 0 };
    int saved_errno = errno;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    struct krait_several several = read_wait(in, wait, code);
    PyErr_Restore(type, value, traceback);
    errno = saved_errno;
    return several;
}

/* ---- what shows in a future ---- */

/* New reference to a list of pairs of a callback and its context, or NULL. */
static PyObject *callbacks_of(const struct krait_tasks *tasks, PyObject *future)
{
    const PyGetSetDef *def = tasks->future_callbacks;
    PyTypeObject *type = (PyTypeObject *)tasks->future_type;
    PyObject *list = def && PyType_IsSubtype(Py_TYPE(future), type) ? def->get(future, def->closure) : NULL;
    if (list && !PyList_Check(list)) /* None */
        Py_CLEAR(list);
    PyErr_Clear(); /* of a future that is not initialized */
    return list;
}

/* Borrowed, or NULL. */
static PyObject *callback_at(PyObject *list, Py_ssize_t i)
{
    PyObject *pair = PyList_GetItem(list, i);
    return PyTuple_Check(pair) && PyTuple_Size(pair) ? PyTuple_GetItem(pair, 0) : NULL;
}

/* What a function has of one that it lies in. New reference or NULL. */
static PyObject *free_variable(PyObject *function, PyObject *code, const char *name)
{
    PyObject *names = PyObject_GetAttrString(code, "co_freevars"), *value = NULL;
    PyObject *cells = PyObject_GetAttrString(function, "__closure__");
    bool are = names && cells && PyTuple_Check(cells) && PyTuple_Size(cells) == PyTuple_Size(names);
    for (Py_ssize_t i = 0; are && !value && i < PyTuple_Size(names); i++) {
        if (PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, i), name) == 0)
            value = PyObject_GetAttrString(PyTuple_GetItem(cells, i), "cell_contents");
    }
    Py_XDECREF(cells);
    Py_XDECREF(names);
    PyErr_Clear(); /* of an empty cell */
    return value;
}

static struct krait_waiting *waiting_for(struct krait_tasks *tasks, const void *future)
{
    return &tasks->waiting[krait_hash_u64((uintptr_t)future) % KRAIT_TASK_WAITING];
}

void krait_several_wait(struct krait_tasks *tasks, const void *future)
{
    struct krait_waiting *waiting = waiting_for(tasks, future);
    if (waiting->future != future)
        *waiting = (struct krait_waiting){ .future = future };
    waiting->tasks++;
}

void krait_several_go_on(struct krait_tasks *tasks, const void *future)
{
    struct krait_waiting *waiting = waiting_for(tasks, future);
    if (waiting->future == future && waiting->tasks)
        waiting->tasks--;
}

/* A future has as many callbacks as there are tasks that wait for it. */
static bool has_many_callbacks(struct krait_tasks *tasks, const void *future)
{
    enum { MANY = 16 };
    const struct krait_waiting *waiting = waiting_for(tasks, future);
    return waiting->future == future && waiting->tasks >= MANY;
}

/* The future that shield() protects, if this is one that it made. New reference or NULL. */
static PyObject *shielded(struct krait_interp *in, PyObject *future)
{
    struct krait_tasks *tasks = in->tasks;
    bool may_be = tasks->shielded && krait_code_is_defined(krait_code_find(in, tasks->shield)) &&
                  !has_many_callbacks(tasks, future);
    PyObject *list = may_be ? callbacks_of(tasks, future) : NULL, *inner = NULL;
    for (Py_ssize_t i = 0; list && !inner && i < PyList_Size(list); i++) {
        PyObject *callback = callback_at(list, i);
        bool is_function = callback && Py_TYPE(callback) == krait_compat.function_type;
        PyObject *code = is_function ? PyObject_GetAttrString(callback, "__code__") : NULL;
        inner = code && code == tasks->shielded ? free_variable(callback, code, "inner") : NULL;
        Py_XDECREF(code);
    }
    Py_XDECREF(list);
    return inner;
}

/* New reference or NULL. */
static PyObject *stood_for(struct krait_interp *in, PyObject *future)
{
    bool is_gathering = (PyObject *)Py_TYPE(future) == in->tasks->gathering;
    return is_gathering ? krait_args_plain_attr(future, "_children") : shielded(in, future);
}

struct krait_several krait_several_of_future(struct krait_interp *in, PyObject *future)
{
    PyObject *children = stood_for(in, future);
    struct krait_several several = { 0 };
    if (children)
        several = several_of(in, future, children, NULL, NULL);
    several.gathers = (PyObject *)Py_TYPE(future) == in->tasks->gathering;
    Py_XDECREF(children);
    PyErr_Clear();
    return several;
}

bool krait_several_collects(const struct krait_tasks *tasks, const void *code)
{
    bool is = false;
    for (int i = 0; code && i < KRAIT_TASK_COLLECTS; i++)
        is |= code == tasks->collects[i];
    return is;
}

/* Its group is the object that one of its callbacks is bound to. */
void krait_several_note_group(struct krait_interp *in, PyObject *object)
{
    const struct krait_tasks *tasks = in->tasks;
    PyObject *list =
        tasks->group && krait_tasks_is_of_asyncio(tasks, object) ? callbacks_of(tasks, object) : NULL;
    for (Py_ssize_t i = 0; list && i < PyList_Size(list); i++) {
        PyObject *callback = callback_at(list, i);
        bool is_bound = callback && Py_TYPE(callback) == krait_compat.method_type;
        PyObject *group = is_bound ? PyObject_GetAttrString(callback, "__self__") : NULL;
        bool is_group = group && PyType_IsSubtype(Py_TYPE(group), (PyTypeObject *)tasks->group);
        struct krait_agent_task *task = is_group ? krait_tasks_find(tasks, object) : NULL;
        if (task && !task->nursery)
            krait_tasks_write_nursery(in, task, group);
        Py_XDECREF(group);
    }
    Py_XDECREF(list);
    PyErr_Clear();
}

/* ---- whose end ends a wait ---- */

/* The id of a task that has ended, or by whose end a future was done; 0: not known. */
static uint32_t ender(const struct krait_tasks *tasks, PyObject *done)
{
    PyObject *first = PyTuple_Check(done) ? PyTuple_Size(done) ? PyTuple_GetItem(done, 0) : NULL : done;
    const uint64_t *known = first ? krait_map_get(&tasks->by_address, (uintptr_t)first) : NULL;
    uint32_t number;
    if (krait_is_known(known, KRAIT_KNOWN_TASK, &number)) /* its end was not recorded */
        return tasks->tasks[number].id;
    return krait_is_known(known, KRAIT_KNOWN_DONE, &number) ? number : 0;
}

static uint32_t ended_in(const struct krait_tasks *tasks, const struct callback *callback, PyObject *frame,
                         uint32_t last)
{
    PyObject *all = callback->all ? krait_args_frame_local(frame, callback->all) : NULL;
    PyObject *done = all ? NULL : krait_args_frame_local(frame, callback->done);
    uint32_t by = done ? ender(tasks, done) : all ? last : 0;
    Py_XDECREF(done);
    Py_XDECREF(all);
    return by;
}

/* NULL: it is the code of none. */
static const struct callback *find_callback(const struct krait_tasks *tasks, PyObject *code)
{
    const struct callback *callback = NULL;
    for (int i = 0; code && i < KRAIT_TASK_CALLBACKS; i++)
        callback = code == tasks->callbacks[i] ? &callbacks[i] : callback;
    return callback;
}

/* The callback may have called others, which end the wait. */
uint32_t krait_several_ended_by(struct krait_interp *in, uint32_t last)
{
    enum { FRAMES = 4 };
    uint32_t by = 0;
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    Py_XINCREF(frame);
    for (int i = 0; frame && i < FRAMES; i++) {
        PyObject *code = krait_frame_code(frame), *back = krait_frame_back(frame);
        const struct callback *callback = find_callback(in->tasks, code);
        by = callback ? ended_in(in->tasks, callback, frame, last) : 0;
        Py_XDECREF(code);
        Py_DECREF(frame);
        frame = back;
        if (callback)
            break;
    }
    Py_XDECREF(frame);
    return by;
}

/* ---- what is used of modules ---- */

/* The type of futures, and how to read what is called when one is done. */
static void look_for_futures(struct krait_tasks *tasks)
{
    PyObject *module = tasks->future_type ? NULL : krait_module("_asyncio");
    PyObject *type = krait_module_item(module, "Future");
    PyObject *descr = type && PyType_Check(type) ? PyObject_GetAttrString(type, "_callbacks") : NULL;
    if (descr && Py_TYPE(descr) == &PyGetSetDescr_Type) {
        tasks->future_callbacks = krait_at(descr, KRAIT_GETSET_DESCR_DEF);
        tasks->future_type = type;
        Py_INCREF(type);
    }
    Py_XDECREF(descr);
    PyErr_Clear();
}

static void look_for_type(PyObject **kept, const char *module, const char *name)
{
    PyObject *type = *kept ? NULL : krait_module_item(krait_module(module), name);
    if (type && PyType_Check(type)) {
        Py_INCREF(type);
        *kept = type;
    }
}

void krait_several_look(struct krait_tasks *tasks)
{
    look_for_futures(tasks);
    look_for_type(&tasks->gathering, "asyncio.tasks", "_GatheringFuture");
    look_for_type(&tasks->group, "asyncio.taskgroups", "TaskGroup");
    krait_tasks_look_for_code(&tasks->shield, "asyncio.tasks", NULL, "shield", NULL);
    krait_tasks_look_for_code(&tasks->shielded, "asyncio.tasks", NULL, "shield", "_outer_done_callback");
    for (int i = 0; i < KRAIT_TASK_WAITS; i++)
        krait_tasks_look_for_code(&tasks->waits[i], waits[i].module, waits[i].class, waits[i].name, NULL);
    for (int i = 0; i < KRAIT_TASK_COLLECTS; i++)
        krait_tasks_look_for_code(&tasks->collects[i], "asyncio.tasks", collects[i].class, collects[i].name,
                                  collects[i].inner);
    for (int i = 0; i < KRAIT_TASK_CALLBACKS; i++)
        krait_tasks_look_for_code(&tasks->callbacks[i], callbacks[i].module, callbacks[i].class,
                                  callbacks[i].name, callbacks[i].inner);
}

void krait_several_done(struct krait_tasks *tasks)
{
    Py_XDECREF(tasks->future_type);
    Py_XDECREF(tasks->gathering);
    Py_XDECREF(tasks->group);
    Py_XDECREF(tasks->shield);
    Py_XDECREF(tasks->shielded);
    for (int i = 0; i < KRAIT_TASK_WAITS; i++)
        Py_XDECREF(tasks->waits[i]);
    for (int i = 0; i < KRAIT_TASK_COLLECTS; i++)
        Py_XDECREF(tasks->collects[i]);
    for (int i = 0; i < KRAIT_TASK_CALLBACKS; i++)
        Py_XDECREF(tasks->callbacks[i]);
}
