/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's life in a process: joining a recording, interpreters, fork, the end; and the slow path of every event.
 */
#include "python/agent.h"
#include "python/args.h"

#include "python/annotate_native.h"
#include "python/codes.h"
#include "python/compat/running.h"
#include "python/cost.h"
#include "python/gil.h"
#include "python/green_tasks.h"
#include "python/optional.h"
#include "python/tasks.h"
#include "python/work_processes.h"
#include "python/worker.h"

struct krait_agent krait_agent;

/* ---- interpreters ---- */

/* By its number too: an interpreter's memory is used again for another. */
static struct krait_interp *find_interp(PyInterpreterState *interp)
{
    int64_t id = PyInterpreterState_GetID(interp);
    struct krait_interp *in = atomic_load_explicit(&krait_agent.interps, memory_order_acquire);
    while (in && (in->interp != interp || in->id != id))
        in = in->next;
    return in;
}

static void end_interp(struct krait_interp *in)
{
    in->ended = true;
    krait_writer_ring_close(in->definitions);
    in->definitions = NULL;
    krait_profile_forget(in);
    krait_gil_forget(in);
}

/* The interpreter's own dictionary goes at its very end: then nothing of it runs any more. The struct stays,
 * since hooks and weak references of that interpreter may still name it. */
static void on_interp_end(PyObject *capsule)
{
    struct krait_interp *in = PyCapsule_GetPointer(capsule, NULL);
    if (!in)
        return;
    end_interp(in);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(in->hooks); i++)
        Py_CLEAR(in->hooks[i]);
    Py_CLEAR(in->hook_type);
    krait_tasks_done(in);
    krait_codes_done(in);
    krait_optional_done(in);
}

static int watch_end(struct krait_interp *in)
{
    PyObject *dict = PyInterpreterState_GetDict(in->interp);
    PyObject *capsule = dict ? PyCapsule_New(in, NULL, on_interp_end) : NULL;
    int rc = capsule ? PyDict_SetItemString(dict, "krait", capsule) : -1;
    Py_XDECREF(capsule); /* where the dictionary did not take it, this ends `in` */
    PyErr_Clear();
    return rc;
}

static struct krait_interp *new_interp(PyInterpreterState *interp)
{
    struct krait_interp *in = calloc(1, sizeof(*in));
    if (!in || krait_codes_init(in)) {
        free(in);
        return NULL;
    }
    in->agent = &krait_agent;
    in->interp = interp;
    in->id = PyInterpreterState_GetID(interp);
    if (in->id)
        krait_threads_see_interp();
    in->next = atomic_load(&krait_agent.interps);
    while (!atomic_compare_exchange_weak(&krait_agent.interps, &in->next, in))
        ;
    watch_end(in);
    return in->ended ? NULL : in;
}

void krait_agent_remove_hooks(struct krait_interp *in)
{
    if (!in->hooked)
        return;
    in->hooked = false;
    krait_optional_end(in);
    krait_work_end(in);
    if (krait_compat.version.monitoring)
        krait_monitoring_remove(in);
    else
        krait_profile_remove(in);
}

static void read_options(struct krait_agent *agent)
{
    const struct krait_control *control = agent->writer.shm.control;
    krait_writer_note_changes(&agent->writer); /* first: what changes meanwhile is noticed */
    agent->c_calls = control->flags & KRAIT_RECORD_C_CALLS;
    agent->call_sites = control->flags & KRAIT_RECORD_CALL_SITES;
    agent->gil = control->flags & KRAIT_RECORD_GIL;
    agent->tasks = control->flags & KRAIT_RECORD_TASKS;
    krait_filters_read(agent);
    krait_optional_read();
    krait_args_read();
    /* The short hooks read the counter and nothing else. */
    agent->selective = agent->filter_count || control->max_overhead_ppm || krait_args_results ||
                       agent->call_sites || !agent->writer.counter;
}

static int install_hooks(struct krait_interp *in, const char **why)
{
    in->hooked = true; /* first: audit events on the way look at it */
    krait_governor_init(in);
    krait_optional_look(in);
    krait_optional_see(in);
    struct krait_cost_trial *trial = krait_cost_begin(in);
    int rc =
        krait_compat.version.monitoring ? krait_monitoring_install(in, why) : krait_profile_install(in, why);
    krait_cost_end(in, trial, !rc);
    in->hooked = !rc;
    return rc;
}

static void take_definitions_ring(struct krait_interp *in)
{
    in->definitions = krait_writer_ring_new(&krait_agent.writer, KRAIT_RING_DEFINITIONS, 0);
    if (!in->definitions)
        krait_writer_lost(&krait_agent.writer, KRAIT_lost_reason_no_ring, 1);
}

static int install(struct krait_interp *in, const char **why)
{
    in->starts = atomic_load(&krait_agent.starts);
    in->follows = krait_agent.writer.changes;
    krait_codes_forget(in);
    krait_tasks_forget(in);
    in->sees_tasks = in->agent->tasks && (in->sees_tasks || krait_tasks_are_imported());
    krait_optional_forget(in);
    take_definitions_ring(in);
    return install_hooks(in, why);
}

int krait_agent_install_again(struct krait_interp *in, const char **why)
{
    krait_tasks_forget(in);
    if (krait_writer_has_changed(&krait_agent.writer))
        read_options(&krait_agent);
    if (in->follows != krait_agent.writer.changes)
        krait_codes_forget(in);
    in->follows = krait_agent.writer.changes;
    return install_hooks(in, why);
}

/* An interpreter that is being made raises audit events before it can be recorded. */
static bool is_whole(void)
{
    return !krait_compat.version.monitoring || PySys_GetObject("monitoring");
}

void krait_agent_see_interp(const char *event)
{
    if (event && strcmp(event, "cpython.PyInterpreterState_Clear") == 0) {
        struct krait_interp *ends = krait_agent_interp();
        if (ends)
            ends->clears = true;
        return;
    }
    if (!atomic_load_explicit(&krait_agent.running, memory_order_relaxed))
        return;
    PyInterpreterState *interp = krait_compat.interp_get();
    struct krait_interp *in = find_interp(interp);
    bool is_known = in && in->starts == atomic_load_explicit(&krait_agent.starts, memory_order_relaxed);
    if (in && (in->ended || in->clears || (is_known && in->hooked))) {
        if (!in->ended && !in->clears)
            krait_optional_see(in);
        return;
    }
    int saved = errno;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    const char *why;
    if (!in)
        in = is_whole() ? new_interp(interp) : NULL;
    else
        krait_agent_remove_hooks(in); /* of an earlier recording */
    int rc = !in ? -ENOTSUP : is_known ? krait_agent_install_again(in, &why) : install(in, &why);
    if (rc && in && in->definitions) {
        krait_writer_ring_close(in->definitions);
        in->definitions = NULL;
    }
    if (!rc)
        krait_gil_watch(in);
    PyErr_Restore(type, value, traceback);
    errno = saved;
}

void krait_agent_begin_again(void)
{
    for (struct krait_interp *i = atomic_load(&krait_agent.interps); i; i = i->next) {
        if (!i->ended) /* its dictionary was never freed */
            end_interp(i);
        i->interp = NULL; /* the next main interpreter may have its address and its number */
    }
    krait_agent.lives++;
    krait_profile_forget_all();
    krait_audit_forget_hook();
    krait_thread_resync(KRAIT_RESYNC_GO_ON);
    krait_agent_see_interp(NULL);
    krait_switch_look();
}

/* ---- the mapping ---- */

static bool is_alone(void)
{
    size_t n = 0;
    for (struct krait_interp *i = atomic_load(&krait_agent.interps); i; i = i->next)
        n += !i->ended;
    return n < 2 && !atomic_load(&krait_agent.inside);
}

/* Another thread may stand in a slow path, waiting for the GIL, and an interpreter with a GIL of its own in
 * any hook. For them there are pages still. Rare, so their addresses are not used again. */
static void leave_mapping(void)
{
    struct krait_writer *writer = &krait_agent.writer;
    krait_switch_disarm();
    krait_native_notes_wait();
    if (!writer->shm.base || is_alone())
        krait_writer_unmap(writer);
    else
        krait_writer_abandon(writer);
}

/* ---- start ---- */

static void command_line(char *text, size_t size)
{
    FILE *file = fopen("/proc/self/cmdline", "re");
    size_t n = file ? fread(text, 1, size - 1, file) : 0;
    if (file)
        fclose(file);
    while (n && !text[n - 1])
        n--;
    text[n] = '\0';
    for (size_t i = 0; i < n; i++) {
        if (!text[i])
            text[i] = ' ';
    }
}

static void say_process(struct krait_interp *in, enum krait_event_enum_value origin)
{
    char runtime[64], command[KRAIT_COMMAND_BYTES];
    const char *version = Py_GetVersion();
    snprintf(runtime, sizeof(runtime), "CPython %.*s", (int)strcspn(version, " "), version);
    command_line(command, sizeof(command));
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    size_t n = krait_put_process_start(payload, &(struct krait_payload_process_start){
                                                    .vpid = (uint32_t)getpid(),
                                                    .vppid = (uint32_t)getppid(),
                                                    .origin = (uint8_t)origin,
                                                    .runtime = runtime,
                                                    .command = command,
                                                });
    if (in->definitions)
        krait_writer_event(&krait_agent.writer, in->definitions, KRAIT_EVENT_process_start, payload, n);
}

/* In the child of fork, before anything else runs there. Async-signal-safe: the parent's other threads may
 * have held any lock. */
static void on_fork(void)
{
    krait_this_ring = &krait_no_ring;
    krait_threads_forked();
    krait_gil_forked();
    krait_profile_forked();
    krait_native_notes_forked();
    krait_switch_forked();
    krait_pause_forked();
    krait_agent.writer.proc = NULL;
    for (struct krait_interp *i = atomic_load(&krait_agent.interps); i; i = i->next)
        i->definitions = NULL;
    atomic_store(&krait_agent.forked, 1);
}

/* In a child whose fork libc was not asked for, at its first slow path: until then it wrote into its parent's
 * ring. The parent says its stack anew. */
static void on_raw_fork(void)
{
    krait_writer_lost(&krait_agent.writer, KRAIT_lost_reason_raw_fork, 1);
    krait_thread_resync(KRAIT_RESYNC_GO_ON);
    on_fork();
}

static int start_here(enum krait_event_enum_value origin, const char **why)
{
    struct krait_interp *in = find_interp(krait_compat.interp_get());
    if (!in || in->ended)
        in = new_interp(krait_compat.interp_get());
    if (!in)
        return -ENOMEM;
    krait_agent.measures_cost = origin == KRAIT_process_origin_exec;
    int rc = install(in, why);
    krait_agent.measures_cost = false;
    if (rc)
        return rc;
    say_process(in, origin);
    krait_cost_say(in);
    krait_threads_seed(in);
    bool by_program = origin == KRAIT_process_origin_attach && PyEval_GetFrame(); /* krait.start() */
    if (by_program)
        krait_thread_seed(in);
    return 0;
}

struct krait_interp *krait_agent_interp(void)
{
    return krait_compat.interp_get ? find_interp(krait_compat.interp_get()) : NULL;
}

/* What can only be known in this process: whether its interpreter is one that can be recorded. */
static int check_interpreter(const char **why)
{
    int rc = krait_compat_init(why);
    if (rc)
        krait_writer_refuse(&krait_agent.writer, *why);
    return rc;
}

static int watch_forks(void)
{
    static bool done;
    int rc = done ? 0 : pthread_atfork(NULL, krait_pause_fork_is_over, on_fork);
    done = done || !rc;
    return -rc;
}

int krait_agent_join(enum krait_event_enum_value origin, const char **why)
{
    if (krait_writer_is_off(&krait_agent.writer)) /* an early look, which saves the rest */
        return -EHOSTDOWN;
    read_options(&krait_agent);
    krait_agent.none_taken = krait_filters_include(&krait_agent);
    krait_codes_find_own();
    *why = "the recording has too many processes";
    int rc = krait_threads_init();
    if (!rc)
        rc = krait_writer_join(&krait_agent.writer);
    if (!rc)
        rc = watch_forks();
    if (rc)
        return rc;
    atomic_fetch_add(&krait_agent.starts, 1);
    atomic_fetch_add(&krait_agent.epoch, 1);
    atomic_store(&krait_agent.forked, 0);
    atomic_store(&krait_agent.running, 1);
    rc = start_here(origin, why);
    if (rc)
        krait_writer_refuse(&krait_agent.writer, *why);
    else
        krait_writer_begun(&krait_agent.writer);
    if (!rc && krait_agent.none_taken)
        krait_switch_await_changes();
    return rc;
}

static int join(enum krait_event_enum_value origin, const char **why)
{
    bool held = krait_switch_hold();
    int rc = krait_agent_join(origin, why);
    if (held)
        krait_switch_release();
    if (rc != -EHOSTDOWN)
        return rc;
    krait_switch_begin_off(origin);
    return watch_forks();
}

int krait_agent_start(const char *session, enum krait_event_enum_value origin, const char **why)
{
    if (atomic_load(&krait_agent.running) || atomic_load(&krait_agent.off)) {
        *why = "a recording is already running in this process";
        if (!krait_writer_is_over(&krait_agent.writer))
            return -EALREADY;
        krait_agent_stop(); /* its collector was killed */
    }
    *why = "the recording's collector cannot be reached";
    leave_mapping(); /* of a recording that was given up */
    int rc = krait_writer_map(&krait_agent.writer, session);
    if (rc)
        return rc;
    rc = check_interpreter(why);
    if (!rc)
        rc = join(origin, why);
    if (rc)
        krait_agent_stop();
    if (rc || atomic_load(&krait_agent.off))
        return rc;
    krait_native_notes_offer(true);
    krait_gil_watch(find_interp(krait_compat.interp_get())); /* last: others may stop the recording */
    return 0;
}

/* Ends this process's recording because nobody reads it. GIL held. */
static void give_up(struct krait_interp *in)
{
    atomic_store(&in->agent->running, 0);
    krait_agent_remove_hooks(in);
    krait_threads_forget();
}

/* ---- fork ---- */

int krait_agent_rejoin(struct krait_interp *in)
{
    struct krait_agent *agent = in->agent;
    atomic_store(&agent->forked, 0);
    for (struct krait_interp *i = atomic_load(&agent->interps); i; i = i->next)
        krait_codes_forget_ids(i);
    for (struct krait_interp *i = atomic_load(&agent->interps); i; i = i->next)
        krait_tasks_forget(i);
    krait_green_tasks_forked();
    krait_threads_forget();
    bool may = agent->writer.shm.control->flags & KRAIT_RECORD_CHILDREN;
    int rc = may ? krait_writer_join(&agent->writer) : -ESHUTDOWN;
    if (rc) {
        give_up(in);
        if (rc == -EHOSTDOWN) /* since the fork */
            krait_switch_begin_off(KRAIT_process_origin_fork);
        return rc;
    }
    for (struct krait_interp *i = atomic_load(&agent->interps); i; i = i->next) {
        if (!i->ended && i->starts == atomic_load(&agent->starts))
            take_definitions_ring(i);
    }
    krait_governor_init(in);
    say_process(in, KRAIT_process_origin_fork);
    krait_cost_say(in);
    krait_writer_begun(&agent->writer);
    return 0;
}

/* ---- the end ---- */

void krait_agent_stop(void)
{
    struct krait_agent *agent = &krait_agent;
    struct krait_interp *in = krait_compat.interp_get ? find_interp(krait_compat.interp_get()) : NULL;
    atomic_store(&agent->leaves, false);
    if (in && atomic_load(&agent->running)) {
        krait_thread_settle(in);
        krait_agent_remove_hooks(in);
    }
    krait_native_notes_offer(false);
    atomic_store(&agent->running, 0);
    atomic_store(&agent->off, 0);
    krait_threads_forget();
    for (struct krait_interp *i = atomic_load(&agent->interps); i; i = i->next)
        i->definitions = NULL;
    krait_writer_leave(&agent->writer);
    leave_mapping();
}

/* The calling thread may stand in a hook, which goes on with the mapping: it cannot be the one that unmaps. */
static void *leave(void *none)
{
    PyGILState_STATE state;
    if (!Py_IsInitialized() || !krait_worker_enter(&state))
        return NULL;
    bool over = !atomic_load(&krait_agent.running) && !atomic_load(&krait_agent.off);
    if (over && atomic_exchange(&krait_agent.leaves, false)) /* else it is another recording by now */
        krait_agent_stop();
    krait_worker_leave(state);
    return NULL;
}

/* Gives up, and leaves the recording by a thread of the agent's own, where the process was attached to: the recording is over,
 * or krait was killed. The thread's stack has the size of that in which krait made the process begin: the C library has kept that
 * one, and gives it again. GIL held. */
static void leave_later(struct krait_interp *in)
{
    give_up(in);
    if (atomic_load(&krait_agent.leaves))
        krait_worker_start(leave, NULL, 0);
}

/* ---- the slow path of an event ---- */

enum { BYTES = sizeof(struct krait_event_extended) + 4 }; /* of an event at most */

static void write_event(struct krait_interp *in, uint64_t t, uint32_t event, uint32_t code,
                        enum krait_begin_what top);

/* 3.11: the resume of a generator that CPython does not report, if the stack does not show it. */
static void put_unreported_resume(struct krait_interp *in, enum krait_begin_what top)
{
    PyObject *frame = krait_thread_frame(top);
    PyObject *code = frame ? krait_frame_code(frame) : NULL;
    uint64_t t = code ? krait_unreported_resumed(code) : 0;
    uint32_t id = t ? krait_code_id(in, code) : 0;
    if (id && !atomic_load_explicit(&krait_this_ring->resync, memory_order_relaxed))
        write_event(in, t, KRAIT_EVENT_python_resume, id, KRAIT_TOP_IS_OLD);
    Py_XDECREF(code);
    Py_XDECREF(frame);
}

bool krait_agent_records(const struct krait_interp *in)
{
    const struct krait_agent *agent = in->agent;
    return atomic_load_explicit(&agent->running, memory_order_relaxed) &&
           in->starts == atomic_load_explicit(&agent->starts, memory_order_relaxed) && !in->ended;
}

bool krait_agent_may_note(struct krait_interp *in, enum krait_begin_what top)
{
    const struct krait_agent *agent = in->agent;
    if (krait_cost_is_tried() || krait_switch_is_off(in) || !krait_agent_records(in))
        return false;
    bool forked = atomic_load_explicit(&agent->forked, memory_order_relaxed);
    if (KRAIT_UNLIKELY(!forked && !krait_writer_is_own(&agent->writer))) {
        on_raw_fork();
        forked = true;
    }
    if (KRAIT_UNLIKELY(forked) && krait_agent_rejoin(in))
        return false;
    if (krait_this_ring == &krait_no_ring && !krait_thread_begin(in))
        return false;
    krait_optional_see(in);
    if (KRAIT_LIKELY(!in->governor.paused)) {
        krait_greenlets_see(in);
        if (KRAIT_UNLIKELY(krait_unreported_pending()))
            put_unreported_resume(in, top);
    }
    return !krait_thread_is_suppressed(in, top);
}

bool krait_agent_may_record(struct krait_interp *in, enum krait_begin_what top)
{
    return krait_agent_may_note(in, top) && !in->governor.paused; /* by the event at which the pause began */
}

void krait_agent_count_lost(struct krait_interp *in, const struct krait_ring *ring)
{
    enum { ASK_EVERY = 4096 };
    const struct krait_writer *writer = &in->agent->writer;
    uint32_t session = krait_writer_session(writer);
    if (session == KRAIT_SESSION_OFF) /* since the event began: the next one switches off */
        return;
    if (session != KRAIT_SESSION_RUN || (ring->discarded % ASK_EVERY == 1 && krait_writer_is_over(writer)))
        leave_later(in);
}

/* This thread's ring, with room for an event of so many bytes at time *t, which may become later; NULL where the event
 * is lost. */
static struct krait_ring *room_for(struct krait_interp *in, uint64_t *t, size_t bytes,
                                   enum krait_begin_what top)
{
    struct krait_ring *ring = krait_this_ring;
    if (ring == &krait_no_ring) /* naming ran Python code, which stopped the recording or forked */
        return NULL;
    *t = KRAIT_MAX(*t, krait_gil_last());
    krait_governor_read_closing(in, bytes);
    enum krait_ring_room room = krait_writer_room(&in->agent->writer, ring, *t, bytes);
    if (room == KRAIT_ROOM_RESYNC) {
        if (!krait_thread_say_stack(in, *t, top) || ring != krait_this_ring)
            return NULL;
        *t = KRAIT_MAX(*t, krait_gil_last());
        room = krait_writer_room(&in->agent->writer, ring, *t, bytes);
    }
    if (room != KRAIT_ROOM_NONE)
        return ring;
    krait_agent_count_lost(in, ring);
    return NULL;
}

static void write_event(struct krait_interp *in, uint64_t t, uint32_t event, uint32_t code,
                        enum krait_begin_what top)
{
    struct krait_ring *ring = room_for(in, &t, BYTES, top);
    if (!ring)
        return;
    bool window_is_new = !krait_ring_has_room(ring, t);
    krait_writer_put(ring, t, event, code);
    if (window_is_new) {
        krait_thread_look_at_name(in);
        krait_threads_sweep();
        bool is_of_c = krait_event_bit(event) & KRAIT_CALL_IN_C; /* the innermost frame stays */
        krait_governor_look(in, is_of_c ? KRAIT_TOP_IS_OLD : KRAIT_TOP_IS_NEW);
    }
}

struct krait_kept krait_keep(void)
{
    struct krait_kept kept = { .saved_errno = errno };
    atomic_fetch_add_explicit(&krait_agent.inside, 1, memory_order_relaxed);
    PyErr_Fetch(&kept.type, &kept.value, &kept.traceback);
    return kept;
}

void krait_restore(struct krait_kept *kept)
{
    PyErr_Restore(kept->type, kept->value, kept->traceback);
    atomic_fetch_sub_explicit(&krait_agent.inside, 1, memory_order_relaxed);
    errno = kept->saved_errno;
}

/* The clock is read last: what we did until then is not the function's time. */
static void write_begin(struct krait_interp *in, uint32_t event, uint32_t id, enum krait_begin_what top)
{
    krait_governor_read_closing(in, BYTES);
    write_event(in, krait_writer_now(&in->agent->writer), event, id, top);
}

/* `top` is the innermost frame: the caller, or with KRAIT_TOP_IS_NEW the callee. */
static uint32_t id_at_site(struct krait_interp *in, const struct krait_code *slot, const void *key,
                           PyObject *callee, enum krait_begin_what top)
{
    if (!slot || !in->agent->call_sites)
        return slot ? slot->id : 0;
    uint32_t id = slot->id; /* defining the caller may move the table */
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    PyObject *caller = frame && top == KRAIT_TOP_IS_NEW ? krait_frame_back(frame) : frame;
    id = krait_code_at_site(in, id, key, callee, caller);
    if (caller != frame)
        Py_XDECREF(caller);
    return id;
}

/* Of the budget of --max-overhead too. */
static struct krait_code *define(struct krait_interp *in, const void *key, PyObject *code, PyObject *callable)
{
    uint64_t begin = krait_writer_now(&in->agent->writer);
    struct krait_code *slot =
        code ? krait_code_define(in, code, NULL) : krait_code_define_c(in, key, callable);
    in->governor.named_ticks += krait_writer_now(&in->agent->writer) - begin;
    return slot;
}

bool krait_slow_begin(struct krait_interp *in, uint32_t event, PyObject *code)
{
    struct krait_kept kept = krait_keep();
    bool ready = krait_agent_may_record(in, KRAIT_TOP_IS_NEW); /* first: after a fork it takes the ids away */
    struct krait_code *slot = ready ? krait_code_find(in, code) : NULL;
    if (ready && !krait_code_is_defined(slot))
        slot = define(in, code, code, NULL);
    bool omit = slot && slot->flags & KRAIT_CODE_OMIT;
    if (ready && !omit)
        krait_green_tasks_begun(in);
    if (omit)
        krait_thread_suppress(in);
    else if (ready)
        write_begin(in, event, id_at_site(in, slot, NULL, code, KRAIT_TOP_IS_NEW), KRAIT_TOP_IS_NEW);
    krait_restore(&kept);
    return omit;
}

bool krait_slow_c_call(struct krait_interp *in, const void *key, PyObject *callable)
{
    struct krait_kept kept = krait_keep();
    bool ready = krait_agent_may_record(in, KRAIT_TOP_IS_OLD);
    struct krait_code *slot = ready ? krait_code_find(in, key) : NULL;
    if (ready && !krait_code_is_defined(slot))
        slot = define(in, key, NULL, callable);
    bool omit = slot && slot->flags & KRAIT_CODE_OMIT;
    if (ready && !omit)
        write_begin(in, KRAIT_EVENT_c_call, id_at_site(in, slot, key, callable, KRAIT_TOP_IS_OLD),
                    KRAIT_TOP_IS_OLD);
    krait_restore(&kept);
    return omit;
}

void krait_slow_end(struct krait_interp *in, uint64_t t, uint32_t event)
{
    struct krait_kept kept = krait_keep();
    if (krait_agent_may_record(in, KRAIT_TOP_IS_OLD))
        write_event(in, t, event, 0, KRAIT_TOP_IS_OLD);
    krait_restore(&kept);
}

void krait_slow_unwind(struct krait_interp *in, uint64_t t, PyObject *exception)
{
    struct krait_kept kept = krait_keep();
    if (krait_agent_may_record(in, KRAIT_TOP_IS_OLD)) {
        const uint8_t *cur = krait_this_ring->cur;
        uint32_t type = krait_code_exception(in, exception);
        write_event(in, krait_thread_time_after(cur, t), KRAIT_EVENT_python_unwind_of, type,
                    KRAIT_TOP_IS_OLD);
    }
    krait_restore(&kept);
}

void krait_slow_resume(struct krait_interp *in, uint64_t t, uint32_t id, enum krait_begin_what top)
{
    struct krait_kept kept = krait_keep();
    bool ready = krait_agent_may_record(in, top);
    if (ready && !atomic_load_explicit(&krait_this_ring->resync, memory_order_relaxed)) /* else it is said */
        write_event(in, t, KRAIT_EVENT_python_resume, id, top);
    krait_restore(&kept);
}

void krait_slow_say_top(struct krait_interp *in, uint64_t t, enum krait_begin_what top)
{
    struct krait_kept kept = krait_keep();
    if (krait_agent_may_record(in, top))
        krait_thread_say_top(in, t, top);
    krait_restore(&kept);
}

struct krait_code *krait_slow_look(struct krait_interp *in, PyObject *code)
{
    struct krait_kept kept = krait_keep();
    struct krait_code *slot =
        krait_agent_may_record(in, KRAIT_TOP_IS_OLD) ? define(in, code, code, NULL) : NULL;
    krait_restore(&kept);
    return slot;
}
