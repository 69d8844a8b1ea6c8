/* SPDX-License-Identifier: Apache-2.0
 *
 * Begins that CPython never tells, of frames whose end it tells.
 *
 * From 3.13 on INSTRUMENTED_RESUME runs signal handlers before it calls PY_START or PY_RESUME (Python/bytecodes.c:
 * _CHECK_PERIODIC before _MONITOR_RESUME), and from 3.12 on the callbacks of tools with a higher number, such as
 * sys.settrace's function, before krait's. When one raises, the function or generator is entered, and may end by that
 * or catch it and go on, without a begin. Nor has begun what raises before its first RESUME 0: from 3.15 on a
 * generator expression asks for its iterator there. But RAISE comes in the frame first, with the place: that tells
 * the begin. At such a place is also raised what somebody throws into a generator, of which PY_THROW told just
 * before, and what tools with a lower number raise, after the begin was told.
 *
 * 3.11 has no RAISE: there, unwinds of functions that have not begun are dropped (profile.c,
 * krait_has_begun). A generator may also catch what a signal handler raises as it is resumed. Its resume is told when
 * the handler's frame unwinds, whose caller stands at a RESUME.
 *
 * What has begun, the thread's open packet tells. Where it cannot, since the begin may be in an earlier packet,
 * or be the caller's in a function that calls itself, the thread says this one frame: it is there, begun before
 * or now, and its end ends it. The frames below are not said, so that C functions among them stay open.
 *
 * Not known: that a tool of a higher number raises in PY_THROW, or in RAISE itself; and on 3.11, that a generator
 * catches what a trace function, or a handler written in C other than signal.default_int_handler, raises as it is
 * resumed.
 */
#include "python/codes.h"
#include "python/compat/running.h"
#include "python/packet.h"
#include "python/patch.h"

/* ---- where it was raised ---- */

/* Each place is looked up once. */
static enum krait_code_place place_at(struct krait_interp *in, uint32_t id, PyObject *code, Py_ssize_t offset)
{
    uint64_t key = (uint64_t)id << 32 | (uint32_t)offset;
    const uint64_t *known = krait_map_get(&in->places, key);
    if (known)
        return (enum krait_code_place)(*known);
    enum krait_code_place place = krait_code_find_place(code, offset);
    krait_map_put(&in->places, key, place);
    return place;
}

static enum krait_code_place place_of_raise(struct krait_interp *in, PyObject *code, PyObject *offset)
{
    const struct krait_code *slot = krait_code_find(in, code);
    if (!krait_code_is_defined(slot))
        slot = krait_slow_look(in, code);
    bool recorded = slot && slot->id && !(slot->flags & KRAIT_CODE_OMIT);
    return recorded ? place_at(in, slot->id, code, PyLong_AsSsize_t(offset)) : KRAIT_PLACE_LATER;
}

/* ---- what was thrown ---- */

/* The thread's last event, if it is a PY_THROW or a C_RAISE. (No struct: the compiler would align it to 16, and with it
 * all that the agent has of the static TLS block.) */
static __thread const PyObject *thrown_code; /* of a throw: compared, never followed; of a raise NULL */
static __thread const uint8_t *thrown_at;    /* the ring's place behind the event */

void krait_unreported_throw(const PyObject *code)
{
    thrown_code = code;
    thrown_at = krait_this_ring->cur;
}

static bool was_thrown(const PyObject *code)
{
    return thrown_code == code && thrown_at == krait_this_ring->cur;
}

/* ---- what a C function raised ----
 *
 * C_RAISE does not say what, and RAISE, which comes next and in the caller's frame, does
 * (Python/instrumentation.c: _Py_call_instrumentation_exc2 puts the exception away). So the type is put into
 * the event that was just written. A collector that copied the packet meanwhile has 0 there: not known.
 */

void krait_unreported_c_raise(void)
{
    thrown_code = NULL;
    uint8_t *end = krait_this_ring->cur;
    thrown_at = krait_packet_untyped(krait_this_ring, end, KRAIT_EVENT_c_raise_of)
                    ? end
                    : NULL; /* else it was lost */
}

void krait_unreported_exception(struct krait_interp *in, PyObject *exception)
{
    struct krait_ring *ring = krait_this_ring;
    if (KRAIT_LIKELY(thrown_code || !thrown_at || thrown_at != ring->cur))
        return;
    uint32_t id = krait_code_exception(in, exception);
    if (ring == krait_this_ring && thrown_at == ring->cur) /* naming may have run Python code */
        krait_put_c_raise_of(ring->cur - KRAIT_BYTES_c_raise_of,
                             &(struct krait_payload_c_raise_of){ .exception = id });
    thrown_at = NULL;
}

/* ---- who goes on ----
 *
 * 3.11: a coroutine that awaits an asynchronous generator goes on without a RESUME when what was thrown into
 * the generator ends it or makes it yield. The object that aclose() or asend() gave stands between the two:
 * the generator's frame does not name the coroutine. The thread's next event comes from it, or tells its
 * throw.
 */

static __thread uint64_t going_on_t; /* 0: nobody */
static __thread const PyObject *going_on_back;

void krait_unreported_goes_on(uint64_t t, const PyObject *back)
{
    struct krait_ring *ring = krait_this_ring;
    if (ring == &krait_no_ring)
        return;
    going_on_t = t;
    going_on_back = back;
    ring->window = UINT64_MAX; /* the next event comes by the slow path */
}

bool krait_unreported_pending(void)
{
    return going_on_t != 0;
}

uint64_t krait_unreported_resumed(PyObject *code)
{
    uint64_t t = going_on_t;
    going_on_t = 0;
    return code != going_on_back && krait_code_suspends(code) ? t : 0;
}

/* ---- what the thread's packet says ---- */

enum { DEPTH_MAX = 512 };

struct opened {
    uint32_t code[DEPTH_MAX];
    size_t depth;
    bool deeper;   /* than there is room for: nothing is known */
    uint32_t said; /* Python frames below these that the thread said, and that are still open */
    uint32_t last; /* the code whose begin is the last event; 0: the last event is none */
};

static void follow(struct opened *opened, uint32_t event, uint32_t code)
{
    uint32_t bit = krait_event_bit(event);
    opened->last = 0;
    if (bit & KRAIT_CALL_BEGINS) {
        opened->last = code;
        opened->deeper |= opened->depth == DEPTH_MAX;
        if (opened->deeper)
            return;
        opened->code[opened->depth++] = code;
    } else if (bit & KRAIT_CALL_ENDS) {
        opened->said -= !opened->depth && opened->said && !(bit & KRAIT_CALL_IN_C);
        opened->depth -= opened->depth > 0;
    } else if (bit & KRAIT_CALL_STACKS) {
        /* From here on it is not known what is open, but for the number of frames that a run says at its end. */
        opened->depth = opened->said = 0;
    }
}

/* What ends a run of frames says how many there are. */
static void follow_run(struct opened *opened, uint32_t event, struct krait_cursor payload)
{
    struct krait_payload_python_stack stack;
    struct krait_payload_python_deep_stack deep;
    if (event == KRAIT_EVENT_python_stack && krait_read_python_stack(&payload, &stack))
        opened->said = stack.depth;
    else if (event == KRAIT_EVENT_python_deep_stack && krait_read_python_deep_stack(&payload, &deep))
        opened->said = deep.depth;
}

/* With call sites a function has an id for each line that it is called from. */
static uint32_t id_of_begin(struct krait_interp *in, PyObject *frame, PyObject *code)
{
    uint32_t id = krait_code_id(in, code);
    if (!krait_agent.call_sites)
        return id;
    PyObject *caller = krait_frame_back(frame);
    id = krait_code_at_site(in, id, NULL, code, caller);
    Py_XDECREF(caller);
    return id;
}

/* Returns false where there is nothing to go by. */
static bool read_packet(struct opened *opened)
{
    const struct krait_ring *ring = krait_this_ring;
    opened->depth = 0;
    opened->deeper = false;
    opened->said = opened->last = 0;
    struct krait_packet_event e = { 0 };
    struct krait_cursor events = krait_packet_open(&krait_agent.writer, ring, &e.head.t);
    if (!events.at)
        return false;
    while (events.at < events.end) {
        if (!krait_packet_read(&events, &e))
            return false;
        follow(opened, e.head.id, e.code);
        follow_run(opened, e.head.id, e.payload);
    }
    return true;
}

static bool calls_itself(PyObject *frame, const PyObject *code)
{
    PyObject *caller = krait_frame_back(frame);
    PyObject *its = caller ? krait_frame_code(caller) : NULL;
    Py_XDECREF(its);
    Py_XDECREF(caller);
    return its == code;
}

/* The frame's end is then right, whether its begin was told or not. */
static bool say_frame(struct krait_interp *in, uint64_t t, enum krait_begin_what top)
{
    krait_slow_say_top(in, t, top);
    return true;
}

static bool has_begun(struct krait_interp *in, uint64_t t, PyObject *frame, PyObject *code,
                      enum krait_begin_what top)
{
    struct opened opened;
    if (!read_packet(&opened) || !opened.depth || opened.deeper)
        return say_frame(in, t, top);
    if (opened.code[opened.depth - 1] != id_of_begin(in, frame, code))
        return false;
    return !calls_itself(frame, code) || say_frame(in, t, top); /* it may be the caller's begin */
}

bool krait_has_begun(struct krait_interp *in, uint64_t t, PyObject *frame, PyObject *code)
{
    return has_begun(in, t, frame, code, KRAIT_TOP_IS_OLD);
}

/* ---- who was interrupted ---- */

static bool is_left_out(struct krait_interp *in, PyObject *code)
{
    const struct krait_code *slot = krait_code_find(in, code);
    if (!krait_code_is_defined(slot))
        slot = krait_slow_look(in, code);
    return !slot || slot->flags & KRAIT_CODE_OMIT;
}

/* Steals the generator's frame. */
static void say_resumed(struct krait_interp *in, PyObject *frame, enum krait_begin_what top)
{
    PyObject *code = krait_this_ring == &krait_no_ring ? NULL : krait_frame_code(frame);
    uint64_t t = krait_writer_now(&in->agent->writer);
    if (code && !is_left_out(in, code) && !has_begun(in, t, frame, code, top))
        krait_slow_resume(in, t, id_of_begin(in, frame, code), top);
    Py_XDECREF(code);
    Py_DECREF(frame);
}

void krait_unreported_interrupted(struct krait_interp *in, PyObject *frame)
{
    say_resumed(in, krait_frame_back(frame), KRAIT_TOP_IS_NEW);
}

static PyCFunction real_handler;

static PyObject *on_int_handler(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *result = ((krait_fastcall_fn *)(void (*)(void))real_handler)(module, args, nargs);
    struct krait_interp *in = krait_agent_interp();
    if (result || !in || !krait_agent_records(in) || in->governor.paused)
        return result;
    struct krait_kept kept = krait_keep();
    PyObject *frame = krait_thread_frame(KRAIT_TOP_IS_OLD);
    if (frame && krait_frame_is_interrupted(frame))
        say_resumed(in, frame, KRAIT_TOP_IS_OLD);
    else
        Py_XDECREF(frame);
    krait_restore(&kept);
    return NULL;
}

void krait_unreported_patch_handler(void)
{
    static const struct krait_patch patches[] = {
        { "default_int_handler", (PyCFunction)(void (*)(void))on_int_handler, &real_handler,
          KRAIT_METH_FASTCALL },
    };
    PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), "_signal"); /* borrowed */
    if (module && !real_handler)
        krait_patch(module, patches, KRAIT_ARRAY_LEN(patches));
}

/* ---- what is raised ---- */

/* Whether the frame, whose handler has ended, is among those that the thread said while the handler ran: krait.start(), or a pause
 * that ended then. */
static bool was_said(struct krait_interp *in, const struct opened *opened, PyObject *frame)
{
    uint32_t depth = 0;
    Py_INCREF(frame);
    while (frame && depth <= opened->said) {
        PyObject *code = krait_frame_code(frame), *back = krait_frame_back(frame);
        depth += code && !is_left_out(in, code);
        Py_XDECREF(code);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return depth <= opened->said;
}

/* Whether the frame's begin is the thread's last event. Where a function calls itself that may be the
 * caller's: a Ctrl-C comes as a function begins, and so does what another tool raises after it was told. */
static bool has_just_begun(struct krait_interp *in, uint64_t t, PyObject *frame, PyObject *code)
{
    struct opened opened;
    if (!read_packet(&opened))
        return say_frame(in, t, KRAIT_TOP_IS_OLD);
    if (!opened.depth && opened.said)
        return was_said(in, &opened, frame);
    if (!opened.last || opened.last != id_of_begin(in, frame, code))
        return false;
    return !calls_itself(frame, code) || say_frame(in, t, KRAIT_TOP_IS_OLD);
}

static bool handlers_run_after_begin(void)
{
    return !krait_compat.version.signals_first;
}

/* The code of what the frame called, which has the traceback's first entry. Steals the traceback, which may be NULL. */
static PyObject *code_of_next(PyObject *traceback)
{
    PyObject *next = traceback ? PyObject_GetAttrString(traceback, "tb_next") : NULL;
    PyObject *frame = next && next != Py_None ? krait_traceback_frame(next) : NULL;
    PyObject *code = frame ? krait_frame_code(frame) : NULL;
    Py_XDECREF(frame);
    Py_XDECREF(next);
    Py_XDECREF(traceback);
    PyErr_Clear();
    return code;
}

/* Whether a function raised it of which krait knows nothing: a trace function or a tool's callback, during which CPython
 * reports nothing (Python/instrumentation.c: call_one_instrument). It reports a signal's handler, and what that calls. */
static bool is_raised_unreported(struct krait_interp *in, PyObject *exception)
{
    PyObject *code = code_of_next(PyException_GetTraceback(exception));
    bool unreported = code && !krait_code_is_defined(krait_code_find(in, code));
    Py_XDECREF(code);
    return unreported;
}

/* Whether the frame that runs is one of this code, and its begin was not told. Cython's functions have none. */
static bool is_unreported(struct krait_interp *in, PyObject *code, PyObject *exception)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame(); /* borrowed */
    PyObject *running = frame ? krait_frame_code(frame) : NULL;
    bool others_ran =
        handlers_run_after_begin() && !is_raised_unreported(in, exception); /* since the begin */
    bool (*begun)(struct krait_interp *, uint64_t, PyObject *, PyObject *) =
        others_ran ? krait_has_begun : has_just_begun;
    uint64_t t = krait_writer_now(&in->agent->writer);
    bool unreported = running == code && !begun(in, t, frame, code);
    Py_XDECREF(running);
    return unreported;
}

void krait_unreported_raise(struct krait_interp *in, PyObject *code, PyObject *offset, PyObject *exception)
{
    static const uint32_t events[] = { [KRAIT_PLACE_BEFORE] = KRAIT_EVENT_python_call,
                                       [KRAIT_PLACE_CALL] = KRAIT_EVENT_python_call,
                                       [KRAIT_PLACE_RESUME] = KRAIT_EVENT_python_resume };
    enum krait_code_place place = place_of_raise(in, code, offset);
    if (place == KRAIT_PLACE_LATER || was_thrown(code))
        return;
    /* Before it, the frame is not shown yet. */
    if (place == KRAIT_PLACE_BEFORE || is_unreported(in, code, exception))
        krait_slow_begin(in, events[place], code);
}

bool krait_unreported_unwinds(struct krait_interp *in, PyObject *code, PyObject *offset, PyObject *exception)
{
    enum krait_code_place place = place_of_raise(in, code, offset);
    return place == KRAIT_PLACE_BEFORE || (place != KRAIT_PLACE_LATER && is_unreported(in, code, exception));
}
