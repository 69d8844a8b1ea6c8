/* SPDX-License-Identifier: Apache-2.0
 *
 * The ways into the agent: krait_agent_enter for the preloaded library, and the extension module krait._agent
 * for `import krait` in a program.
 */
#include "base/clock.h"
#include "python/agent.h"
#include "python/annotate.h"
#include "python/compat/running.h"
#include "python/log.h"
#include "python/optional.h"
#include "python/worker.h"
#include "record/switch.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

/* Called by native/preload.c at the first sign of a running interpreter. GIL held; keeps the current
 * exception. Returns 0, or a negative errno with *why a static text. */
KRAIT_PUBLIC int krait_agent_enter(const char *session, const char **why);
/* Called by the stub of attach/, in a thread that ends afterwards. No GIL. */
KRAIT_PUBLIC void krait_agent_attach(const char *session);
KRAIT_PUBLIC void krait_agent_detach(const char *session);
KRAIT_PUBLIC void krait_agent_audit(const char *event, PyObject *args);
KRAIT_PUBLIC void krait_agent_again(void);
KRAIT_PUBLIC void krait_agent_thread_state(unsigned key, const void *value);
/* The path of the recording that this process is part of by this copy of the agent, or NULL. GIL held. */
KRAIT_PUBLIC const char *krait_agent_session(void);
/* What another build's package calls, where this agent records: krait.mark and the like into its module, and what
 * krait.Handler gives. The number is of the interface: another one gets another name. GIL held. */
KRAIT_PUBLIC int krait_agent_notes_1(PyObject *made);
KRAIT_PUBLIC PyObject *krait_agent_log_1(PyObject *self, PyObject *record);

int krait_agent_enter(const char *session, const char **why)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    krait_audit_is_fed();
    krait_profile_is_fed();
    int rc = krait_agent_start(session, KRAIT_process_origin_exec, why);
    PyErr_Restore(type, value, traceback);
    return rc;
}

/* Some audited thing happens: perhaps the first in a new interpreter. GIL held. */
void krait_agent_audit(const char *event, PyObject *args)
{
    krait_switch_look();
    krait_agent_see_interp(event);
    krait_governor_audit(event, args);
    struct krait_interp *in = krait_agent.asks ? krait_agent_interp() : NULL;
    if (in)
        krait_audit_tell(in, event, args);
}

/* The program has finalised Python and initialised it once more. GIL held. */
void krait_agent_again(void)
{
    krait_agent_begin_again();
    krait_audit_is_fed();
}

void krait_agent_thread_state(unsigned key, const void *value)
{
    krait_profile_thread_state(key, value);
}

/* Also where that is switched off for now. */
static bool is_part(void)
{
    return atomic_load(&krait_agent.running) || atomic_load(&krait_agent.off);
}

const char *krait_agent_session(void)
{
    return is_part() ? krait_agent.writer.path : NULL;
}

/* ---- other copies ----
 *
 * The package krait of one build may be imported in a program that the command of another build records: then
 * there are two agents, each with a file of its own. */

struct copy {
    Dl_info ours;
    char path[PATH_MAX];
};

static int is_other_copy(struct dl_phdr_info *object, size_t size, void *data)
{
    struct copy *copy = data;
    bool other = object->dlpi_addr != (uintptr_t)copy->ours.dli_fbase &&
                 strcmp(basename(object->dlpi_name), basename(copy->ours.dli_fname)) == 0;
    if (other)
        snprintf(copy->path, sizeof(copy->path), "%s", object->dlpi_name);
    return other;
}

/* A function of another copy of the agent; NULL: there is none, or it has no such function. */
static void *of_other(const char *name)
{
    struct copy copy;
    if (!dladdr(&krait_agent, &copy.ours) || !dl_iterate_phdr(is_other_copy, &copy))
        return NULL;
    void *agent = dlopen(copy.path, RTLD_NOW | RTLD_NOLOAD);
    void *function = agent ? dlsym(agent, name) : NULL;
    if (agent)
        dlclose(agent); /* it was there before, and stays */
    return function;
}

/* The recording that this process is part of by another copy of the agent, or NULL. */
static const char *other_session(void)
{
    const char *(*ask)(void);
    *(void **)&ask = of_other("krait_agent_session");
    return ask ? ask() : NULL;
}

static const char *any_session(void)
{
    const char *ours = krait_agent_session();
    return ours ? ours : other_session();
}

/* ---- attaching ---- */

/* The program's signals are for its own threads. */
static void block_signals(void)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
}

/* A recording begins, ends, and is switched in one thread at a time: what installs hooks imports modules, and drops the
 * GIL meanwhile. Taken before the GIL, and never by a program that is being finalised: the thread that has it may be
 * gone. */
static struct {
    pthread_mutex_t lock;
    bool stops; /* code that runs while a recording begins has called krait.stop() */
} turn = { .lock = PTHREAD_MUTEX_INITIALIZER };
static __thread bool has_turn;

static void free_in_child(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    turn.lock = fresh; /* its owner is not here, or is this thread */
    if (has_turn)
        pthread_mutex_lock(&turn.lock);
    else
        turn.stops = false;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, free_in_child);
}

/* No GIL. Returns whether this thread has it. */
static bool take_turn(uint64_t within_ns)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    return has_turn = krait_worker_lock(&turn.lock, within_ns);
}

/* GIL held, or none. */
static void give_turn(void)
{
    has_turn = false;
    pthread_mutex_unlock(&turn.lock);
}

/* Whether Python is there, or is within a few seconds: it may import its first modules from a slow disk, or be a part of
 * a program that has not begun with it yet. No GIL. */
static bool await_python(void)
{
    enum { SECONDS = 7, STEP_NS = 2 * 1000 * 1000 }; /* krait waits for longer (cmd/attaching.c) */
    uint64_t end = krait_clock_ns(CLOCK_MONOTONIC) + SECONDS * KRAIT_NS_PER_S;
    while (!Py_IsInitialized() && krait_clock_ns(CLOCK_MONOTONIC) < end)
        nanosleep(&(struct timespec){ .tv_nsec = STEP_NS }, NULL);
    return Py_IsInitialized();
}

/* In a thread of krait's own, whose signals are blocked. */
static bool enter(PyGILState_STATE *state)
{
    if (!take_turn(60 * KRAIT_NS_PER_S)) /* krait has given up long before */
        return false;
    if (Py_IsInitialized() && krait_worker_enter(state))
        return true;
    give_turn();
    return false;
}

/* What the program asked for meanwhile is done now. GIL held. */
static void stop_if_asked(void)
{
    if (turn.stops && is_part())
        krait_agent_stop();
    turn.stops = false;
}

static void leave(PyGILState_STATE state)
{
    stop_if_asked();
    krait_worker_leave(state);
    give_turn();
}

/* Of a thread of the program's. */
enum turn_is { TURN_BEGUN, TURN_NOT_NEEDED, TURN_OTHERS };

/* The same for a thread of the program's, which has the GIL: it may not wait for the turn, or has it. Where another thread
 * keeps it, what the program has there, such as an audit hook that is called meanwhile, may wait for this thread. */
static enum turn_is begin_turn(void)
{
    if (has_turn || !krait_compat.is_finalizing || krait_compat.is_finalizing())
        return TURN_NOT_NEEDED;
    bool mine;
    Py_BEGIN_ALLOW_THREADS;
    mine = take_turn(KRAIT_NS_PER_S);
    Py_END_ALLOW_THREADS;
    return mine ? TURN_BEGUN : TURN_OTHERS;
}

static void end_turn(enum turn_is turn_is)
{
    if (turn_is != TURN_BEGUN)
        return;
    stop_if_asked();
    give_turn();
}

/* Tells the collector of a recording that this process is no part of. */
static void refuse(const char *session, const char *why)
{
    struct krait_writer writer;
    if (krait_writer_map(&writer, session))
        return;
    krait_writer_refuse(&writer, why);
    krait_writer_unmap(&writer);
}

/* krait may have been killed while the recording began: a hook that has noticed that has left the memory to this. */
static void leaves_by_itself(void)
{
    atomic_store(&krait_agent.leaves, true);
    if (!is_part())
        krait_agent_stop();
}

void krait_agent_attach(const char *session)
{
    const char *why = "another copy of krait records it already";
    PyGILState_STATE state;
    block_signals();
    if (!await_python()) {
        refuse(session, "its Python is still starting after 7 s, or has been finalized");
        return;
    }
    if (!enter(&state))
        return;
    int rc = other_session() ? -EALREADY : krait_agent_start(session, KRAIT_process_origin_attach, &why);
    if (rc == -EALREADY)
        refuse(session, why);
    else if (!rc)
        leaves_by_itself();
    leave(state);
}

/* Ends the recording of that path, and no other one; also where the hooks have ended by themselves before it had the
 * GIL, and only the memory is left. */
void krait_agent_detach(const char *session)
{
    PyGILState_STATE state;
    block_signals();
    if (!enter(&state))
        return;
    if (strcmp(krait_agent.writer.path, session) == 0)
        krait_agent_stop();
    leave(state);
}

/* ---- krait._agent ---- */

PyDoc_STRVAR(start_doc,
             "start(session, /)\n\n"
             "Joins the recording at session (the path that its collector says) and begins to record this\n"
             "process. Raises RuntimeError with the reason when it cannot.");

static PyObject *agent_start(PyObject *self, PyObject *arg)
{
    PyObject *bytes = PyUnicode_Check(arg) ? PyUnicode_AsEncodedString(arg, "utf-8", "strict") : NULL;
    if (!bytes) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "session must be a string");
        return NULL;
    }
    const char *why;
    enum turn_is turn_is = begin_turn();
    int rc = -EBUSY;
    if (turn_is == TURN_OTHERS)
        why = "another thread begins, ends or switches a recording";
    else
        rc = krait_agent_start(PyBytes_AsString(bytes), KRAIT_process_origin_attach, &why);
    end_turn(turn_is);
    Py_DECREF(bytes);
    if (rc) {
        PyErr_SetString(PyExc_RuntimeError, why);
        return NULL;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(stop_doc, "stop()\n\nStops recording this process. Nothing happens when it is not recorded.");

static PyObject *agent_stop(PyObject *self, PyObject *none)
{
    if (!is_part())
        Py_RETURN_NONE;
    enum turn_is turn_is = begin_turn();
    if (turn_is == TURN_OTHERS || (turn_is == TURN_NOT_NEEDED && has_turn))
        turn.stops = true;
    else if (is_part())
        krait_agent_stop();
    end_turn(turn_is);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(running_doc, "running()\n\nWhether this process is being recorded.");

static PyObject *agent_running(PyObject *self, PyObject *none)
{
    return PyBool_FromLong(any_session() != NULL);
}

PyDoc_STRVAR(session_doc, "session()\n\nThe path of the recording that this process is part of, or None.");

static PyObject *agent_session(PyObject *self, PyObject *none)
{
    const char *session = any_session();
    if (!session)
        Py_RETURN_NONE;
    return PyUnicode_FromString(session);
}

PyDoc_STRVAR(
    log_doc,
    "log(record, /)\n\n"
    "Records one of logging's records: krait.Handler. Nothing happens where this process is not recorded,\n"
    "or where --log has just recorded it.");

PyObject *krait_agent_log_1(PyObject *self, PyObject *record)
{
    struct krait_interp *in = krait_agent_interp();
    if (in && krait_agent_records(in) && !krait_log_handle(in, record))
        return NULL;
    Py_RETURN_NONE;
}

static PyCFunction others_log; /* of a copy that records; NULL: there was none at the import */

static PyObject *agent_log(PyObject *self, PyObject *record)
{
    return others_log ? others_log(self, record) : krait_agent_log_1(self, record);
}

int krait_agent_notes_1(PyObject *made)
{
    return krait_notes_add_functions(made);
}

/* Marks go to who records this process: it may be another build than this package. */
static int add_notes(PyObject *made)
{
    int (*others)(PyObject * made) = NULL;
    if (!is_part() && other_session()) {
        *(void **)&others = of_other("krait_agent_notes_1");
        *(void **)&others_log = of_other("krait_agent_log_1");
        if (!others &&
            PyErr_WarnEx(PyExc_RuntimeWarning,
                         "krait: what records this program is another build than the package krait "
                         "and does not take its marks, spans and counters; install both of one build",
                         1))
            return -1;
    }
    return others ? others(made) : krait_notes_add_functions(made);
}

PyDoc_STRVAR(
    switch_doc,
    "switch(on, /)\n\n"
    "Switches the recording that this process is part of on or off, in all its processes. Returns whether it\n"
    "is as wanted now: it is not where there is none.");

static PyObject *agent_switch(PyObject *self, PyObject *wanted)
{
    int on = PyObject_IsTrue(wanted);
    if (on < 0)
        return NULL;
    enum turn_is turn_is = begin_turn();
    bool done = is_part() && krait_switch(krait_agent.writer.shm.control, on);
    if (done)
        krait_switch_here();
    end_turn(turn_is);
    return PyBool_FromLong(done);
}

PyDoc_STRVAR(
    inode_doc,
    "inode()\n\nThe inode of the recording's memory, by which its collector is asked; None where there is none.");

static PyObject *agent_inode(PyObject *self, PyObject *none)
{
    if (!is_part())
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(krait_agent.writer.ino);
}

static PyMethodDef methods[] = {
    { "start", agent_start, METH_O, start_doc },
    { "inode", agent_inode, METH_NOARGS, inode_doc },
    { "switch", agent_switch, METH_O, switch_doc },
    { "stop", agent_stop, METH_NOARGS, stop_doc },
    { "running", agent_running, METH_NOARGS, running_doc },
    { "log", agent_log, METH_O, log_doc },
    { "session", agent_session, METH_NOARGS, session_doc },
    { NULL, NULL, 0, NULL },
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "krait._agent",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__agent(void);

PyMODINIT_FUNC PyInit__agent(void)
{
    const char *why;
    if (krait_compat_init(&why)) {
        PyErr_Format(PyExc_ImportError, "krait cannot record here: %s", why);
        return NULL;
    }
    PyObject *made = PyModule_Create(&module);
    if (made && add_notes(made))
        Py_CLEAR(made);
    return made;
}
