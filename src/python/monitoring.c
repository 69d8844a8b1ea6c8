/* SPDX-License-Identifier: Apache-2.0
 *
 * The hooks of Python 3.12 and later: sys.monitoring (PEP 669), with callbacks of our own vectorcall type,
 * which saves 2 to 6 ns a call against a builtin function.
 *
 * The interpreter does not call a tool's callbacks while one runs in the same thread: slow paths may run
 * Python code. None is immortal from 3.12 on: callbacks return it without counting.
 *
 * With filters or a governor other callbacks are registered (selective_...), which look a function up at its
 * end too, and return DISABLE for what is left out: the interpreter then takes the hook out of that place for
 * good. PY_THROW and PY_UNWIND have no place to take it out of (ValueError before 3.15).
 */
#include "python/monitoring.h"
#include "python/annotate.h"
#include "python/args.h"
#include "python/codes.h"
#include "python/compat/running.h"
#include "python/green_tasks.h"
#include "python/tasks.h"

PyObject *krait_monitoring_disable;

static inline struct krait_interp *hook_interp(PyObject *self)
{
    return ((struct krait_monitoring_hook *)self)->in;
}

#define KRAIT_ARGS PyObject *self, PyObject *const *args, size_t nargs, PyObject *names

static inline bool left_out(const struct krait_code *slot)
{
    return slot && slot->flags & KRAIT_CODE_OMIT;
}

/* Whether the call of a C callable was told, of which the end comes. */
static bool is_told(struct krait_interp *in, PyObject *callable)
{
    const void *key = krait_code_key(callable);
    return key && !left_out(krait_code_find(in, key));
}

/* ---- all functions are recorded ----
 *
 * Each hook has a slow twin with the same arguments, which it leaves to by a jump: the short way then needs
 * no frame and saves no registers. The clock is the counter alone; without one the selective hooks run. */

#define KRAIT_BEGIN_HOOK(name, event)                                                     \
    static KRAIT_COLD PyObject *slow_##name(KRAIT_ARGS)                                   \
    {                                                                                     \
        struct krait_interp *in = hook_interp(self);                                      \
        uint32_t id = krait_code_id(in, args[0]);                                         \
        struct krait_ring *ring = krait_this_ring;                                        \
        uint64_t t = krait_clock_counter();                                               \
        if (id && krait_ring_has_room(ring, t)) /* its place in the table is another's */ \
            krait_ring_put_code(ring, t, event, id);                                      \
        else                                                                              \
            krait_slow_begin(in, event, args[0]);                                         \
        if (event == KRAIT_EVENT_python_call)                                             \
            krait_args_begun(in, args[0]);                                                \
        return Py_None;                                                                   \
    }                                                                                     \
    static PyObject *name(KRAIT_ARGS)                                                     \
    {                                                                                     \
        struct krait_interp *in = hook_interp(self);                                      \
        const struct krait_code *slot = &in->codes[krait_code_hash(in, args[0])];         \
        struct krait_ring *ring = krait_this_ring;                                        \
        if (KRAIT_UNLIKELY(slot->key != args[0] || !slot->id))                            \
            return slow_##name(self, args, nargs, names);                                 \
        uint64_t t = krait_clock_counter();                                               \
        if (KRAIT_UNLIKELY(!krait_ring_has_room(ring, t)))                                \
            return slow_##name(self, args, nargs, names);                                 \
        krait_ring_put_code(ring, t, event, slot->id);                                    \
        return Py_None;                                                                   \
    }

#define KRAIT_END_HOOK(name, event, is_rare)                                \
    static KRAIT_COLD PyObject *slow_##name(KRAIT_ARGS)                     \
    {                                                                       \
        struct krait_interp *in = hook_interp(self);                        \
        if (!is_rare(args) || is_told(in, args[2]))                         \
            krait_slow_end(in, krait_clock_counter(), event);               \
        return Py_None;                                                     \
    }                                                                       \
    static PyObject *name(KRAIT_ARGS)                                       \
    {                                                                       \
        struct krait_ring *ring = krait_this_ring;                          \
        uint64_t t = krait_clock_counter();                                 \
        if (KRAIT_UNLIKELY(!krait_ring_has_room(ring, t) || is_rare(args))) \
            return slow_##name(self, args, nargs, names);                   \
        krait_ring_put(ring, t, event);                                     \
        return Py_None;                                                     \
    }

#define KRAIT_NEVER(args) false

/* C_RETURN and C_RAISE come for whatever is not a Python function: classes, objects with a __call__, the
 * method object that is the __exit__ of a with statement (3.12, 3.13). */
static inline bool is_rare_callable(PyObject *const *args)
{
    const PyTypeObject *type = Py_TYPE(args[2]);
    return type != krait_compat.cfunction_type && type != krait_compat.method_descr_type;
}

KRAIT_BEGIN_HOOK(on_start, KRAIT_EVENT_python_call)
KRAIT_BEGIN_HOOK(on_resume, KRAIT_EVENT_python_resume)
KRAIT_BEGIN_HOOK(tell_throw, KRAIT_EVENT_python_throw)
KRAIT_END_HOOK(on_return, KRAIT_EVENT_python_return, KRAIT_NEVER)
KRAIT_END_HOOK(on_yield, KRAIT_EVENT_python_yield, KRAIT_NEVER)
KRAIT_END_HOOK(end_c_call, KRAIT_EVENT_c_return, is_rare_callable)

static PyObject *on_c_return(KRAIT_ARGS)
{
    return krait_is_note(Py_TYPE(args[2])) ? Py_None : end_c_call(self, args, nargs, names);
}

/* Of an end that names its exception: the time is read first, as of all ends. */
static inline void put_unwind(struct krait_interp *in, uint64_t t, PyObject *exception)
{
    uint32_t id = krait_code_id(in, Py_TYPE(exception));
    struct krait_ring *ring = krait_this_ring;
    if (KRAIT_LIKELY(id && krait_ring_has_room(ring, t)))
        krait_ring_put_code(ring, t, KRAIT_EVENT_python_unwind_of, id);
    else
        krait_slow_unwind(in, t, exception);
}

static PyObject *on_unwind(KRAIT_ARGS)
{
    put_unwind(hook_interp(self), krait_clock_counter(), args[2]);
    return Py_None;
}

/* RAISE, which comes next, says what. */
static inline void put_c_raise(struct krait_interp *in, uint64_t t)
{
    struct krait_ring *ring = krait_this_ring;
    if (KRAIT_LIKELY(krait_ring_has_room(ring, t)))
        krait_ring_put_code(ring, t, KRAIT_EVENT_c_raise_of, 0);
    else
        krait_slow_end(in, t, KRAIT_EVENT_c_raise_of);
    krait_unreported_c_raise();
}

static PyObject *on_c_raise(KRAIT_ARGS)
{
    uint64_t t = krait_clock_counter();
    struct krait_interp *in = hook_interp(self);
    if (!is_rare_callable(args) || is_told(in, args[2]))
        put_c_raise(in, t);
    return Py_None;
}

/* What CALL's callable ends as: a method object ends as its function, or not at all (NULL). */
static inline PyObject *called(PyObject *const *args)
{
    if (KRAIT_LIKELY(Py_TYPE(args[2]) != krait_compat.method_type))
        return args[2];
    return krait_method_called(args[2], args[0], args[1]);
}

/* Callables of the rarer kinds, new ones, and those whose slot is not where it belongs. */
static KRAIT_COLD PyObject *slow_on_call(KRAIT_ARGS)
{
    struct krait_interp *in = hook_interp(self);
    PyObject *callable = called(args);
    const void *key = callable ? krait_code_key(callable) : NULL;
    const struct krait_code *slot = key ? krait_code_find(in, key) : NULL;
    if (!key || left_out(slot))
        return Py_None;
    struct krait_ring *ring = krait_this_ring;
    uint64_t t = krait_clock_counter();
    if (KRAIT_LIKELY(slot && slot->id && krait_ring_has_room(ring, t)))
        krait_ring_put_code(ring, t, KRAIT_EVENT_c_call, slot->id);
    else
        krait_slow_c_call(in, key, callable);
    return Py_None;
}

/* CALL comes for Python functions too; they have PY_START. */
static PyObject *on_call(KRAIT_ARGS)
{
    const PyTypeObject *type = Py_TYPE(args[2]);
    if (type == krait_compat.function_type)
        return Py_None;
    struct krait_interp *in = hook_interp(self);
    const void *key;
    if (type == krait_compat.cfunction_type)
        key = krait_at(args[2], KRAIT_CFUNCTION_ML);
    else if (type == krait_compat.method_descr_type)
        key = krait_at(args[2], KRAIT_METHOD_DESCR_DEF);
    else
        return krait_is_note(type) ? Py_None : slow_on_call(self, args, nargs, names);
    const struct krait_code *slot = &in->codes[krait_code_hash(in, key)];
    struct krait_ring *ring = krait_this_ring;
    if (KRAIT_UNLIKELY(slot->key != key || !slot->id))
        return slow_on_call(self, args, nargs, names);
    uint64_t t = krait_clock_counter();
    if (KRAIT_UNLIKELY(!krait_ring_has_room(ring, t)))
        return slow_on_call(self, args, nargs, names);
    krait_ring_put_code(ring, t, KRAIT_EVENT_c_call, slot->id);
    return Py_None;
}

/* ---- some are left out ---- */

#define KRAIT_HOOK(name, body)        \
    static PyObject *name(KRAIT_ARGS) \
    {                                 \
        return body;                  \
    }

static inline __attribute__((always_inline)) PyObject *end(PyObject *self, uint32_t event)
{
    struct krait_interp *in = hook_interp(self);
    uint64_t t = krait_writer_now(&in->agent->writer);
    struct krait_ring *ring = krait_this_ring;
    if (KRAIT_LIKELY(krait_ring_has_room(ring, t)))
        krait_ring_put(ring, t, event);
    else
        krait_slow_end(in, t, event);
    return Py_None;
}

/* What the hook of a function that is left out returns: it goes, unless a call is to be timed. */
static PyObject *begin_left_out(struct krait_interp *in, const struct krait_code *slot, PyObject *omit)
{
    bool probe = krait_governor_probes(in, slot);
    if (probe)
        krait_governor_probe_begin(in, slot);
    krait_governor_count_idle(in);
    return probe ? Py_None : omit;
}

static PyObject *end_left_out(struct krait_interp *in, struct krait_code *slot, PyObject *omit)
{
    if (!krait_governor_probes(in, slot))
        return omit;
    krait_governor_probe_end(in, slot);
    return Py_None;
}

static inline __attribute__((always_inline)) PyObject *selective_begin(PyObject *self, PyObject *code,
                                                                       uint32_t event, PyObject *omit)
{
    struct krait_interp *in = hook_interp(self);
    struct krait_code *slot = krait_code_find(in, code);
    if (KRAIT_LIKELY(slot && slot->id) && KRAIT_UNLIKELY(krait_governor_count(in, slot, KRAIT_TOP_IS_NEW)))
        slot = krait_code_find(in, code);
    struct krait_ring *ring = krait_this_ring;
    uint64_t t = krait_writer_now(&in->agent->writer);
    if (KRAIT_LIKELY(slot && slot->id && !in->agent->call_sites && krait_ring_has_room(ring, t))) {
        krait_ring_put_code(ring, t, event, slot->id);
        return Py_None;
    }
    if (left_out(slot))
        return begin_left_out(in, slot, omit);
    return krait_slow_begin(in, event, code) ? omit : Py_None;
}

static PyObject *on_throw(KRAIT_ARGS)
{
    tell_throw(self, args, nargs, names);
    krait_unreported_throw(args[0]);
    return Py_None;
}

static PyObject *on_raise(KRAIT_ARGS)
{
    int saved = errno;
    krait_unreported_exception(hook_interp(self), args[2]);
    krait_unreported_raise(hook_interp(self), args[0], args[1], args[2]);
    errno = saved;
    return Py_None;
}

/* Of the budget too: before 3.15 it cannot be taken out of single places. */
static PyObject *selective_raise(KRAIT_ARGS)
{
    struct krait_interp *in = hook_interp(self);
    in->governor.raises++;
    krait_governor_count_idle(in);
    return on_raise(self, args, nargs, names);
}

static inline __attribute__((always_inline)) PyObject *selective_end(PyObject *self, PyObject *code,
                                                                     uint32_t event, PyObject *omit)
{
    struct krait_interp *in = hook_interp(self);
    struct krait_code *slot = krait_code_find(in, code);
    if (KRAIT_UNLIKELY(!krait_code_is_defined(slot)))
        slot = krait_slow_look(in, code);
    return KRAIT_UNLIKELY(left_out(slot)) ? end_left_out(in, slot, omit) : end(self, event);
}

/* The slot of the function that calls: calls of one that is left out are left out with it. It may not have been met yet:
 * it was live when the recording began, or what is recorded changed. */
static inline const struct krait_code *caller_slot(struct krait_interp *in, PyObject *code)
{
    const struct krait_code *slot = krait_code_find(in, code);
    return KRAIT_LIKELY(krait_code_is_defined(slot)) ? slot : krait_slow_look(in, code);
}

static inline bool caller_left_out(struct krait_interp *in, PyObject *code)
{
    return left_out(caller_slot(in, code));
}

/* A call by a function that is left out. While calls of that function are timed the hook stays: it may be recorded again
 * at the end of one of them, with all that it calls. */
static PyObject *call_by_left_out(struct krait_interp *in, const struct krait_code *caller)
{
    bool probe = krait_governor_probes(in, caller);
    krait_governor_count_idle(in);
    return probe ? Py_None : krait_monitoring_disable;
}

static PyObject *selective_call(KRAIT_ARGS)
{
    struct krait_interp *in = hook_interp(self);
    const struct krait_code *caller = caller_slot(in, args[0]);
    if (left_out(caller))
        return call_by_left_out(in, caller);
    PyObject *callable = called(args);
    const void *key = callable ? krait_code_key(callable) : NULL;
    if (!key) { /* a Python function: once the budget is tight, its hook here goes */
        krait_governor_count_idle(in);
        return in->governor.drops ? krait_monitoring_disable : Py_None;
    }
    struct krait_code *slot = krait_code_find(in, key);
    if (left_out(slot)) /* a filter speaks of the function, other functions may be called from here too */
        return slot->flags & KRAIT_CODE_HOT ? begin_left_out(in, slot, krait_monitoring_disable) : Py_None;
    if (KRAIT_LIKELY(slot && slot->id) && KRAIT_UNLIKELY(krait_governor_count(in, slot, KRAIT_TOP_IS_OLD))) {
        if (caller_left_out(in, args[0])) /* since now: the call's end will not be told */
            return krait_monitoring_disable;
        slot = krait_code_find(in, key);
    }
    struct krait_ring *ring = krait_this_ring;
    uint64_t t = krait_writer_now(&in->agent->writer);
    if (KRAIT_LIKELY(slot && slot->id && !in->agent->call_sites && krait_ring_has_room(ring, t)))
        krait_ring_put_code(ring, t, KRAIT_EVENT_c_call, slot->id);
    else if (!left_out(slot))
        krait_slow_c_call(in, key, callable);
    return Py_None;
}

/* Of the end of a C callable. */
static bool c_end_is_told(struct krait_interp *in, PyObject *const *args)
{
    const void *key = krait_code_key(args[2]);
    if (!key || caller_left_out(in, args[0]))
        return false;
    struct krait_code *slot = krait_code_find(in, key);
    if (KRAIT_LIKELY(!left_out(slot)))
        return true;
    end_left_out(in, slot, Py_None); /* may take it back: this call was not told all the same */
    return false;
}

static PyObject *selective_c_return(KRAIT_ARGS)
{
    bool told = c_end_is_told(hook_interp(self), args);
    return told ? end(self, KRAIT_EVENT_c_return) : Py_None;
}

static PyObject *selective_c_raise(KRAIT_ARGS)
{
    struct krait_interp *in = hook_interp(self);
    if (c_end_is_told(in, args))
        put_c_raise(in, krait_writer_now(&in->agent->writer));
    return Py_None;
}

static PyObject *selective_unwind(KRAIT_ARGS)
{
    struct krait_interp *in = hook_interp(self);
    struct krait_code *slot = krait_code_find(in, args[0]);
    if (KRAIT_UNLIKELY(!krait_code_is_defined(slot)))
        slot = krait_slow_look(in, args[0]);
    if (KRAIT_UNLIKELY(left_out(slot))) {
        PyObject *result = end_left_out(in, slot, Py_None);
        krait_governor_count_idle(in);
        return result;
    }
    if (KRAIT_UNLIKELY(in->governor.no_raise) && krait_unreported_unwinds(in, args[0], args[1], args[2]))
        return Py_None;
    put_unwind(in, krait_writer_now(&in->agent->writer), args[2]);
    return Py_None;
}

static PyObject *selective_start(KRAIT_ARGS)
{
    PyObject *result = selective_begin(self, args[0], KRAIT_EVENT_python_call, krait_monitoring_disable);
    krait_args_begun(hook_interp(self), args[0]);
    return result;
}

KRAIT_HOOK(selective_resume,
           selective_begin(self, args[0], KRAIT_EVENT_python_resume, krait_monitoring_disable))

static PyObject *selective_throw(KRAIT_ARGS)
{
    selective_begin(self, args[0], KRAIT_EVENT_python_throw, Py_None);
    krait_unreported_throw(args[0]);
    return Py_None;
}

static PyObject *selective_return(KRAIT_ARGS)
{
    krait_args_ending(hook_interp(self), args[0], args[2]);
    return selective_end(self, args[0], KRAIT_EVENT_python_return, krait_monitoring_disable);
}

KRAIT_HOOK(selective_yield, selective_end(self, args[0], KRAIT_EVENT_python_yield, krait_monitoring_disable))

/* ---- the program has tasks ----
 *
 * Hooks around those above, once the program imports a library that runs tasks: tasks.h. */

static inline PyObject *call_base(KRAIT_ARGS)
{
    return ((struct krait_monitoring_hook *)self)->base(self, args, nargs, names);
}

static inline PyObject *task_begin(KRAIT_ARGS, enum krait_tasks_begin how)
{
    PyObject *result = call_base(self, args, nargs, names);
    struct krait_interp *in = hook_interp(self);
    const struct krait_code *slot = krait_code_find(in, args[0]);
    if (slot && slot->flags & KRAIT_CODE_TASK && slot->id)
        krait_tasks_begun(in, args[0], how);
    return result;
}

/* The task's event stands behind the throw, before what is raised. */
static inline PyObject *task_thrown(KRAIT_ARGS)
{
    PyObject *result = task_begin(self, args, nargs, names, KRAIT_TASKS_THROW);
    krait_unreported_throw(args[0]);
    return result;
}

/* An end. Where it is the first event after a pause, the step that it ends is known only when it was written. */
static inline PyObject *call_base_at_end(KRAIT_ARGS, enum krait_event_enum_value how)
{
    const void *root = krait_task_root;
    PyObject *result = call_base(self, args, nargs, names);
    if (KRAIT_UNLIKELY(!root && krait_task_root == args[0]))
        krait_tasks_ending(hook_interp(self), how, nargs > 2 ? args[2] : NULL);
    return result;
}

static inline PyObject *task_end(KRAIT_ARGS, enum krait_event_enum_value how)
{
    if (KRAIT_UNLIKELY(krait_task_root == args[0]))
        krait_tasks_ending(hook_interp(self), how, nargs > 2 ? args[2] : NULL);
    return call_base_at_end(self, args, nargs, names, how);
}

static inline PyObject *task_yields(KRAIT_ARGS)
{
    struct krait_interp *in = hook_interp(self);
    const struct krait_code *slot = krait_task_root ? krait_code_find(in, args[0]) : NULL;
    if (slot && slot->flags & KRAIT_CODE_TASK && krait_tasks_yielding(in, args[0]))
        krait_tasks_ending(in, KRAIT_task_leave_reason_yielded, args[2]);
    return call_base_at_end(self, args, nargs, names, KRAIT_task_leave_reason_yielded);
}

/* What a call on an object tells of waits. */
static void note_method(struct krait_interp *in, uint32_t flags, PyObject *object)
{
    if (flags & KRAIT_CODE_WAKES)
        krait_tasks_wake(in, object);
    else
        krait_green_tasks_call(in, flags >> KRAIT_CODE_GREEN, object);
}

static PyObject *task_call(KRAIT_ARGS)
{
    PyObject *result = call_base(self, args, nargs, names);
    struct krait_interp *in = hook_interp(self);
    const void *key = krait_code_key(args[2]);
    const struct krait_code *slot = key ? krait_code_find(in, key) : NULL;
    if (KRAIT_UNLIKELY(slot && slot->flags & (KRAIT_CODE_WAKES | ~0u << KRAIT_CODE_GREEN)))
        note_method(in, slot->flags,
                    Py_TYPE(args[2]) == krait_compat.cfunction_type ? krait_at(args[2], KRAIT_CFUNCTION_SELF)
                                                                    : args[3]);
    return result;
}

KRAIT_HOOK(task_start, task_begin(self, args, nargs, names, KRAIT_TASKS_CALL))
KRAIT_HOOK(task_resume, task_begin(self, args, nargs, names, KRAIT_TASKS_RESUME))
KRAIT_HOOK(task_throw, task_thrown(self, args, nargs, names))
KRAIT_HOOK(task_return, task_end(self, args, nargs, names, KRAIT_task_leave_reason_returned))
KRAIT_HOOK(task_yield, task_yields(self, args, nargs, names))
KRAIT_HOOK(task_unwind, task_end(self, args, nargs, names, KRAIT_task_leave_reason_raised))

/* ---- all of them ---- */

const struct krait_monitoring_row krait_monitoring_rows[KRAIT_MONITORING_ROWS] = {
    { "PY_START", on_start, selective_start, task_start, false },
    { "PY_RESUME", on_resume, selective_resume, task_resume, false },
    { "PY_THROW", on_throw, selective_throw, task_throw, false },
    { "PY_RETURN", on_return, selective_return, task_return, false },
    { "PY_YIELD", on_yield, selective_yield, task_yield, false },
    { "PY_UNWIND", on_unwind, selective_unwind, task_unwind, false },
    { "RAISE", on_raise, selective_raise, NULL, false },
    { "CALL", on_call, selective_call, task_call, true },
    { "C_RETURN", on_c_return, selective_c_return, NULL, true },
    { "C_RAISE", on_c_raise, selective_c_raise, NULL, true },
};
