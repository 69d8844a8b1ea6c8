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
 * Of a sampled thread (trace/sample_runs.h) about which the kernel's part has nothing, its samples tell the state: ON_CPU, which is
 * ready for a CPU too, GIL, and OTHER, which is all time blocked. Each goes on up to the next sample.
 */
#ifndef KRAIT_ANALYSIS_WALL_H
#define KRAIT_ANALYSIS_WALL_H

#include "trace/kernel/kernel_states.h"
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
};

/* One stretch of time in one state, up to where the next begins. */
struct krait_wall_interval {
    uint64_t begin_ns;
    uint32_t call; /* id of the system call, in krait_wall_call's names, or KRAIT_NO_ID */
    /* RUNNABLE: the thread that woke it, or that runs in its place; GIL: the one that has it; for krait_wall_cause,
     * 0: an interrupt, or not known */
    uint32_t by;
    uint32_t had; /* RUNNABLE: krait_wall_had's, `had_count` of them; 0: not known */
    uint32_t had_count;
    uint32_t khz;   /* ON_CPU: the frequency of its CPU; 0: not known, or an interrupt had stopped it */
    uint8_t state;  /* enum krait_wall_state */
    bool preempted; /* RUNNABLE: it had a CPU and lost it; else it was woken */
};

/* A thread's time from 0 on, the first interval, to UINT64_MAX, where one stands that ends all. */
struct krait_wall_track {
    struct krait_wall_interval *items; /* owned */
    uint32_t count;                    /* without the one that ends all */
};

struct krait_wall; /* opaque */

enum krait_wall_flags {
    KRAIT_WALL_KERNEL = 1,  /* the trace has a kernel's part: read it */
    KRAIT_WALL_WAITS = 2,   /* there are waits for the GIL */
    KRAIT_WALL_SAMPLES = 8, /* there are samples */
    KRAIT_WALL_HOLDERS = 4, /* they begin anew with each thread that has the GIL meanwhile: goes through all
                               threads once more; without it they are whole, and of who had it at first */
};

/* Memory: 24 bytes for each change of a recorded thread's state in the kernel's part. Returns 0, or a
 * negative errno with err set: -ENODATA the kernel's events do not tell what threads do; what krait_kernel_events_open
 * returns. `trace` must outlive it. */
int krait_wall_new(struct krait_wall **out, const struct krait_trace *trace, unsigned flags,
                   struct krait_err *err);
void krait_wall_free(struct krait_wall *wall);

/* Of a thread of the trace. Returns 0 or -ENOMEM. */
int krait_wall_track_new(struct krait_wall_track *track, const struct krait_wall *wall, uint32_t thread);
void krait_wall_track_done(struct krait_wall_track *track);

/* The name of a system call; "" of KRAIT_NO_ID. */
const char *krait_wall_call(const struct krait_wall *wall, uint32_t call);
/* A thread that woke another one, took its CPU or held the GIL that it waited for. */
struct krait_wall_cause {
    int32_t tid;      /* the kernel's, where that is known */
    const char *name; /* that the program gave it, or else the kernel; "" where neither is known */
};

/* Of `by` of an interval, not 0. At a time, since who executes another program goes on with another name. */
struct krait_wall_cause krait_wall_cause(const struct krait_wall *wall, uint32_t by, uint64_t t_ns);
/* Who had the CPU that a thread was ready for: `had_count` runs, of which the first may begin before the interval, and
 * the last goes on at its end. NULL: not known. */
const struct krait_krun *krait_wall_had(const struct krait_wall *wall, const struct krait_wall_interval *at);
/* Whether the kernel's part tells the states. */
bool krait_wall_has_kernel(const struct krait_wall *wall);
/* Whether samples tell them. */
bool krait_wall_has_samples(const struct krait_wall *wall);
/* Whether there is more than waits for the GIL. */
static inline bool krait_wall_has_states(const struct krait_wall *wall)
{
    return krait_wall_has_kernel(wall) || krait_wall_has_samples(wall);
}
/* Whether only switches are known, so that all that is not on CPU, or has lost it, is OTHER. */
bool krait_wall_own(const struct krait_wall *wall);
/* Whether interrupts are known; else who is said to have woken a thread may be whom an interrupt stopped. */
bool krait_wall_has_interrupts(const struct krait_wall *wall);
/* Events that the kernel's tracer lost; the first damage met (code 0: none). */
uint64_t krait_wall_lost(const struct krait_wall *wall);
/* The kernel's states that it is made of; NULL without the kernel's part. */
const struct krait_kernel_states *krait_wall_states(const struct krait_wall *wall);
const struct krait_err *krait_wall_damage(const struct krait_wall *wall);

/* Whether the frequency of a CPU is told. */
bool krait_wall_clocked(const struct krait_wall *wall);

/* A place in a track that moves forward, and the processor cycles that were passed. */
struct krait_wall_clock {
    const struct krait_wall_interval *at;
    uint64_t now_ns;
    struct krait_cycles passed;
};

/* Moves to a time, not back, and says the cycles up to it. hot path */
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

/* A place in a track that moves forward, and what was passed, in each state. */
struct krait_wall_cursor {
    const struct krait_wall_interval *at;
    uint64_t now_ns;
    uint64_t ns[KRAIT_WALL_COUNT];
};

static inline void krait_wall_begin(struct krait_wall_cursor *cursor, const struct krait_wall_track *track)
{
    *cursor = (struct krait_wall_cursor){ .at = track->items };
}

/* The interval that a time lies in. */
const struct krait_wall_interval *krait_wall_at(const struct krait_wall_track *track, uint64_t t_ns);

/* Whether its interval ends before a time. hot path */
static inline bool krait_wall_leaves(const struct krait_wall_cursor *cursor, uint64_t t_ns)
{
    return cursor->at[1].begin_ns < t_ns;
}

/* Moves to a time, and adds what lies between to `more` too; not back. hot path */
static inline void krait_wall_go(struct krait_wall_cursor *cursor, uint64_t t_ns, uint64_t *more)
{
    while (KRAIT_UNLIKELY(krait_wall_leaves(cursor, t_ns))) {
        uint64_t ns = cursor->at[1].begin_ns - cursor->now_ns;
        cursor->ns[cursor->at->state] += ns;
        more[cursor->at->state] += ns;
        cursor->now_ns = (++cursor->at)->begin_ns;
    }
    cursor->ns[cursor->at->state] += t_ns - cursor->now_ns;
    more[cursor->at->state] += t_ns - cursor->now_ns;
    cursor->now_ns = t_ns;
}

/* How long the state has lasted at the cursor's time, from `since_ns` on at most. */
static inline uint64_t krait_wall_lasts(const struct krait_wall_cursor *cursor, uint64_t since_ns)
{
    return cursor->now_ns - KRAIT_MAX(since_ns, cursor->at->begin_ns);
}

/* Takes off some of that again, from `more` too. */
static inline void krait_wall_take(struct krait_wall_cursor *cursor, uint64_t ns, uint64_t *more)
{
    cursor->ns[cursor->at->state] -= ns;
    more[cursor->at->state] -= ns;
}

#endif
