/* SPDX-License-Identifier: Apache-2.0
 *
 * What threads and CPUs did, computed from the kernel's events: the state of each at any time, the time in each state,
 * the system calls, and how long threads waited in the run queue.
 *
 * A thread's states follow from sched_switch, wake-ups, interrupts and system calls on its CPU:
 *
 *      fork ──> woken ──────────> user <──────> system ──── interrupt: whichever of both it was
 *                 ^                 │  system      │        is stopped, and goes on
 *                 │ wake-up         │  call        │
 *                 │                 v              v
 *              blocked <──── switch, not runnable ; switch, runnable ──> preempted ──> user, system
 *
 * When a thread is woken, krait knows what it was blocked on. Some system calls say it (kernel_block.h); else it follows
 * from what runs on the CPU that wakes the thread: a timer, or the interrupt of the network or a disk. A thread that
 * goes to sleep outside of a system call, in an uninterruptible state, is taken to wait for a page. That is the usual
 * reason. No event that krait reads tells these other reasons from it:
 *   - work that a system call put off until the return to user mode (resume_user_mode_work() of
 *     include/linux/resume_user_mode.h), such as the last close of a file: of close(2) before Linux 6.6, of munmap(2)
 *     still
 *   - waiting because a memory cgroup is over its high limit
 *   - freeing the memory of a thread that a signal ends (exit_mm()), in most versions before sched_process_exit
 *
 * The states are those of Trace Compass's kernel analysis (KernelEventHandlers of
 * org.eclipse.tracecompass.analysis.os.linux), with WAIT_BLOCKED split up and WAIT_FOR_CPU in two.
 *
 * The state of a thread before its first event is unknown, unless a state dump says more, or the first switch of a CPU
 * shows that the thread ran there.
 *
 * After a loss on a CPU, it is unknown what runs there until its next event. Other threads stay in their states. If a
 * thread's next event contradicts its state (a switch away from a thread that did not run, or a running thread that
 * nobody woke), its time since the loss is unknown.
 */
#ifndef KRAIT_TRACE_KERNEL_STATES_H
#define KRAIT_TRACE_KERNEL_STATES_H

#include "base/map.h"
#include "base/spread.h"
#include "trace/kernel/cycles.h"
#include "trace/kernel/kernel_events.h"
#include "trace/kernel/kernel_steal.h"
#include "trace/ranges.h"

/* X(name, for programs, column's title, how soon narrow tables leave it out; 0: it is in none). From DISK to
 * BLOCKED the thread is blocked. */
#define KRAIT_THREAD_STATES(X)                                                                         \
    X(USER, "user", "user", 5)                                                                         \
    X(SYSTEM, "system", "system", 4)           /* in a system call; of a kernel thread, all running */ \
    X(INTERRUPT, "interrupt", "irq", 13)       /* stopped by an interrupt on its CPU */                \
    X(WOKEN, "woken", "woken", 15)             /* runnable, after it was blocked or made */            \
    X(PREEMPTED, "preempted", "preempted", 14) /* runnable, after it ran */                            \
    /* runnable after it ran, but the CPU idles: its cgroup's quota is used up */                      \
    X(THROTTLED, "throttled", "throttled", 14)                                                         \
    X(DISK, "blocked_disk", "disk", 6)                                                                 \
    X(NETWORK, "blocked_network", "network", 9)                                                        \
    X(TIMER, "blocked_timer", "timer", 8)                                                              \
    X(LOCK, "blocked_lock", "lock", 10)                                                                \
    X(CHILD, "blocked_child", "child", 11)                                                             \
    X(FAULT, "blocked_page_fault", "fault", 11)                                                        \
    X(STOPPED, "blocked_stopped", "stopped", 11) /* by a signal, or by who traces it */                \
    X(BLOCKED, "blocked_other", "other", 7)      /* on something else, or not known on what */         \
    X(UNKNOWN, "unknown", "unknown", 12)                                                               \
    X(GONE, "gone", "gone", 0) /* it is not there: before it is made, after its end */

#define KRAIT_CPU_STATES(X)             \
    X(IDLE, "idle", "idle", 1)          \
    X(USER, "user", "user", 2)          \
    X(SYSTEM, "system", "system", 3)    \
    X(IRQ, "interrupt", "irq", 4)       \
    X(SOFTIRQ, "softirq", "softirq", 5) \
    X(UNKNOWN, "unknown", "unknown", 6)

enum krait_thread_state {
#define X(name, text, title, drop) KRAIT_TS_##name,
    KRAIT_THREAD_STATES(X)
#undef X
        KRAIT_TS_COUNT,
};

static inline bool krait_thread_runs(enum krait_thread_state state)
{
    return state == KRAIT_TS_USER || state == KRAIT_TS_SYSTEM || state == KRAIT_TS_INTERRUPT;
}

/* It lost the CPU, and could run. */
static inline bool krait_thread_is_preempted(enum krait_thread_state state)
{
    return state == KRAIT_TS_PREEMPTED || state == KRAIT_TS_THROTTLED;
}

/* It waits for a CPU. */
static inline bool krait_thread_is_ready(enum krait_thread_state state)
{
    return state == KRAIT_TS_WOKEN || krait_thread_is_preempted(state);
}

static inline bool krait_thread_blocks(enum krait_thread_state state)
{
    return state >= KRAIT_TS_DISK && state <= KRAIT_TS_BLOCKED;
}

enum krait_cpu_state {
#define X(name, text, title, drop) KRAIT_CS_##name,
    KRAIT_CPU_STATES(X)
#undef X
        KRAIT_CS_COUNT,
};

/* In names of types, k stands for the kernel's view: a krait_kthread is any thread as the kernel sees it, of a program
 * or of the kernel itself. */

/* Who has a CPU from then on, up to the next one's: see krait_kernel_cause; 0: the idle task. */
struct krait_krun {
    int64_t ns;
    uint32_t by;
};

#define KRAIT_RUN_UNKNOWN UINT32_MAX /* who has it is not known */

/* In the order of time. */
struct krait_kruns {
    struct krait_krun *items;
    uint32_t count, cap;
};

/* A thread that had the CPU for a part of the time in which another one was ready for it; `by` as in struct krait_krun. */
struct krait_competitor {
    uint32_t by;
    uint64_t ns;
};

struct krait_competitors {
    struct krait_competitor *items;
    uint32_t count, cap;
};

/* One stretch of time in one state. It ends where the thread's next begins, the last one with the range. */
struct krait_kinterval {
    int64_t begin_ns;
    uint32_t call; /* id of the system call that the thread is in, or KRAIT_NO_ID */
    /* WOKEN: the thread that woke or made it; PREEMPTED: the one that had its CPU for longest; see krait_kernel_cause */
    uint32_t by;
    /* WOKEN, PREEMPTED: who had the CPU meanwhile, in the states' `had`; 0: not known */
    uint32_t had, had_count;
    uint32_t khz; /* USER, SYSTEM: the frequency of its CPU; 0: not known */
    uint8_t state;
};

/* One life of a thread: a number that is used again is another thread. Where its fork was lost, that is known
 * by its first wake-up (sched_wakeup_new), or since it wakes or is switched to when the one before has ended.
 */
struct krait_kthread {
    uint64_t ns[KRAIT_TS_COUNT]; /* adding up to counted_ns */
    struct krait_cycles cycles;  /* in user mode and system calls */
    int32_t tid;
    int32_t own_tid;  /* what it was told when it asked: its number in its namespace; 0: it did not ask */
    uint32_t index;   /* its place in `threads` */
    uint32_t process; /* index; KRAIT_NO_ID if not known */
    char name[16];    /* the last it had, terminated; may be empty */
    int64_t born_ns, gone_ns; /* 0, INT64_MAX: it was there before the trace, and is at its end */
    bool is_kernel;           /* a thread of the kernel's own, as far as known */
    bool makes_calls, wakes;  /* it was seen to enter a system call; to wake or make a thread */
    bool says;                /* it wrote to trace_marker, or passed a probe */
    bool runs_functions;      /* of the kernel's, where that is asked for (krait_kernel_options) */
    bool kept;                /* its intervals are asked for: */
    struct krait_kinterval *intervals;
    uint32_t interval_count, interval_cap;
    /* of the machine */
    bool exiting, call_counts;
    bool ended;      /* gone for good: who bears its number now is another */
    bool newborn;    /* its fork was told, and not yet that it was woken for the first time */
    bool call_known; /* whether it is in a system call: it was seen to enter or leave one */
    /* blocked: what its switch tells that it waits for, or BLOCKED; enum krait_thread_state */
    uint8_t asleep;
    bool deep;       /* blocked, it is not to be disturbed by signals */
    bool call_locks; /* the call that it is in waits for a lock, which its arguments tell */
    uint8_t state;
    uint32_t state_call, state_khz, state_by; /* of the interval that goes on */
    uint32_t call;                            /* id of the system call that it is in, or KRAIT_NO_ID */
    uint32_t stats_call, stats;               /* the last's, and where it is counted */
    uint32_t ready_on;                        /* the CPU that it waits for; KRAIT_NO_ID: not known */
    int64_t since, call_ns, waking_ns, queued_ns;
    uint64_t waited_ns; /* for what is not known yet: until it came to run */
};

struct krait_kprocess {
    int32_t pid;
    char name[16]; /* of its first thread, or of one that was met */
};

/* A system call's calls that ended, of one process. */
struct krait_kcalls {
    uint32_t process; /* index; KRAIT_NO_ID if not known */
    uint32_t call;    /* id in `calls` */
    uint64_t errors;
    struct krait_spread took;
};

/* What is known of a system call by its name. */
struct krait_kcall_kind {
    uint8_t blocks_on; /* enum krait_thread_state */
    bool has_no_end;
    bool is_of_records; /* it may wait for a lock on part of a file */
    bool is_of_files;   /* where the kernel's own threads end its wait, that was for the disk */
};

struct krait_kcpu {
    uint64_t ns[KRAIT_CS_COUNT]; /* adding up to counted_ns; all 0: no such CPU was met */
    struct krait_cycles cycles;  /* while it was neither idle nor unknown */
    bool met;
    /* of the machine */
    uint32_t number, khz;             /* 0: not known yet */
    bool known;                       /* which thread runs */
    bool is_ipi;                      /* the interrupt that goes on: another CPU asked for it */
    uint8_t state, base;              /* enum krait_cpu_state: now; without the interrupts */
    uint8_t irq_cause, soft_cause;    /* enum krait_thread_state: what those that they wake waited for */
    uint32_t irqs, softirqs;          /* begun and not ended */
    uint32_t irq_device, soft_device; /* of those causes: id in `devices`, or KRAIT_NO_ID */
    uint32_t softirq;                 /* how many have begun so far: which one goes on */
    struct krait_kthread *current;    /* NULL: the idle task, or not known */
    struct krait_kruns runs;          /* the last ones; none where nobody asks for them */
    int64_t since;
};

enum krait_latency {
    KRAIT_LATENCY_WAKING,    /* from sched_waking to sched_wakeup: to the other CPU's queue */
    KRAIT_LATENCY_QUEUE,     /* from sched_wakeup to running */
    KRAIT_LATENCY_PREEMPTED, /* from losing the CPU while runnable to running again */
    KRAIT_LATENCIES,
};

struct krait_kernel_states {
    int64_t origin_ns;              /* the trace's first event */
    int64_t begin_ns, end_ns;       /* of the range */
    uint64_t counted_ns;            /* of it: all, or its parts */
    struct krait_kthread **threads; /* in the order in which they were met */
    uint32_t thread_count, thread_cap;
    struct krait_kprocess *processes;
    uint32_t process_count, process_cap;
    struct krait_kcalls *stats;
    uint32_t stats_count, stats_cap;
    struct krait_kcpu *cpus; /* by number */
    uint32_t cpu_count, cpu_cap;
    struct krait_strtab calls;   /* names of system calls */
    struct krait_strtab devices; /* with a watcher: "8:0", "eth0"; see krait_kernel_device */
    struct krait_map disk_names; /* by such an id: of the name, in `devices` */
    struct krait_spread latencies[KRAIT_LATENCIES];
    struct krait_kruns had; /* of the intervals that are kept */
    struct krait_kernel_steals steals;
    /* of the machine */
    const struct krait_kernel_options *options; /* while it runs */
    struct krait_kernel_watch *watch;           /* while the range goes on; or NULL */
    const struct krait_kcpu *here;              /* whose event goes on; NULL: of none */
    struct krait_arena arena;
    struct krait_map by_tid;        /* to struct krait_kthread * */
    struct krait_map by_pid;        /* to the index in `processes` */
    struct krait_map by_call;       /* process and call, to the index in `stats` */
    uint32_t gettid;                /* id of that call, or KRAIT_NO_ID */
    uint32_t *call_of;              /* by event class: the id of its system call, or KRAIT_NO_ID */
    struct krait_kcall_kind *kinds; /* by that id */
    int64_t now;
    struct krait_kernel_ahead *ahead; /* behind the range: what it was like at its end */
    bool is_over;                     /* nothing more is to be learned there */
    int64_t *losses;                  /* when events were lost, in order */
    uint32_t loss_count, loss_cap;
    bool own;    /* of one program's threads alone: nobody is said to wake them */
    bool failed; /* memory is out */
};

/* A change of a thread's state. */
struct krait_kchange {
    const struct krait_kthread *thread; /* in its new state, `state`, with `state_by` */
    const struct krait_kcpu *cpu;       /* whose event it is; NULL: of none */
    int64_t since_ns, ns;               /* it was in the old state from, to */
    uint32_t was_call, was_by;          /* see struct krait_kinterval, of the old state */
    uint8_t was;                        /* enum krait_thread_state: the old one, as it is known now */
};

/* Told of what happens from from_ns on, as it happens. At the end each thread changes from its state to the
 * same. What is NULL is not told, but for `begin` and `change`. */
struct krait_kernel_watch {
    void *ctx;
    void (*begin)(void *ctx, const struct krait_kernel_states *states);
    void (*change)(void *ctx, const struct krait_kchange *change);
    /* A thread is in a system call, thread->call, from now on. Where it was in one already (`was`, else
     * KRAIT_NO_ID), that one's end was lost. */
    void (*entered)(void *ctx, const struct krait_kthread *thread, uint32_t was, int64_t ns);
    /* A thread leaves a system call. `own`: thread->call, whose begin was seen; else another, and the end of
     * what it was in before was lost, or is told by no kernel. */
    void (*left)(void *ctx, const struct krait_kthread *thread, bool own, int64_t ret, int64_t ns);
    /* A function of the kernel's begins or ends in a thread. */
    void (*function)(void *ctx, const struct krait_kthread *thread, const struct krait_kernel_event *event,
                     int64_t ns);
    /* The network takes over a packet, or hands it in, known by its address. */
    void (*sent)(void *ctx, const struct krait_kcpu *cpu, uint64_t packet, int64_t ns);
    void (*received)(void *ctx, const struct krait_kcpu *cpu, uint64_t packet, int64_t ns);
    /* An interrupt begins or ends, a CPU has another frequency, or events of a CPU are missing from now on (LOST): what
     * the event says, once the machine has taken it. Told of those before from_ns too, and before `begin`. */
    void (*event)(void *ctx, const struct krait_kernel_event *event, int64_t ns);
    bool asks_who_had; /* it calls krait_kernel_who_had */
    bool done;         /* set by the watcher: it is not interested in what follows */
};

struct krait_kernel_options {
    uint64_t from_ns, until_ns;       /* after the trace's first event; UINT64_MAX: the end */
    struct krait_kernel_watch *watch; /* NULL: nobody does */
    bool functions;                   /* threads' runs_functions is asked for */
    /* Parts of the range, by absolute time, that count alone; NULL: all of it does. They do not go with a watcher, and
     * intervals that are kept are not cut to them. */
    const struct krait_ranges *parts;
    /* Whether a thread's intervals are kept: 40 bytes for each change of its state, and 16 for each switch of a
     * CPU while it was ready for that. Asked when it is met; `index` is its place in `threads`, the same in
     * each run over a trace. NULL: none are. */
    bool (*keep)(void *ctx, uint32_t index, int32_t tid);
    bool (*goes_on)(void *ctx, int64_t ns); /* as of struct krait_kernel_event_walk */
    void *ctx;                              /* of keep and goes_on */
};

/* Runs the machine over all events up to until_ns, and counts from from_ns on: what is begun then goes on.
 * Without a watcher it looks on for ten seconds for what ends the waits that go on at until_ns. System calls
 * count when they end in the range, or in one of its parts. Returns 0, or a negative errno with err set: -ENODATA there
 * are no events, or none in the range; -ECANCELED by `goes_on`. */
int krait_kernel_states_new(struct krait_kernel_states **out, struct krait_kernel_events *events,
                            const struct krait_kernel_options *options, struct krait_err *err);
void krait_kernel_states_free(struct krait_kernel_states *states);

/* Its number as the program knows it: in its own namespace, where it is known to be in one. */
static inline int32_t krait_kthread_own_id(const struct krait_kthread *thread)
{
    return thread->own_tid ? thread->own_tid : thread->tid;
}

/* Whether it is in a namespace where it has another number than the kernel knows it by. */
static inline bool krait_kthread_is_elsewhere(const struct krait_kthread *thread)
{
    return krait_kthread_own_id(thread) != thread->tid;
}

/* Whether it was there at all in the range. */
static inline bool krait_kthread_was_there(const struct krait_kthread *thread,
                                           const struct krait_kernel_states *states)
{
    return thread->ns[KRAIT_TS_GONE] < states->counted_ns;
}

/* The name of a device; of a disk its numbers, "8:0", where no state dump names it. */
const char *krait_kernel_device(const struct krait_kernel_states *states, uint32_t device);

/* The thread that caused a change of state: the waker, or who took the CPU. `by` is its place in `threads`, plus 1.
 * NULL for 0: an interrupt, the idle task, or unknown. */
static inline const struct krait_kthread *krait_kernel_cause(const struct krait_kernel_states *states,
                                                             uint32_t by)
{
    return by ? states->threads[by - 1] : NULL;
}

/* While the machine runs, with intervals or a watcher that asks for it: appends who had the CPU that a thread is ready
 * for, from a time until now. The first run begins then. Nothing is appended where nothing is known of the CPU. `t` is
 * ready until now, where it gets a CPU, `here`, or NULL. False: memory is out. */
bool krait_kernel_who_had(const struct krait_kernel_states *states, const struct krait_kthread *t,
                          const struct krait_kcpu *here, int64_t since_ns, struct krait_kruns *to);

/* Appends who had a CPU in [from_ns, until_ns) by `count` runs, the last of which goes on until then: each once, for
 * longest first. False: memory is out. */
bool krait_competitors_add(struct krait_competitors *had, const struct krait_krun *runs, uint32_t count,
                           int64_t from_ns, int64_t until_ns);
/* The thread of them that had it for longest; 0: none. */
uint32_t krait_competitors_longest(const struct krait_competitor *had, uint32_t count);

static inline void krait_competitors_done(struct krait_competitors *had)
{
    free(had->items);
}

/* The last thread of that number, or NULL. */
const struct krait_kthread *krait_kernel_states_thread(const struct krait_kernel_states *states, int32_t tid);

#endif
