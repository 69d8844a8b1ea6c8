/* SPDX-License-Identifier: Apache-2.0
 *
 * The hook of Python 3.8 to 3.11: a C profile function, which belongs to a thread state. It is given to every
 * thread that there is; to new ones when CPython notes their thread state (native/preload.c sees that), or,
 * without the preloaded library, when the thread that starts them comes back from doing so.
 *
 * Generators are told from functions by their code's flags, resumes and yields by where the frame stands: the
 * hook gets `call` and `return` for all of them.
 *
 * A program that sets a profile function of its own takes krait's place in that thread until it takes it off;
 * that is counted as displaced.
 */
#include "python/args.h"
#include "python/codes.h"
#include "python/compat/running.h"
#include "python/got.h"
#include "python/tasks.h"

struct profile_obj {
    PyObject ob_base;
    struct krait_interp *in;
};

static krait_profile_fn on_event, on_event_no_c, on_event_inner, on_event_inner_no_c, on_event_selective;

static krait_profile_fn *the_hook(const struct krait_agent *agent)
{
    if (agent->selective)
        return on_event_selective;
    if (krait_has_inner_frames())
        return agent->c_calls ? on_event_inner : on_event_inner_no_c;
    return agent->c_calls ? on_event : on_event_no_c;
}

static void scan_threads(struct krait_interp *in)
{
    in->scan_threads = false;
    PyThreadState *ts = krait_compat.thread_head ? krait_compat.thread_head(in->interp) : NULL;
    for (; ts; ts = krait_compat.thread_next(ts))
        krait_tstate_set_profile(ts, the_hook(in->agent), in->profile_obj);
}

/* ---- all functions are recorded ---- */

/* `t` of a begin is read last, of an end first: what we do ourselves is not the function's time. */
static inline __attribute__((always_inline)) void put_begin(struct krait_interp *in, PyObject *code,
                                                            uint32_t event)
{
    uint32_t id = krait_code_id(in, code);
    struct krait_ring *ring = krait_this_ring;
    uint64_t t = krait_writer_now(&in->agent->writer);
    if (KRAIT_LIKELY(id && krait_ring_has_room(ring, t)))
        krait_ring_put_code(ring, t, event, id);
    else
        krait_slow_begin(in, event, code);
}

static inline __attribute__((always_inline)) void put_end(struct krait_interp *in, uint64_t t, uint32_t event)
{
    struct krait_ring *ring = krait_this_ring;
    if (KRAIT_LIKELY(krait_ring_has_room(ring, t)))
        krait_ring_put(ring, t, event);
    else
        krait_slow_end(in, t, event);
}

/* An end by an exception, whose type comes when that arrives in the next frame. */
static void put_raised(struct krait_interp *in, uint64_t t, const PyObject *frame, uint32_t event)
{
    struct krait_ring *ring = krait_this_ring;
    if (KRAIT_LIKELY(krait_ring_has_room(ring, t)))
        krait_ring_put_code(ring, t, event, 0);
    else
        krait_slow_end(in, t, event);
    krait_raised_await(in, frame, event);
}

static void put_python_end(struct krait_interp *in, uint64_t t, const PyObject *frame, uint32_t event)
{
    if (event == KRAIT_EVENT_python_unwind_of)
        put_raised(in, t, frame, event);
    else
        put_end(in, t, event);
}

static inline uint32_t begin_event(PyObject *frame, PyObject *code)
{
    if (KRAIT_UNLIKELY(krait_code_suspends(code)) && krait_frame_is_resumed(frame, code))
        return KRAIT_EVENT_python_resume;
    return KRAIT_EVENT_python_call;
}

/* Of an end at time t (0: now), whether its begin was never told: see unreported.c. 3.11 looks for signals
 * before it tells, and once more after. */
static inline bool is_unreported(struct krait_interp *in, uint64_t t, PyObject *frame, PyObject *code,
                                 const PyObject *value)
{
    if (KRAIT_LIKELY(value) || !krait_frame_is_at_begin(frame, code))
        return false;
    return !krait_has_begun(in, t ? t : krait_writer_now(&in->agent->writer), frame, code);
}

static inline uint32_t end_event(PyObject *frame, PyObject *code, const PyObject *value)
{
    if (!value)
        return KRAIT_EVENT_python_unwind_of;
    if (KRAIT_UNLIKELY(krait_code_suspends(code)) && krait_frame_is_yielding(frame, code))
        return KRAIT_EVENT_python_yield;
    return KRAIT_EVENT_python_return;
}

/* What a coroutine's begin and end tell of tasks. */
static void look_at_begin(struct krait_interp *in, PyObject *code, uint32_t event)
{
    const struct krait_code *slot = in->sees_tasks ? krait_code_find(in, code) : NULL;
    if (slot && slot->flags & KRAIT_CODE_TASK && slot->id)
        krait_tasks_begun(in, code, event == KRAIT_EVENT_python_call ? KRAIT_TASKS_CALL : KRAIT_TASKS_RESUME);
}

/* Returns when the function ends: not before what was written of it. */
static uint64_t look_at_end(struct krait_interp *in, uint64_t t, const PyObject *code, uint32_t event,
                            PyObject *value)
{
    const struct krait_code *slot =
        krait_task_root && event == KRAIT_EVENT_python_yield ? krait_code_find(in, code) : NULL;
    bool yields = slot && slot->flags & KRAIT_CODE_TASK && krait_tasks_yielding(in, code);
    if (KRAIT_LIKELY(!yields && krait_task_root != code))
        return t;
    enum krait_event_enum_value how = event == KRAIT_EVENT_python_yield    ? KRAIT_task_leave_reason_yielded
                                      : event == KRAIT_EVENT_python_return ? KRAIT_task_leave_reason_returned
                                                                           : KRAIT_task_leave_reason_raised;
    krait_tasks_ending(in, how, value);
    return krait_writer_now(&in->agent->writer);
}

/* After the end was written. Where it is the first event after a pause, the step that it ends is known only since then. */
static void look_again_at_end(struct krait_interp *in, const void *root_before, const PyObject *code,
                              uint32_t event, PyObject *value)
{
    if (KRAIT_UNLIKELY(!root_before && krait_task_root == code))
        look_at_end(in, 0, code, event, value);
}

static void look_at_c_call(struct krait_interp *in, const void *key, PyObject *callable)
{
    const struct krait_code *slot = in->sees_tasks ? krait_code_find(in, key) : NULL;
    if (slot && slot->flags & KRAIT_CODE_WAKES && Py_TYPE(callable) == krait_compat.cfunction_type)
        krait_tasks_wake(in, krait_at(callable, KRAIT_CFUNCTION_SELF));
}

static inline void put_c_call(struct krait_interp *in, const void *key, PyObject *callable)
{
    uint32_t id = krait_code_id(in, key);
    struct krait_ring *ring = krait_this_ring;
    uint64_t t = krait_writer_now(&in->agent->writer);
    if (KRAIT_LIKELY(id && krait_ring_has_room(ring, t)))
        krait_ring_put_code(ring, t, KRAIT_EVENT_c_call, id);
    else
        krait_slow_c_call(in, key, callable);
}

/* Who goes on unreported after this end (3.11). Where the end says the stack, that one is part of it. */
static PyObject *goes_on(PyObject *frame, PyObject *code, const PyObject *value)
{
    bool may = krait_has_inner_frames() && value && krait_code_suspends(code);
    bool says_stack = may && atomic_load_explicit(&krait_this_ring->resync, memory_order_relaxed);
    return may && !says_stack ? krait_frame_goes_on(frame, code) : NULL;
}

/* 3.11: after the end of an asynchronous generator, which may let somebody go on whom no frame names. */
static void note_thrown(struct krait_interp *in, PyObject *frame, PyObject *code, const PyObject *value)
{
    if (krait_has_inner_frames() && krait_code_suspends(code) && krait_frame_ends_throw(frame, code, value))
        krait_unreported_goes_on(krait_writer_now(&in->agent->writer), krait_frame_back_code(frame));
}

/* 3.11: after the end of a signal handler that raises. */
static inline void note_interrupted(struct krait_interp *in, PyObject *frame, const PyObject *value)
{
    if (!value && krait_frame_interrupts(frame))
        krait_unreported_interrupted(in, frame);
}

/* Every event in the general way: generators, new functions, functions whose place in the table is another's,
 * and whatever the ring has no room for. */
static __attribute__((noinline)) int any_event(PyObject *obj, PyObject *frame, int what, PyObject *arg)
{
    struct krait_interp *in = ((struct profile_obj *)obj)->in;
    uint64_t t = krait_clock_counter();
    PyObject *code = krait_frame_code_fast(frame), *next;
    const void *key;
    uint32_t event;
    switch (what) {
    case KRAIT_PROFILE_CALL:
        event = begin_event(frame, code);
        put_begin(in, code, event);
        look_at_begin(in, code, event);
        if (event == KRAIT_EVENT_python_call)
            krait_args_begun(in, code);
        break;
    case KRAIT_PROFILE_RETURN:
        if (is_unreported(in, t, frame, code, arg))
            break;
        next = goes_on(frame, code, arg);
        event = end_event(frame, code, arg);
        put_python_end(in, look_at_end(in, t, code, event, arg), frame, event);
        if (next)
            put_begin(in, next, KRAIT_EVENT_python_resume);
        note_thrown(in, frame, code, arg);
        note_interrupted(in, frame, arg);
        break;
    case KRAIT_PROFILE_C_CALL:
        key = krait_code_key(arg);
        if (key) {
            put_c_call(in, key, arg);
            look_at_c_call(in, key, arg);
        }
        break;
    case KRAIT_PROFILE_C_RETURN:
        put_end(in, t, KRAIT_EVENT_c_return);
        break;
    case KRAIT_PROFILE_C_EXCEPTION:
        put_raised(in, t, frame, KRAIT_EVENT_c_raise_of);
        break;
    default:
        break;
    }
    return 0;
}

/* The short way: leaves to any_event by a jump, so that it has no stack frame of its own. */
static inline __attribute__((always_inline)) int
short_event(PyObject *obj, PyObject *frame, int what, PyObject *arg, struct krait_frames frames, bool c_calls)
{
    struct krait_interp *in = ((struct profile_obj *)obj)->in;
    struct krait_ring *ring = krait_this_ring;
    const void *key;
    uint32_t event;
    switch (what) {
    case KRAIT_PROFILE_CALL:
        key = krait_frames_code(frames, frame);
        if (KRAIT_UNLIKELY(krait_frames_suspend(frames, key)))
            return any_event(obj, frame, what, arg);
        event = KRAIT_EVENT_python_call;
        break;
    case KRAIT_PROFILE_C_CALL:
        if (!c_calls)
            return 0;
        if (KRAIT_UNLIKELY(Py_TYPE(arg) != krait_compat.cfunction_type))
            return any_event(obj, frame, what, arg);
        key = krait_at(arg, KRAIT_CFUNCTION_ML);
        event = KRAIT_EVENT_c_call;
        break;
    case KRAIT_PROFILE_RETURN:
        if (KRAIT_UNLIKELY(!arg || krait_frames_suspend(frames, krait_frames_code(frames, frame))))
            return any_event(obj, frame, what, arg);
        key = NULL;
        event = KRAIT_EVENT_python_return;
        break;
    default:
        if (KRAIT_UNLIKELY(in->scan_threads))
            scan_threads(in);
        if (!c_calls || what != KRAIT_PROFILE_C_RETURN)
            return c_calls && what == KRAIT_PROFILE_C_EXCEPTION ? any_event(obj, frame, what, arg) : 0;
        key = NULL;
        event = KRAIT_EVENT_c_return;
        break;
    }
    uint32_t id = 0;
    if (key) {
        const struct krait_code *slot = &in->codes[krait_code_hash(in, key)];
        if (KRAIT_UNLIKELY(slot->key != key || !slot->id || slot->flags & KRAIT_CODE_WAKES))
            return any_event(obj, frame, what, arg);
        id = slot->id;
    }
    uint64_t t = krait_clock_counter();
    if (KRAIT_UNLIKELY(!krait_ring_has_room(ring, t)))
        return any_event(obj, frame, what, arg);
    if (key)
        krait_ring_put_code(ring, t, event, id);
    else
        krait_ring_put(ring, t, event);
    return 0;
}

#define KRAIT_SHORT_HOOK(name, frames, c_calls)                              \
    static int name(PyObject *obj, PyObject *frame, int what, PyObject *arg) \
    {                                                                        \
        return short_event(obj, frame, what, arg, frames, c_calls);          \
    }

KRAIT_SHORT_HOOK(on_event, KRAIT_FRAMES_PLAIN, true)
KRAIT_SHORT_HOOK(on_event_no_c, KRAIT_FRAMES_PLAIN, false)
KRAIT_SHORT_HOOK(on_event_inner, KRAIT_FRAMES_INNER, true)
KRAIT_SHORT_HOOK(on_event_inner_no_c, KRAIT_FRAMES_INNER, false)

/* ---- some are left out ---- */

static inline bool left_out(const struct krait_code *slot)
{
    return slot && slot->flags & KRAIT_CODE_OMIT;
}

/* A begin: the slot is to be looked up anew. */
static inline void count(struct krait_interp *in, struct krait_code *slot, enum krait_begin_what top)
{
    if (slot && slot->id) {
        krait_governor_count(in, slot, top);
    } else if (left_out(slot)) {
        if (krait_governor_probes(in, slot))
            krait_governor_probe_begin(in, slot);
        krait_governor_count_idle(in);
    }
}

/* Whether the function of the frame is left out; looks at it if it is new. */
static inline bool code_left_out(struct krait_interp *in, PyObject *code)
{
    const struct krait_code *slot = krait_code_find(in, code);
    if (KRAIT_UNLIKELY(!krait_code_is_defined(slot)))
        slot = krait_slow_look(in, code);
    return left_out(slot);
}

/* An end of what is known to be left out. */
static inline void end_left_out(struct krait_interp *in, const void *key)
{
    struct krait_code *slot = krait_code_find(in, key);
    if (slot && krait_governor_probes(in, slot))
        krait_governor_probe_end(in, slot);
}

static void selective_begin(struct krait_interp *in, PyObject *code, uint32_t event)
{
    if (in->agent->call_sites)
        krait_slow_begin(in, event, code);
    else
        put_begin(in, code, event);
    look_at_begin(in, code, event);
    if (event == KRAIT_EVENT_python_call)
        krait_args_begun(in, code);
}

static void selective_end(struct krait_interp *in, const PyObject *frame, PyObject *code, uint32_t event)
{
    if (code_left_out(in, code))
        end_left_out(in, code);
    else
        put_python_end(in, krait_writer_now(&in->agent->writer), frame, event);
}

static void selective_c(struct krait_interp *in, const PyObject *frame, PyObject *code, int what,
                        PyObject *callable)
{
    const void *key = krait_code_key(callable);
    if (!key || code_left_out(in, code))
        return;
    if (what == KRAIT_PROFILE_C_CALL)
        count(in, krait_code_find(in, key), KRAIT_TOP_IS_OLD);
    /* Since now: the call is in the pause, as its end will be; or its end will not be told. */
    if (KRAIT_UNLIKELY(in->governor.paused) || (what == KRAIT_PROFILE_C_CALL && code_left_out(in, code)))
        return;
    if (left_out(krait_code_find(in, key))) {
        if (what != KRAIT_PROFILE_C_CALL)
            end_left_out(in, key);
        return;
    }
    if (what == KRAIT_PROFILE_C_CALL && in->agent->call_sites)
        krait_slow_c_call(in, key, callable);
    else if (what == KRAIT_PROFILE_C_CALL)
        put_c_call(in, key, callable);
    if (what == KRAIT_PROFILE_C_CALL)
        look_at_c_call(in, key, callable);
    else if (what == KRAIT_PROFILE_C_RETURN)
        put_end(in, krait_writer_now(&in->agent->writer), KRAIT_EVENT_c_return);
    else if (what == KRAIT_PROFILE_C_EXCEPTION)
        put_raised(in, krait_writer_now(&in->agent->writer), frame, KRAIT_EVENT_c_raise_of);
}

static int selective_event(struct krait_interp *in, PyObject *frame, int what, PyObject *arg)
{
    PyObject *code = krait_frame_code_fast(frame);
    if (KRAIT_UNLIKELY(in->governor.paused)) { /* a thread was born as the pause began, without the GIL */
        krait_profile_remove(in);
        return 0;
    }
    if (KRAIT_UNLIKELY(in->scan_threads))
        scan_threads(in);
    if (what == KRAIT_PROFILE_CALL) {
        count(in, krait_code_find(in, code), KRAIT_TOP_IS_NEW);
        if (!in->governor.paused && !left_out(krait_code_find(in, code))) /* the count may begin a pause */
            selective_begin(in, code, begin_event(frame, code));
    } else if (what == KRAIT_PROFILE_RETURN) {
        PyObject *next = goes_on(frame, code, arg);
        if (!is_unreported(in, 0, frame, code, arg)) {
            uint32_t event = end_event(frame, code, arg);
            look_at_end(in, 0, code, event, arg);
            if (event == KRAIT_EVENT_python_return)
                krait_args_ending(in, code, arg);
            const void *root = krait_task_root;
            selective_end(in, frame, code, event);
            look_again_at_end(in, root, code, event, arg);
        }
        note_thrown(in, frame, code, arg);
        note_interrupted(in, frame, arg);
        if (next && !code_left_out(in, next))
            selective_begin(in, next, KRAIT_EVENT_python_resume);
    } else if (in->agent->c_calls) {
        selective_c(in, frame, code, what, arg);
    }
    return 0;
}

/* What the begin of a dropped function takes: mostly the look-up, which is slow where many functions are hot. */
static int sampled_event(struct krait_interp *in, PyObject *frame, int what, PyObject *arg)
{
    enum { MOST = 32 }; /* times what an event takes; longer ones were interrupted */
    struct krait_governor *g = &in->governor;
    uint64_t idle = g->idle, looked = g->look_ticks, begin = krait_writer_now(&in->agent->writer);
    int rc = selective_event(in, frame, what, arg);
    uint64_t took = krait_writer_now(&in->agent->writer) - begin;
    if (g->idle == idle + 1 && g->look_ticks == looked && took < MOST * in->agent->event_ticks) {
        g->idle_sampled_ticks += took;
        g->idle_samples++;
    }
    return rc;
}

static int on_event_selective(PyObject *obj, PyObject *frame, int what, PyObject *arg)
{
    struct krait_interp *in = ((struct profile_obj *)obj)->in;
    return KRAIT_UNLIKELY(krait_governor_samples(in)) ? sampled_event(in, frame, what, arg)
                                                      : selective_event(in, frame, what, arg);
}

/* ---- installing it ---- */

static struct {
    struct krait_interp *in;
    int key;
} watched = { .key = -1 };

/* CPython keeps each thread's state under a pthread key, whose number only the values tell. */
static int find_tstate_key(void)
{
    const void *tstate = PyThreadState_Get();
    for (unsigned key = 0; key < 1024; key++) {
        if (pthread_getspecific(key) == tstate)
            return (int)key;
    }
    return -1;
}

/* The new thread itself, before it runs anything: nobody else uses its state yet. */
void krait_profile_thread_state(unsigned key, const void *value)
{
    struct krait_interp *in = watched.in;
    if ((int)key != watched.key || !value || !in || !atomic_load(&in->agent->running) || in->governor.paused)
        return; /* the end of a pause gives it to all */
    if (krait_tstate_is_of(value, in->interp))
        krait_tstate_set_profile((void *)value, the_hook(in->agent), in->profile_obj);
}

static bool is_fed;

void krait_profile_is_fed(void)
{
    is_fed = true;
}

/* In place of libc's, where CPython calls it. */
static int on_setspecific(pthread_key_t key, const void *value)
{
    int rc = pthread_setspecific(key, value);
    if (value)
        krait_profile_thread_state(key, value);
    return rc;
}

/* Without the preloaded library nobody else sees threads that begin from now on. Once; the redirection stays. */
static void watch_new_threads(void)
{
    static const struct krait_got_call calls[] = { { "pthread_setspecific", (void *)on_setspecific } };
    static bool done;
    if (!is_fed && !done)
        done = krait_got_redirect((void *)PyEval_SaveThread, calls, KRAIT_ARRAY_LEN(calls)) == 0;
}

/* In a child of fork: who would end the pause was left behind. The preloaded library sees CPython note the
 * thread state anew; where CPython's call could not be redirected nobody else does. No other thread uses the state. */
void krait_profile_forked(void)
{
    struct krait_interp *in = watched.in;
    if (!in || !in->governor.paused || watched.key < 0)
        return;
    in->governor.paused = false;
    krait_profile_thread_state((unsigned)watched.key, pthread_getspecific((pthread_key_t)watched.key));
}

static PyObject *profile_obj_call(PyObject *self, PyObject *args, PyObject *kwargs);

static PyObject *new_profile_obj(struct krait_interp *in)
{
    PyType_Slot slots[] = { { Py_tp_call, (void *)profile_obj_call }, { 0, NULL } };
    PyType_Spec spec = {
        .name = "krait.profile",
        .basicsize = sizeof(struct profile_obj),
        .flags = Py_TPFLAGS_DEFAULT,
        .slots = slots,
    };
    PyObject *type = PyType_FromSpec(&spec);
    struct profile_obj *obj =
        type ? (struct profile_obj *)PyType_GenericAlloc((PyTypeObject *)type, 0) : NULL;
    if (!obj)
        return NULL;
    obj->in = in;
    /* Thread states drop a reference when they end, and are given the object without the GIL: it never dies. */
    ((PyObject *)obj)->ob_refcnt = 1 << 30;
    return (PyObject *)obj;
}

/* A frame to check the layout on: the one that runs, or where none does (python -S -c) one that has run. New
 * reference. */
static PyObject *some_frame(void)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    if (frame) {
        Py_INCREF(frame);
        return frame;
    }
    PyObject *builtins = PyImport_AddModule("builtins"); /* borrowed */
    PyObject *globals = builtins ? PyModule_GetDict(builtins) : NULL;
    PyObject *code =
        globals ? Py_CompileString("__import__('sys')._getframe()", "<krait>", KRAIT_COMPILE_EVAL) : NULL;
    frame = code ? PyEval_EvalCode(code, globals, globals) : NULL;
    Py_XDECREF(code);
    PyErr_Clear();
    return frame;
}

static __thread bool setting; /* the profile function that is being set is ours */

/* The program sets its own function, or takes it off: once it has none, the thread is recorded again. */
static int come_back(void *arg)
{
    struct krait_interp *in = arg;
    if (atomic_load(&in->agent->running) && !in->ended && !in->governor.paused)
        scan_threads(in);
    return 0;
}

static void on_displaced(struct krait_interp *in)
{
    if (krait_this_ring != &krait_no_ring) {
        krait_writer_lost(&in->agent->writer, KRAIT_lost_reason_displaced, 1);
        krait_thread_break();
    }
    Py_AddPendingCall(come_back, in);
}

/* What sys.getprofile() gives while krait records. A program that keeps it and sets it again later means us. */
static PyObject *profile_obj_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct krait_interp *in = ((struct profile_obj *)self)->in;
    setting = true;
    if (atomic_load(&in->agent->running) && !in->ended)
        krait_compat.set_profile(the_hook(in->agent), self);
    else
        krait_compat.set_profile(NULL, NULL);
    setting = false;
    Py_RETURN_NONE;
}

static int on_audit(const char *event, PyObject *args, void *data)
{
    if (event[0] != '_' && event[0] != 's')
        return 0;
    struct krait_interp *in = watched.in;
    if (!in || !atomic_load(&in->agent->running))
        return 0;
    if (strcmp(event, "_thread.start_new_thread") == 0)
        in->scan_threads = true;
    else if (strcmp(event, "sys.settrace") == 0)
        krait_raised_settle(PyThreadState_Get()); /* 3.8 and 3.9 count trace functions */
    else if (strcmp(event, "sys.setprofile") == 0 && !setting)
        on_displaced(in);
    return 0;
}

static bool audited;

static int set_and_check(struct krait_interp *in, const char **why)
{
    /* A subinterpreter that is being made runs no code yet; what it is made of was checked in the first one. */
    PyObject *frame = watched.in ? NULL : some_frame(); /* before the hook is there to see it */
    *why = "no Python code can run";
    if (!frame && !watched.in)
        return -ENOTSUP;
    setting = true;
    krait_compat.set_profile(the_hook(in->agent), in->profile_obj);
    int rc = frame ? krait_compat_check_layout(frame, the_hook(in->agent), why) : 0;
    if (rc)
        krait_compat.set_profile(NULL, NULL);
    setting = false;
    Py_XDECREF(frame);
    return rc;
}

int krait_profile_install(struct krait_interp *in, const char **why)
{
    *why = "out of memory";
    if (!in->profile_obj)
        in->profile_obj = new_profile_obj(in);
    if (!in->profile_obj)
        return -ENOMEM;
    int rc = set_and_check(in, why);
    if (rc)
        return rc;
    scan_threads(in);
    if (krait_has_inner_frames())
        krait_unreported_patch_handler();
    if (!watched.in) {
        watched.key = find_tstate_key();
        watched.in = in;
        watch_new_threads();
    }
    if (!audited && krait_compat.add_audit_hook)
        audited = krait_compat.add_audit_hook(on_audit, NULL) == 0;
    in->governor.no_raise = false;
    PyErr_Clear();
    return 0;
}

void krait_profile_forget(const struct krait_interp *in)
{
    if (watched.in == in)
        watched.in = NULL;
}

void krait_profile_forget_all(void)
{
    watched.in = NULL;
    audited = false;
}

void krait_profile_resume(struct krait_interp *in)
{
    scan_threads(in);
}

void krait_profile_remove(struct krait_interp *in)
{
    PyThreadState *ts = krait_compat.thread_head ? krait_compat.thread_head(in->interp) : NULL;
    for (; ts; ts = krait_compat.thread_next(ts)) {
        krait_raised_settle(ts); /* first: what is left decides whether CPython traces on */
        krait_tstate_clear_profile(ts, the_hook(in->agent));
    }
}
