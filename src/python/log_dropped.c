/* SPDX-License-Identifier: Apache-2.0
 *
 * Records that the program's own level drops, where --log names a level.
 *
 * The methods that the program logs by ask isEnabledFor once and return if it says no. Then there is no record: what
 * would be in it is taken from the method's arguments. LoggerAdapter.log does the same; its process() is not called.
 */
#include "python/log_inside.h"

#include "python/codes.h"
#include "python/compat/running.h"

#include <string.h>

enum answer {
    NOT_ASKED,
    SAID_YES,
    SAID_NO,
};

/* What isEnabledFor has said first in this thread since the innermost method began. A method that is told no returns before
 * anything else can run in its thread. */
static __thread enum answer answer;

static PyObject *on_is_enabled_for(PyObject *function, PyObject *const *args, size_t nargs, PyObject *names)
{
    PyObject *result = krait_call_original(function, args, nargs, names);
    if (answer == NOT_ASKED) /* a handler that runs in the method may ask too */
        answer = result == Py_False ? SAID_NO : SAID_YES;
    return result;
}

/* ---- what would have been said ---- */

struct call {
    struct krait_interp *in;
    PyObject *logger, *msg;
    PyObject *const *args; /* of the message */
    Py_ssize_t count;
    PyObject *const *values; /* of `names` */
    PyObject *names;
    long level;
};

/* A keyword argument; borrowed or NULL. */
static PyObject *keyword(const struct call *call, const char *name)
{
    for (Py_ssize_t i = 0; call->names && i < PyTuple_Size(call->names); i++) {
        if (PyUnicode_CompareWithASCIIString(PyTuple_GetItem(call->names, i), name) == 0)
            return call->values[i];
    }
    return NULL;
}

/* The frame that logs: below the method's, those of the file that the method is in are logging's own. New reference
 * or NULL. */
static PyObject *logging_frame(PyObject *function, long level)
{
    PyObject *own = PyObject_GetAttrString(function, "__code__");
    PyObject *own_file = own ? PyObject_GetAttrString(own, "co_filename") : NULL;
    PyObject *frame = krait_thread_frame(KRAIT_TOP_IS_OLD);
    bool is_own = own_file != NULL;
    while (frame && (is_own || level > 1)) {
        PyObject *code = krait_frame_code(frame);
        PyObject *file = code ? PyObject_GetAttrString(code, "co_filename") : NULL;
        is_own = is_own && file && PyUnicode_Compare(file, own_file) == 0;
        Py_XDECREF(file);
        Py_XDECREF(code);
        if (!is_own && level-- <= 1)
            break;
        PyObject *back = krait_frame_back(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(own_file);
    Py_XDECREF(own);
    PyErr_Clear();
    return frame;
}

static void add_place(struct krait_said *said, PyObject *function, const struct call *call)
{
    PyObject *stack_level = keyword(call, "stacklevel");
    PyObject *frame = logging_frame(function, stack_level ? krait_long_of(stack_level) : 1);
    PyObject *code = frame ? krait_frame_code(frame) : NULL;
    if (code) {
        krait_text_add_attr(&said->file, code, "co_filename", KRAIT_SAID_FILE_BYTES);
        krait_text_add_attr(&said->func, code, "co_name", KRAIT_SAID_NAME_BYTES);
        said->line = (uint32_t)KRAIT_MAX(PyFrame_GetLineNumber((PyFrameObject *)frame), 0);
    }
    Py_XDECREF(code);
    Py_XDECREF(frame);
}

/* True stands for the exception that is being handled. */
static bool add_exception(struct krait_said *said, const struct call *call)
{
    PyObject *exc_info = keyword(call, "exc_info"), *type, *value, *traceback;
    if (exc_info && PyTuple_Check(exc_info) && PyTuple_Size(exc_info) == 3)
        return krait_said_exception(said, PyTuple_GetItem(exc_info, 1), PyTuple_GetItem(exc_info, 2));
    if (exc_info && PyExceptionInstance_Check(exc_info))
        return krait_said_exception(said, exc_info, NULL);
    if (!exc_info || PyObject_IsTrue(exc_info) != 1)
        return true;
    PyErr_GetExcInfo(&type, &value, &traceback);
    bool whole = krait_said_exception(said, value, NULL);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return whole;
}

/* Of the call, or of an adapter. */
static bool add_extra(struct krait_said *said, const struct call *call)
{
    struct krait_text_object object = { .to = &said->extra,
                                        .most = KRAIT_SAID_EXTRA_BYTES,
                                        .calls = KRAIT_TEXT_CALLS };
    PyObject *given = keyword(call, "extra"), *key, *value;
    PyObject *adapters = given ? NULL : PyObject_GetAttrString(call->logger, "extra");
    PyObject *dict = given ? given : adapters;
    Py_ssize_t at = 0;
    bool whole = true;
    PyErr_Clear();
    while (whole && dict && PyDict_Check(dict) && PyDict_Next(dict, &at, &key, &value))
        whole = krait_text_object_add(&object, key, value);
    if (object.open || object.left_out)
        krait_text_object_end(&object);
    Py_XDECREF(adapters);
    return whole;
}

/* LogRecord takes a mapping that is alone for the arguments. */
static PyObject *message_args(const struct call *call)
{
    if (call->count == 1 && PyDict_Check(call->args[0]) && PyDict_Size(call->args[0])) {
        Py_INCREF(call->args[0]);
        return call->args[0];
    }
    PyObject *args = PyTuple_New(call->count);
    for (Py_ssize_t i = 0; args && i < call->count; i++) {
        Py_INCREF(call->args[i]);
        PyTuple_SetItem(args, i, call->args[i]);
    }
    return args;
}

static bool fill(struct krait_said *said, PyObject *function, const struct call *call)
{
    PyObject *args = message_args(call);
    said->level = call->level;
    add_place(said, function, call);
    krait_said_task(said);
    bool whole =
        krait_said_message(said, NULL, call->msg, args) && add_exception(said, call) && add_extra(said, call);
    Py_XDECREF(args);
    return whole;
}

static bool say(PyObject *function, const struct call *call)
{
    KRAIT_CLEANUP(krait_said_done) struct krait_said said = { .moment = krait_moment_now() };
    krait_text_add_attr(&said.logger, call->logger, "name", KRAIT_SAID_NAME_BYTES);
    if (!said.logger.len || !krait_log_wants_dropped(call->in, said.logger.data, call->level))
        return true;
    struct krait_log_mute before = krait_log_mute();
    bool whole = fill(&said, function, call);
    krait_log_unmute(before);
    if (whole)
        krait_said_write(call->in, &said);
    return whole;
}

/* ---- the methods ---- */

/* (self, msg, *args) and (self, level, msg, *args): `msg` says which argument it is. */
static PyObject *method(PyObject *function, PyObject *const *args, size_t nargs, PyObject *names, size_t msg,
                        long level)
{
    enum answer before = answer;
    answer = NOT_ASKED;
    PyObject *result = krait_call_original(function, args, nargs, names);
    bool dropped = result && answer == SAID_NO && KRAIT_NARGS(nargs) > msg;
    answer = before;
    struct krait_interp *in = dropped && !krait_log_is_muted() ? krait_agent_interp() : NULL;
    if (!in || !in->log || !krait_agent_records(in))
        return result;
    const struct call call = {
        .in = in,
        .logger = args[0],
        .msg = args[msg],
        .args = args + msg + 1,
        .count = (Py_ssize_t)(KRAIT_NARGS(nargs) - msg - 1),
        .values = args + KRAIT_NARGS(nargs),
        .names = names,
        .level = level ? level : krait_long_of(args[1]),
    };
    if (!say(function, &call))
        Py_CLEAR(result);
    return result;
}

#define KRAIT_METHOD(name, msg, level)                                                              \
    static PyObject *name(PyObject *function, PyObject *const *args, size_t nargs, PyObject *names) \
    {                                                                                               \
        return method(function, args, nargs, names, msg, level);                                    \
    }

KRAIT_METHOD(on_debug, 1, 10)
KRAIT_METHOD(on_info, 1, 20)
KRAIT_METHOD(on_warning, 1, 30)
KRAIT_METHOD(on_error, 1, 40)
KRAIT_METHOD(on_critical, 1, 50)
KRAIT_METHOD(on_log, 2, 0)

/* Logger.exception, .warn and LoggerAdapter's others call these. */
const struct krait_patch_python krait_log_dropped_patches[] = {
    { "logging", "Logger", "isEnabledFor", on_is_enabled_for },
    { "logging", "Logger", "debug", on_debug },
    { "logging", "Logger", "info", on_info },
    { "logging", "Logger", "warning", on_warning },
    { "logging", "Logger", "error", on_error },
    { "logging", "Logger", "critical", on_critical },
    { "logging", "Logger", "log", on_log },
    { "logging", "LoggerAdapter", "log", on_log },
};
const size_t krait_log_dropped_patch_count = KRAIT_ARRAY_LEN(krait_log_dropped_patches);
