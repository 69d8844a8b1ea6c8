/* SPDX-License-Identifier: Apache-2.0
 *
 * A switch of greenlets puts another stack under the thread without an event of the interpreter. greenlet
 * tells its trace function, one for each thread: krait's, which says so and then calls the program's.
 *
 * A stack does not change while its greenlet waits. So readers keep each stack that is left (python:switch),
 * and what is said is which of them is there again, however deep it is. The whole stack is said of a greenlet
 * that readers know nothing of: it began before krait looked, or events were lost since it was left. One that
 * begins has no frame yet; which tells it from another that had its address before, too.
 *
 * The program sees only its own trace function, because krait patches greenlet's settrace and gettrace (patch.h). settrace
 * puts the program's function behind krait's, and gettrace returns it. krait keeps no record of it: krait's trace
 * function is a built-in whose self is the program's, or None.
 */
#include "event/payload.h"
#include "python/agent.h"
#include "python/codes.h"
#include "python/gil.h"
#include "python/green_tasks.h"
#include "python/modules.h"
#include "python/patch.h"

static PyCFunction real_settrace, real_gettrace; /* greenlet's; NULL: they are called as they are */

/* ---- the trace function ---- */

enum {
    SLOT_BITS = 15, /* numbers have 16 */
    SLOTS = 1 << SLOT_BITS,
    MOST = SLOTS / 2, /* with more that wait than that, most switches say a whole stack */
    HASH_SHIFT = 64 - SLOT_BITS,
};

/* The greenlets of a thread that have been left; their number is their slot's, from 1. */
struct greenlets {
    uint32_t round; /* readers keep the stacks that were left in this one */
    uint32_t count;
    struct one {
        const void *greenlet; /* its address alone; NULL: free */
        uint32_t left;        /* the round in which it was left; 0: never */
    } slots[SLOTS];
};

static __thread struct greenlets *of_thread;

void krait_greenlets_forget(void)
{
    if (of_thread)
        of_thread->round++;
}

void krait_greenlets_end(void)
{
    free(of_thread);
    of_thread = NULL;
    krait_green_tasks_thread_end();
}

static struct greenlets *get_greenlets(void)
{
    if (!of_thread) {
        of_thread = calloc(1, sizeof(*of_thread));
        if (of_thread)
            of_thread->round = 1;
    } else if (of_thread->count >= MOST) { /* most of them have ended */
        memset(of_thread->slots, 0, sizeof(of_thread->slots));
        of_thread->count = 0;
        of_thread->round++;
    }
    return of_thread;
}

static struct one *find_one(struct greenlets *all, const void *greenlet)
{
    size_t i = (uint64_t)((uintptr_t)greenlet >> 4) * 0x9e3779b97f4a7c15ull >> HASH_SHIFT;
    while (all->slots[i].greenlet && all->slots[i].greenlet != greenlet)
        i = (i + 1) % SLOTS;
    if (!all->slots[i].greenlet) {
        all->slots[i].greenlet = greenlet;
        all->count++;
    }
    return &all->slots[i];
}

static uint16_t number_of(const struct greenlets *all, const struct one *one)
{
    return (uint16_t)(one - all->slots + 1);
}

static void put_stacks(struct krait_ring *ring, uint64_t t, uint16_t from, uint16_t to)
{
    uint8_t payload[KRAIT_BYTES_python_switch];
    size_t n = krait_put_python_switch(payload, &(struct krait_payload_python_switch){ from, to });
    krait_writer_put_small(ring, t, KRAIT_EVENT_python_switch, payload, n);
}

/* Keeps what waits for the next slow path waiting. `begins`: a new greenlet's first function is looked at there. */
static void put_switch(struct krait_ring *ring, uint64_t t, uint16_t from, uint16_t to,
                       const struct krait_green_switch *tasks, bool begins)
{
    bool look = !krait_ring_has_room(ring, t) || (begins && tasks->entered);
    krait_green_tasks_put_leave(ring, t, tasks);
    krait_green_tasks_put_await(ring, t, tasks);
    put_stacks(ring, t, from, to);
    krait_green_tasks_put_run(ring, t, tasks);
    if (look)
        ring->window = UINT64_MAX;
}

/* Where it cannot be said whole, the next event goes on with it. */
static void say_new_stack(struct krait_interp *in, uint64_t t)
{
    struct krait_kept kept = krait_keep();
    krait_thread_resync(KRAIT_RESYNC_STACK);
    krait_thread_say_stack(in, t, KRAIT_TOP_IS_OLD);
    krait_restore(&kept);
}

/* Returns false where that cannot be said: then nothing is known of any stack. */
static bool say_switch(struct krait_interp *in, const void *origin, const void *target,
                       const struct krait_green_switch *tasks)
{
    enum { BYTES = sizeof(struct krait_event_extended) + KRAIT_BYTES_python_switch + KRAIT_GREEN_BYTES };
    struct greenlets *all = get_greenlets();
    struct krait_ring *ring = krait_this_ring;
    uint64_t t = KRAIT_MAX(krait_writer_now(&in->agent->writer), krait_gil_last());
    if (!all || krait_unreported_pending())
        return false;
    krait_governor_read_closing(in, BYTES);
    enum krait_ring_room room = krait_writer_room(&in->agent->writer, ring, t, BYTES);
    uint32_t unsaid = atomic_load_explicit(&ring->resync, memory_order_relaxed);
    if (room == KRAIT_ROOM_NONE || unsaid & ~(uint32_t)KRAIT_RESYNC_STACK)
        return false;
    struct one *from = find_one(all, origin), *to = find_one(all, target);
    bool begins = !PyEval_GetFrame(), known = !begins && to->left == all->round;
    from->left = unsaid ? 0 : all->round; /* it left before an event could say its stack */
    put_switch(ring, t, number_of(all, from), known ? number_of(all, to) : 0, tasks, begins);
    if (known || begins)
        atomic_fetch_and_explicit(&ring->resync, ~(uint32_t)KRAIT_RESYNC_STACK, memory_order_relaxed);
    else /* now: where all that it does is left out, no event of its own would say it before it leaves again */
        say_new_stack(in, t);
    return true;
}

static void tell_switch(PyObject *origin, PyObject *target, bool threw)
{
    struct krait_interp *in = krait_agent_interp();
    if (!in || krait_this_ring == &krait_no_ring || !atomic_load(&krait_agent.running))
        return;
    int saved_errno = errno;
    uint64_t begin = krait_writer_now(&in->agent->writer), said = in->governor.said_ticks;
    struct krait_green_switch tasks = { 0 };
    if (in->agent->tasks)
        tasks = krait_green_tasks_switch(in, origin, target, threw);
    if (!say_switch(in, origin, target, &tasks)) {
        krait_greenlets_forget();
        krait_thread_resync(KRAIT_RESYNC_GO_ON);
    }
    said = in->governor.said_ticks - said;
    krait_governor_count_switch(in, krait_writer_now(&in->agent->writer) - begin - said);
    errno = saved_errno;
}

/* greenlet's C part, if the program has imported it; borrowed. */
static PyObject *greenlet_module(void)
{
    return krait_module("greenlet._greenlet");
}

/* greenlet's original of a patched function. New reference or NULL. */
static PyObject *call_real(PyObject *module, PyCFunction real, const char *name, PyObject *argument)
{
    PyObject *args = argument ? PyTuple_Pack(1, argument) : NULL;
    if (argument && !args)
        return NULL;
    PyObject *function = real ? NULL : krait_module_item(module, name);
    Py_XINCREF(function);
    PyObject *result = real ? real(module, args) : function ? PyObject_CallObject(function, args) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(args);
    return result;
}

/* Since the last look: then the trace function is in, and a switch need not look for it again. */
static __thread bool just_called;

static PyObject *tell_program(PyObject *program, PyObject *args)
{
    if (program != Py_None)
        return PyObject_CallObject(program, args);
    Py_INCREF(program);
    return program;
}

/* While recording pauses, greenlet calls nothing of ours; the first slow path after it puts the function in again. */
static void leave_this_thread(PyObject *program)
{
    PyObject *module = greenlet_module();
    PyObject *done = module ? call_real(module, real_settrace, "settrace", program) : NULL;
    Py_XDECREF(done);
    PyErr_Clear();
}

/* "throw", else "switch". */
static bool is_throw(PyObject *event)
{
    const char *text = PyUnicode_Check(event) ? krait_compat.utf8(event, NULL) : NULL;
    return text && text[0] == 't';
}

/* GIL held; called by greenlet in the greenlet that was switched to, with hooks off. Where the program's
 * function raises, greenlet takes ours away too: the next event comes by the slow path, which sees to that. */
static PyObject *on_switch(PyObject *program, PyObject *args)
{
    struct krait_interp *in = krait_agent_interp();
    if (in && in->governor.paused) {
        krait_green_tasks_pause(in);
        leave_this_thread(program);
        return tell_program(program, args);
    }
    PyObject *pair = PyTuple_Size(args) == 2 ? PyTuple_GetItem(args, 1) : NULL;
    if (pair && PyTuple_Check(pair) && PyTuple_Size(pair) == 2)
        tell_switch(PyTuple_GetItem(pair, 0), PyTuple_GetItem(pair, 1), is_throw(PyTuple_GetItem(args, 0)));
    PyObject *result = tell_program(program, args);
    just_called = result != NULL;
    if (!result)
        krait_thread_resync(KRAIT_RESYNC_GO_ON);
    return result;
}

static PyMethodDef switch_method = { "krait_greenlet_switched", on_switch, METH_VARARGS, NULL };

static bool is_ours(PyObject *trace)
{
    return trace && PyCFunction_Check(trace) && PyCFunction_GetFunction(trace) == on_switch;
}

/* What the program has set, of what greenlet has; steals `trace`, new reference or NULL. */
static PyObject *without_ours(PyObject *trace)
{
    if (!is_ours(trace))
        return trace;
    PyObject *program = PyCFunction_GetSelf(trace); /* borrowed */
    Py_INCREF(program);
    Py_DECREF(trace);
    return program;
}

/* ---- greenlet's functions ---- */

static PyObject *on_settrace(PyObject *module, PyObject *args)
{
    PyObject *program;
    if (!atomic_load_explicit(&krait_agent.running, memory_order_relaxed) ||
        !PyArg_ParseTuple(args, "O:settrace", &program)) {
        PyErr_Clear(); /* greenlet says what is wrong */
        return without_ours(real_settrace(module, args));
    }
    PyObject *ours = PyCFunction_NewEx(&switch_method, program, NULL);
    PyObject *with_ours = ours ? PyTuple_Pack(1, ours) : NULL;
    PyObject *before = with_ours ? real_settrace(module, with_ours) : NULL;
    Py_XDECREF(with_ours);
    Py_XDECREF(ours);
    return without_ours(before);
}

static PyObject *on_gettrace(PyObject *module, PyObject *args)
{
    return without_ours(real_gettrace(module, args));
}

static const struct krait_patch patches[] = {
    { "settrace", on_settrace, &real_settrace, METH_VARARGS },
    { "gettrace", on_gettrace, &real_gettrace, METH_NOARGS },
};

/* ---- putting it in ---- */

/* Returns whether it had to be done. */
static bool trace_this_thread(PyObject *module)
{
    PyObject *trace = call_real(module, real_gettrace, "gettrace", NULL);
    PyObject *ours = trace && !is_ours(trace) ? PyCFunction_NewEx(&switch_method, trace, NULL) : NULL;
    PyObject *done = ours ? call_real(module, real_settrace, "settrace", ours) : NULL;
    bool traced = done != NULL;
    Py_XDECREF(done);
    Py_XDECREF(ours);
    Py_XDECREF(trace);
    PyErr_Clear(); /* it is being imported: the next slow path tries again */
    return traced;
}

void krait_greenlets_see(struct krait_interp *in)
{
    static bool patched;
    if (just_called) {
        just_called = false;
        return;
    }
    PyObject *module = greenlet_module();
    if (!module)
        return;
    Py_INCREF(module);
    if (!patched) {
        patched = true;
        krait_patch(module, patches, KRAIT_ARRAY_LEN(patches));
        krait_threads_look(); /* others may switch too */
    }
    if (trace_this_thread(module) || krait_green_tasks_are_new()) {
        if (in->agent->tasks)
            krait_green_tasks_look(in, module);
        krait_thread_resync(KRAIT_RESYNC_GO_ON); /* it may have switched already */
    }
    Py_DECREF(module);
}
