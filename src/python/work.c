/* SPDX-License-Identifier: Apache-2.0
 *
 * What Python functions tell by one of their arguments of work and of waits.
 *
 * Work that is handed to executors of concurrent.futures: submitted, begun by a thread, done, its result taken. krait sees it
 * in the executors' own functions, in CPython's Lib/concurrent/futures, by the future that they have in common. Their slots
 * are set aside like those of --args, so that other functions pay nothing.
 *
 *   submit() ── _WorkItem.__init__ ─→ _WorkItem.run ── Future.set_result ─→ Future.__get_result
 *              submit                 start            done                result
 *
 * What other processes start is in work_processes.h.
 *
 * asyncio's run_in_executor takes the result by the same way. gevent's pool of threads has a ThreadResult in common. trio hands
 * a function to a thread; what the thread gives back is another object, from then on that of the work. In trio all waits end
 * by one function, which has the task (tasks.h). Sources: gevent/threadpool.py, trio/_threads.py, trio/_core/_thread_cache.py.
 *
 * multiprocessing.pool has an ApplyResult in common, of which MapResult is one. Its threads begin by a function of C. Its own
 * thread takes what workers give back. Source: Lib/multiprocessing/pool.py.
 *
 * On asyncio, anyio's threads begin the work by a function of C. Each has a queue.Queue, out of which it takes tuples that have
 * the future; it gives the result back by call_soon_threadsafe(), and last tells the queue that the task is done. krait looks
 * at these functions, which others call too, only once anyio hands work to threads. uvloop's call_soon_threadsafe() is of C:
 * then the queue tells. Source: anyio/_backends/_asyncio.py.
 */
#include "python/args.h"

#include "event/payload.h"
#include "event/works.h"
#include "python/compat/running.h"
#include "python/modules.h"
#include "python/tasks.h"
#include "python/tasks_inside.h"
#include "python/work_processes.h"

#include <string.h>

enum stage {
    SUBMIT = 1,
    START,
    DONE,
    RESULT,
    WAKE,
    RETURN, /* done, by the work that this thread has begun; the object is what it gives back */
    REPORT, /* done, if this thread has begun it; the object is the future, or the queue that it came from */
    GET,    /* start, if it is work at all: the thread may also use queues of its own */
    TAKE,   /* result, after which the future is no longer used */
    CHUNK,  /* the part is done, and all if it is the last one of a MapResult */
    ITEM,   /* the part is done, of an IMapIterator */
    READY,  /* result, if ApplyResult.get asks and it is there */
    LOOK,   /* work will come through functions that others call too */
    POOL,   /* work will be handed to processes that is known when functions end */
    APPLY,  /* submitted, unless krait_work_submitted tells that */
    MADE,   /* submitted, so told */
    PASS,   /* submitted, to be started by another process */
    SERVE, /* this thread of another process will start such work; the object is the queue that it takes it from */
};

static const struct {
    const char *module, *name;
    enum stage stage;
    const char *local, *attr; /* the future: a local variable, or its attribute */
    uint8_t nth; /* ... or, from 1 on, this item of that, which is a tuple, or a queue of tuples */
    bool shared; /* others call it too: looked at after LOOK */
} functions[] = {
    { "concurrent.futures.thread", "_WorkItem.__init__", SUBMIT, "future", NULL, 0, false },
    { "concurrent.futures.process", "_WorkItem.__init__", PASS, "future", NULL, 0, false },
    { "concurrent.futures.process", "_process_worker", SERVE, "call_queue", NULL, 0, false },
    { "concurrent.futures.thread", "_WorkItem.run", START, "self", "future", 0, false },
    { "concurrent.futures._base", "Future.set_result", DONE, "self", NULL, 0, false },
    { "concurrent.futures._base", "Future.set_exception", DONE, "self", NULL, 0, false },
    { "concurrent.futures._base", "Future.__get_result", RESULT, "self", NULL, 0, false },
    { "concurrent.futures._base", "Future._get_snapshot", RESULT, "self", NULL, 0,
      false }, /* 3.15's asyncio */
    { "multiprocessing.pool", "Pool.__init__", POOL, NULL, NULL, 0, false },
    { "multiprocessing.pool", "ApplyResult.__init__", APPLY, "self", NULL, 0, false },
    { "multiprocessing.pool", "worker", SERVE, "inqueue", NULL, 0, false },
    { "multiprocessing.pool", "ApplyResult._set", DONE, "self", NULL, 0, false },
    { "multiprocessing.pool", "MapResult._set", CHUNK, "self", NULL, 0, false },
    { "multiprocessing.pool", "IMapIterator._set", ITEM, "self", NULL, 0, false },
    { "multiprocessing.pool", "IMapUnorderedIterator._set", ITEM, "self", NULL, 0, false },
    { "multiprocessing.pool", "ApplyResult.ready", READY, "self", NULL, 0, false },
    { "gevent.threadpool", "ThreadResult.__init__", SUBMIT, "self", NULL, 0, false },
    { "gevent.threadpool", "_WorkerGreenlet.__run_task", START, "thread_result", NULL, 0, false },
    { "gevent.threadpool", "ThreadResult.set", DONE, "self", NULL, 0, false },
    { "gevent.threadpool", "ThreadResult.handle_error", DONE, "self", NULL, 0, false },
    { "gevent.threadpool", "ThreadResult._on_async", RESULT, "self", NULL, 0, false },
    { "trio._core._thread_cache", "ThreadCache.start_thread_soon", SUBMIT, "fn", NULL, 0, false },
    { "trio._core._thread_cache", "WorkerThread._handle_job", START, "self", "_job", 1, false },
    { "trio._threads", "to_thread_run_sync.<locals>.deliver_worker_fn_result", RETURN, "result", NULL, 0,
      false },
    { "trio._threads", "to_thread_run_sync.<locals>.report_back_in_trio_thread_fn", RESULT, "result", NULL, 0,
      false },
    { "trio._core._run", "Runner.reschedule", WAKE, "task", NULL, 0, false },
    { "anyio._backends._asyncio", "AsyncIOBackend.run_sync_in_worker_thread", LOOK, NULL, NULL, 0, false },
    { "anyio._backends._asyncio", "run_sync_in_worker_thread", LOOK, NULL, NULL, 0, false }, /* anyio 3 */
    { "queue", "Queue.put_nowait", SUBMIT, "item", NULL, 4, true },
    { "queue", "Queue._get", GET, "self", "queue", 4, true },
    { "asyncio.base_events", "BaseEventLoop.call_soon_threadsafe", REPORT, "args", NULL, 1, true },
    { "queue", "Queue.task_done", REPORT, "self", NULL, 0, true },
    { "anyio._backends._asyncio", "WorkerThread._report_result", TAKE, "future", NULL, 0, false },
};

_Static_assert(KRAIT_ARRAY_LEN(functions) < 1 << (64 - KRAIT_WORK_SHIFT), "they fit their bits");

static __thread struct {
    uint64_t id;
    const void *future, *from; /* `from`: the local variable that led to it */
} begun;                       /* the work that this thread has begun last */

uint64_t krait_work_of(const struct krait_interp *in, const char *module, const char *name)
{
    static const char *const packages[] = {
        "concurrent.", "multiprocessing.pool", "trio.", "gevent.", "anyio.", "queue", "asyncio."
    };
    bool is_one = false;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(packages); i++)
        is_one |= strncmp(module, packages[i], strlen(packages[i])) == 0;
    if (!is_one)
        return 0;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(functions); i++) {
        if (strcmp(functions[i].module, module) == 0 && strcmp(functions[i].name, name) == 0)
            return functions[i].shared && !in->hands_work ? 0 : (uint64_t)(i + 1) << KRAIT_WORK_SHIFT;
    }
    return 0;
}

/* From now on, looks at functions that others call too. Those that are not defined yet will find krait_interp.hands_work. */
static void look(struct krait_interp *in)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame(), *own = frame ? krait_frame_code(frame) : NULL;
    bool is_first = own && !in->hands_work;
    in->hands_work = own ? own : in->hands_work;
    Py_XDECREF(own);
    for (size_t i = 0; is_first && i < KRAIT_ARRAY_LEN(functions); i++) {
        char class[64];
        const char *dot = strchr(functions[i].name, '.');
        if (!functions[i].shared || !dot)
            continue;
        snprintf(class, sizeof(class), "%.*s", (int)(dot - functions[i].name), functions[i].name);
        PyObject *module = krait_module(functions[i].module);
        PyObject *code = module ? krait_tasks_code(module, class, dot + 1, NULL) : NULL;
        if (code)
            krait_code_add_args(in, code, (uint64_t)(i + 1) << KRAIT_WORK_SHIFT);
        Py_XDECREF(code);
    }
}

/* ---- the work's id at each stage; 0: it was submitted before the recording began, or by another way ---- */

static uint64_t known(const struct krait_interp *in, const void *future)
{
    const uint64_t *id = krait_map_get(&in->works, (uintptr_t)future);
    return id ? *id : 0;
}

/* Addresses of futures come again. */
static uint64_t know(struct krait_interp *in, const void *future, uint64_t id)
{
    enum { MOST = 1 << 20 };
    if (in->works.len >= MOST)
        krait_map_done(&in->works);
    return krait_map_put(&in->works, (uintptr_t)future, id) ? 0 : id;
}

static uint64_t id_submitted(struct krait_interp *in, const void *future, const void *from)
{
    uint64_t id = know(in, future, in->work_count + 1);
    in->work_count += id != 0;
    return id;
}

static uint64_t id_passed(struct krait_interp *in, const void *future, const void *from)
{
    uint64_t id = krait_work_id_submitted();
    return id ? know(in, future, id) : id_submitted(in, future, from);
}

static uint64_t id_applied(struct krait_interp *in, const void *result, const void *from)
{
    return krait_work_sees_pools(in) ? 0 : id_submitted(in, result, from);
}

static uint64_t id_made(struct krait_interp *in, const void *result, const void *from)
{
    uint64_t id = krait_work_id_of_result((PyObject *)from);
    return id ? know(in, result, id) : id_submitted(in, result, from);
}

static uint64_t id_started(struct krait_interp *in, const void *future, const void *from)
{
    begun.id = known(in, future);
    begun.future = future;
    begun.from = from;
    return begun.id;
}

static uint64_t id_got(struct krait_interp *in, const void *future, const void *from)
{
    return known(in, future) ? id_started(in, future, from) : 0;
}

static uint64_t id_known(struct krait_interp *in, const void *future, const void *from)
{
    return known(in, future);
}

static uint64_t id_returned(struct krait_interp *in, const void *value, const void *from)
{
    uint64_t id = know(in, value, begun.id);
    begun.id = 0;
    return id;
}

/* Nothing if the program has taken the result already, so that no work is done after that. */
static uint64_t id_reported(struct krait_interp *in, const void *future_or_queue, const void *from)
{
    if (!begun.id || (future_or_queue != begun.future && future_or_queue != begun.from))
        return 0;
    uint64_t id = known(in, begun.future) == begun.id ? begun.id : 0;
    begun.id = 0;
    return id;
}

static uint64_t id_taken(struct krait_interp *in, const void *future, const void *from)
{
    uint64_t id = known(in, future);
    if (id)
        know(in, future, 0);
    return id;
}

/* `result` runs its _set(), which counts down first. */
static uint64_t id_last_chunk(struct krait_interp *in, const void *result, const void *from)
{
    uint64_t id = known(in, result);
    PyObject *left = id ? krait_args_plain_attr((PyObject *)from, "_number_left") : NULL;
    bool is_last = left && PyLong_Check(left) && PyLong_AsLong(left) == 1;
    Py_XDECREF(left);
    PyErr_Clear();
    return is_last ? id : 0;
}

/* get() has waited. Other callers of ready() take nothing. */
static uint64_t id_ready(struct krait_interp *in, const void *result, const void *from)
{
    uint64_t id = known(in, result);
    PyObject *event = id ? krait_args_plain_attr((PyObject *)from, "_event") : NULL;
    PyObject *flag = event ? krait_args_plain_attr(event, "_flag") : NULL;
    bool is_got = flag == Py_True && krait_work_is_called_by("multiprocessing.pool", "ApplyResult", "get");
    Py_XDECREF(flag);
    Py_XDECREF(event);
    return is_got ? id : 0;
}

static const struct {
    uint32_t event;
    uint64_t (*id)(struct krait_interp *in, const void *future, const void *from);
} stages[] = {
    [SUBMIT] = { KRAIT_EVENT_work_submit, id_submitted }, [START] = { KRAIT_EVENT_work_start, id_started },
    [DONE] = { KRAIT_EVENT_work_done, id_known },         [RESULT] = { KRAIT_EVENT_work_result, id_known },
    [RETURN] = { KRAIT_EVENT_work_done, id_returned },    [REPORT] = { KRAIT_EVENT_work_done, id_reported },
    [TAKE] = { KRAIT_EVENT_work_result, id_taken },       [GET] = { KRAIT_EVENT_work_start, id_got },
    [APPLY] = { KRAIT_EVENT_work_submit, id_applied },    [MADE] = { KRAIT_EVENT_work_submit, id_made },
    [PASS] = { KRAIT_EVENT_work_submit, id_passed },      [CHUNK] = { KRAIT_EVENT_work_done, id_last_chunk },
    [READY] = { KRAIT_EVENT_work_result, id_ready },
};

static void put_work(struct krait_note *note, enum stage stage, const PyObject *future, const PyObject *from)
{
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    const struct krait_payload_work_submit event = { .id = stages[stage].id(note->in, future, from) };
    if (event.id) /* they all have the id alone */
        krait_note_put(note, stages[stage].event, payload, krait_put_work_submit(payload, &event));
}

void krait_work_submitted(struct krait_interp *in, PyObject *result, bool is_items)
{
    struct krait_note note;
    if (krait_note_begin(&note, in, krait_moment_now()) && (!is_items || krait_work_id_of_result(result)))
        put_work(&note, MADE, result, result);
    krait_note_end(&note);
}

/* `i` is its number in the function that tells. */
static void put_part(struct krait_note *note, enum stage stage, const PyObject *result, PyObject *locals)
{
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    PyObject *i = PyMapping_GetItemString(locals, "i");
    long part = i && PyLong_CheckExact(i) ? PyLong_AsLong(i) : -1;
    Py_XDECREF(i);
    PyErr_Clear();
    const struct krait_payload_work_done event = { .id = krait_work_part_id(known(note->in, result), part) };
    if (event.id && (part || stage == ITEM))
        krait_note_put(note, KRAIT_EVENT_work_done, payload, krait_put_work_done(payload, &event));
}

static void put_wake(struct krait_note *note, const PyObject *task)
{
    uint8_t payload[KRAIT_BYTES_task_wake];
    const struct krait_payload_task_wake event = { .on = krait_tasks_waited(note->in, task) };
    const struct krait_payload_task_wake_by woken = krait_tasks_rescheduled(note->in, task);
    uint8_t by[KRAIT_BYTES_task_wake_by];
    if (woken.by)
        krait_note_put(note, KRAIT_EVENT_task_wake_by, by, krait_put_task_wake_by(by, &woken));
    krait_note_put(note, KRAIT_EVENT_task_wake, payload, krait_put_task_wake(payload, &event));
}

/* ---- which object ---- */

/* `tuple` is given away; new reference or NULL. */
static PyObject *nth_of(PyObject *tuple, Py_ssize_t nth)
{
    PyObject *item =
        tuple && PyTuple_Check(tuple) && PyTuple_Size(tuple) >= nth ? PyTuple_GetItem(tuple, nth - 1) : NULL;
    Py_XINCREF(item);
    Py_XDECREF(tuple);
    return item;
}

/* The first one in a queue.Queue's deque, or the object itself. `obj` is given away; new reference or NULL. */
static PyObject *first_of_deque(PyObject *obj)
{
    if ((PyObject *)Py_TYPE(obj) != krait_module_item(krait_module("_collections"), "deque"))
        return obj;
    PyObject *first = PySequence_GetItem(obj, 0);
    PyErr_Clear();
    Py_DECREF(obj);
    return first;
}

/* `from` is borrowed; new reference or NULL. */
static PyObject *future_of(size_t i, PyObject *from)
{
    PyObject *obj = functions[i].attr ? krait_args_plain_attr(from, functions[i].attr) : from;
    if (obj == from)
        Py_INCREF(obj);
    if (obj && functions[i].shared && functions[i].attr)
        obj = first_of_deque(obj);
    return functions[i].nth ? nth_of(obj, functions[i].nth) : obj;
}

/* Whether it is a function that others call too, and one of them has called it. */
static bool is_of_others(const struct krait_interp *in, size_t i)
{
    if (!functions[i].shared || functions[i].stage != SUBMIT)
        return false;
    PyObject *frame = (PyObject *)PyEval_GetFrame(), *caller = frame ? krait_frame_back(frame) : NULL;
    PyObject *code = caller ? krait_frame_code(caller) : NULL;
    bool is_own = code && code == in->hands_work;
    Py_XDECREF(code);
    Py_XDECREF(caller);
    return !is_own;
}

void krait_work_write(struct krait_note *note, uint64_t which, PyObject *locals)
{
    size_t i = (size_t)(which >> KRAIT_WORK_SHIFT) - 1;
    if (i >= KRAIT_ARRAY_LEN(functions))
        return;
    if (functions[i].stage == LOOK) {
        look(note->in);
        return;
    }
    if (functions[i].stage == POOL) {
        krait_work_see_pools(note->in);
        return;
    }
    PyObject *from = PyMapping_GetItemString(locals, functions[i].local);
    PyErr_Clear();
    PyObject *future = from && !is_of_others(note->in, i) ? future_of(i, from) : NULL;
    if (future && (functions[i].stage == CHUNK || functions[i].stage == ITEM))
        put_part(note, functions[i].stage, future, locals);
    if (future && functions[i].stage == WAKE)
        put_wake(note, future);
    else if (future && functions[i].stage == SERVE)
        krait_work_serve(future);
    else if (future && functions[i].stage != ITEM)
        put_work(note, functions[i].stage, future, from);
    Py_XDECREF(future);
    Py_XDECREF(from);
}
