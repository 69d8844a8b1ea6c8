/* SPDX-License-Identifier: Apache-2.0
 *
 * Which coroutine a task was made with, where the first one that is seen of it may be another: recording began in a step, or
 * an exception is thrown into the innermost one; or where a library makes the task with a coroutine of its own that awaits the
 * program's.
 */
#include "python/args.h"
#include "python/codes.h"
#include "python/tasks_inside.h"

uint32_t krait_tasks_count_frames(PyObject *frame, const void *code, const PyObject *last)
{
    uint32_t n = 0;
    bool is_reached = !last;
    Py_XINCREF(frame);
    while (frame) {
        PyObject *its = krait_frame_code(frame);
        bool ends = frame == last;
        PyObject *back = ends ? NULL : krait_frame_back(frame);
        n += its == code;
        is_reached |= ends;
        Py_XDECREF(its);
        Py_DECREF(frame);
        frame = back;
    }
    return is_reached ? n : 0;
}

/* Whether code may be suspended. Leaves no exception. */
static bool suspends(PyObject *code)
{
    if (!krait_compat.version.monitoring)
        return krait_code_suspends(code);
    PyObject *flags = PyObject_GetAttrString(code, "co_flags");
    bool is = flags && PyLong_AsLong(flags) & KRAIT_CO_SUSPENDS;
    Py_XDECREF(flags);
    PyErr_Clear();
    return is;
}

/* New reference or NULL. */
static PyObject *code_of_caller(void)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame(), *back = frame ? krait_frame_back(frame) : NULL;
    PyObject *code = back ? krait_frame_code(back) : NULL;
    Py_XDECREF(back);
    return code;
}

bool krait_tasks_is_inner(void)
{
    PyObject *code = code_of_caller();
    bool is = code && suspends(code);
    Py_XDECREF(code);
    return is;
}

uint32_t krait_tasks_depth(void)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    uint32_t n = 0;
    for (Py_XINCREF(frame); frame; n++) {
        PyObject *back = krait_frame_back(frame);
        Py_DECREF(frame);
        frame = back;
    }
    return n;
}

/* The loop calls the root, and from there to the top each frame awaits the next one. */
uint32_t krait_tasks_above_root(const void *root)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    uint32_t above = 0;
    Py_XINCREF(frame);
    for (uint32_t i = 0; frame; i++) {
        PyObject *code = krait_frame_code(frame);
        PyObject *back = code && suspends(code) ? krait_frame_back(frame) : NULL;
        if (code == root)
            above = i;
        Py_XDECREF(code);
        Py_DECREF(frame);
        frame = back;
    }
    return above;
}

/* An interpreter's own coroutine, or a generator that stands for one: others have no frames. New reference or NULL. */
static PyObject *coroutine_of(PyObject *task)
{
    PyObject *made = krait_args_plain_attr(task, "_coro"); /* asyncio's */
    made = made ? made : krait_args_plain_attr(task, "coro");
    bool is = made &&
              (Py_TYPE(made) == krait_compat.coroutine_type || Py_TYPE(made) == krait_compat.generator_type);
    if (!is)
        Py_CLEAR(made);
    return made;
}

static bool is_recorded(struct krait_interp *in, PyObject *code, PyObject *frame)
{
    const struct krait_code *slot = krait_code_find(in, code);
    if (!slot || (!slot->id && !(slot->flags & KRAIT_CODE_OMIT)))
        slot = krait_code_define(in, code, frame);
    return slot && slot->id && slot->flags & KRAIT_CODE_TASK && !(slot->flags & KRAIT_CODE_OMIT);
}

struct krait_tasks_root krait_tasks_find_root(struct krait_interp *in, PyObject *task, const void *code,
                                              bool call)
{
    struct krait_tasks_root root = { code, 1 };
    PyObject *made = coroutine_of(task);
    bool is_coroutine = made && Py_TYPE(made) == krait_compat.coroutine_type;
    PyObject *its = made ? krait_args_plain_attr(made, is_coroutine ? "cr_code" : "gi_code") : NULL;
    PyObject *frame = made ? krait_args_plain_attr(made, is_coroutine ? "cr_frame" : "gi_frame") : NULL;
    bool has_frame = its && frame && frame != Py_None && Py_TYPE(its) == krait_compat.code_type;
    if (has_frame && is_recorded(in, its, frame)) {
        PyObject *top = (PyObject *)PyEval_GetFrame();
        uint32_t begins = call ? krait_tasks_count_frames(top, its, frame) : its == code;
        if (begins || !call)
            root = (struct krait_tasks_root){ its, begins };
    }
    Py_XDECREF(frame);
    Py_XDECREF(its);
    Py_XDECREF(made);
    PyErr_Clear();
    return root;
}

/* ---- libraries' coroutines around the program's ---- */

/* Source: anyio 4.14 and later, which makes its tasks with the first; group.start() on trio with the second, which awaits the
 * first; anyio.run() on asyncio with the third. */
static const struct {
    const char *module, *class, *name, *inner;
} wrappers[KRAIT_TASK_WRAPPERS] = {
    { "anyio._core._tasks", "TaskHandle", "_run_coro", NULL },
    { "anyio._backends._trio", "TaskGroup", "start", "run_coro_with_task_status" },
    { "anyio._backends._asyncio", "AsyncIOBackend", "run", "wrapper" },
};

const void *krait_tasks_wrapper(const struct krait_tasks *tasks, const void *code)
{
    bool is = false;
    for (int i = 0; i < KRAIT_TASK_WRAPPERS; i++)
        is |= code == tasks->wrappers[i];
    return is ? code : NULL;
}

bool krait_tasks_is_wrapped(const void *wrapper)
{
    PyObject *code = code_of_caller();
    bool is = code && code == wrapper;
    Py_XDECREF(code);
    PyErr_Clear();
    return is;
}

void krait_tasks_root_look(struct krait_tasks *tasks)
{
    for (int i = 0; i < KRAIT_TASK_WRAPPERS; i++)
        krait_tasks_look_for_code(&tasks->wrappers[i], wrappers[i].module, wrappers[i].class,
                                  wrappers[i].name, wrappers[i].inner);
}

void krait_tasks_root_done(struct krait_tasks *tasks)
{
    for (int i = 0; i < KRAIT_TASK_WRAPPERS; i++)
        Py_XDECREF(tasks->wrappers[i]);
}
