/* SPDX-License-Identifier: Apache-2.0 */
#include "python/work_processes.h"

#include "event/payload.h"
#include "event/works.h"
#include "python/args.h"
#include "python/modules.h"
#include "python/notes.h"
#include "python/patch.h"
#include "python/tasks_inside.h"

#include <sys/stat.h>
#include <unistd.h>

#define MODULE "concurrent.futures.process"

bool krait_work_is_called_by(const char *module, const char *class, const char *name)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame(), *caller = frame ? krait_frame_back(frame) : NULL;
    PyObject *code = caller ? krait_frame_code(caller) : NULL;
    PyObject *wanted = code ? krait_tasks_code(krait_module(module), class, name, NULL) : NULL;
    bool is_it = code && code == wanted;
    Py_XDECREF(wanted);
    Py_XDECREF(code);
    Py_XDECREF(caller);
    return is_it;
}

/* ---- the id ---- */

/* -1: there is no such number. */
static long number_of(PyObject *obj, const char *name)
{
    PyObject *attr = krait_args_plain_attr(obj, name);
    long n = attr && PyLong_CheckExact(attr) ? PyLong_AsLong(attr) : -1;
    Py_XDECREF(attr);
    PyErr_Clear();
    return n;
}

/* The queue's pipe, which is the same in all processes that have it, and no other has its number while it is there; 0: not
 * known. */
static uint64_t pipe_of(const PyObject *queue)
{
    struct stat is;
    PyObject *reader = krait_args_plain_attr((PyObject *)queue, "_reader");
    long fd = reader ? number_of(reader, "_handle") : -1;
    Py_XDECREF(reader);
    return fd >= 0 && fstat((int)fd, &is) == 0 && S_ISFIFO(is.st_mode) ? is.st_ino : 0;
}

uint64_t krait_work_id_submitted(void)
{
    if (!krait_work_is_called_by(MODULE, "ProcessPoolExecutor", "submit"))
        return 0;
    PyObject *caller = krait_frame_back((PyObject *)PyEval_GetFrame());
    PyObject *executor = krait_args_frame_local(caller, "self");
    PyObject *queue = executor ? krait_args_plain_attr(executor, "_call_queue") : NULL;
    uint64_t id = queue ? krait_work_shared_id(pipe_of(queue), number_of(executor, "_queue_count")) : 0;
    Py_XDECREF(queue);
    Py_XDECREF(executor);
    Py_XDECREF(caller);
    return id;
}

/* ---- in the worker ----
 *
 * It takes its work by functions of C, the last of which makes an object of it, and it may do it by one of C as well: no
 * function of Python begins in between. */

static __thread uint64_t served; /* the pipe that this thread takes work from; 0: none */
static pid_t server;             /* the process that does: a child of it may take from another one, unseen */
static PyCFunction real_loads;

typedef PyObject *fastcall_names_fn(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names);

static void put_start(struct krait_interp *in, PyObject *item)
{
    struct krait_note note;
    if (krait_note_begin(&note, in, krait_moment_now())) {
        uint8_t payload[KRAIT_BYTES_work_start];
        bool is_taken = krait_work_is_called_by(MODULE, NULL, "_process_worker");
        const struct krait_payload_work_start event = {
            .id = is_taken ? krait_work_shared_id(served, number_of(item, "work_id")) : 0
        };
        if (event.id)
            krait_note_put(&note, KRAIT_EVENT_work_start, payload, krait_put_work_start(payload, &event));
    }
    krait_note_end(&note);
}

static PyObject *on_loads(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    PyObject *result = ((fastcall_names_fn *)(void (*)(void))real_loads)(module, args, nargs, names);
    struct krait_interp *in = served && result ? krait_agent_interp() : NULL;
    if (in && krait_agent_records(in) && !krait_note_is_open() && server == getpid() &&
        (PyObject *)Py_TYPE(result) == krait_module_item(krait_module(MODULE), "_CallItem"))
        put_start(in, result);
    return result;
}

void krait_work_serve(const PyObject *call_queue)
{
    static const struct krait_patch patches[] = {
        { "loads", (PyCFunction)(void (*)(void))on_loads, &real_loads, KRAIT_METH_FASTCALL | METH_KEYWORDS },
    };
    PyObject *module = krait_module("_pickle");
    served = pipe_of(call_queue);
    server = getpid();
    if (module && served && !real_loads)
        krait_patch(module, patches, KRAIT_ARRAY_LEN(patches));
}
