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
#include "python/callables.h"
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
    ITEM_SET, /* the part is done, of an IMapIterator */
    READY,    /* result, if ApplyResult.get asks and it is there */
    LOOK,     /* work will come through functions that others call too */
    POOL,     /* work will be handed to processes that is known when functions end */
    APPLY,    /* submitted, unless krait_work_submitted tells that */
    MADE,     /* submitted, so told */
    PASS,     /* submitted, to be started by another process */
    SERVE, /* this thread of another process will start such work; the object is the queue that it takes it from */
};

/* Of these functions. The last three tell where what is called is seen. */
enum {
    SHARED = 1, /* others call it too: looked at after LOOK */
    LOCALS = 2, /* its locals fn and args, or task, a tuple of both */
    ITEM = 4,   /* the tuple's items after the first */
    CALLER = 8, /* the local func of the pool's function that has called it */
};

static const struct {
    const char *module, *name;
    enum stage stage;
    const char *local, *attr; /* the future: a local variable, or its attribute */
    uint8_t nth; /* ... or, from 1 on, this item of that, which is a tuple, or a queue of tuples */
    uint8_t flags;
} functions[] = {
    { "concurrent.futures.thread", "_WorkItem.__init__", SUBMIT, "future", NULL, 0, LOCALS },
    { "concurrent.futures.process", "_WorkItem.__init__", PASS, "future", NULL, 0, LOCALS },
    { "concurrent.futures.process", "_process_worker", SERVE, "call_queue", NULL, 0, 0 },
    { "concurrent.futures.thread", "_WorkItem.run", START, "self", "future", 0, 0 },
    { "concurrent.futures._base", "Future.set_result", DONE, "self", NULL, 0, 0 },
    { "concurrent.futures._base", "Future.set_exception", DONE, "self", NULL, 0, 0 },
    { "concurrent.futures._base", "Future.__get_result", RESULT, "self", NULL, 0, 0 },
    { "concurrent.futures._base", "Future._get_snapshot", RESULT, "self", NULL, 0, 0 }, /* 3.15's asyncio */
    { "multiprocessing.pool", "Pool.__init__", POOL, NULL, NULL, 0, 0 },
    { "multiprocessing.pool", "ApplyResult.__init__", APPLY, "self", NULL, 0, CALLER },
    { "multiprocessing.pool", "worker", SERVE, "inqueue", NULL, 0, 0 },
    { "multiprocessing.pool", "ApplyResult._set", DONE, "self", NULL, 0, 0 },
    { "multiprocessing.pool", "MapResult._set", CHUNK, "self", NULL, 0, 0 },
    { "multiprocessing.pool", "IMapIterator._set", ITEM_SET, "self", NULL, 0, 0 },
    { "multiprocessing.pool", "IMapUnorderedIterator._set", ITEM_SET, "self", NULL, 0, 0 },
    { "multiprocessing.pool", "ApplyResult.ready", READY, "self", NULL, 0, 0 },
    { "gevent.threadpool", "ThreadResult.__init__", SUBMIT, "self", NULL, 0, CALLER },
    { "gevent.threadpool", "_WorkerGreenlet.__run_task", START, "thread_result", NULL, 0, 0 },
    { "gevent.threadpool", "ThreadResult.set", DONE, "self", NULL, 0, 0 },
    { "gevent.threadpool", "ThreadResult.handle_error", DONE, "self", NULL, 0, 0 },
    { "gevent.threadpool", "ThreadResult._on_async", RESULT, "self", NULL, 0, 0 },
    { "trio._core._thread_cache", "ThreadCache.start_thread_soon", SUBMIT, "fn", NULL, 0, LOCALS },
    { "trio._core._thread_cache", "WorkerThread._handle_job", START, "self", "_job", 1, 0 },
    { "trio._threads", "to_thread_run_sync.<locals>.deliver_worker_fn_result", RETURN, "result", NULL, 0, 0 },
    { "trio._threads", "to_thread_run_sync.<locals>.report_back_in_trio_thread_fn", RESULT, "result", NULL, 0,
      0 },
    { "trio._core._run", "Runner.reschedule", WAKE, "task", NULL, 0, 0 },
    { "anyio._backends._asyncio", "AsyncIOBackend.run_sync_in_worker_thread", LOOK, NULL, NULL, 0, 0 },
    { "anyio._backends._asyncio", "run_sync_in_worker_thread", LOOK, NULL, NULL, 0, 0 }, /* anyio 3 */
    { "queue", "Queue.put_nowait", SUBMIT, "item", NULL, 4, SHARED | ITEM },
    { "queue", "Queue._get", GET, "self", "queue", 4, SHARED },
    { "asyncio.base_events", "BaseEventLoop.call_soon_threadsafe", REPORT, "args", NULL, 1, SHARED },
    { "queue", "Queue.task_done", REPORT, "self", NULL, 0, SHARED },
    { "anyio._backends._asyncio", "WorkerThread._report_result", TAKE, "future", NULL, 0, 0 },
};

_Static_assert(KRAIT_ARRAY_LEN(functions) < 1 << (64 - KRAIT_WORK_SHIFT), "they fit their bits");

struct work {
    uint64_t id;
    uint32_t function; /* what it calls; 0: not known */
    uint8_t pool;
};

/* The work that this thread has begun last. In one struct gcc would align them to 16 bytes, and the static TLS block is small. */
static __thread uint64_t begun_id;
static __thread const void *begun_future, *begun_from; /* `from`: the local variable that led to it */

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
            return (functions[i].flags & SHARED) && !in->hands_work ? 0
                                                                    : (uint64_t)(i + 1) << KRAIT_WORK_SHIFT;
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
        if (!(functions[i].flags & SHARED) || !dot)
            continue;
        snprintf(class, sizeof(class), "%.*s", (int)(dot - functions[i].name), functions[i].name);
        PyObject *module = krait_module(functions[i].module);
        PyObject *code = module ? krait_tasks_code(module, class, dot + 1, NULL) : NULL;
        if (code)
            krait_code_add_args(in, code, (uint64_t)(i + 1) << KRAIT_WORK_SHIFT);
        Py_XDECREF(code);
    }
}

/* ---- the work at each stage; id 0: it was submitted before the recording began, or by another way ---- */

enum { POOL_SHIFT = 32, DONE_SHIFT = 40 }; /* above the function, in krait_interp.work_calls */

static struct work known(const struct krait_interp *in, const void *future)
{
    const uint64_t *id = krait_map_get(&in->works, (uintptr_t)future);
    const uint64_t *call = id && *id ? krait_map_get(&in->work_calls, (uintptr_t)future) : NULL;
    return (struct work){ .id = id ? *id : 0,
                          .function = call ? (uint32_t)*call : 0,
                          .pool = call ? (uint8_t)(*call >> POOL_SHIFT) : KRAIT_work_pool_threads };
}

void krait_work_forget_functions(struct krait_interp *in)
{
    krait_map_done(&in->work_calls);
}

void krait_work_forget(struct krait_interp *in)
{
    krait_map_done(&in->work_items);
    in->work_items_most = 0;
    krait_map_done(&in->works);
    krait_map_done(&in->work_calls);
}

/* Addresses of futures come again. */
static struct work know(struct krait_interp *in, const void *future, struct work work)
{
    enum { MOST = 1 << 20 };
    uint64_t call = (uint64_t)work.pool << POOL_SHIFT | work.function;
    if (in->works.len >= MOST)
        krait_work_forget(in);
    return krait_map_put(&in->works, (uintptr_t)future, work.id) ||
                   krait_map_put(&in->work_calls, (uintptr_t)future, call)
               ? (struct work){ 0 }
               : work;
}

/* What a stage looks at: `function` is known where the work is submitted. */
struct seen {
    const void *future, *from;
    uint32_t function;
};

static struct work know_submitted(struct krait_interp *in, const struct seen *seen, uint64_t id,
                                  enum krait_event_enum_value pool)
{
    struct work work = { id ? id : in->work_count + 1, seen->function, (uint8_t)pool };
    work = know(in, seen->future, work);
    in->work_count += !id && work.id;
    return work;
}

static struct work work_submitted(struct krait_interp *in, const struct seen *seen)
{
    return know_submitted(in, seen, 0, KRAIT_work_pool_threads);
}

static struct work work_passed(struct krait_interp *in, const struct seen *seen)
{
    return know_submitted(in, seen, krait_work_id_submitted(), KRAIT_work_pool_processes);
}

static struct work work_applied(struct krait_interp *in, const struct seen *seen)
{
    return krait_work_sees_pools(in) ? (struct work){ 0 } : work_submitted(in, seen);
}

static struct work work_made(struct krait_interp *in, const struct seen *seen)
{
    uint64_t id = krait_work_id_of_result((PyObject *)seen->from);
    return know_submitted(in, seen, id,
                          id & KRAIT_WORK_SHARED ? KRAIT_work_pool_processes : KRAIT_work_pool_threads);
}

static struct work work_started(struct krait_interp *in, const struct seen *seen)
{
    struct work work = known(in, seen->future);
    begun_id = work.id;
    begun_future = seen->future;
    begun_from = seen->from;
    return work;
}

/* Nothing if the program has taken the result already, or if it is another recording's. */
static struct work take_begun(struct krait_interp *in)
{
    struct work work = begun_id ? known(in, begun_future) : (struct work){ 0 };
    bool is_it = work.id == begun_id;
    begun_id = 0;
    return is_it ? work : (struct work){ 0 };
}

static struct work work_got(struct krait_interp *in, const struct seen *seen)
{
    return known(in, seen->future).id ? work_started(in, seen) : (struct work){ 0 };
}

static struct work work_known(struct krait_interp *in, const struct seen *seen)
{
    return known(in, seen->future);
}

/* A future is done once. One that is done again has the address of another one, and is no work: a Future that the program has made
 * itself. Then its result is none either. */
static struct work work_done(struct krait_interp *in, const struct seen *seen)
{
    struct work work = known(in, seen->future);
    uint64_t *call = work.id ? krait_map_get(&in->work_calls, (uintptr_t)seen->future) : NULL;
    bool again = call && *call >> DONE_SHIFT;
    if (call)
        *call |= 1ull << DONE_SHIFT;
    if (again)
        *krait_map_get(&in->works, (uintptr_t)seen->future) = 0;
    return again ? (struct work){ 0 } : work;
}

static struct work work_returned(struct krait_interp *in, const struct seen *seen)
{
    return know(in, seen->future, take_begun(in));
}

/* No work is done after its result was taken. */
static struct work work_reported(struct krait_interp *in, const struct seen *seen)
{
    bool is_it = seen->future == begun_future || seen->future == begun_from;
    return is_it ? take_begun(in) : (struct work){ 0 };
}

static struct work work_taken(struct krait_interp *in, const struct seen *seen)
{
    struct work work = known(in, seen->future);
    if (work.id)
        know(in, seen->future, (struct work){ 0 });
    return work;
}

/* `result` runs its _set(), which counts down first. */
static struct work work_of_last_chunk(struct krait_interp *in, const struct seen *seen)
{
    struct work work = known(in, seen->future);
    PyObject *left = work.id ? krait_args_plain_attr((PyObject *)seen->from, "_number_left") : NULL;
    bool is_last = left && PyLong_Check(left) && PyLong_AsLong(left) == 1;
    Py_XDECREF(left);
    PyErr_Clear();
    return is_last ? work : (struct work){ 0 };
}

/* get() has waited. Other callers of ready() take nothing. */
static struct work work_ready(struct krait_interp *in, const struct seen *seen)
{
    struct work work = known(in, seen->future);
    PyObject *event = work.id ? krait_args_plain_attr((PyObject *)seen->from, "_event") : NULL;
    PyObject *flag = event ? krait_args_plain_attr(event, "_flag") : NULL;
    bool is_got = flag == Py_True && krait_work_is_called_by("multiprocessing.pool", "ApplyResult", "get");
    Py_XDECREF(flag);
    Py_XDECREF(event);
    return is_got ? work : (struct work){ 0 };
}

static const struct {
    uint32_t event;
    struct work (*work)(struct krait_interp *in, const struct seen *seen);
} stages[] = {
    [SUBMIT] = { KRAIT_EVENT_work_submit, work_submitted },
    [START] = { KRAIT_EVENT_work_start, work_started },
    [DONE] = { KRAIT_EVENT_work_done, work_done },
    [RESULT] = { KRAIT_EVENT_work_result, work_known },
    [RETURN] = { KRAIT_EVENT_work_done, work_returned },
    [REPORT] = { KRAIT_EVENT_work_done, work_reported },
    [TAKE] = { KRAIT_EVENT_work_result, work_taken },
    [GET] = { KRAIT_EVENT_work_start, work_got },
    [APPLY] = { KRAIT_EVENT_work_submit, work_applied },
    [MADE] = { KRAIT_EVENT_work_submit, work_made },
    [PASS] = { KRAIT_EVENT_work_submit, work_passed },
    [CHUNK] = { KRAIT_EVENT_work_done, work_of_last_chunk },
    [READY] = { KRAIT_EVENT_work_result, work_ready },
};

static void put_work(struct krait_note *note, enum stage stage, const struct seen *seen)
{
    struct work work = stages[stage].work(note->in, seen);
    if (work.id)
        krait_work_put(note, stages[stage].event,
                       &(struct krait_payload_work_submit){ work.id, work.function, work.pool });
}

/* ---- what is called ---- */

/* What is given to the function that has made the innermost object, which is of a pool's. Not what belongs to the program: its
 * frame would keep its dictionary of locals, or have a new one. 0: not known. */
static uint32_t function_of_caller(struct krait_interp *in)
{
    static const struct {
        const char *module, *name;
    } callers[] = { { "multiprocessing.pool", "apply_async" },
                    { "multiprocessing.pool", "_map_async" },
                    { "multiprocessing.pool", "imap" },
                    { "multiprocessing.pool", "imap_unordered" },
                    { "gevent.threadpool", "spawn" } };
    enum { MOST = 4 };
    PyObject *frame = (PyObject *)PyEval_GetFrame(), *function = NULL;
    Py_XINCREF(frame);
    for (int n = 0; frame && n < MOST && !function; n++) {
        for (size_t i = 0; i < KRAIT_ARRAY_LEN(callers) && !function; i++) {
            if (krait_work_is_frame(frame, callers[i].module, callers[i].name))
                function = krait_args_frame_local(frame, "func");
        }
        PyObject *back = krait_frame_back(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    uint32_t id = krait_callable_id(in, function, NULL);
    Py_XDECREF(function);
    PyErr_Clear();
    return id;
}

static PyObject *local(PyObject *locals, const char *name)
{
    PyObject *value = PyMapping_GetItemString(locals, name);
    PyErr_Clear();
    return value;
}

/* Of (function, arguments, keywords), or of such a tuple with more items, from the i-th on. */
static uint32_t function_of_tuple(struct krait_interp *in, PyObject *tuple, Py_ssize_t i)
{
    bool is_one = tuple && PyTuple_Check(tuple) && PyTuple_Size(tuple) > i + 1;
    return is_one ? krait_callable_id(in, PyTuple_GetItem(tuple, i), PyTuple_GetItem(tuple, i + 1)) : 0;
}

/* From Python 3.14 on threads' executors have them in a tuple. */
static uint32_t function_of_locals(struct krait_interp *in, PyObject *locals)
{
    PyObject *function = local(locals, "fn");
    bool wraps = function && Py_TYPE(function) != krait_compat.function_type; /* only then they may matter */
    PyObject *args = wraps ? local(locals, "args") : NULL;
    PyObject *task = function ? NULL : local(locals, "task");
    uint32_t id = function ? krait_callable_id(in, function, args) : function_of_tuple(in, task, 0);
    Py_XDECREF(task);
    Py_XDECREF(args);
    Py_XDECREF(function);
    return id;
}

static uint32_t function_of(struct krait_interp *in, size_t i, PyObject *locals, PyObject *from)
{
    uint8_t flags = functions[i].flags;
    bool is_told_later = functions[i].stage == APPLY && krait_work_sees_pools(in);
    return flags & LOCALS                     ? function_of_locals(in, locals)
           : flags & ITEM                     ? function_of_tuple(in, from, 1)
           : flags & CALLER && !is_told_later ? function_of_caller(in)
                                              : 0;
}

void krait_work_submitted(struct krait_interp *in, PyObject *result, bool is_items)
{
    struct krait_note note;
    if (krait_note_begin(&note, in, krait_moment_now()) && (!is_items || krait_work_id_of_result(result)))
        put_work(&note, MADE, &(struct seen){ result, result, function_of_caller(in) });
    krait_note_end(&note);
}

/* ---- items of imap: an iterator hands them out in the order in which they were set ---- */

static uint64_t item_key(uint64_t id, long item)
{
    return krait_hash_u64(id ^ krait_hash_u64((uint64_t)item + 1));
}

/* imap_unordered sets the part: its item is behind all that were set before. Nobody knows which is first of two that threads set at
 * a time, as the one that sends tasks does with one that cannot be sent. */
static void note_item(struct krait_interp *in, PyObject *iterator, uint64_t id, long part)
{
    enum { MOST = 1 << 20 };
    PyObject *set = krait_args_plain_attr(iterator, "_index");
    long item = set && PyLong_CheckExact(set) ? PyLong_AsLong(set) : -1;
    Py_XDECREF(set);
    PyErr_Clear();
    if (!id || part < 0 || item < 0)
        return;
    uint64_t *other = krait_map_get(&in->work_items, item_key(id, item));
    if (other) {
        *other = 0;
        return;
    }
    krait_map_trim(&in->work_items, &in->work_items_most);
    if (in->work_items.len < MOST) /* else it is not told who takes it */
        krait_map_put(&in->work_items, item_key(id, item), (uint64_t)part + 1);
}

/* -1: not known. */
static long part_of_item(const struct krait_interp *in, uint64_t id, long item)
{
    uint64_t *part = krait_map_get(&in->work_items, item_key(id, item));
    long found = part ? (long)*part - 1 : -1;
    if (part)
        *part = 0;
    return found;
}

void krait_work_item_taken(struct krait_interp *in, PyObject *iterator, long item)
{
    struct krait_note note;
    if (krait_note_begin(&note, in, krait_moment_now())) {
        const struct work work = known(in, iterator);
        bool is_one = work.id && krait_work_items_taken(iterator) == item + 1;
        long part = !is_one ? -1 : krait_work_is_unordered(iterator) ? part_of_item(in, work.id, item) : item;
        uint64_t id = krait_work_part_id(work.id, part);
        if (id)
            krait_work_put(&note, KRAIT_EVENT_work_result,
                           &(struct krait_payload_work_submit){ id, work.function, work.pool });
    }
    krait_note_end(&note);
}

/* `i` is its number in the function that tells. */
static void put_part(struct krait_note *note, enum stage stage, PyObject *result, PyObject *locals)
{
    PyObject *i = local(locals, "i");
    long part = i && PyLong_CheckExact(i) ? PyLong_AsLong(i) : -1;
    Py_XDECREF(i);
    PyErr_Clear();
    const struct work work = known(note->in, result);
    uint64_t id = krait_work_part_id(work.id, part);
    if (stage == ITEM_SET && krait_work_is_unordered(result))
        note_item(note->in, result, work.id, part);
    if (id && (part || stage == ITEM_SET))
        krait_work_put(note, KRAIT_EVENT_work_done,
                       &(struct krait_payload_work_submit){ id, work.function, work.pool });
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
    if (obj && (functions[i].flags & SHARED) && functions[i].attr)
        obj = first_of_deque(obj);
    return functions[i].nth ? nth_of(obj, functions[i].nth) : obj;
}

/* Whether it is a function that others call too, and one of them has called it. */
static bool is_of_others(const struct krait_interp *in, size_t i)
{
    if (!(functions[i].flags & SHARED) || functions[i].stage != SUBMIT)
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
    PyObject *from = local(locals, functions[i].local);
    PyObject *future = from && !is_of_others(note->in, i) ? future_of(i, from) : NULL;
    if (future && (functions[i].stage == CHUNK || functions[i].stage == ITEM_SET))
        put_part(note, functions[i].stage, future, locals);
    if (future && functions[i].stage == WAKE)
        put_wake(note, future);
    else if (future && functions[i].stage == SERVE)
        krait_work_serve(future);
    else if (future && functions[i].stage != ITEM_SET)
        put_work(note, functions[i].stage,
                 &(struct seen){ future, from, function_of(note->in, i, locals, from) });
    Py_XDECREF(future);
    Py_XDECREF(from);
}
