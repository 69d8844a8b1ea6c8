/* SPDX-License-Identifier: Apache-2.0
 *
 * What threads did with their wall time, that is, elapsed time as on a clock on the wall, on a CPU and off it. The
 * kernel's states of a thread (kernel_states.h) are converted to the clock of its calls:
 *
 *     calls      main ─┬──────── load ────────┬─ read ───────────────┬── ...
 *     states     cpu   │ ready │ cpu          │ cpu │ disk │ ready │ │cpu
 *
 * A recorded thread and the kernel's thread are matched by id and time. Where the kernel's part has nothing about a
 * thread, because it begins later or is not there, the state is KRAIT_WALL_UNKNOWN. So the states of any period
 * always add up to it.
 *
 * Waits for the GIL, which the program itself records (trace/gil.h), come on top. During such a wait the state is
 * KRAIT_WALL_GIL wherever the thread neither had a CPU nor was ready for one. If the thread becomes ready only to ask
 * for the GIL and then sleeps again, that counts as waiting too.
 *
 * If the kernel's part has nothing about a sampled thread (trace/sample_runs.h), its samples give the state: ON_CPU (which
 * includes ready for a CPU), GIL, or OTHER (blocked on anything). Each state lasts until the next sample.
 */
#ifndef KRAIT_ANALYSIS_WALL_H
#define KRAIT_ANALYSIS_WALL_H

#include "trace/kernel/kernel_states.h"
#include "trace/ranges.h"
#include "trace/trace.h"

/* X(name, for programs, column's title, in a sentence) */
#define KRAIT_WALL_STATES(X)                                                                \
    X(ON_CPU, "on_cpu", "cpu", "on CPU")      /* and interrupts that stopped it there */    \
    X(RUNNABLE, "runnable", "ready", "ready") /* to run, but another had the CPU */         \
    X(GIL, "gil", "gil", "GIL")                                                             \
    X(LOCK, "lock", "lock", "lock")                                                         \
    X(DISK, "disk", "disk", "disk")                                                         \
    X(NETWORK, "network", "net", "network")                                                 \
    X(TIMER, "timer", "timer", "timer")                                                     \
    X(CHILD, "child", "child", "child process")                                             \
    X(FAULT, "page_fault", "fault", "page fault")                                           \
    X(STOPPED, "stopped", "stopped", "stopped")         /* by a signal, or a debugger */    \
    X(THROTTLED, "throttled", "throttled", "throttled") /* its cgroup's quota is used up */ \
    X(OTHER, "other", "other", "other")                                                     \
    X(UNKNOWN, "unknown", "unknown", "unknown")

enum krait_wall_state {
#define X(name, text, title, words) KRAIT_WALL_##name,
    KRAIT_WALL_STATES(X)
#undef X
        KRAIT_WALL_COUNT,
    /* What the state GIL has besides the time in which another thread held it; see enum krait_gil_state. */
    KRAIT_WALL_GIL_FREE = KRAIT_WALL_COUNT,
    KRAIT_WALL_GIL_UNKNOWN,
    KRAIT_WALL_PARTS,
};

/* A state of a thread; it lasts until the next interval begins. */
struct krait_wall_interval {
    uint64_t begin_ns;
    uint32_t call; /* id of the system call (krait_wall_call), or KRAIT_NO_ID */
    /* For krait_wall_cause. RUNNABLE: the thread that woke this one, or runs in its place. GIL: the thread that holds it, or of
     * the part GIL_FREE this thread if it takes it next. 0: an interrupt, or not known. */
    uint32_t by;
    uint32_t had; /* RUNNABLE: for krait_wall_had; 0: not known */
    uint32_t had_count;
    uint32_t khz;   /* ON_CPU: the frequency of its CPU; 0: not known, or an interrupt had stopped it */
    uint8_t state;  /* enum krait_wall_state */
    uint8_t part;   /* the state, or with KRAIT_WALL_HOLDERS GIL_FREE or GIL_UNKNOWN */
    bool preempted; /* RUNNABLE: it lost its CPU; else it was woken */
};

/* The states of a thread from time 0 to UINT64_MAX. An interval at UINT64_MAX ends the array. */
struct krait_wall_track {
    struct krait_wall_interval *items; /* owned */
    uint32_t count;                    /* without the one at UINT64_MAX */
};

struct krait_wall; /* opaque */

enum krait_wall_flags {
    KRAIT_WALL_KERNEL = 1,  /* the trace has kernel events: read them */
    KRAIT_WALL_WAITS = 2,   /* there are waits for the GIL */
    KRAIT_WALL_SAMPLES = 8, /* there are samples */
    /* Split each wait for the GIL by the threads that held it meanwhile, which takes another pass over all threads.
     * Otherwise a wait is one interval of the part GIL, whose `by` is the first holder. */
    KRAIT_WALL_HOLDERS = 4,
};

/* It takes 24 bytes for each change of a recorded thread's state in the kernel's part. Returns 0, or a negative errno with
 * err set: -ENODATA the kernel events do not show what threads do; errors of krait_kernel_events_open. `trace` must
 * outlive it. */
int krait_wall_new(struct krait_wall **out, const struct krait_trace *trace, unsigned flags,
                   struct krait_err *err);
void krait_wall_free(struct krait_wall *wall);

/* The kernel's states that walls of one recording that goes on share, so that each of them reads only what is new
 * (wall_states.h). */
struct krait_wall_kept; /* opaque */
/* Returns 0 or -ENOMEM. It must outlive the walls. */
int krait_wall_kept_new(struct krait_wall_kept **out);
void krait_wall_kept_free(struct krait_wall_kept *kept);
/* The recording is over: nobody reads on. NULL: nothing. */
void krait_wall_kept_forget(struct krait_wall_kept *kept);

/* krait_wall_new with kept states, or with NULL. If the trace goes on (krait_trace_open_on), they are known as far as all CPUs have
 * written. Waits until nobody uses the states. */
int krait_wall_new_on(struct krait_wall **out, const struct krait_trace *trace, unsigned flags,
                      struct krait_wall_kept *kept, struct krait_err *err);
/* Before and after the use of such a wall, during which no other one is made. Returns false if what it was made of is not there any
 * more: make another one. Walls that keep their states themselves are always there. */
bool krait_wall_use(const struct krait_wall *wall);
void krait_wall_used(const struct krait_wall *wall);

/* The states of a thread of the trace. Returns 0 or -ENOMEM. */
int krait_wall_track_new(struct krait_wall_track *track, const struct krait_wall *wall, uint32_t thread);
void krait_wall_track_done(struct krait_wall_track *track);

/* The kernel's thread that a thread of the trace is; NULL: the kernel's part does not tell of it. */
const struct krait_kthread *krait_wall_kthread(const struct krait_wall *wall, uint32_t thread);

/* Adds to ns how much of the kernel's states (enum krait_thread_state) of a thread of the trace is KRAIT_WALL_GIL in a range, and
 * in these parts of it, unless they are NULL. Returns 0 or -ENOMEM. */
int krait_wall_gil_times(const struct krait_wall *wall, uint32_t thread, struct krait_range range,
                         const struct krait_ranges *parts, uint64_t ns[KRAIT_TS_COUNT]);

/* The name of a system call; "" for KRAIT_NO_ID. */
const char *krait_wall_call(const struct krait_wall *wall, uint32_t call);
/* A thread that woke another one, took its CPU or held the GIL that it waited for. */
struct krait_wall_cause {
    int32_t tid;      /* the kernel's, if known */
    const char *name; /* given by the program, or else by the kernel; "": not known */
};

/* The thread that the field `by` of an interval stands for; `by` is not 0. It has a name at a time, because a thread that
 * executes another program gets another name. */
struct krait_wall_cause krait_wall_cause(const struct krait_wall *wall, uint32_t by, uint64_t t_ns);
/* The threads that had the CPU for which this thread was ready: `had_count` runs. The first may begin before the interval;
 * the last continues at its end. NULL: not known. */
const struct krait_krun *krait_wall_had(const struct krait_wall *wall, const struct krait_wall_interval *at);
/* Up to when the kernel's part is known; 0: there is none. */
uint64_t krait_wall_end(const struct krait_wall *wall);
/* Whether the states come from kernel events. */
bool krait_wall_has_kernel(const struct krait_wall *wall);
/* Whether waits for the GIL are among them, where there are some. */
bool krait_wall_has_waits(const struct krait_wall *wall);
/* Whether they come from samples. */
bool krait_wall_has_samples(const struct krait_wall *wall);
/* Whether it knows other states than waits for the GIL. */
static inline bool krait_wall_has_states(const struct krait_wall *wall)
{
    return krait_wall_has_kernel(wall) || krait_wall_has_samples(wall);
}
/* Whether only context switches were recorded, so that all waiting is OTHER. */
bool krait_wall_own(const struct krait_wall *wall);
/* Whether interrupts were recorded. If not, a waker may really be a thread that an interrupt stopped. */
bool krait_wall_has_interrupts(const struct krait_wall *wall);
/* The number of events that the kernel's tracer lost. */
uint64_t krait_wall_lost(const struct krait_wall *wall);
/* The kernel's states from which it is made; NULL: there are no kernel events. */
const struct krait_kernel_states *krait_wall_states(const struct krait_wall *wall);
/* The first damage found in the kernel's part; code 0: none. */
const struct krait_err *krait_wall_damage(const struct krait_wall *wall);

/* Whether the frequency of any CPU is known. */
bool krait_wall_clocked(const struct krait_wall *wall);

/* A place in a track, which moves forward, and the processor cycles up to it. */
struct krait_wall_clock {
    const struct krait_wall_interval *at;
    uint64_t now_ns;
    struct krait_cycles passed;
};

/* Moves forward to a time, and returns the cycles up to it. hot path */
static inline uint64_t krait_wall_clock_go(struct krait_wall_clock *clock, uint64_t t_ns)
{
    while (KRAIT_UNLIKELY(clock->at[1].begin_ns < t_ns)) {
        krait_cycles_add(&clock->passed, clock->at[1].begin_ns - clock->now_ns, clock->at->khz);
        clock->now_ns = (++clock->at)->begin_ns;
    }
    krait_cycles_add(&clock->passed, t_ns - clock->now_ns, clock->at->khz);
    clock->now_ns = t_ns;
    return krait_cycles_count(&clock->passed);
}

/* A place in a track, which moves forward, and the time in each part up to it: GIL is without GIL_FREE and GIL_UNKNOWN. */
struct krait_wall_cursor {
    const struct krait_wall_interval *at;
    uint64_t now_ns;
    uint64_t ns[KRAIT_WALL_PARTS];
};

static inline void krait_wall_begin(struct krait_wall_cursor *cursor, const struct krait_wall_track *track)
{
    *cursor = (struct krait_wall_cursor){ .at = track->items };
}

/* The interval that contains a time. */
const struct krait_wall_interval *krait_wall_at(const struct krait_wall_track *track, uint64_t t_ns);

/* Whether the cursor's interval ends before a time. hot path */
static inline bool krait_wall_leaves(const struct krait_wall_cursor *cursor, uint64_t t_ns)
{
    return cursor->at[1].begin_ns < t_ns;
}

/* Makes times by part those by state: GIL has its parts too, which stay beside it. Once, when they are summed up. */
static inline void krait_wall_gather(uint64_t ns[KRAIT_WALL_PARTS])
{
    ns[KRAIT_WALL_GIL] += ns[KRAIT_WALL_GIL_FREE] + ns[KRAIT_WALL_GIL_UNKNOWN];
}

/* Moves forward to a time, and adds the time in between also to `more`, KRAIT_WALL_PARTS. hot path */
static inline void krait_wall_go(struct krait_wall_cursor *cursor, uint64_t t_ns, uint64_t *more)
{
    while (KRAIT_UNLIKELY(krait_wall_leaves(cursor, t_ns))) {
        uint64_t ns = cursor->at[1].begin_ns - cursor->now_ns;
        cursor->ns[cursor->at->part] += ns;
        more[cursor->at->part] += ns;
        cursor->now_ns = (++cursor->at)->begin_ns;
    }
    cursor->ns[cursor->at->part] += t_ns - cursor->now_ns;
    more[cursor->at->part] += t_ns - cursor->now_ns;
    cursor->now_ns = t_ns;
}

/* How long the current state has lasted, counted from `since_ns` if it began before. */
static inline uint64_t krait_wall_lasts(const struct krait_wall_cursor *cursor, uint64_t since_ns)
{
    return cursor->now_ns - KRAIT_MAX(since_ns, cursor->at->begin_ns);
}

/* Subtracts some of that time again, also from `more`. */
static inline void krait_wall_take(struct krait_wall_cursor *cursor, uint64_t ns, uint64_t *more)
{
    cursor->ns[cursor->at->part] -= ns;
    more[cursor->at->part] -= ns;
}

#endif
