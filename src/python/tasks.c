/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"
#include "event/payload.h"
#include "event/steps.h"
#include "python/args.h"
#include "python/codes.h"
#include "python/compat/running.h"
#include "python/notes.h"
#include "python/tasks_inside.h"
#include "python/text.h"

#include <string.h>

enum { YIELDED = 8 };

/* Steps within steps: a task that begins eagerly (3.12) is run by the one that makes it. */
struct steps {
    uint32_t depth;
    uint32_t yielded_count;
    const void *yielded[YIELDED]; /* the innermost coroutines of those that are giving up the thread */
    struct krait_several several; /* for which the innermost of them waits */
    struct step {
        const void *task, *root;
        uint32_t id, index;
        uint32_t begins; /* of the root that have not ended: it may call itself. 0: it has not gone on yet */
        uint32_t pauses; /* that there had been before it */
        /* An exception was thrown past the root, into a coroutine that it awaits, and the root has not gone on since: how
         * deep in the stack the root is, and the outermost coroutine that has gone on. 0: it has. */
        uint32_t root_depth, on_depth;
        const void *wrapper; /* krait_agent_task's, until another coroutine begins or goes on in this step */
    } steps[KRAIT_STEPS_MAX];
};

static __thread struct steps *of_thread;
__thread const void *krait_task_root __attribute__((tls_model("initial-exec")));

static struct step *last_step(void)
{
    return of_thread && of_thread->depth ? &of_thread->steps[of_thread->depth - 1] : NULL;
}

struct krait_agent_task *krait_tasks_running(const struct krait_interp *in)
{
    const struct step *last = last_step();
    return last ? krait_tasks_find(in->tasks, last->task) : NULL;
}

static void note_root(void)
{
    const struct step *last = last_step();
    krait_task_root = last ? last->root : NULL;
}

static void leave_steps(void)
{
    if (of_thread)
        of_thread->depth = 0;
    krait_task_root = NULL;
}

static struct step *push_step(const struct krait_interp *in, const struct krait_agent_task *task,
                              uint32_t begins)
{
    if (!of_thread)
        of_thread = calloc(1, sizeof(*of_thread));
    if (!of_thread)
        return NULL;
    if (of_thread->depth == KRAIT_STEPS_MAX) /* their ends were not told: the governor dropped them */
        of_thread->depth = 0;
    struct step *step = &of_thread->steps[of_thread->depth++];
    uint32_t index = (uint32_t)(task - in->tasks->tasks);
    *step = (struct step){ .task = task->address,
                           .root = task->root,
                           .id = task->id,
                           .index = index,
                           .begins = begins,
                           .wrapper = task->wrapper,
                           .pauses = in->governor.pauses };
    note_root();
    return step;
}

/* They yield from the innermost to the root, with nothing between. */
bool krait_tasks_yielding(struct krait_interp *in, const void *code)
{
    const struct step *last = last_step();
    if (!last)
        return false;
    if (!of_thread->yielded_count)
        of_thread->several = krait_several_of_frame(in, (PyObject *)code);
    if (of_thread->yielded_count < YIELDED)
        of_thread->yielded[of_thread->yielded_count++] = code;
    if (last->on_depth)
        return krait_tasks_depth() <= last->on_depth;
    return code == last->root || !last->begins;
}

void krait_tasks_thread_end(void)
{
    free(of_thread);
    of_thread = NULL;
    krait_task_root = NULL;
}

/* ---- the task that runs ---- */

/* New reference; None or NULL: no loop runs in this thread. */
static PyObject *running_loop(const struct krait_tasks *tasks)
{
    PyObject *function = tasks->get_loop;
    if (PyCFunction_GetFlags(function) == METH_NOARGS)
        return PyCFunction_GetFunction(function)(PyCFunction_GetSelf(function), NULL);
    return PyObject_CallFunctionObjArgs(function, NULL);
}

/* New reference or NULL. */
static PyObject *task_of_loop(const struct krait_tasks *tasks, PyObject *loop)
{
    if (tasks->current_task)
        return PyObject_CallFunctionObjArgs(tasks->current_task, loop, NULL);
    PyObject *task = PyDict_GetItemWithError(tasks->current_tasks, loop);
    Py_XINCREF(task);
    return task;
}

/* Which step of this thread is a task's, from 0, the outermost; KRAIT_NO_ID: none. */
static uint32_t step_of(const void *task)
{
    uint32_t i = of_thread ? of_thread->depth : 0;
    while (i && of_thread->steps[i - 1].task != task)
        i--;
    return i ? i - 1 : KRAIT_NO_ID;
}

/* Of the task of C that runs in a loop, which is taken over, and the one of Python the inner one: where there are both, one
 * began eagerly in a step of the other. It has no step yet, or the inner one. New reference or NULL. */
static PyObject *inner_task(const struct krait_tasks *tasks, PyObject *loop, PyObject *of_c)
{
    bool none = !tasks->python_tasks || PyDict_Size(tasks->python_tasks) <= 0;
    PyObject *of_python = none ? NULL : PyDict_GetItemWithError(tasks->python_tasks, loop);
    bool both = of_python && of_c && of_c != Py_None;
    if (!of_python || (both && step_of(of_c) > step_of(of_python)))
        return of_c;
    Py_XDECREF(of_c);
    Py_INCREF(of_python);
    return of_python;
}

/* New reference or NULL. */
static PyObject *asyncio_task(const struct krait_tasks *tasks)
{
    PyObject *loop = tasks->get_loop ? running_loop(tasks) : NULL;
    PyObject *task = loop && loop != Py_None ? inner_task(tasks, loop, task_of_loop(tasks, loop)) : NULL;
    Py_XDECREF(loop);
    return task;
}

/* New reference or NULL. */
static PyObject *trio_task(const struct krait_tasks *tasks)
{
    return tasks->trio_run ? PyObject_GetAttrString(tasks->trio_run, "task") : NULL;
}

/* New reference or NULL; the exception is cleared. */
static PyObject *current_task(const struct krait_tasks *tasks)
{
    PyObject *task = asyncio_task(tasks);
    if (!task || task == Py_None) {
        Py_XDECREF(task);
        PyErr_Clear();
        task = trio_task(tasks);
    }
    PyErr_Clear();
    if (task == Py_None)
        Py_CLEAR(task);
    return task;
}

/* ---- tasks by address ---- */

struct krait_agent_task *krait_tasks_find(const struct krait_tasks *tasks, const void *address)
{
    uint32_t index;
    bool is = krait_is_known(krait_map_get(&tasks->by_address, (uintptr_t)address), KRAIT_KNOWN_TASK, &index);
    return is ? &tasks->tasks[index] : NULL;
}

/* The task that waits for a future of several tasks; NULL: it is none, or nobody waits for it any more. */
static struct krait_agent_task *waiter_of(const struct krait_tasks *tasks, const uint64_t *known,
                                          uint64_t future)
{
    uint32_t index;
    bool is = krait_is_known(known, KRAIT_KNOWN_AWAITED, &index) && tasks->tasks[index].future == future;
    return is ? &tasks->tasks[index] : NULL;
}

/* Addresses of nurseries, futures and groups are even; numbers of sets are not: krait_several_of_frame. */
static void count_member(struct krait_tasks *tasks, const void *nursery, int by)
{
    uint64_t set = (uintptr_t)nursery;
    if (!(set & 1))
        return;
    krait_map_trim(&tasks->members, &tasks->most_members);
    const uint64_t *before = krait_map_get(&tasks->members, set);
    krait_map_put(&tasks->members, set, (before ? *before : 0) + (uint64_t)by);
}

static void end_task(struct krait_tasks *tasks, uint32_t index)
{
    struct krait_agent_task *task = &tasks->tasks[index];
    uint64_t *known = krait_map_get(&tasks->by_address, (uintptr_t)task->address);
    uint64_t future = (uintptr_t)task->nursery;
    struct krait_agent_task *waiter = waiter_of(tasks, krait_map_get(&tasks->by_address, future), future);
    if (known)
        *known = krait_known(KRAIT_KNOWN_DONE, task->id);
    if (waiter)
        waiter->last = task->id;
    count_member(tasks, task->nursery, -1);
    *task = (struct krait_agent_task){ .id = tasks->first_free };
    tasks->first_free = index;
}

static struct krait_agent_task *new_task(struct krait_tasks *tasks, const void *address)
{
    uint32_t index = tasks->first_free;
    if (index == KRAIT_NO_ID) {
        if (!KRAIT_GROW(tasks->tasks, tasks->cap, tasks->count + 1))
            return NULL;
        index = tasks->count;
    }
    if (krait_map_put(&tasks->by_address, (uintptr_t)address, krait_known(KRAIT_KNOWN_TASK, index)))
        return NULL;
    if (index == tasks->count)
        tasks->count++;
    else
        tasks->first_free = tasks->tasks[index].id;
    tasks->tasks[index] = (struct krait_agent_task){ .address = address };
    return &tasks->tasks[index];
}

bool krait_tasks_is_of_asyncio(const struct krait_tasks *tasks, PyObject *object)
{
    return tasks->task_type && PyType_IsSubtype(Py_TYPE(object), (PyTypeObject *)tasks->task_type);
}

/* asyncio's own name of a task, without code of a subclass; else its attribute `name`, as trio's have. New reference
 * or NULL. */
static PyObject *name_of(const struct krait_tasks *tasks, PyObject *task)
{
    PyObject *get = NULL, *name = NULL;
    if (krait_tasks_is_of_asyncio(tasks, task))
        get = PyObject_GetAttrString(tasks->task_type, "get_name");
    if (get)
        name = PyObject_CallFunctionObjArgs(get, task, NULL);
    else if (tasks->trio_run)
        name = PyObject_GetAttrString(task, "name");
    Py_XDECREF(get);
    PyErr_Clear();
    return name;
}

uint32_t krait_tasks_next_id(struct krait_interp *in)
{
    return 1 + atomic_fetch_add_explicit(&in->agent->next_task, 1, memory_order_relaxed);
}

void krait_tasks_write_definition(struct krait_interp *in, uint32_t id, uint32_t coroutine, const char *name)
{
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    size_t n = krait_put_task_define(
        payload, &(struct krait_payload_task_define){ .id = id, .coroutine = coroutine, .name = name });
    if (in->definitions)
        krait_writer_event(&in->agent->writer, in->definitions, KRAIT_EVENT_task_define, payload, n);
}

/* `root` may be NULL: it has not begun. */
static void write_definition(struct krait_interp *in, PyObject *object, uint32_t id, const void *root)
{
    char text[256];
    PyObject *name = name_of(in->tasks, object);
    krait_text_name(name, text, sizeof(text));
    Py_XDECREF(name);
    krait_tasks_write_definition(in, id, root ? krait_code_id(in, root) : 0, text[0] ? text : "?");
}

struct krait_agent_task *krait_tasks_define(struct krait_interp *in, PyObject *object, const void *root)
{
    struct krait_agent_task *task = new_task(in->tasks, object);
    if (!task)
        return NULL;
    task->root = root;
    task->wrapper = krait_tasks_wrapper(in->tasks, root);
    task->id = krait_tasks_next_id(in);
    write_definition(in, object, task->id, root);
    return krait_tasks_find(in->tasks, object);
}

/* ---- nurseries ---- */

void krait_tasks_write_member(struct krait_interp *in, uint32_t id, uint64_t nursery)
{
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    size_t n = krait_put_task_nursery(payload,
                                      &(struct krait_payload_task_nursery){ .task = id, .nursery = nursery });
    if (in->definitions)
        krait_writer_event(&in->agent->writer, in->definitions, KRAIT_EVENT_task_nursery, payload, n);
}

void krait_tasks_write_nursery(struct krait_interp *in, struct krait_agent_task *task, const void *nursery)
{
    count_member(in->tasks, task->nursery, -1);
    count_member(in->tasks, nursery, 1);
    task->nursery = nursery; /* an address alone */
    krait_tasks_write_member(in, task->id, (uintptr_t)nursery);
}

/* Which task of trio runs in which nursery. Source: trio/_core/_run.py, Task. Its attributes are slots: reading them runs no
 * code. */
static void note_nursery(struct krait_interp *in, PyObject *object, struct krait_agent_task *task)
{
    if (!in->tasks->trio_exit || krait_tasks_is_of_asyncio(in->tasks, object))
        return;
    PyObject *nursery = krait_args_plain_attr(object, "_parent_nursery");
    PyObject *later = krait_args_plain_attr(object, "_eventual_parent_nursery");
    task->moves = later && later != Py_None;
    if (nursery && nursery != Py_None && nursery != task->nursery)
        krait_tasks_write_nursery(in, task, nursery);
    Py_XDECREF(nursery);
    Py_XDECREF(later);
}

/* The task that runs now may have told that it has started. */
static void note_started(struct krait_interp *in, struct krait_agent_task *task)
{
    PyObject *object = task->moves ? trio_task(in->tasks) : NULL;
    if (object && object == task->address)
        note_nursery(in, object, task);
    Py_XDECREF(object);
    PyErr_Clear();
}

/* The address of the nursery at whose end the task waits that runs now: the innermost that it has opened. 0: it is not
 * known. */
static uint64_t nursery_left(const struct krait_tasks *tasks, const void *address)
{
    PyObject *task = trio_task(tasks);
    PyObject *opened = task && task == address ? krait_args_plain_attr(task, "_child_nurseries") : NULL;
    Py_ssize_t n = opened && PyList_Check(opened) ? PyList_Size(opened) : 0;
    uint64_t nursery = n > 0 ? (uintptr_t)PyList_GetItem(opened, n - 1) : 0;
    Py_XDECREF(opened);
    Py_XDECREF(task);
    PyErr_Clear();
    return nursery;
}

/* ---- steps ---- */

static void tell(struct krait_interp *in, uint32_t event, const void *payload, size_t n)
{
    struct krait_note note;
    if (krait_note_begin(&note, in, krait_moment_now()))
        krait_note_put(&note, event, payload, n);
    krait_note_end(&note);
}

/* Whether the task at an address is the one that was there: see tasks.h. Where another coroutine than its root is called first, a
 * step is going on. */
static bool is_same(const struct krait_agent_task *task, const struct krait_tasks_root *root,
                    const void *code, bool call)
{
    return !call || !task->root || (root->code != code && root->code == task->root);
}

/* The task's root, by what begins or goes on in it while it is in no step. Its coroutine is read only where that may be another:
 * audit hooks hear of that. */
static struct krait_tasks_root root_at(struct krait_interp *in, PyObject *object, const void *code, bool call)
{
    const struct krait_agent_task *task = krait_tasks_find(in->tasks, object);
    const void *known = task ? task->root : NULL;
    bool may_differ = known ? call && code != known : !call || krait_tasks_is_inner();
    return may_differ ? krait_tasks_find_root(in, object, code, call) : (struct krait_tasks_root){ code, 1 };
}

static void note_coroutine(struct krait_interp *in, PyObject *object, struct krait_agent_task *task,
                           const void *code)
{
    if (task->root)
        return;
    task->root = code;
    task->wrapper = krait_tasks_wrapper(in->tasks, code);
    write_definition(in, object, task->id, code);
}

/* `first`: its first step. It waits for nothing any more. */
static void note_begin(struct krait_interp *in, PyObject *object, struct krait_agent_task *task, bool first)
{
    if (task->future)
        krait_several_go_on(in->tasks, (const void *)(uintptr_t)task->future);
    task->future = 0;
    task->awaits = NULL;
    if (task->moves || !task->nursery)
        note_nursery(in, object, task);
    if (first)
        krait_several_note_group(in, object);
}

/* Of a step that has just begun. */
static void note_thrown(struct step *step, enum krait_tasks_begin how)
{
    bool may_be = how == KRAIT_TASKS_THROW ||
                  (how == KRAIT_TASKS_RESUME && !krait_compat.version.monitoring && krait_tasks_is_inner());
    may_be &= krait_compat.version.links_thrown;
    uint32_t above = may_be ? krait_tasks_above_root(step->root) : 0;
    if (!above)
        return;
    step->begins = 0;
    step->on_depth = krait_tasks_depth();
    step->root_depth = step->on_depth - above;
}

/* In a step that a library's wrapper has just begun, or goes on in: if it awaits this coroutine, the task is named by it. */
static void note_wrapped(struct krait_interp *in, PyObject *object, struct step *step, const void *code)
{
    const void *wrapper = step->wrapper;
    struct krait_agent_task *task =
        krait_tasks_is_wrapped(wrapper) ? krait_tasks_find(in->tasks, object) : NULL;
    step->wrapper = task ? krait_tasks_wrapper(in->tasks, code) : NULL;
    if (!task)
        return;
    task->wrapper = step->wrapper;
    write_definition(in, object, task->id, code);
}

/* In a step: a coroutine begins or goes on. */
static void count_begin(struct step *step, const void *code, enum krait_tasks_begin how)
{
    if (!step->on_depth) {
        step->begins += step->root == code;
    } else if (how != KRAIT_TASKS_CALL) {
        step->on_depth = KRAIT_MIN(step->on_depth, krait_tasks_depth());
        step->begins = step->on_depth <= step->root_depth;
        step->on_depth = step->begins ? 0 : step->on_depth;
    }
}

static void begin_step(struct krait_interp *in, PyObject *object, const void *code,
                       enum krait_tasks_begin how)
{
    bool call = how == KRAIT_TASKS_CALL;
    struct krait_tasks_root root = root_at(in, object, code, call);
    struct krait_agent_task *task = krait_tasks_find(in->tasks, object);
    if (task && !is_same(task, &root, code, call)) {
        end_task(in->tasks, (uint32_t)(task - in->tasks->tasks));
        task = NULL;
    }
    bool begins = !task || !task->root;
    if (task)
        note_coroutine(in, object, task, root.code);
    else
        task = krait_tasks_define(in, object, root.code);
    if (task)
        note_begin(in, object, task, begins);
    task = krait_tasks_find(in->tasks, object);
    struct step *step = task ? push_step(in, task, root.code == task->root ? root.begins : 0) : NULL;
    if (!step)
        return;
    note_thrown(step, how);
    uint8_t payload[KRAIT_BYTES_task_run];
    size_t n = krait_put_task_run(payload, &(struct krait_payload_task_run){ step->id });
    tell(in, KRAIT_EVENT_task_run, payload, n);
}

void krait_tasks_begun(struct krait_interp *in, const void *code, enum krait_tasks_begin how)
{
    if (!in->tasks || in->governor.paused) /* by this very begin */
        return;
    int saved_errno = errno;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (of_thread)
        of_thread->yielded_count = 0;
    PyObject *task = current_task(in->tasks);
    struct step *last = last_step();
    if (task && last && last->task == task) {
        count_begin(last, code, how);
        if (last->wrapper && code != last->root)
            note_wrapped(in, task, last, code);
    } else if (task)
        begin_step(in, task, code, how);
    Py_XDECREF(task);
    PyErr_Restore(type, value, traceback);
    errno = saved_errno;
}

static bool is_trap(const struct krait_tasks *tasks, const void *code)
{
    bool is = false;
    for (int i = 0; i < KRAIT_TASK_TRAPS; i++)
        is |= code == tasks->trio_traps[i];
    return is;
}

/* What a task waits for. */
struct awaited {
    enum krait_event_enum_value why;
    uint64_t on;      /* another task's id, or the address of a future; of trio its own, or its nursery's */
    uint64_t future;  /* the address of the future; of trio the same; 0: none */
    const void *task; /* the task that it awaits itself; NULL: none */
    bool is_several;  /* the future is known to stand for others */
    bool gathers;
};

static struct awaited awaited_task(struct krait_interp *in, PyObject *object)
{
    const struct krait_agent_task *task = krait_tasks_find(in->tasks, object);
    if (!task)
        task = krait_tasks_define(in, object, NULL);
    struct awaited it = { .why = KRAIT_task_leave_reason_task, .task = object };
    if (task)
        it.on = task->id;
    else
        it = (struct awaited){ .why = KRAIT_task_leave_reason_future, .on = (uintptr_t)object };
    return it;
}

/* `code`: where it waits. */
static struct awaited awaited_future(struct krait_interp *in, const void *code, PyObject *future)
{
    bool is_in_frame = of_thread->several.future == future;
    struct krait_several several = is_in_frame ? of_thread->several : krait_several_of_future(in, future);
    struct awaited it = { .why = KRAIT_task_leave_reason_future,
                          .on = (uintptr_t)future,
                          .future = (uintptr_t)future,
                          .is_several = several.future || krait_several_collects(in->tasks, code),
                          .gathers = several.gathers };
    if (several.any) {
        it.why = several.only ? KRAIT_task_leave_reason_task : KRAIT_task_leave_reason_tasks;
        it.on = several.only ? several.only : (uintptr_t)several.on;
    }
    return it;
}

static struct awaited awaited(struct krait_interp *in, const void *waits, const void *code, PyObject *value)
{
    const struct krait_tasks *tasks = in->tasks;
    if (!value || value == Py_None)
        return (struct awaited){ .why = KRAIT_task_leave_reason_yielded };
    if (of_thread->yielded_count && is_trap(tasks, of_thread->yielded[0])) {
        uint64_t nursery = code && code == tasks->trio_exit ? nursery_left(tasks, waits) : 0;
        uint64_t on = nursery ? nursery : (uintptr_t)waits;
        return (struct awaited){ .why = KRAIT_task_leave_reason_future, .on = on, .future = on };
    }
    return krait_tasks_is_of_asyncio(tasks, value) ? awaited_task(in, value)
                                                   : awaited_future(in, code, value);
}

/* Of the coroutines that yield, the innermost that says what the task waits for. NULL: none is known. */
static const void *waiting_code(const struct krait_tasks *tasks)
{
    const struct steps *steps = of_thread;
    uint32_t i = 0;
    while (i + 1 < steps->yielded_count && is_trap(tasks, steps->yielded[i]))
        i++;
    for (uint32_t outer = i; i && outer < steps->yielded_count; outer++) {
        if (steps->yielded[outer] == tasks->trio_child)
            return steps->yielded[outer];
    }
    if (steps->yielded_count > 1 && krait_several_collects(tasks, steps->yielded[1]))
        return steps->yielded[1];
    return i < steps->yielded_count ? steps->yielded[i] : NULL;
}

/* How the wait may end: krait_tasks_wake. */
static void note_wait(struct krait_interp *in, const struct step *step, const struct awaited *it)
{
    struct krait_agent_task *task = krait_tasks_find(in->tasks, step->task);
    if (!task)
        return;
    task->future = it->future;
    if (it->future)
        krait_several_wait(in->tasks, (const void *)(uintptr_t)it->future);
    task->awaits = it->task;
    task->last = 0;
    task->gathers = it->gathers;
    if (it->is_several)
        krait_map_put(&in->tasks->by_address, it->future,
                      krait_known(KRAIT_KNOWN_AWAITED, (uint32_t)(task - in->tasks->tasks)));
    note_started(in, task);
}

static void leave_step(struct krait_interp *in, const struct step *step, enum krait_event_enum_value why,
                       PyObject *value)
{
    bool waits = why == KRAIT_task_leave_reason_yielded;
    const void *waiting = waits ? waiting_code(in->tasks) : NULL;
    uint32_t at = waiting ? krait_code_id(in, waiting) : 0;
    struct awaited it = { .why = why };
    if (waits)
        it = awaited(in, step->task, waiting, value);
    of_thread->yielded_count = 0;
    of_thread->several = (struct krait_several){ 0 };
    note_wait(in, step, &it);
    uint8_t payload[KRAIT_BYTES_task_leave];
    size_t n = krait_put_task_leave(
        payload, &(struct krait_payload_task_leave){ step->id, (uint8_t)it.why, it.on, at });
    tell(in, KRAIT_EVENT_task_leave, payload, n);
}

/* Whether the root itself ends, or gives up the thread, and not a call of the same function within it. */
static bool is_end_of_root(struct step *last, enum krait_event_enum_value how)
{
    if (last->on_depth)
        return krait_tasks_depth() <=
               (how == KRAIT_task_leave_reason_yielded ? last->on_depth : last->root_depth);
    return !last->begins || !--last->begins;
}

void krait_tasks_ending(struct krait_interp *in, enum krait_event_enum_value how, PyObject *value)
{
    struct step *last = last_step();
    if (!last || !in->tasks || !is_end_of_root(last, how))
        return;
    int saved_errno = errno;
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    struct step step = *last;
    of_thread->depth--;
    note_root();
    leave_step(in, &step, how, value);
    if (how != KRAIT_task_leave_reason_yielded && step.index < in->tasks->count &&
        in->tasks->tasks[step.index].address == step.task)
        end_task(in->tasks, step.index);
    PyErr_Restore(type, error, traceback);
    errno = saved_errno;
}

/* A task that is cancelled cancels the one that it awaits, and goes on when that has ended. Returns the one that goes on from a
 * future. NULL: it is not known. */
static struct krait_agent_task *cancelled(const struct krait_tasks *tasks, PyObject *object)
{
    enum { DEEPEST = 64 };
    bool is_task = krait_tasks_is_of_asyncio(tasks, object);
    struct krait_agent_task *task = is_task ? krait_tasks_find(tasks, object) : NULL;
    for (int i = 0; task && task->awaits && i < DEEPEST; i++)
        task = krait_tasks_find(tasks, task->awaits);
    return task && task->future && !task->gathers ? task : NULL;
}

/* Where the loop ends a wait, outside of all steps, it may be by the end of a task. */
static void tell_waiter(struct krait_interp *in, uint32_t waiter, uint32_t by)
{
    uint8_t payload[KRAIT_BYTES_task_wake_by];
    size_t n = krait_put_task_wake_by(payload, &(struct krait_payload_task_wake_by){ waiter, by });
    tell(in, KRAIT_EVENT_task_wake_by, payload, n);
}

/* Of a future that stands for tasks, or of a task that is cancelled: who waits, and by whose end that ends. */
static void wake_waiter(struct krait_interp *in, const struct krait_agent_task *waiter, uint64_t future)
{
    const uint64_t *before = krait_map_get(&in->tasks->by_address, future);
    uint32_t ignored;
    bool is_noted = before && *before && !krait_is_known(before, KRAIT_KNOWN_TASK, &ignored);
    waiter = waiter ? waiter : waiter_of(in->tasks, before, future);
    if (!waiter && !is_noted)
        return;
    uint32_t id = waiter ? waiter->id : 0, last = waiter ? waiter->last : 0;
    uint32_t by = last_step() ? last_step()->id : krait_several_ended_by(in, last);
    if (is_noted)
        krait_map_put(&in->tasks->by_address, future, krait_known(KRAIT_KNOWN_DONE, by));
    if (id)
        tell_waiter(in, id, by);
}

void krait_tasks_wake(struct krait_interp *in, PyObject *future)
{
    if (!in->tasks || !future)
        return;
    int saved_errno = errno;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    const struct krait_agent_task *task = cancelled(in->tasks, future);
    uint64_t on = task ? task->future : (uintptr_t)future;
    uint8_t payload[KRAIT_BYTES_task_wake];
    wake_waiter(in, task, on);
    size_t n = krait_put_task_wake(payload, &(struct krait_payload_task_wake){ on });
    tell(in, KRAIT_EVENT_task_wake, payload, n);
    PyErr_Restore(type, value, traceback);
    errno = saved_errno;
}

uint64_t krait_tasks_waited(const struct krait_interp *in, const void *trio_task)
{
    const struct krait_agent_task *task = in->tasks ? krait_tasks_find(in->tasks, trio_task) : NULL;
    return task && task->future ? task->future : (uintptr_t)trio_task;
}

struct krait_payload_task_wake_by krait_tasks_rescheduled(struct krait_interp *in, const void *trio_task)
{
    const struct krait_agent_task *task = in->tasks ? krait_tasks_find(in->tasks, trio_task) : NULL;
    struct krait_payload_task_wake_by woken = { 0 };
    if (!task || last_step())
        return woken;
    woken.task = task->id;
    woken.by = krait_several_ended_by(in, 0);
    return woken;
}

bool krait_tasks_say(struct krait_interp *in, struct krait_ring *ring, uint64_t t)
{
    enum { BYTES = sizeof(struct krait_event_extended) + KRAIT_BYTES_task_run };
    uint8_t payload[KRAIT_BYTES_task_run];
    for (uint32_t i = 0; of_thread && i < of_thread->depth; i++) {
        size_t n = krait_put_task_run(payload, &(struct krait_payload_task_run){ of_thread->steps[i].id });
        if (krait_writer_room(&in->agent->writer, ring, t, BYTES) == KRAIT_ROOM_NONE)
            return false;
        krait_writer_put_small(ring, t, KRAIT_EVENT_task_run, payload, n);
    }
    return true;
}

/* ---- pauses ---- */

static void put_unseen(struct krait_interp *in, struct krait_ring *ring, uint64_t t, uint32_t id)
{
    enum { BYTES = sizeof(struct krait_event_extended) + KRAIT_BYTES_task_leave };
    struct krait_writer *writer = &in->agent->writer;
    uint8_t payload[KRAIT_BYTES_task_leave];
    size_t n = krait_put_task_leave(
        payload, &(struct krait_payload_task_leave){ .task = id, .reason = KRAIT_task_leave_reason_unseen });
    if (krait_writer_room(writer, ring, t, BYTES) != KRAIT_ROOM_NONE)
        krait_writer_put_small(ring, KRAIT_MAX(t, krait_writer_begin(writer, ring)), KRAIT_EVENT_task_leave,
                               payload, n);
}

void krait_tasks_paused(struct krait_interp *in, struct krait_ring *ring, uint64_t t)
{
    uint32_t had = of_thread ? of_thread->depth : 0, before = 0;
    while (before < had && of_thread->steps[before].pauses < in->governor.pauses)
        before++;
    if (!before)
        return;
    for (uint32_t i = before; i-- > 0;)
        put_unseen(in, ring, t, of_thread->steps[i].id);
    memmove(of_thread->steps, &of_thread->steps[before], (had - before) * sizeof(of_thread->steps[0]));
    of_thread->depth = had - before;
    note_root();
}

/* A task whose root is not in the stack has not gone on yet; of one that is not known, the root is not known either. */
void krait_tasks_resumed(struct krait_interp *in, PyObject *frame)
{
    PyObject *type, *value, *traceback;
    if (!in->tasks || (of_thread && of_thread->depth))
        return;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *object = current_task(in->tasks);
    const struct krait_agent_task *task = object ? krait_tasks_find(in->tasks, object) : NULL;
    uint32_t begins = task && task->root ? krait_tasks_count_frames(frame, task->root, NULL) : 0;
    if (begins)
        push_step(in, task, begins);
    Py_XDECREF(object);
    PyErr_Restore(type, value, traceback);
}

/* ---- the end ---- */

void krait_tasks_forget(struct krait_interp *in)
{
    leave_steps();
    if (!in->tasks)
        return;
    krait_map_done(&in->tasks->by_address);
    in->tasks->by_address = (struct krait_map){ 0 };
    krait_map_done(&in->tasks->members);
    in->tasks->members = (struct krait_map){ 0 };
    memset(in->tasks->waiting, 0, sizeof(in->tasks->waiting));
    in->tasks->count = 0;
    in->tasks->first_free = KRAIT_NO_ID;
}
