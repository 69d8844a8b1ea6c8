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
 * asyncio's run_in_executor takes the result by the same way. gevent's pool of threads has a ThreadResult in common. trio hands
 * a function to a thread; what the thread gives back is another object, from then on that of the work. In trio all waits end
 * by one function, which has the task (tasks.h). Sources: gevent/threadpool.py, trio/_threads.py, trio/_core/_thread_cache.py.
 */
#include "python/args.h"

#include "event/payload.h"
#include "python/tasks.h"

#include <string.h>

enum stage {
    SUBMIT = 1,
    START,
    DONE,
    RESULT,
    WAKE,
    RETURN, /* done, by the work that this thread has begun; the object is what it gives back */
};

static const struct {
    const char *module, *name;
    enum stage stage;
    const char *local, *attr; /* a local variable, or its attribute, or the first item of that: the future */
} functions[] = {
    { "concurrent.futures.thread", "_WorkItem.__init__", SUBMIT, "future", NULL },
    { "concurrent.futures.process", "_WorkItem.__init__", SUBMIT, "future", NULL },
    { "concurrent.futures.thread", "_WorkItem.run", START, "self", "future" },
    { "concurrent.futures._base", "Future.set_result", DONE, "self", NULL },
    { "concurrent.futures._base", "Future.set_exception", DONE, "self", NULL },
    { "concurrent.futures._base", "Future.__get_result", RESULT, "self", NULL },
    { "concurrent.futures._base", "Future._get_snapshot", RESULT, "self", NULL }, /* 3.15's asyncio */
    { "gevent.threadpool", "ThreadResult.__init__", SUBMIT, "self", NULL },
    { "gevent.threadpool", "_WorkerGreenlet.__run_task", START, "thread_result", NULL },
    { "gevent.threadpool", "ThreadResult.set", DONE, "self", NULL },
    { "gevent.threadpool", "ThreadResult.handle_error", DONE, "self", NULL },
    { "gevent.threadpool", "ThreadResult._on_async", RESULT, "self", NULL },
    { "trio._core._thread_cache", "ThreadCache.start_thread_soon", SUBMIT, "fn", NULL },
    { "trio._core._thread_cache", "WorkerThread._handle_job", START, "self", "_job" },
    { "trio._threads", "to_thread_run_sync.<locals>.deliver_worker_fn_result", RETURN, "result", NULL },
    { "trio._threads", "to_thread_run_sync.<locals>.report_back_in_trio_thread_fn", RESULT, "result", NULL },
    { "trio._core._run", "Runner.reschedule", WAKE, "task", NULL },
};

_Static_assert(KRAIT_ARRAY_LEN(functions) < 1 << (64 - KRAIT_WORK_SHIFT), "they fit their bits");

static __thread uint64_t begun; /* the work that this thread has begun last */

uint64_t krait_work_of(const char *module, const char *name)
{
    static const char *const packages[] = { "concurrent.", "trio.", "gevent." };
    bool is_one = false;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(packages); i++)
        is_one |= strncmp(module, packages[i], strlen(packages[i])) == 0;
    if (!is_one)
        return 0;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(functions); i++) {
        if (strcmp(functions[i].module, module) == 0 && strcmp(functions[i].name, name) == 0)
            return (uint64_t)(i + 1) << KRAIT_WORK_SHIFT;
    }
    return 0;
}

/* The work's id; addresses of futures come again. 0: it was submitted before the recording began, or by another way. */
static uint64_t id_of(struct krait_interp *in, const PyObject *future, enum stage stage)
{
    enum { MOST = 1 << 20 };
    const uint64_t *known = krait_map_get(&in->works, (uintptr_t)future);
    bool is_new = stage == SUBMIT || stage == RETURN;
    uint64_t id = stage == SUBMIT ? in->work_count + 1 : stage == RETURN ? begun : known ? *known : 0;
    if (stage == START || stage == RETURN)
        begun = stage == START ? id : 0;
    if (is_new && in->works.len >= MOST)
        krait_map_done(&in->works);
    if (is_new && krait_map_put(&in->works, (uintptr_t)future, id))
        return 0;
    in->work_count += stage == SUBMIT;
    return id;
}

static void put(struct krait_note *note, enum stage stage, uint64_t id)
{
    static const uint32_t events[] = { [SUBMIT] = KRAIT_EVENT_work_submit,
                                       [START] = KRAIT_EVENT_work_start,
                                       [DONE] = KRAIT_EVENT_work_done,
                                       [RETURN] = KRAIT_EVENT_work_done,
                                       [RESULT] = KRAIT_EVENT_work_result };
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    const struct krait_payload_work_submit event = { .id = id }; /* they all have the id alone */
    krait_note_put(note, events[stage], payload, krait_put_work_submit(payload, &event));
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

void krait_work_write(struct krait_note *note, uint64_t which, PyObject *locals)
{
    size_t i = (size_t)(which >> KRAIT_WORK_SHIFT) - 1;
    if (i >= KRAIT_ARRAY_LEN(functions))
        return;
    PyObject *future = PyMapping_GetItemString(locals, functions[i].local);
    PyErr_Clear();
    if (future && functions[i].attr) {
        PyObject *item = future;
        future = krait_args_plain_attr(item, functions[i].attr);
        Py_DECREF(item);
        if (future && PyTuple_Check(future)) {
            PyObject *tuple = future;
            future = PyTuple_Size(tuple) ? PyTuple_GetItem(tuple, 0) : NULL;
            Py_XINCREF(future);
            Py_DECREF(tuple);
        }
    }
    if (future && functions[i].stage == WAKE)
        put_wake(note, future);
    bool is_work = future && functions[i].stage != WAKE;
    uint64_t id = is_work ? id_of(note->in, future, functions[i].stage) : 0;
    Py_XDECREF(future);
    if (id)
        put(note, functions[i].stage, id);
}
