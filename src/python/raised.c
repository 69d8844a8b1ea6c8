/* SPDX-License-Identifier: Apache-2.0
 *
 * What left a function, before Python 3.12.
 *
 * CPython takes the exception out of the thread state before it calls a profile function for an end by one, and puts it
 * back afterwards (Python/ceval.c: call_trace_protected). Next the exception arrives in a frame: that of whoever called the
 * C function, or the Python function that it left. There CPython calls the thread's trace function, if it has one, with
 * type, value and traceback (call_exc_trace). So krait writes the end with type 0, not known, gives the thread a trace
 * function for this one event, and puts the type into the event.
 *
 * Is it the same exception? Between the end of a C function and the arrival nothing runs. When a Python function has
 * ended, C code may catch the exception and raise another. But the traceback has a frame for each that an exception
 * came through: the one that left this function has this frame.
 *
 * Not known stays: what arrives in no frame, since C code called the function and catches the exception (a step of one
 * of asyncio's tasks, the outermost function of a program); the StopIteration of a generator that raises it, of which
 * CPython makes a RuntimeError; and everything while the program has a trace function of its own.
 *
 * The trace function goes at whatever comes next, mostly the exception. So CPython looks for no new lines.
 */
#include "python/codes.h"
#include "python/compat/running.h"
#include "python/packet.h"

static struct {
    struct krait_interp *in;
    const PyObject *caller; /* of the C function; NULL: there was none. Both are compared, never followed */
    const PyObject *left;   /* the frame that the exception left before that; NULL: none */
    uint8_t *end;           /* the ring's place behind the events that say so */
} awaited; /* of the thread that has the GIL: if another thread waits meanwhile, the first does not learn its type */

/* Whether the exception came through the frame. */
static bool has_passed(const PyObject *traceback, const PyObject *frame)
{
    enum { MOST = 8 }; /* frames that C code makes up may lie between, as Cython's do */
    if (!frame)
        return false;
    for (int i = 0; i < MOST && traceback && traceback != Py_None; i++) {
        if (krait_at(traceback, KRAIT_TRACEBACK_FRAME) == frame)
            return true;
        traceback = krait_at(traceback, KRAIT_TRACEBACK_NEXT);
    }
    return false;
}

/* Returns where the event begins; NULL if it is not there. */
static uint8_t *put_type(uint8_t *end, uint32_t event, uint32_t type)
{
    uint8_t *begin = krait_packet_untyped(krait_this_ring, end, event);
    if (begin)
        memcpy(end - sizeof(type), &type, sizeof(type));
    return begin;
}

/* The exception has arrived in `frame`. */
static void arrive(const PyObject *frame, PyObject *value, const PyObject *traceback)
{
    bool left = has_passed(traceback, awaited.left);
    if (!PyExceptionInstance_Check(value) || (awaited.caller && awaited.caller != frame) ||
        (!awaited.caller && !left))
        return;
    uint32_t type = krait_code_exception(awaited.in, value);
    uint8_t *end = awaited.end;
    if (krait_this_ring->cur != end) /* naming may have run Python code */
        return;
    if (awaited.caller)
        end = put_type(end, KRAIT_EVENT_c_raise_of, type);
    if (left && end)
        put_type(end, KRAIT_EVENT_python_unwind_of, type);
}

static int on_arrival(PyObject *obj, PyObject *frame, int what, PyObject *arg)
{
    int saved = errno;
    krait_tstate_clear_trace(PyThreadState_Get(), on_arrival);
    if (what == KRAIT_PROFILE_EXCEPTION && awaited.end && awaited.end == krait_this_ring->cur)
        arrive(frame, PyTuple_GetItem(arg, 1), PyTuple_GetItem(arg, 2));
    awaited.end = NULL;
    errno = saved;
    return 0;
}

void krait_raised_await(struct krait_interp *in, const PyObject *frame, uint32_t event)
{
    struct krait_ring *ring = krait_this_ring;
    uint8_t *begin = krait_packet_untyped(ring, ring->cur, event);
    bool by_c = event == KRAIT_EVENT_c_raise_of;
    if (!begin || in->governor.no_raise) /* not there: it was lost */
        return;
    awaited.left = !by_c ? frame : begin == awaited.end && !awaited.caller ? awaited.left : NULL;
    awaited.caller = by_c ? frame : NULL;
    awaited.end = krait_tstate_set_trace(PyThreadState_Get(), on_arrival) ? ring->cur : NULL;
    awaited.in = in;
    krait_governor_count_raise(in);
}

void krait_raised_settle(void *tstate)
{
    awaited.end = NULL;
    krait_tstate_clear_trace(tstate, on_arrival);
}
