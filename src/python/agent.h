/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent, which is loaded into the traced Python program. This header is internal to src/python/; no other folder
 * includes it.
 *
 * There is one struct krait_agent per process, one struct krait_interp for each interpreter in it, and one ring for
 * each thread. Hooks run while their interpreter's GIL is held, so a krait_interp needs no lock. What interpreters
 * share is atomic.
 *
 * How an event is recorded: a hook (monitoring.c, profile.c) finds the function's id by the address of its code
 * object (codes.h), reads the clock, and stores 8 or 4 bytes in the thread's ring (record/ring.h). Everything else is
 * in slow paths behind one branch: defining a function (codes.c), a thread's first event and its stack (threads.c),
 * making room in the ring (record/writer.c).
 */
#ifndef KRAIT_PYTHON_AGENT_H
#define KRAIT_PYTHON_AGENT_H

#include "base/map.h"
#include "python/budget.h"
#include "python/compat/running.h"
#include "record/writer.h"

#include <pthread.h>

enum krait_code_flags {
    KRAIT_CODE_KNOWN = 1 << 0, /* looked at; its weak reference exists */
    KRAIT_CODE_OMIT = 1 << 1,  /* left out: krait's own, or by a filter or by the governor */
    KRAIT_CODE_HOT = 1 << 2,   /* ... by the governor */
    KRAIT_CODE_TASK = 1 << 3,  /* a coroutine: tasks.h */
    KRAIT_CODE_WAKES = 1 << 4, /* of C: ends a task's wait */
    KRAIT_CODE_ARGS = 1 << 5,  /* its arguments are recorded: args.h; never in its own slot */
    KRAIT_CODE_GREEN = 8,      /* from this bit on: its number in green_waits.h, or 0 */
};

/* A function, found by an address: of its code object, PyMethodDef or type. 32 bytes, so two fit a cache line. */
struct krait_code {
    const void *key; /* NULL: free; KRAIT_CODE_DEAD: was used */
    uint32_t id;     /* 0: not defined in this process, or not recorded */
    uint32_t flags;
    uint64_t calls;  /* counted for the governor */
    uint32_t was_id; /* dropped by the governor: the id that it had */
    uint32_t round;  /* ... and the last round of probes that it took part in */
};

#define KRAIT_CODE_DEAD ((const void *)1)

struct krait_code_filter {
    bool include;
    const char *glob; /* in the shared memory */
};

/* A Python function that is patched: patch.h. */
struct krait_patched {
    const void *owner;  /* the class or the module's dictionary; its address alone */
    PyObject *function; /* NULL: nothing */
    PyObject *stand_in; /* 3.11: what is in its place; borrowed from there */
};

struct krait_interp {
    struct krait_agent *agent;
    struct krait_interp *next;
    PyInterpreterState *interp;
    int64_t id;
    struct krait_gil *gil;     /* gil.h; NULL: not watched */
    bool ended;                /* another interpreter may have its address now */
    bool clears;               /* it ends: it has no modules any more */
    uint32_t follows;          /* the writer's number of changes with which its functions were chosen */
    bool hooked;               /* its hooks are installed */
    uint32_t starts;           /* the recording that it has joined: krait_agent.starts at that time */
    bool was_selective;        /* an earlier recording may have disabled hooks of single places (DISABLE) */
    struct krait_code *codes;  /* open addressing, linear probes */
    uint32_t code_shift;       /* 64 - log2 of the capacity */
    uint32_t code_misses;      /* look-ups that did not find it in its own slot */
    uint32_t code_used;        /* slots in use, dead ones included */
    struct krait_map weakrefs; /* a weak reference's address to the key it watches; 0 when it is dead */
    struct krait_map names; /* before 3.11: a code object's address to its qualified name (char *, owned) */
    struct krait_map sites; /* with --call-sites: callee, caller and line to an id */
    struct krait_map name_ids;   /* names that events refer to, hashed, to their ids */
    struct krait_map works;      /* a future's address to the id of its work: work.c */
    struct krait_map work_calls; /* ... to what it calls */
    struct krait_map work_items; /* of imap_unordered: an item, hashed, to 1 + its part's number; 0: taken */
    size_t work_items_most;
    uint64_t work_count;
    PyObject *partial[3]; /* functools.partial, and its members func and args: callables.c */
    struct krait_patched patched_results[5]; /* of multiprocessing's pools: work_processes.c */
    const void *hands_work;  /* code that hands work on by functions that others call too: work.c */
    struct krait_map args;   /* a code object's address to what of its arguments is recorded: args.h */
    struct krait_map places; /* from 3.12: code id and offset to the kind of place: unreported.c */
    PyObject *weakref_callback;
    struct krait_ring *definitions;
    /* optional.h */
    struct krait_log *log;                                        /* NULL: --log is not asked for */
    struct krait_patched patched_warnings[2], patched_imports[1]; /* patch.h */
    PyObject *stand_in_type;                                      /* 3.11: of what stands for functions */
    struct krait_map audited; /* names of audit events, hashed, to whether they are recorded */
    PyObject *collected;      /* krait's function in gc.callbacks */
    bool seeing;
    uint32_t looks;        /* that are due */
    PyObject *profile_obj; /* before 3.12: what PyEval_SetProfile gives back to the hook */
    long tool_id, events;  /* 3.12 on: krait's number, and the events that it asks for */
    uint32_t tools_taken;  /* bits of the tool ids that the program took away */
    PyObject *hook_type;
    PyObject *hooks[16];       /* callbacks, kept from one recording to the next */
    bool scan_threads;         /* before 3.12: a thread was started */
    bool sees_tasks;           /* the hooks look at coroutines */
    bool sees_green_calls;     /* ... at functions of gevent's: green_waits.h */
    struct krait_tasks *tasks; /* tasks.c; NULL: the program has none */
    struct krait_governor {
        int64_t left;    /* hooks until the governor looks again */
        uint64_t window; /* hooks from one look to the next; 0: no budget */
        uint64_t idle;   /* how many of them record no event */
        /* Before 3.12: what some of those took, and how many these were. */
        uint64_t idle_sampled_ticks, idle_samples;
        uint64_t raises; /* how many of those are for RAISE, in this period; before 3.12: types */
        bool no_raise;   /* RAISE was dropped; before 3.12: types are recorded no longer */
        struct krait_budget budget;
        uint64_t look_ticks;   /* time of the last look */
        uint64_t looked_ticks; /* what it took */
        uint64_t said_ticks;   /* time for stacks and types of exceptions since then */
        uint64_t named_ticks;  /* ... to name functions */
        uint64_t switch_ticks; /* ... and for switches of greenlets */
        struct krait_durations *durations;
        uint32_t drops, returns; /* functions that were dropped, and how many of them are recorded again */
        uint32_t round;          /* of probes */
        uint64_t round_ticks;    /* when the next one begins */
        uint64_t gap_ticks;      /* from one to the next */
        struct krait_governor_probe {
            const void *key;
            const struct krait_ring *ring; /* of its thread */
            uint32_t calls, ends;          /* it may call itself */
            uint64_t t;
        } probes[16]; /* calls that are being timed */
        uint32_t probe_count;
        bool looking;
        /* Pauses, in which no thread has a hook. */
        bool paused;
        uint32_t pauses;
        uint32_t pause_id; /* of the made-up function that stands for pauses */
        uint64_t pause_ticks, resume_ticks;
    } governor;
    struct krait_pause_thread { /* pause.c; times are of CLOCK_MONOTONIC */
        _Atomic int phase, tid;
        uint64_t ns;               /* how long it sleeps */
        _Atomic uint64_t ended_ns; /* when the last one ended */
        _Atomic uint64_t fork_ns;  /* until then no other one starts: a fork comes; 0: none does */
    } pause_thread;
};

struct krait_agent {
    struct krait_writer writer;
    struct krait_interp *_Atomic interps;
    struct krait_code_filter filters[256];
    size_t filter_count;
    bool c_calls;
    bool call_sites;
    bool gil;
    bool tasks;
    uint32_t asks; /* enum krait_record_flags: what is recorded only if it is asked for */
    /* filters, a governor, call sites, or no time-stamp counter: the hooks that look at more */
    bool selective;
    bool none_taken;      /* a thread waits in switch.c until a function is taken */
    uint64_t event_ticks; /* for the governor: what recording one call and its end costs */
    uint64_t hook_ticks;  /* ... and how much of it remains if the function is not recorded, before 3.12 */
    bool measures_cost;   /* just executed: what a call takes is measured with the first hooks */
    struct krait_cost {
        bool known;
        struct krait_cost_of {
            uint32_t inside_ns, outside_ns; /* as process:cost says them */
        } python, c;
    } cost;
    _Atomic int running;
    _Atomic int off;         /* part of a recording that is switched off (switch.c); running is 0 then */
    _Atomic uint32_t starts; /* recordings begun in this process */
    _Atomic uint32_t epoch;  /* counts begins and ends of recording: what a thread kept is of one epoch */
    enum krait_event_enum_value origin; /* of a process that has been off since it began */
    _Atomic uint32_t next_task;
    uint32_t lives;      /* how often the program has finalised Python */
    _Atomic int inside;  /* slow paths that are under way, in all threads */
    _Atomic int forked;  /* the process is a copy: join anew before the next event */
    _Atomic bool leaves; /* attached to from outside: where nobody tells it to, it leaves by itself */
};

extern struct krait_agent krait_agent;

/* The ring of this thread. Never NULL: a thread without a ring has one that is always full. Initial-exec: the slot is
 * in the static TLS block, in which dlopen has room for a few bytes; reading it is one instruction. */
extern __thread struct krait_ring *krait_this_ring __attribute__((tls_model("initial-exec")));
extern struct krait_ring krait_no_ring;

/* ---- agent.c ---- */

/* Joins the recording at `session` and installs the hooks in the calling interpreter. GIL held. Returns 0 or
 * a negative errno; *why is then a static text. */
int krait_agent_start(const char *session, enum krait_event_enum_value origin, const char **why);
/* Removes the hooks and leaves the recording. GIL held. */
void krait_agent_stop(void);
/* The calling interpreter's, or NULL. GIL held. */
struct krait_interp *krait_agent_interp(void);
/* Installs the hooks in the calling interpreter if it has none, and does not end. `event` is the audit event that happens, or
 * NULL: one of them says that the end begins. GIL held. */
void krait_agent_see_interp(const char *event);
/* After Py_Finalize and Py_Initialize: forgets the old interpreter and installs the hooks. GIL held. */
void krait_agent_begin_again(void);
/* In a forked child, before its first event: takes its own process slot, rings and ids. Returns 0, -EHOSTDOWN if the
 * recording is off by now, or another negative errno if the child is not to be recorded. GIL held. */
int krait_agent_rejoin(struct krait_interp *in);
/* What krait_agent_start does after mapping the recording. Returns 0; -EHOSTDOWN, and nothing has begun, if the recording
 * is off; or another negative errno. GIL held, and the switch (krait_switch_hold). */
int krait_agent_join(enum krait_event_enum_value origin, const char **why);
/* Install the hooks of an interpreter that has been recorded in this recording before; remove them. GIL held. */
int krait_agent_install_again(struct krait_interp *in, const char **why);
void krait_agent_remove_hooks(struct krait_interp *in);

/* ---- slow paths of the hooks ---- */

enum krait_begin_what {
    KRAIT_TOP_IS_NEW = 0, /* the innermost frame is the one that begins */
    KRAIT_TOP_IS_OLD = 1, /* the innermost frame was there before the event */
};

/* All: GIL held; keep errno and the current exception; make sure that the thread has a ring with room and that its
 * stack is stated. */

/* A Python function begins (call, resume, throw). Returns true if it is not recorded. */
bool krait_slow_begin(struct krait_interp *in, uint32_t event, PyObject *code);
/* A C function is called; `key` is from krait_code_key. Returns true if it is not recorded. */
bool krait_slow_c_call(struct krait_interp *in, const void *key, PyObject *callable);
/* The innermost function ends, at time t. */
void krait_slow_end(struct krait_interp *in, uint64_t t, uint32_t event);
/* The innermost Python function ends by `exception`, at time t. */
void krait_slow_unwind(struct krait_interp *in, uint64_t t, PyObject *exception);
/* The innermost frame, or with KRAIT_TOP_IS_NEW its caller, is of a generator that goes on from time t. */
void krait_slow_resume(struct krait_interp *in, uint64_t t, uint32_t id, enum krait_begin_what top);
/* Says the innermost frame alone (KRAIT_TOP_IS_NEW: its caller), if it is recorded: it is open from time t on, if it was
 * not before. */
void krait_slow_say_top(struct krait_interp *in, uint64_t t, enum krait_begin_what top);
/* Defines a function that begins or ends without an event; returns its slot or NULL. */
struct krait_code *krait_slow_look(struct krait_interp *in, PyObject *code);

/* ---- what slow paths begin and end with ---- */

/* Slow paths may call into Python: they keep what the program would notice. */
struct krait_kept {
    int saved_errno;
    PyObject *type, *value, *traceback;
};
struct krait_kept krait_keep(void);
void krait_restore(struct krait_kept *kept);

/* Whether this interpreter takes part in the recording that runs. */
bool krait_agent_records(const struct krait_interp *in);
/* Whether this thread records calls; makes sure of its ring. */
bool krait_agent_may_record(struct krait_interp *in, enum krait_begin_what top);
/* Whether it records what is no call: in pauses too. */
bool krait_agent_may_note(struct krait_interp *in, enum krait_begin_what top);
/* An event of this thread is lost: once in a while it asks whether anybody is there at all. */
void krait_agent_count_lost(struct krait_interp *in, const struct krait_ring *ring);

/* ---- switch.c ---- */
/* Whether the caller may begin, or switch, the recording of this process now; meanwhile nobody else does. GIL held. */
bool krait_switch_hold(void);
void krait_switch_release(void);
/* Whether recording is switched off. Removes the hooks when it has been switched off since. GIL held; in slow paths. */
bool krait_switch_is_off(struct krait_interp *in);
/* This process joins a recording that is off. GIL held. */
void krait_switch_begin_off(enum krait_event_enum_value origin);
/* If this process is off: switches it on if the recording is on, and sees to it that somebody waits for that. GIL held;
 * keeps errno and the exception. */
void krait_switch_look(void);
/* This process does at once what the recording's state asks for. GIL held; not in a hook. */
void krait_switch_here(void);
/* A thread waits from now on for what krait ctl changes, until krait_switch_note_taken is called: with --include, if it matches
 * nothing, no hook would notice. GIL held. */
void krait_switch_await_changes(void);
/* A function is taken: its hooks notice. Called once. GIL held; does not wait until the thread has ended. */
void krait_switch_note_taken(void);
/* Ends the thread that waits; returns whether there was one. */
bool krait_switch_disarm(void);
/* In a forked child. Async-signal-safe. */
void krait_switch_forked(void);

/* ---- threads.c ---- */
bool krait_thread_begin(struct krait_interp *in);
/* The same without the GIL: for a thread of C's own, which has no name, or one that was seeded. */
bool krait_thread_begin_native(void);
void krait_threads_forget(void);
/* In a forked child: its only thread is the one that called fork. */
void krait_threads_forked(void);
/* For all threads: the next event is preceded by the stack. */
void krait_threads_break(void);
/* For all threads: the next event takes the slow path. */
void krait_threads_look(void);
/* As krait_threads_break, but calls that are in the stack stay open. */
void krait_threads_resync(void);
/* For this thread only: nothing is open from now on. */
void krait_thread_break(void);
/* This thread has another stack from now on, which precedes its next event. `why`: of enum krait_resync. */
void krait_thread_resync(enum krait_resync why);
/* The innermost frame of this thread, or its caller if the innermost has just begun; new reference or NULL. */
PyObject *krait_thread_frame(enum krait_begin_what top);
/* This thread runs krait's own functions: nothing is recorded until it has left them. */
void krait_thread_suppress(struct krait_interp *in);
/* Whether the thread runs krait's own functions, which are not recorded; a function that has just begun does not
 * count. */
bool krait_thread_is_suppressed(struct krait_interp *in, enum krait_begin_what top);
/* Writes this thread's name if it has changed; looks only once in a while. */
void krait_thread_look_at_name(struct krait_interp *in);
/* The time of an event that began at `t`, when this thread's next event would have gone to `cur`. Naming a function may run
 * Python code that is recorded; then the event has to follow that code's events, and its time is now. */
static inline uint64_t krait_thread_time_after(const uint8_t *cur, uint64_t t)
{
    return krait_this_ring->cur == cur ? t : krait_writer_now(&krait_agent.writer);
}
/* Writes the current Python frames of this thread. Returns false if the ring was full. */
bool krait_thread_say_stack(struct krait_interp *in, uint64_t t, enum krait_begin_what top);
/* Writes only the innermost frame, or with KRAIT_TOP_IS_NEW its caller: nothing was lost below it. */
void krait_thread_say_top(struct krait_interp *in, uint64_t t, enum krait_begin_what top);
/* Writes that the recording pauses from t on. Each thread writes the end of the pause before its next event, and its
 * begin if it has not done so. */
void krait_thread_say_pause(struct krait_interp *in, uint64_t t);
/* Before a note: says that recording pauses, where this thread has not. */
void krait_thread_tell_pause(struct krait_interp *in);
/* Says the thread's stack, and that nothing is open from now on: the recording ends here. */
void krait_thread_settle(struct krait_interp *in);
/* For all threads: nothing is open from now on, and the next event is preceded by the stack. GIL held, and no thread of C
 * may write. */
void krait_threads_close(void);
/* Another interpreter is there, which has run nothing yet. */
void krait_threads_see_interp(void);
/* Takes rings for threads that are already running, unless they have one, and writes their stacks. */
void krait_threads_seed(struct krait_interp *in);
/* Gives back rings of such threads that have ended without an event: what was open in them is over. Looks at some of them
 * each time. GIL held; keeps errno. */
void krait_threads_sweep(void);
/* The same for this thread, which starts the recording from krait's own functions: these are not part of it. */
void krait_thread_seed(struct krait_interp *in);
int krait_threads_init(void);

/* ---- native_id.c ---- */
/* The kernel's number of the thread that is `ident` to Python; `thread` is its threading.Thread or NULL. 0: not known, or
 * it has ended. GIL held; keeps errno. */
uint32_t krait_native_id(unsigned long ident, PyObject *thread);
/* threading._active[ident]; new reference, NULL when not there. GIL held. */
PyObject *krait_active_thread(unsigned long ident);

/* ---- unreported.c ---- */
/* PY_THROW was reported: the RAISE right after it is not an unreported begin. GIL held. */
void krait_unreported_throw(const PyObject *code);
/* C_RAISE was reported; the RAISE after it has the exception. From 3.12. GIL held. */
void krait_unreported_c_raise(void);
/* RAISE's exception: completes the C_RAISE before it, if that is the thread's last event. GIL held, and no
 * exception set. */
void krait_unreported_exception(struct krait_interp *in, PyObject *exception);
/* With the arguments of RAISE: records the begin of the frame if CPython did not report it. GIL held, and no exception
 * set. */
KRAIT_COLD void krait_unreported_raise(struct krait_interp *in, PyObject *code, PyObject *offset,
                                       PyObject *exception);
/* With the arguments of PY_UNWIND, if RAISE is off: whether the begin of the frame was not reported. */
bool krait_unreported_unwinds(struct krait_interp *in, PyObject *code, PyObject *offset, PyObject *exception);
/* 3.11: an awaiting coroutine continues unreported at time t; it is not `back` (krait_frame_ends_throw). Its resume is
 * inserted before this thread's next event, which shows what it is. */
void krait_unreported_goes_on(uint64_t t, const PyObject *back);
/* If a coroutine continued unreported since the last call, and it is `code`, whose frame the event comes from: the
 * time; else 0. */
uint64_t krait_unreported_resumed(PyObject *code);
/* Whether any coroutine has continued unreported. */
bool krait_unreported_pending(void);
/* Whether the innermost open function of this thread at time t is `code`, which `frame` runs. If the thread's packet
 * does not show it, writes the frame (krait_slow_say_top), which makes it so, and returns true. Reads the whole packet:
 * for rare cases. GIL held, and no exception set. */
KRAIT_COLD bool krait_has_begun(struct krait_interp *in, uint64_t t, PyObject *frame, PyObject *code);
/* 3.11: a signal handler that ran in `frame` has raised where a generator goes on (krait_frame_interrupts). The generator
 * may catch it: its resume is recorded, if CPython did not report it. GIL held, and no exception set. */
KRAIT_COLD void krait_unreported_interrupted(struct krait_interp *in, PyObject *frame);
/* 3.11: the same for signal.default_int_handler, which is written in C and has no frame. GIL held. */
void krait_unreported_patch_handler(void);

/* ---- raised.c: before 3.12 ---- */
/* The thread's last event is the end of a function by an exception, python_unwind_of or c_raise_of, with type 0. `frame` is
 * the frame that it leaves, or that called the C function. Puts the type into the event when the exception arrives in the
 * next frame. GIL held, in the profile function. */
void krait_raised_await(struct krait_interp *in, const PyObject *frame, uint32_t event);
/* Ends the wait in the thread of `tstate`, if there is one. GIL held. */
void krait_raised_settle(void *tstate);

/* ---- greenlets.c ---- */
/* Makes greenlet report this thread's switches, once the program has imported greenlet. GIL held. */
void krait_greenlets_see(struct krait_interp *in);
/* Readers do not know the stacks of this thread's greenlets any more. Each thread calls it for itself. */
void krait_greenlets_forget(void);
/* The thread ends. */
void krait_greenlets_end(void);

/* ---- filter.c ---- */
/* The next string of a kind after `before`; NULL: the first one. NULL where there is none. */
const char *krait_filters_next(const struct krait_agent *agent, const char *before,
                               enum krait_filter_kind kind);
void krait_filters_read(struct krait_agent *agent);
/* Whether there is an --include: other functions are left out. */
bool krait_filters_include(const struct krait_agent *agent);
/* What is recorded, in the words of krait ctl set: "include=app.* c-calls=on overhead=5", of at most
 * `size` bytes with the NUL. "..." ends a glob, or the whole, that is longer. */
void krait_filters_say(const struct krait_agent *agent, char *to, size_t size);
bool krait_filters_take(const struct krait_agent *agent, const char *module, const char *name,
                        const char *file);
/* Sets a bit of krait_control.filters_met. */
void krait_filters_note_met(const struct krait_agent *agent, size_t filter);
/* For C functions: only --exclude applies. */
bool krait_filters_take_c(const struct krait_agent *agent, const char *module, const char *name);

/* ---- governor.c ---- */
void krait_governor_init(struct krait_interp *in);
/* Called every `window` begins and once in a while: drops functions if too much was spent, or begins a pause. May call
 * Python; slots must be looked up again. KRAIT_TOP_IS_NEW: the innermost frame begins or ends here. */
KRAIT_COLD void krait_governor_look(struct krait_interp *in, enum krait_begin_what top);
/* `id` is an id of the function at `key`, whose own id is `base`. */
void krait_governor_know(struct krait_interp *in, uint32_t id, const void *key, uint32_t base);
/* Before an event of `bytes` bytes: if it will close the packet of this thread, reads the rest of the packet. GIL
 * held. */
void krait_governor_read_closing(struct krait_interp *in, size_t bytes);
/* Before 3.12: counts an exception whose type is recorded. */
void krait_governor_count_raise(struct krait_interp *in);
/* Counts a switch of greenlets, which took krait so long. */
void krait_governor_count_switch(struct krait_interp *in, uint64_t ticks);
/* Ends a pause before a fork, whose child would have no hooks and nobody to end the pause, and where a module is imported
 * that has to be patched. GIL held. */
void krait_governor_audit(const char *event, PyObject *args);
/* Ends a pause. GIL held. */
void krait_governor_resume(struct krait_interp *in);
/* Begins to time a call of a dropped function. At the end of the call the function may be recorded again. */
void krait_governor_probe_begin(struct krait_interp *in, const struct krait_code *slot);
void krait_governor_probe_end(struct krait_interp *in, struct krait_code *slot);

/* Whether to time calls of a dropped function now. */
static inline bool krait_governor_probes(const struct krait_interp *in, const struct krait_code *slot)
{
    return slot->flags & KRAIT_CODE_HOT && slot->round != in->governor.round;
}

/* Counts a recorded call. Returns whether the governor looked: then the slot must be looked up again. */
static inline bool krait_governor_count(struct krait_interp *in, struct krait_code *slot,
                                        enum krait_begin_what top)
{
    slot->calls++;
    if (KRAIT_LIKELY(--in->governor.left >= 0))
        return false;
    krait_governor_look(in, top);
    return true;
}

/* Whether to measure the next hook: few, because it takes two readings of the clock. */
static inline bool krait_governor_samples(const struct krait_interp *in)
{
    enum { EVERY = 64 };
    return in->governor.left % EVERY == 0;
}

/* Counts a hook that records nothing: the innermost frame was there before, or is left out. */
static inline void krait_governor_count_idle(struct krait_interp *in)
{
    in->governor.idle++;
    if (KRAIT_UNLIKELY(--in->governor.left < 0))
        krait_governor_look(in, KRAIT_TOP_IS_OLD);
}

/* ---- pause.c ---- */
/* Starts the thread that ends a pause after `ns`. Returns 0, -EBUSY if that of an earlier pause is there still or the program
 * is about to fork, or another negative errno. GIL held. */
int krait_pause_start_thread(struct krait_interp *in, uint64_t ns);
/* The program is about to fork: ends the thread, if there is one. GIL held; may give it up for a moment. */
void krait_pause_end_thread(struct krait_interp *in);
/* In the parent: pauses may begin again. Async-signal-safe. */
void krait_pause_fork_is_over(void);
/* In a forked child, which has no such thread. Async-signal-safe. */
void krait_pause_forked(void);

/* ---- monitoring.c (3.12 on), profile.c (before) ---- */
int krait_monitoring_install(struct krait_interp *in, const char **why);
void krait_monitoring_remove(struct krait_interp *in);
/* From now on the hooks look at coroutines too. GIL held. */
void krait_monitoring_see_tasks(struct krait_interp *in);
/* From now on the hooks look at calls of gevent's functions too. GIL held. */
void krait_monitoring_see_green_calls(struct krait_interp *in);
/* Goes on without RAISE. GIL held. */
void krait_monitoring_drop_raise(struct krait_interp *in);
/* Take all hooks out, and put them in again. GIL held. */
void krait_monitoring_pause(struct krait_interp *in);
void krait_monitoring_resume(struct krait_interp *in);
/* Enables all hooks again that were disabled at single places. GIL held. */
void krait_monitoring_restart(void);
int krait_profile_install(struct krait_interp *in, const char **why);
void krait_profile_remove(struct krait_interp *in);
/* Gives all threads the hook again after krait_profile_remove. GIL held. */
void krait_profile_resume(struct krait_interp *in);
/* One interpreter has ended; all have, and with them the audit hooks. */
void krait_profile_forget(const struct krait_interp *in);
void krait_profile_forget_all(void);
/* In the child of fork: a pause ends. */
void krait_profile_forked(void);
/* The preloaded library calls krait_profile_thread_state: profile.c need not redirect CPython's own calls. */
void krait_profile_is_fed(void);
/* Called in a new thread when CPython stores its thread state: see native/preload.c. No GIL. */
void krait_profile_thread_state(unsigned key, const void *value);

#endif
