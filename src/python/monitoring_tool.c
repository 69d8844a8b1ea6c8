/* SPDX-License-Identifier: Apache-2.0
 *
 * krait as a tool of sys.monitoring: it takes an id, registers its callbacks (monitoring.c), and notices when the program
 * takes the tool away.
 */
#include "python/compat/running.h"
#include "python/monitoring.h"
#include "python/patch.h"

#include <structmember.h>

/* ---- registering the callbacks ---- */

/* The type's destructor is never called: hooks are kept for good, since a callback may be running when they
 * are taken off. */
static PyObject *new_hook_type(void)
{
    static PyMemberDef members[] = {
        { "__vectorcalloffset__", T_PYSSIZET, offsetof(struct krait_monitoring_hook, call), READONLY, NULL },
        { NULL, 0, 0, 0, NULL },
    };
    PyType_Slot slots[] = {
        { Py_tp_members, members },
        { Py_tp_call, (void *)krait_compat.vectorcall_call },
        { 0, NULL },
    };
    PyType_Spec spec = {
        .name = "krait.hook",
        .basicsize = sizeof(struct krait_monitoring_hook),
        .flags = Py_TPFLAGS_DEFAULT | KRAIT_TPFLAGS_HAVE_VECTORCALL,
        .slots = slots,
    };
    return PyType_FromSpec(&spec);
}

static PyObject *new_hook(PyTypeObject *type, struct krait_interp *in, krait_vectorcall *call)
{
    struct krait_monitoring_hook *hook = (struct krait_monitoring_hook *)PyType_GenericAlloc(type, 0);
    if (!hook)
        return NULL;
    hook->call = call;
    hook->in = in;
    return (PyObject *)hook;
}

static long attr_long(PyObject *obj, const char *name)
{
    PyObject *value = PyObject_GetAttrString(obj, name);
    long n = value ? PyLong_AsLong(value) : -1;
    Py_XDECREF(value);
    return n;
}

static bool set_events(PyObject *monitoring, const struct krait_interp *in, long events)
{
    PyObject *done = PyObject_CallMethod(monitoring, "set_events", "ll", in->tool_id, events);
    Py_XDECREF(done);
    PyErr_Clear();
    return done;
}

static long call_long(PyObject *monitoring, const char *method, long tool)
{
    PyObject *value = PyObject_CallMethod(monitoring, method, "l", tool);
    long n = value ? PyLong_AsLong(value) : -1;
    Py_XDECREF(value);
    PyErr_Clear();
    return n;
}

/* Tool ids are few and have owners: debuggers 0, coverage 1, profilers 2, optimisers 5. 3 and 4 are nobody's;
 * the interpreter finds tools above 3 by a second branch. */
static int take_tool(PyObject *monitoring, struct krait_interp *in, const char **why)
{
    static const long ids[] = { 3, 4, 2, 5, 1, 0 };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(ids); i++) {
        if (in->tools_taken >> ids[i] & 1)
            continue;
        PyObject *done = PyObject_CallMethod(monitoring, "use_tool_id", "ls", ids[i], "krait");
        Py_XDECREF(done);
        if (done) {
            in->tool_id = ids[i];
            return 0;
        }
        PyErr_Clear();
    }
    *why = "all tool ids of sys.monitoring are in use";
    return -EBUSY;
}

/* Whether a hook looks for more than calls. */
static bool looks(const struct krait_interp *in, size_t row)
{
    bool is_wanted = in->sees_tasks || (in->sees_green_calls && krait_monitoring_rows[row].c);
    return is_wanted && krait_monitoring_rows[row].around;
}

static int register_row(PyObject *monitoring, PyObject *events, struct krait_interp *in, PyTypeObject *type,
                        size_t row, long *mask)
{
    long event = attr_long(events, krait_monitoring_rows[row].event);
    krait_vectorcall *call =
        in->agent->selective ? krait_monitoring_rows[row].selective : krait_monitoring_rows[row].call;
    PyObject *hook = in->hooks[row] ? in->hooks[row] : new_hook(type, in, call);
    if (hook) {
        struct krait_monitoring_hook *its = (struct krait_monitoring_hook *)hook;
        its->base = call;
        its->call = looks(in, row) ? krait_monitoring_rows[row].around : call;
    }
    PyObject *done = hook && event > 0 ? PyObject_CallMethod(monitoring, "register_callback", "llO",
                                                             in->tool_id, event, hook)
                                       : NULL;
    in->hooks[row] = hook;
    Py_XDECREF(done);
    if (!done)
        return -EINVAL;
    *mask |= event;
    return 0;
}

static int register_all(PyObject *monitoring, struct krait_interp *in, const char **why)
{
    PyObject *events = PyObject_GetAttrString(monitoring, "events");
    if (!in->hook_type)
        in->hook_type = new_hook_type();
    int rc = events && in->hook_type ? 0 : -ENOMEM;
    long mask = 0;
    for (size_t i = 0; !rc && i < (size_t)KRAIT_MONITORING_ROWS; i++) {
        if (!krait_monitoring_rows[i].c || in->agent->c_calls)
            rc = register_row(monitoring, events, in, (PyTypeObject *)in->hook_type, i, &mask);
    }
    in->governor.no_raise = false;
    rc = (rc || set_events(monitoring, in, mask)) ? rc : -EINVAL;
    if (rc)
        *why = "sys.monitoring does not take krait's callbacks";
    else /* C_RETURN and C_RAISE, which CALL implies, are not said */
        in->events = call_long(monitoring, "get_events", in->tool_id);
    Py_XDECREF(events);
    return rc;
}

void krait_monitoring_see_tasks(struct krait_interp *in)
{
    for (size_t i = 0; i < (size_t)KRAIT_MONITORING_ROWS; i++) {
        if (in->hooks[i] && looks(in, i))
            ((struct krait_monitoring_hook *)in->hooks[i])->call = krait_monitoring_rows[i].around;
    }
}

void krait_monitoring_see_green_calls(struct krait_interp *in)
{
    in->sees_green_calls = true;
    krait_monitoring_see_tasks(in);
}

static PyObject *get_monitoring(void)
{
    return PySys_GetObject("monitoring"); /* borrowed */
}

/* Places that an earlier recording had its hooks taken out of get them back; other tools' too, which they
 * have to expect at any time. */
void krait_monitoring_restart(void)
{
    PyObject *monitoring = get_monitoring();
    PyObject *done = monitoring ? PyObject_CallMethod(monitoring, "restart_events", NULL) : NULL;
    Py_XDECREF(done);
    PyErr_Clear();
}

/* Two of the three hooks of a function that an exception leaves: at the raise, and in its caller. They tell
 * begins that signal handlers hid, which the unwind tells too, and the types of what C functions raise. */
void krait_monitoring_drop_raise(struct krait_interp *in)
{
    PyObject *monitoring = get_monitoring();
    PyObject *events = monitoring ? PyObject_GetAttrString(monitoring, "events") : NULL;
    long raise = events ? attr_long(events, "RAISE") : 0;
    in->governor.no_raise = raise > 0 && set_events(monitoring, in, in->events & ~raise);
    if (in->governor.no_raise)
        in->events &= ~raise;
    Py_XDECREF(events);
    PyErr_Clear();
}

void krait_monitoring_pause(struct krait_interp *in)
{
    PyObject *monitoring = get_monitoring();
    if (monitoring)
        set_events(monitoring, in, 0);
}

void krait_monitoring_resume(struct krait_interp *in)
{
    PyObject *monitoring = get_monitoring();
    if (monitoring)
        set_events(monitoring, in, in->events);
}

/* Where frozen modules know old versions of the monitored events: each restart is a new version. */
static void pass_old_versions(const struct krait_interp *in)
{
    enum { VERSIONS = 64 };
    uint32_t lives = krait_compat.version.frozen_keep_events ? in->agent->lives % VERSIONS : 0;
    for (uint32_t i = 0; i < lives; i++)
        krait_monitoring_restart();
}

/* Another tool may have the id by now: its callback goes back where it was. */
static void unregister(PyObject *monitoring, struct krait_interp *in, size_t row, long event)
{
    PyObject *old = PyObject_CallMethod(monitoring, "register_callback", "llO", in->tool_id, event, Py_None);
    if (old && old != Py_None && old != in->hooks[row]) {
        PyObject *none = PyObject_CallMethod(monitoring, "register_callback", "llO", in->tool_id, event, old);
        Py_XDECREF(none);
    }
    Py_XDECREF(old);
    PyErr_Clear();
}

/* free_tool_id leaves the callbacks to the next owner of the id (3.12, 3.13). */
static void unregister_all(PyObject *monitoring, struct krait_interp *in)
{
    PyObject *events = PyObject_GetAttrString(monitoring, "events");
    for (size_t i = 0; events && i < (size_t)KRAIT_MONITORING_ROWS; i++) {
        long event = in->hooks[i] ? attr_long(events, krait_monitoring_rows[i].event) : -1;
        if (event > 0)
            unregister(monitoring, in, i, event);
    }
    Py_XDECREF(events);
    PyErr_Clear();
}

/* ---- the program takes krait's tool away ---- */

static bool owns_tool(PyObject *monitoring, const struct krait_interp *in)
{
    PyObject *name = PyObject_CallMethod(monitoring, "get_tool", "l", in->tool_id);
    bool owns = name && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "krait") == 0;
    Py_XDECREF(name);
    PyErr_Clear();
    return owns;
}

/* free_tool_id leaves the events to the next owner too (3.12, 3.13). */
static bool is_as_left(PyObject *monitoring, const struct krait_interp *in)
{
    return owns_tool(monitoring, in) && call_long(monitoring, "get_events", in->tool_id) == in->events;
}

/* Who freed krait's id wants it: krait takes another. Who only switched its events off has them on again. */
static void take_back(PyObject *monitoring, struct krait_interp *in)
{
    const char *why;
    krait_writer_lost(&in->agent->writer, KRAIT_lost_reason_displaced, 1);
    if (owns_tool(monitoring, in)) {
        set_events(monitoring, in, in->events);
    } else {
        in->tools_taken |= 1u << in->tool_id;
        unregister_all(monitoring, in);
        krait_monitoring_install(in, &why);
    }
    PyErr_Clear();
    krait_threads_resync();
}

static int look_at_tool(void *arg)
{
    struct krait_interp *in = arg;
    PyObject *monitoring = get_monitoring();
    bool is_here = krait_compat.interp_get() == in->interp && !in->ended && !in->governor.paused;
    if (monitoring && is_here && atomic_load(&in->agent->running) && !is_as_left(monitoring, in))
        take_back(monitoring, in);
    return 0;
}

/* Not at once: the end of the call, which was told where C calls are, is to come first. */
static void look_soon(void)
{
    struct krait_interp *in = krait_agent_interp();
    if (in)
        Py_AddPendingCall(look_at_tool, in);
}

static PyCFunction real_set_events, real_free_tool_id; /* sys.monitoring's */

static PyObject *on_set_events(PyObject *monitoring, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *result = ((krait_fastcall_fn *)(void (*)(void))real_set_events)(monitoring, args, nargs);
    look_soon();
    return result;
}

static PyObject *on_free_tool_id(PyObject *monitoring, PyObject *tool)
{
    PyObject *result = real_free_tool_id(monitoring, tool);
    look_soon();
    return result;
}

static void patch_tool_functions(PyObject *monitoring)
{
    static const struct krait_patch patches[] = {
        { "set_events", (PyCFunction)(void (*)(void))on_set_events, &real_set_events, KRAIT_METH_FASTCALL },
        { "free_tool_id", on_free_tool_id, &real_free_tool_id, METH_O },
    };
    static atomic_flag patched = ATOMIC_FLAG_INIT; /* interpreters may have a GIL each */
    if (!atomic_flag_test_and_set(&patched))
        krait_patch(monitoring, patches, KRAIT_ARRAY_LEN(patches));
}

int krait_monitoring_install(struct krait_interp *in, const char **why)
{
    PyObject *monitoring = get_monitoring();
    *why = "this Python has no sys.monitoring";
    if (!monitoring)
        return -ENOTSUP;
    if (!krait_monitoring_disable)
        krait_monitoring_disable = PyObject_GetAttrString(monitoring, "DISABLE");
    krait_places_init();
    int rc = krait_monitoring_disable ? take_tool(monitoring, in, why) : -ENOTSUP;
    if (!rc) {
        rc = register_all(monitoring, in, why);
        pass_old_versions(in);
        if (rc)
            krait_monitoring_remove(in);
        else if (in->was_selective)
            krait_monitoring_restart();
        patch_tool_functions(monitoring);
        in->was_selective |= in->agent->selective;
    }
    PyErr_Clear();
    return rc;
}

void krait_monitoring_remove(struct krait_interp *in)
{
    PyObject *monitoring = get_monitoring();
    if (!monitoring)
        return;
    set_events(monitoring, in, 0);
    unregister_all(monitoring, in);
    PyObject *freed = PyObject_CallMethod(monitoring, "free_tool_id", "l", in->tool_id);
    Py_XDECREF(freed);
    PyErr_Clear();
}
