/* SPDX-License-Identifier: Apache-2.0 */
#include "python/work_processes.h"

#include "event/works.h"
#include "python/args.h"
#include "python/callables.h"
#include "python/codes.h"
#include "python/modules.h"
#include "python/notes.h"
#include "python/patch.h"
#include "python/tasks_inside.h"
#include "python/text.h"

#include <sys/stat.h>
#include <unistd.h>

#define EXECUTOR "concurrent.futures.process"
#define POOL     "multiprocessing.pool"

/* `frame` may be NULL. */
static bool runs(PyObject *frame, const char *module, const char *class, const char *name)
{
    PyObject *code = frame ? krait_frame_code(frame) : NULL;
    PyObject *wanted = code ? krait_tasks_code(krait_module(module), class, name, NULL) : NULL;
    bool is_it = code && code == wanted;
    Py_XDECREF(wanted);
    Py_XDECREF(code);
    return is_it;
}

bool krait_work_is_called_by(const char *module, const char *class, const char *name)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame(), *caller = frame ? krait_frame_back(frame) : NULL;
    bool is_it = runs(caller, module, class, name);
    Py_XDECREF(caller);
    return is_it;
}

bool krait_work_is_frame(PyObject *frame, const char *module, const char *name)
{
    PyObject *code = krait_frame_code(frame);
    PyObject *its = code ? PyObject_GetAttrString(code, "co_name") : NULL;
    bool is_it = its && PyUnicode_CompareWithASCIIString(its, name) == 0;
    PyObject *globals = is_it ? PyObject_GetAttrString(frame, "f_globals") : NULL;
    PyObject *of = globals ? krait_module(module) : NULL;
    is_it = of && PyModule_GetDict(of) == globals;
    Py_XDECREF(globals);
    Py_XDECREF(its);
    Py_XDECREF(code);
    PyErr_Clear();
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

/* The pipe of one of its two ends, which is the same in all processes that have it, and no other has its number while it is
 * there; 0: not known. */
static uint64_t pipe_behind(PyObject *connection)
{
    struct stat is;
    long fd = number_of(connection, "_handle");
    return fd >= 0 && fstat((int)fd, &is) == 0 && S_ISFIFO(is.st_mode) ? is.st_ino : 0;
}

static uint64_t pipe_of(PyObject *queue)
{
    PyObject *reader = krait_args_plain_attr(queue, "_reader");
    uint64_t pipe = reader ? pipe_behind(reader) : 0;
    Py_XDECREF(reader);
    return pipe;
}

static bool is_of_threads(PyObject *queue)
{
    return (PyObject *)Py_TYPE(queue) == krait_module_item(krait_module("_queue"), "SimpleQueue");
}

uint64_t krait_work_id_submitted(void)
{
    if (!krait_work_is_called_by(EXECUTOR, "ProcessPoolExecutor", "submit"))
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

uint64_t krait_work_id_of_result(PyObject *result)
{
    PyObject *pool = krait_args_plain_attr(result, "_pool");
    PyObject *queue = pool ? krait_args_plain_attr(pool, "_inqueue") : NULL;
    long number = number_of(result, "_job");
    uint64_t id = !queue                 ? 0
                  : is_of_threads(queue) ? krait_work_numbered_id(number)
                                         : krait_work_shared_id(pipe_of(queue), number);
    Py_XDECREF(queue);
    Py_XDECREF(pool);
    return id;
}

/* ---- pools: their numbers are those of a counter, which is known when __init__ has asked it ---- */

static PyObject *submit(PyObject *function, PyObject *const *args, size_t nargs, PyObject *names,
                        bool is_items)
{
    PyObject *self = KRAIT_NARGS(nargs) ? args[0] : NULL;
    Py_XINCREF(self); /* an argument that the call may take */
    PyObject *result = krait_call_original(function, args, nargs, names);
    struct krait_interp *in = result && self ? krait_agent_interp() : NULL;
    if (in && krait_agent_records(in) && !krait_note_is_open())
        krait_work_submitted(in, self, is_items);
    Py_XDECREF(self);
    return result;
}

static PyObject *on_apply(PyObject *function, PyObject *const *args, size_t nargs, PyObject *names)
{
    return submit(function, args, nargs, names, false);
}

static PyObject *on_imap(PyObject *function, PyObject *const *args, size_t nargs, PyObject *names)
{
    return submit(function, args, nargs, names, true);
}

/* ---- the items of imap ---- */

static bool is_class(const PyObject *obj, const char *class)
{
    PyObject *module = krait_module(POOL);
    return module && (PyObject *)Py_TYPE(obj) == krait_module_item(module, class);
}

bool krait_work_is_unordered(const PyObject *iterator)
{
    return is_class(iterator, "IMapUnorderedIterator");
}

/* All that are there, less those that wait. */
long krait_work_items_taken(PyObject *iterator)
{
    long all = is_class(iterator, "IMapIterator") || krait_work_is_unordered(iterator)
                   ? number_of(iterator, "_index")
                   : -1;
    PyObject *items = all >= 0 ? krait_args_plain_attr(iterator, "_items") : NULL;
    PyObject *module = items ? krait_module("_collections") : NULL;
    bool is_deque = module && (PyObject *)Py_TYPE(items) == krait_module_item(module, "deque");
    Py_ssize_t waiting = is_deque ? PySequence_Size(items) : -1;
    Py_XDECREF(items);
    PyErr_Clear();
    return waiting < 0 || waiting > all ? -1 : all - (long)waiting;
}

/* There was no item, in time or at all; a part may raise the same, and then its item is not told. */
static bool is_none_there(void)
{
    PyObject *module = krait_module("multiprocessing.context");
    PyObject *late = module ? krait_module_item(module, "TimeoutError") : NULL;
    return PyErr_ExceptionMatches(PyExc_StopIteration) || (late && PyErr_ExceptionMatches(late));
}

/* Several threads may take items of one iterator: if another one has done so meanwhile, nobody knows whose is which. */
static PyObject *on_next(PyObject *function, PyObject *const *args, size_t nargs, PyObject *names)
{
    PyObject *self = KRAIT_NARGS(nargs) ? args[0] : NULL;
    Py_XINCREF(self); /* an argument that the call may take */
    long before = self ? krait_work_items_taken(self) : -1;
    PyObject *result = krait_call_original(function, args, nargs, names);
    struct krait_interp *in = before >= 0 && (result || !is_none_there()) ? krait_agent_interp() : NULL;
    if (in && krait_agent_records(in) && !krait_note_is_open())
        krait_work_item_taken(in, self, before);
    Py_XDECREF(self);
    return result;
}

/* ---- ... and their parts ---- */

struct part {
    long job, number; /* negative: not known */
};

static bool is_task(const PyObject *obj)
{
    return PyTuple_CheckExact(obj) && PyTuple_Size((PyObject *)obj) == 5;
}

/* Of (job, i, function, arguments, keywords), its i-th part. */
static struct part part_of(PyObject *task)
{
    PyObject *job = PyTuple_GetItem(task, 0), *part = PyTuple_GetItem(task, 1);
    if (!PyLong_CheckExact(job) || !PyLong_CheckExact(part))
        return (struct part){ -1, -1 };
    const struct part found = { PyLong_AsLong(job), PyLong_AsLong(part) };
    PyErr_Clear();
    return found;
}

static uint64_t shared_id(uint64_t pipe, PyObject *task)
{
    const struct part part = part_of(task);
    return krait_work_part_id(krait_work_shared_id(pipe, part.job), part.number);
}

static uint64_t numbered_id(PyObject *task)
{
    const struct part part = part_of(task);
    return krait_work_part_id(krait_work_numbered_id(part.job), part.number);
}

void krait_work_put(struct krait_note *note, uint32_t event, const struct krait_payload_work_submit *work)
{
    uint8_t payload[KRAIT_BYTES_work_submit];
    struct krait_payload_work_submit named = *work;
    if (!named.function) /* a number would look like a name where rows are made of it */
        named.function = krait_code_name(note->in, "<unknown>");
    krait_note_put(note, event, payload, krait_put_work_submit(payload, &named));
}

/* `id`: 0: it is not of a pool's. */
static void put_task(struct krait_note *note, uint32_t event, uint64_t id, PyObject *task)
{
    if (id)
        krait_work_put(
            note, event,
            &(struct krait_payload_work_submit){
                .id = id,
                .function = krait_callable_id(note->in, PyTuple_GetItem(task, 2), PyTuple_GetItem(task, 3)),
                .pool = id & KRAIT_WORK_SHARED ? KRAIT_work_pool_processes : KRAIT_work_pool_threads });
}

static void put_call(struct krait_note *note, uint64_t id, PyObject *item)
{
    PyObject *function = id ? krait_args_plain_attr(item, "fn") : NULL;
    PyObject *args = function ? krait_args_plain_attr(item, "args") : NULL;
    if (id)
        krait_work_put(
            note, KRAIT_EVENT_work_start,
            &(struct krait_payload_work_submit){ .id = id,
                                                 .function = krait_callable_id(note->in, function, args),
                                                 .pool = KRAIT_work_pool_processes });
    Py_XDECREF(args);
    Py_XDECREF(function);
}

/* `task` is about to be sent, if the pool does it, to a worker: by this connection, or (NULL) to a thread. */
static void see_sent(PyObject *task, PyObject *connection)
{
    struct krait_note note;
    struct krait_interp *in = is_task(task) ? krait_agent_interp() : NULL;
    if (!in || !krait_agent_records(in) || krait_note_is_open() || !krait_work_sees_pools(in))
        return;
    if (krait_note_begin(&note, in, krait_moment_now()) && part_of(task).number > 0 &&
        runs((PyObject *)PyEval_GetFrame(), POOL, "Pool", "_handle_tasks"))
        put_task(&note, KRAIT_EVENT_work_submit,
                 connection ? shared_id(pipe_behind(connection), task) : numbered_id(task), task);
    krait_note_end(&note);
}

static PyObject *on_send(PyObject *function, PyObject *const *args, size_t nargs, PyObject *names)
{
    if (KRAIT_NARGS(nargs) == 2)
        see_sent(args[1], args[0]);
    return krait_call_original(function, args, nargs, names);
}

static const struct krait_patch_python results[] = {
    { POOL, "ApplyResult", "__init__", on_apply },
    { POOL, "IMapIterator", "__init__", on_imap },
    /* The same function twice. A stand-in has to be in both places. */
    { POOL, "IMapIterator", "next", on_next },
    { POOL, "IMapIterator", "__next__", on_next },
    { "multiprocessing.connection", "_ConnectionBase", "send", on_send },
};
_Static_assert(KRAIT_ARRAY_LEN(results) == KRAIT_ARRAY_LEN(((struct krait_interp *)NULL)->patched_results),
               "each has its place");

void krait_work_see_pools(struct krait_interp *in)
{
    krait_patch_python(results, in->patched_results, KRAIT_ARRAY_LEN(results));
}

bool krait_work_sees_pools(const struct krait_interp *in)
{
    return in->patched_results[0].function;
}

void krait_work_end(struct krait_interp *in)
{
    krait_unpatch_python(results, in->patched_results, KRAIT_ARRAY_LEN(results));
}

/* ---- in the worker ----
 *
 * It takes its work by functions of C, the last of which makes an object of it, and it may do it by one of C as well: no
 * function of Python begins in between. */

/* What this process takes its work from: one thread of it does. */
static struct {
    uint64_t pipe;     /* 0: none */
    const void *queue; /* its address alone */
    pid_t server;      /* a child of it may take from another queue, unseen */
} served;
static PyCFunction real_loads, real_get, real_put;

typedef PyObject *fastcall_names_fn(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names);
typedef PyObject *method_fn(PyObject *self, PyTypeObject *class, PyObject *const *args, size_t nargs,
                            PyObject *names);

/* Whether the worker has called get() of its queue, which has called the function of C that runs. */
static bool is_taken(const char *module, const char *worker)
{
    if (!krait_work_is_called_by(module, NULL, worker))
        return false;
    PyObject *queue = krait_args_frame_local((PyObject *)PyEval_GetFrame(), "self");
    bool is_its = queue && queue == served.queue;
    Py_XDECREF(queue);
    PyErr_Clear();
    return is_its;
}

static uint64_t id_of_call(PyObject *item)
{
    return is_taken(EXECUTOR, "_process_worker")
               ? krait_work_shared_id(served.pipe, number_of(item, "work_id"))
               : 0;
}

static uint64_t id_of_task(PyObject *task)
{
    return is_taken(POOL, "worker") ? shared_id(served.pipe, task) : 0;
}

static uint64_t id_of_task_of_thread(PyObject *task)
{
    return runs((PyObject *)PyEval_GetFrame(), POOL, NULL, "worker") ? numbered_id(task) : 0;
}

static bool is_call(const PyObject *obj)
{
    return (PyObject *)Py_TYPE(obj) == krait_module_item(krait_module(EXECUTOR), "_CallItem");
}

/* `id` finds it of a task; NULL: it is a call. */
static void put_start(struct krait_interp *in, PyObject *obj, uint64_t (*id)(PyObject *task))
{
    struct krait_note note;
    bool records = krait_note_begin(&note, in, krait_moment_now());
    if (records && id)
        put_task(&note, KRAIT_EVENT_work_start, id(obj), obj);
    else if (records)
        put_call(&note, id_of_call(obj), obj);
    krait_note_end(&note);
}

static PyObject *on_loads(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    PyObject *result = ((fastcall_names_fn *)(void (*)(void))real_loads)(module, args, nargs, names);
    struct krait_interp *in = served.pipe && result ? krait_agent_interp() : NULL;
    if (in && krait_agent_records(in) && krait_agent.tasks && !krait_note_is_open() &&
        served.server == getpid() && (is_task(result) || is_call(result)))
        put_start(in, result, is_task(result) ? id_of_task : NULL);
    return result;
}

/* A thread has taken something out of a queue.SimpleQueue. */
static PyObject *on_got(PyObject *item)
{
    struct krait_interp *in = item && is_task(item) ? krait_agent_interp() : NULL;
    if (in && krait_agent_records(in) && !krait_note_is_open() && krait_work_sees_pools(in))
        put_start(in, item, id_of_task_of_thread);
    return item;
}

static PyObject *on_get(PyObject *queue, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return on_got(((fastcall_names_fn *)(void (*)(void))real_get)(queue, args, nargs, names));
}

static PyObject *on_get_by_class(PyObject *queue, PyTypeObject *class, PyObject *const *args, size_t nargs,
                                 PyObject *names)
{
    return on_got(((method_fn *)(void (*)(void))real_get)(queue, class, args, nargs, names));
}

static PyObject *on_put(PyObject *queue, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    if (nargs == 1)
        see_sent(args[0], NULL);
    return ((fastcall_names_fn *)(void (*)(void))real_put)(queue, args, nargs, names);
}

/* METH_METHOD: from 3.10 on. */
static void see_threads(void)
{
    enum { FLAGS = KRAIT_METH_FASTCALL | METH_KEYWORDS, METHOD = 0x200 };
    static const struct krait_patch patches[] = {
        { "SimpleQueue.get", (PyCFunction)(void (*)(void))on_get, &real_get, FLAGS },
        { "SimpleQueue.get", (PyCFunction)(void (*)(void))on_get_by_class, &real_get, FLAGS | METHOD },
    };
    static const struct krait_patch put = { "SimpleQueue.put", (PyCFunction)(void (*)(void))on_put, &real_put,
                                            FLAGS };
    PyObject *module = krait_module("_queue");
    if (module && !real_put)
        krait_patch(module, &put, 1);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(patches) && module && !real_get; i++)
        krait_patch(module, &patches[i], 1);
}

static void see_processes(PyObject *queue)
{
    static const struct krait_patch patches[] = {
        { "loads", (PyCFunction)(void (*)(void))on_loads, &real_loads, KRAIT_METH_FASTCALL | METH_KEYWORDS },
    };
    PyObject *module = krait_module("_pickle");
    uint64_t pipe = pipe_of(queue);
    if (!pipe)
        return;
    served.pipe = pipe;
    served.queue = queue;
    served.server = getpid();
    if (module && !real_loads)
        krait_patch(module, patches, KRAIT_ARRAY_LEN(patches));
}

void krait_work_serve(PyObject *queue)
{
    if (is_of_threads(queue))
        see_threads();
    else
        see_processes(queue);
}

/* ---- what is there when the recording begins ---- */

static const struct {
    const char *module, *name, *queue;
} workers[] = {
    { EXECUTOR, "_process_worker", "call_queue" },
    { POOL, "worker", "inqueue" },
};

/* Whether the recording has such a function. */
static bool takes(const struct krait_interp *in, const char *module, const char *class, const char *name)
{
    char file[1024] = "", whole[64];
    PyObject *code = krait_tasks_code(krait_module(module), class, name, NULL);
    if (!code)
        return false;
    krait_text_attr(code, "co_filename", file, sizeof(file));
    Py_DECREF(code);
    snprintf(whole, sizeof(whole), "%s%s%s", class ? class : "", class ? "." : "", name);
    return krait_filters_take(in->agent, module, whole, file);
}

static void serve_by(PyObject *frame, const char *name)
{
    PyObject *queue = krait_args_frame_local(frame, name);
    if (queue)
        krait_work_serve(queue);
    Py_XDECREF(queue);
    PyErr_Clear();
}

static void look_at(const struct krait_interp *in, PyObject *frame)
{
    Py_INCREF(frame);
    while (frame) {
        for (size_t i = 0; i < KRAIT_ARRAY_LEN(workers); i++) {
            if (runs(frame, workers[i].module, NULL, workers[i].name) &&
                takes(in, workers[i].module, NULL, workers[i].name))
                serve_by(frame, workers[i].queue);
        }
        PyObject *back = krait_frame_back(frame);
        Py_DECREF(frame);
        frame = back;
    }
}

void krait_work_look(struct krait_interp *in, PyObject *frames)
{
    bool may_be = in->agent->tasks && (krait_module(POOL) || krait_module(EXECUTOR));
    PyObject *key, *frame;
    Py_ssize_t at = 0;
    if (may_be && takes(in, POOL, "Pool", "__init__"))
        krait_work_see_pools(in);
    while (may_be && PyDict_Next(frames, &at, &key, &frame))
        look_at(in, frame);
    PyErr_Clear();
}
