/* SPDX-License-Identifier: Apache-2.0
 *
 * Warnings that are shown and exceptions that nobody caught, with --log.
 *
 * warnings._showwarnmsg is called with each warning that the filters let through, also from C, whichever function the
 * program uses to show them. Calls of sys.excepthook and sys.unraisablehook raise audit events (PEP 578).
 * threading.excepthook is called by a function that each Thread gets when it is created; krait patches that.
 */
#include "python/log_inside.h"

#include "python/codes.h"
#include "python/modules.h"
#include "python/optional.h"

#include <string.h>

enum { TEXT_BYTES = 2048, WARNING_LEVEL = 30 };
static const char warnings_logger[] = "py.warnings"; /* that of logging.captureWarnings */

/* What is to be raised in the program is raised by the next pending call: a hook's caller does not expect it. */
static int raise_later(void *exception)
{
    PyErr_SetObject((PyObject *)Py_TYPE((PyObject *)exception), exception);
    Py_DECREF((PyObject *)exception);
    return -1;
}

static void put_off(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && Py_AddPendingCall(raise_later, value) == 0)
        value = NULL;
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

/* ---- warnings ---- */

/* Of a warnings.WarningMessage. Returns false with an exception set that is the program's. */
static bool note_warning(struct krait_interp *in, PyObject *shown)
{
    KRAIT_CLEANUP(krait_said_done) struct krait_said said = { .moment = krait_moment_now() };
    KRAIT_AUTO_BUF payload = { 0 };
    struct krait_note note;
    PyObject *warning = PyObject_GetAttrString(shown, "message");
    PyObject *line = PyObject_GetAttrString(shown, "lineno");
    krait_text_add_attr(&said.file, shown, "filename", KRAIT_SAID_FILE_BYTES);
    krait_said_task(&said);
    bool whole = warning && krait_text_of(&said.message, warning, KRAIT_TEXT_CALLS, TEXT_BYTES);
    bool is_warning = whole && PyExceptionInstance_Check(warning);
    if (krait_note_begin(&note, in, said.moment) && is_warning) {
        const struct krait_payload_warning_shown event = {
            .category = krait_code_exception(in, warning),
            .message = krait_said_text(&said.message, ""),
            .file = krait_said_text(&said.file, KRAIT_NO_TEXT),
            .line = line ? (uint32_t)krait_long_of(line) : 0,
            .task = krait_said_text(&said.task, KRAIT_NO_TEXT),
        };
        uint8_t *at = (uint8_t *)krait_buf_room(&payload, KRAIT_PAYLOAD_MAX);
        if (at)
            krait_note_put(&note, KRAIT_EVENT_warning_shown, at, krait_put_warning_shown(at, &event));
    }
    krait_note_end(&note);
    Py_XDECREF(line);
    Py_XDECREF(warning);
    return whole || krait_text_swallow();
}

/* Whether logging.captureWarnings() makes a log record of it, which the program's levels and filters decide about; as
 * logging._showwarning() finds out. */
static bool is_logged(PyObject *shown)
{
    PyObject *show = krait_module_item(krait_module("warnings"), "showwarning");
    PyObject *logs = krait_module_item(krait_module("logging"), "_showwarning");
    PyObject *file = show && show == logs ? PyObject_GetAttrString(shown, "file") : NULL;
    bool is = file == Py_None;
    Py_XDECREF(file);
    PyErr_Clear();
    return is;
}

/* _showwarnmsg(msg). */
static PyObject *on_show_warning(PyObject *function, PyObject *const *args, size_t nargs, PyObject *names)
{
    struct krait_interp *in = krait_agent_interp();
    if (krait_log_is_muted())
        Py_RETURN_NONE;
    if (in && krait_agent_records(in) && KRAIT_NARGS(nargs) == 1 && !is_logged(args[0]) &&
        krait_log_wants(in, warnings_logger, WARNING_LEVEL)) {
        struct krait_log_mute before = krait_log_mute();
        bool whole = note_warning(in, args[0]);
        krait_log_unmute(before);
        if (!whole)
            return NULL;
    }
    return krait_call_original(function, args, nargs, names);
}

/* ---- exceptions ---- */

static void write_uncaught(struct krait_interp *in, const struct krait_said *said, PyObject *exception,
                           enum krait_event_enum_value hook)
{
    struct krait_note note;
    KRAIT_AUTO_BUF payload = { 0 };
    if (krait_note_begin(&note, in, said->moment)) {
        const struct krait_payload_exception_uncaught event = {
            .hook = (uint8_t)hook,
            .type = krait_code_exception(in, exception),
            .exception = krait_said_text(&said->exception, KRAIT_NO_TEXT),
            .where = krait_said_text(&said->message, KRAIT_NO_TEXT),
            .task = krait_said_text(&said->task, KRAIT_NO_TEXT),
        };
        uint8_t *at = (uint8_t *)krait_buf_room(&payload, KRAIT_PAYLOAD_MAX);
        if (at)
            krait_note_put(&note, KRAIT_EVENT_exception_uncaught, at,
                           krait_put_exception_uncaught(at, &event));
    }
    krait_note_end(&note);
}

static bool add_where(struct krait_buf *to, PyObject *object)
{
    return (PyUnicode_Check(object) ? krait_text_of : krait_text_repr)(to, object, KRAIT_TEXT_CALLS,
                                                                       TEXT_BYTES);
}

/* `object`: what an exception came from that cannot be raised, or a text that says so; NULL: none. */
static void note_uncaught(struct krait_interp *in, PyObject *exception, PyObject *traceback, PyObject *object,
                          enum krait_event_enum_value hook)
{
    if (!exception || !PyExceptionInstance_Check(exception))
        return;
    KRAIT_CLEANUP(krait_said_done) struct krait_said said = { .moment = krait_moment_now() };
    struct krait_log_mute before = krait_log_mute();
    krait_said_task(&said);
    if (traceback == Py_None)
        traceback = NULL;
    if (!krait_said_exception(&said, exception, traceback) ||
        (object && object != Py_None && !add_where(&said.message, object)))
        put_off();
    krait_log_unmute(before);
    write_uncaught(in, &said, exception, hook);
}

/* (hook, type, value, traceback). */
static void note_excepthook(struct krait_interp *in, PyObject *args)
{
    if (PyTuple_Size(args) == 4)
        note_uncaught(in, PyTuple_GetItem(args, 2), PyTuple_GetItem(args, 3), NULL, KRAIT_uncaught_by_main);
}

/* (hook, unraisable). */
static void note_unraisable(struct krait_interp *in, PyObject *args)
{
    PyObject *unraisable = PyTuple_Size(args) == 2 ? PyTuple_GetItem(args, 1) : NULL;
    PyObject *value = unraisable ? PyObject_GetAttrString(unraisable, "exc_value") : NULL;
    PyObject *traceback = unraisable ? PyObject_GetAttrString(unraisable, "exc_traceback") : NULL;
    PyObject *object = unraisable ? PyObject_GetAttrString(unraisable, "object") : NULL;
    if (object == Py_None) { /* 3.14: what it was in is in the message */
        Py_DECREF(object);
        object = PyObject_GetAttrString(unraisable, "err_msg");
    }
    PyErr_Clear();
    note_uncaught(in, value, traceback, object, KRAIT_uncaught_by_unraisable);
    Py_XDECREF(object);
    Py_XDECREF(traceback);
    Py_XDECREF(value);
}

void krait_warnings_audit(struct krait_interp *in, const char *event, PyObject *args)
{
    static const struct {
        const char *event;
        void (*note)(struct krait_interp *in, PyObject *args);
    } rows[] = { { "sys.excepthook", note_excepthook }, { "sys.unraisablehook", note_unraisable } };
    if (event[0] != 's' || !args || !PyTuple_Check(args) || krait_log_is_muted())
        return;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(rows); i++) {
        if (strcmp(event, rows[i].event) != 0)
            continue;
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        rows[i].note(in, args);
        PyErr_Restore(type, value, traceback);
    }
}

/* invoke_excepthook(thread), which Thread calls in its own handler of the exception. */
static PyObject *on_invoke(PyObject *function, PyObject *const *args, size_t nargs, PyObject *names)
{
    struct krait_interp *in = krait_agent_interp();
    if (in && krait_agent_records(in)) {
        PyObject *type, *value, *traceback;
        PyErr_GetExcInfo(&type, &value, &traceback);
        if (type && type != Py_None &&
            !PyErr_GivenExceptionMatches(type, PyExc_SystemExit)) /* ends the thread quietly */
            note_uncaught(in, value, NULL, NULL, KRAIT_uncaught_by_thread);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    }
    return krait_call_original(function, args, nargs, names);
}

/* _make_invoke_excepthook(). */
static PyObject *on_make_invoke(PyObject *function, PyObject *const *args, size_t nargs, PyObject *names)
{
    PyObject *made = krait_call_original(function, args, nargs, names);
    PyObject *patched = made ? krait_patch_one(made, on_invoke) : NULL;
    if (!patched)
        return made;
    Py_DECREF(made);
    return patched;
}

/* ---- putting it in ---- */

static const struct krait_patch_python patches[] = {
    { "warnings", NULL, "_showwarnmsg", on_show_warning },
    { "threading", NULL, "_make_invoke_excepthook", on_make_invoke },
};

void krait_warnings_see(struct krait_interp *in)
{
    krait_patch_python(patches, in->patched_warnings, KRAIT_ARRAY_LEN(patches));
}

void krait_warnings_end(struct krait_interp *in)
{
    krait_unpatch_python(patches, in->patched_warnings, KRAIT_ARRAY_LEN(patches));
}
