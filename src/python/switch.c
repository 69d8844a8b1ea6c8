/* SPDX-License-Identifier: Apache-2.0
 *
 * Switched off and on again (record/switch.h has the protocol). While it is off, a process has no hook, and a thread of
 * the agent's own sleeps until the recording is on: it takes the GIL as any thread does, and ends.
 *
 *   GONE ──arm──→ ASLEEP ──on──→ AWAKE ──→ GONE       LEAVES: it shall end, because the program forks or the
 *                    └──────disarm──→ LEAVES ──→ GONE         recording ends here
 *
 * Where functions are left out, no hook may ever run again, and none notices what changes. So the thread of a process that
 * has followed krait ctl set include= stays. After another set, and in a process with --include, there is one until a
 * function is taken. It sleeps until something changes, and does what a hook would have done.
 *
 * The thread has none of the program's signals and no Python thread state while it sleeps. It is gone while the program
 * forks, since CPython from 3.12 on warns of a fork in a process of several threads, which it counts in /proc/self/stat
 * (warn_about_fork_with_threads in Modules/posixmodule.c). An audit event or a pending call arms it again in the parent;
 * in the child, which os.register_at_fork tells, it arms itself.
 */
#include "record/switch.h"

#include "event/payload.h"
#include "python/annotate_native.h"
#include "python/compat/running.h"
#include "python/gil.h"
#include "python/optional.h"
#include "python/tasks.h"
#include "python/worker.h"

#include <sys/prctl.h>
#include <sys/syscall.h>

enum phase { GONE, ASLEEP, AWAKE, LEAVES };

static struct {
    _Atomic int phase;
    _Atomic int tid;
    _Atomic bool left_for_fork;
    bool forks_are_told;
    _Atomic bool stays; /* also while the process is on */
    /* What it reads without the GIL: of the recording that the process was part of last. While there is a thread these pages
     * stay (krait_agent.inside). */
    struct krait_control *_Atomic control;
    _Atomic uint32_t changes;
} waker;

/* Few others wake when the thread of one process is to end. */
static uint32_t group(void)
{
    return 1u << (unsigned)getpid() % 32;
}

static bool is_off(void)
{
    return atomic_load_explicit(&krait_agent.off, memory_order_relaxed);
}

/* Whether a thread is to wait for something. */
static bool has_to_wait(void)
{
    return is_off() || (atomic_load_explicit(&waker.stays, memory_order_relaxed) &&
                        atomic_load_explicit(&krait_agent.running, memory_order_relaxed));
}

static void arm(void);
static void watch_forks(void);

/* To install and to remove hooks raises audit events, which look at the state too; and the GIL may be dropped meanwhile.
 * What is written then is in the recording, also where that is off by now. */
static atomic_flag switching = ATOMIC_FLAG_INIT;

/* So that readers know why nothing is recorded for a while. GIL held. */
static void say(struct krait_interp *in, enum krait_event_enum_value state)
{
    uint8_t payload[KRAIT_BYTES_recording_switch];
    const struct krait_payload_recording_switch event = { .state = (uint8_t)state };
    size_t n = krait_put_recording_switch(payload, &event);
    if (in->definitions)
        krait_writer_event(&krait_agent.writer, in->definitions, KRAIT_EVENT_recording_switch, payload, n);
}

/* The same where krait ctl set has changed what is recorded. The events before have calls that are now left out. GIL held. */
static void say_change(struct krait_interp *in)
{
    enum { MOST = 1024 };
    uint8_t payload[KRAIT_BYTES_recording_set + MOST];
    char what[MOST];
    krait_filters_say(&krait_agent, what, sizeof(what));
    size_t n = krait_put_recording_set(payload, &(struct krait_payload_recording_set){ .what = what });
    if (in->definitions)
        krait_writer_event(&krait_agent.writer, in->definitions, KRAIT_EVENT_recording_set, payload, n);
}

/* ---- off ---- */

bool krait_switch_hold(void)
{
    if (atomic_flag_test_and_set(&switching))
        return false;
    krait_agent.writer.settles = true;
    return true;
}

void krait_switch_release(void)
{
    krait_agent.writer.settles = false;
    atomic_flag_clear(&switching);
}

/* The hooks of any other interpreter stay while what is recorded changes: nothing would install them again before an audit
 * event. By its next call it notices (catch_up). */
static bool is_main(const struct krait_interp *in)
{
    return in->id == 0;
}

/* GIL held. The thread's own open calls and all others' end here; the program goes on without hooks, or at once with what
 * has changed. */
static void switch_off(struct krait_interp *in, bool stays_off)
{
    struct krait_agent *agent = &krait_agent;
    if (!krait_switch_hold())
        return;
    atomic_store(&agent->off, 1);
    atomic_store(&agent->running, 0);
    atomic_fetch_add(&agent->epoch, 1);
    if (stays_off || is_main(in))
        krait_agent_remove_hooks(in);
    krait_native_notes_wait();
    say(in, stays_off ? KRAIT_recording_state_off : KRAIT_recording_state_changes);
    krait_threads_close();
    if (agent->writer.proc)
        atomic_store(&agent->writer.proc->off, 1);
    krait_switch_release();
    arm();
}

/* Of an interpreter whose hooks are still those of before a krait ctl set that another one has followed. GIL held. */
static KRAIT_COLD void catch_up(struct krait_interp *in)
{
    const char *why;
    if (in->ended || in->clears || !in->hooked || !krait_switch_hold())
        return;
    krait_agent_remove_hooks(in);
    krait_agent_install_again(in, &why);
    krait_switch_release();
}

bool krait_switch_is_off(struct krait_interp *in)
{
    const struct krait_agent *agent = &krait_agent;
    if (KRAIT_LIKELY(atomic_load_explicit(&agent->running, memory_order_relaxed))) {
        bool off = krait_writer_is_off(&agent->writer);
        bool changes = off || krait_writer_has_changed(&agent->writer);
        if (KRAIT_UNLIKELY(!changes && in->follows != agent->writer.changes) && !atomic_load(&agent->forked))
            catch_up(in);
        if (KRAIT_LIKELY(!changes) || atomic_load(&agent->forked))
            return false;
        switch_off(in, off); /* what has changed is read when it is switched on again, at once */
    } else if (is_off() && (is_main(in) || krait_writer_is_off(&agent->writer))) {
        krait_agent_remove_hooks(in); /* of another interpreter than the one that noticed */
    }
    return is_off();
}

void krait_switch_begin_off(enum krait_event_enum_value origin)
{
    krait_agent.origin = origin;
    atomic_store(&krait_agent.off, 1);
    krait_writer_reserve(&krait_agent.writer);
    arm();
}

/* ---- on ---- */

static int go_on(struct krait_interp *in)
{
    struct krait_agent *agent = &krait_agent;
    const char *why;
    int rc = atomic_load(&agent->forked) ? krait_agent_rejoin(in) : 0;
    if (rc)
        return rc;
    bool has_changed = krait_writer_has_changed(&agent->writer);
    krait_agent_remove_hooks(in); /* another interpreter may have switched it off */
    rc = krait_agent_install_again(in, &why);
    if (rc) {
        krait_writer_refuse(&agent->writer, why);
        return rc;
    }
    atomic_store(&agent->writer.proc->off, 0);
    atomic_store(&agent->running, 1);
    if (has_changed) {
        /* An included function may have its last call behind it. */
        agent->none_taken = !krait_filters_include(agent);
        atomic_store(&waker.stays, true);
        say_change(in);
    }
    say(in, KRAIT_recording_state_on);
    krait_threads_seed(in);
    return 0;
}

/* GIL held. What was off is on, or not part of the recording any more. */
static void switch_on(void)
{
    struct krait_agent *agent = &krait_agent;
    const char *why;
    struct krait_interp *in = krait_agent_interp();
    bool is_known = in && in->starts && in->starts == atomic_load(&agent->starts);
    bool again = is_known && (agent->writer.proc || atomic_load(&agent->forked));
    atomic_fetch_add(&agent->epoch, 1);
    int rc = again ? go_on(in) : krait_agent_join(agent->origin, &why);
    if (rc == -EHOSTDOWN) { /* off again, meanwhile */
        atomic_store(&agent->running, 0);
        return;
    }
    atomic_store(&agent->off, 0);
    if (rc) {
        krait_agent_stop();
        return;
    }
    krait_native_notes_offer(true);
    in = krait_agent_interp();
    if (in)
        krait_gil_watch(in); /* last: others may stop the recording */
}

/* GIL held; keeps errno and the exception. */
static void look(void)
{
    if (!krait_switch_hold())
        return;
    struct krait_kept kept = krait_keep();
    uint32_t session = krait_writer_session(&krait_agent.writer);
    if (is_off() && session == KRAIT_SESSION_RUN)
        switch_on();
    else if (is_off() && session != KRAIT_SESSION_OFF)
        atomic_store(&krait_agent.off, 0); /* over */
    krait_restore(&kept);
    krait_switch_release();
}

/* Whether the calling thread runs in the main interpreter. Any other one may just begin or end: it could not join, and the process
 * would leave the recording. GIL held. */
static bool runs_in_main(void)
{
    PyInterpreterState *interp = krait_compat.interp_get();
    return interp && PyInterpreterState_GetID(interp) == 0;
}

void krait_switch_look(void)
{
    if (!has_to_wait())
        return;
    if (is_off() && !krait_writer_is_off(&krait_agent.writer) && runs_in_main())
        look();
    else if (atomic_load_explicit(&waker.phase, memory_order_relaxed) == GONE)
        arm();
}

static void reserve_for_child(void)
{
    krait_agent.origin = KRAIT_process_origin_fork;
    krait_writer_reserve(&krait_agent.writer);
}

/* Of a child that has not joined: from now on it is as one that was forked while the recording was off. */
static void switch_child_off(struct krait_interp *in)
{
    if (!krait_switch_hold())
        return;
    atomic_store(&krait_agent.off, 1);
    atomic_store(&krait_agent.running, 0);
    krait_agent_remove_hooks(in);
    reserve_for_child();
    krait_switch_release();
}

/* What a hook would do. GIL held; not in a hook. */
static void follow(void)
{
    struct krait_interp *in = krait_agent_interp();
    if (!in || !krait_agent_records(in))
        return;
    struct krait_kept kept = krait_keep();
    if (atomic_load(&krait_agent.forked))
        switch_child_off(in);
    else
        krait_switch_is_off(in);
    krait_restore(&kept);
}

void krait_switch_here(void)
{
    krait_switch_look();
    struct krait_interp *in = krait_agent_interp();
    if (in && !krait_switch_is_off(in) && krait_agent_records(in))
        krait_thread_seed(in); /* what calls this is krait's own, and not recorded */
}

/* ---- the thread ---- */

static void on_end(void *arg)
{
    atomic_store(&waker.phase, GONE);
    atomic_fetch_sub(&krait_agent.inside, 1);
}

static bool is_over(const struct krait_control *control)
{
    uint32_t session = atomic_load(&control->state);
    return session != KRAIT_SESSION_RUN && session != KRAIT_SESSION_OFF;
}

/* Whether it is still to wait; then the thread is asleep again. Who switches off meanwhile, and finds a thread that is about
 * to end, relies on this. */
static bool sleeps_on(void)
{
    int gone = GONE;
    atomic_store(&waker.phase, GONE);
    return has_to_wait() && !is_over(atomic_load(&waker.control)) &&
           atomic_compare_exchange_strong(&waker.phase, &gone, ASLEEP);
}

/* What the thread compares while it sleeps. GIL held. */
static void note_wanted(void)
{
    atomic_store(&waker.control, krait_agent.writer.shm.control);
    atomic_store(&waker.changes, krait_agent.writer.changes);
}

/* Whether there is nothing to do yet. */
static bool is_as_wanted(const struct krait_control *control)
{
    uint32_t session = atomic_load(&control->state);
    return is_off() ? session == KRAIT_SESSION_OFF
                    : session == KRAIT_SESSION_RUN && has_to_wait() &&
                          atomic_load(&control->changes) == atomic_load(&waker.changes);
}

static bool wake_up(void)
{
    int asleep = ASLEEP;
    for (;;) {
        struct krait_control *control = atomic_load(&waker.control);
        uint32_t wakes = atomic_load(&control->wakes);
        if (atomic_load(&waker.phase) != ASLEEP || !is_as_wanted(control))
            return atomic_compare_exchange_strong(&waker.phase, &asleep, AWAKE);
        krait_switch_sleep(control, wakes, group());
    }
}

static void *wait_until_on(void *arg)
{
    atomic_store(&waker.tid, (int)syscall(SYS_gettid));
    prctl(PR_SET_NAME, "krait");
    pthread_cleanup_push(on_end, NULL); /* CPython up to 3.13 ends a thread that takes the GIL too late */
    do {
        PyGILState_STATE state;
        if (!wake_up() || !Py_IsInitialized() || !krait_worker_enter(&state))
            break;
        if (!is_off())
            follow();
        if (is_off()) /* else the memory may be gone */
            look();
        note_wanted();
        krait_worker_leave(state);
    } while (sleeps_on());
    pthread_cleanup_pop(1);
    return NULL;
}

/* Starts the thread that waits until something changes. GIL held. */
static void arm(void)
{
    enum { STACK_BYTES = 1 << 20 };
    int gone = GONE;
    watch_forks();
    if (!has_to_wait() || !atomic_compare_exchange_strong(&waker.phase, &gone, ASLEEP))
        return;
    note_wanted();
    atomic_fetch_add(&krait_agent.inside, 1);
    if (krait_worker_start(wait_until_on, NULL, STACK_BYTES))
        on_end(NULL); /* the next audit event tries again */
}

bool krait_switch_disarm(void)
{
    int asleep = ASLEEP;
    bool is_there = atomic_compare_exchange_strong(&waker.phase, &asleep, LEAVES);
    if (!is_there && asleep != LEAVES)
        return false;
    int saved = errno;
    krait_switch_wake(krait_agent.writer.shm.control, group());
    krait_worker_await_end(&waker.phase, GONE, &waker.tid);
    errno = saved;
    return is_there;
}

/* ---- while the process is on ---- */

void krait_switch_await_changes(void)
{
    atomic_store(&waker.stays, true);
    arm();
}

void krait_switch_note_taken(void)
{
    int asleep = ASLEEP;
    krait_agent.none_taken = false;
    atomic_store(&waker.stays, false);
    if (is_off() || !atomic_compare_exchange_strong(&waker.phase, &asleep, LEAVES))
        return;
    krait_switch_wake(krait_agent.writer.shm.control, group());
}

/* ---- forks ---- */

static void before_fork(void)
{
    if (krait_switch_disarm())
        atomic_store(&waker.left_for_fork, true);
}

static int arm_again(void *arg)
{
    krait_switch_look();
    return 0;
}

static void after_fork(void)
{
    if (atomic_exchange(&waker.left_for_fork, false) && Py_IsInitialized())
        Py_AddPendingCall(arm_again, NULL);
}

void krait_switch_forked(void)
{
    if (atomic_exchange(&waker.phase, GONE) != GONE)
        atomic_fetch_sub(&krait_agent.inside, 1);
    atomic_store(&waker.left_for_fork, false);
    krait_switch_release(); /* another thread may have held it */
    krait_agent.writer.reserved = false;
}

/* In the child, by CPython. */
static PyObject *on_child(PyObject *self, PyObject *none)
{
    bool is_recorded = has_to_wait() && krait_agent.writer.shm.control->flags & KRAIT_RECORD_CHILDREN;
    if (!is_recorded)
        atomic_store(&krait_agent.off, 0);
    else if (is_off())
        reserve_for_child();
    if (is_recorded)
        arm();
    Py_RETURN_NONE;
}

static void tell_of_children(void)
{
    static PyMethodDef method = { "krait_in_child", on_child, METH_NOARGS, NULL };
    PyObject *posix = PyImport_ImportModule("posix"); /* a built-in module: nothing is searched for */
    PyObject *at_fork = posix ? PyObject_GetAttrString(posix, "register_at_fork") : NULL;
    PyObject *hook = at_fork ? PyCFunction_NewEx(&method, NULL, NULL) : NULL;
    PyObject *none = hook ? PyTuple_New(0) : NULL;
    PyObject *words = none ? Py_BuildValue("{s:O}", "after_in_child", hook) : NULL;
    Py_XDECREF(words ? PyObject_Call(at_fork, none, words) : NULL);
    Py_XDECREF(words);
    Py_XDECREF(none);
    Py_XDECREF(hook);
    Py_XDECREF(at_fork);
    Py_XDECREF(posix);
}

/* Tells this file of forks. GIL held. */
static void watch_forks(void)
{
    if (waker.forks_are_told)
        return;
    struct krait_kept kept = krait_keep();
    waker.forks_are_told = true;
    pthread_atfork(before_fork, after_fork, NULL);
    tell_of_children();
    krait_restore(&kept);
}
