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
 * When a thread is woken, krait knows what it was blocked on. Some system calls say it (kernel_block.h); otherwise it
 * follows from what runs on the CPU that wakes the thread: a timer, or the interrupt of the network or a disk. If a thread
 * goes to sleep outside of a system call, in an uninterruptible state, krait assumes that it waits for a page. That is the
 * usual reason. No event that krait reads distinguishes it from these:
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

/* X(name, key in CSV and JSON, title of the column, drop in struct krait_column; 0: it has no column). Columns with the same
 * drop are dropped by their time. From DISK to BLOCKED the thread is blocked. */
#define KRAIT_THREAD_STATES(X)                                                                        \
    X(USER, "user", "user", 4)                                                                        \
    X(SYSTEM, "system", "system", 4)          /* in a system call; of a kernel thread, all running */ \
    X(INTERRUPT, "interrupt", "irq", 4)       /* stopped by an interrupt on its CPU */                \
    X(WOKEN, "woken", "woken", 4)             /* runnable, after a wait or its creation */            \
    X(PREEMPTED, "preempted", "preempted", 4) /* runnable, after it ran */                            \
    /* runnable after it ran, but the CPU idles: its cgroup's quota is used up */                     \
    X(THROTTLED, "throttled", "throttled", 4)                                                         \
    X(DISK, "blocked_disk", "disk", 4)                                                                \
    X(NETWORK, "blocked_network", "network", 4)                                                       \
    X(TIMER, "blocked_timer", "timer", 4)                                                             \
    X(LOCK, "blocked_lock", "lock", 4)                                                                \
    X(CHILD, "blocked_child", "child", 4)                                                             \
    X(FAULT, "blocked_page_fault", "fault", 4)                                                        \
    X(STOPPED, "blocked_stopped", "stopped", 4) /* by a signal, or by its tracer */                   \
    X(BLOCKED, "blocked_other", "other", 4)     /* on something else, or on something unknown */      \
    X(UNKNOWN, "unknown", "unknown", 4)                                                               \
    X(GONE, "gone", "gone", 0) /* it does not exist: before its creation, after its end */

#define KRAIT_CPU_STATES(X)             \
    X(IDLE, "idle", "idle", 1)          \
    X(USER, "user", "user", 1)          \
    X(SYSTEM, "system", "system", 1)    \
    X(IRQ, "interrupt", "irq", 1)       \
    X(SOFTIRQ, "softirq", "softirq", 1) \
    X(UNKNOWN, "unknown", "unknown", 1)

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

/* It lost its CPU and is runnable. */
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

/* The thread that has a CPU from `ns` until the next run: see krait_kernel_cause; 0: the idle task. */
struct krait_krun {
    int64_t ns;
    uint32_t by;
};

#define KRAIT_RUN_UNKNOWN UINT32_MAX /* it is not known which thread has the CPU */

/* Ordered by time. */
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

/* A state of a thread. It ends when the thread's next interval begins; the last one ends with the range. */
struct krait_kinterval {
    int64_t begin_ns;
    uint32_t call; /* id of the system call that the thread is in, or KRAIT_NO_ID */
    /* For krait_kernel_cause. WOKEN: the thread that woke or created it. PREEMPTED: the thread that had its CPU for longest. */
    uint32_t by;
    /* WOKEN, PREEMPTED: index and number of the runs in the states' `had` that had the CPU meanwhile; 0: not known. */
    uint32_t had, had_count;
    uint32_t khz; /* USER, SYSTEM: the frequency of its CPU; 0: not known */
    uint8_t state;
};

/* A thread. If the kernel uses a thread id again, that is another thread: krait sees it by its fork; if that was lost, by its
 * first wake-up (sched_wakeup_new), or because it wakes or runs after the old thread has ended. */
struct krait_kthread {
    uint64_t ns[KRAIT_TS_COUNT]; /* together counted_ns */
    struct krait_cycles cycles;  /* in user mode and system calls */
    int32_t tid;
    int32_t own_tid;          /* its id in its own namespace, from gettid(2); 0: not known */
    uint32_t index;           /* in `threads` */
    uint32_t process;         /* index; KRAIT_NO_ID: not known */
    char name[16];            /* the last one it had, terminated; may be empty */
    int64_t born_ns, gone_ns; /* 0: it existed before the trace; INT64_MAX: it exists at its end */
    bool is_kernel;           /* a kernel thread, as far as known */
    bool makes_calls, wakes;  /* it has entered a system call; it has woken or created a thread */
    bool says;                /* it wrote to trace_marker, or ran into a probe */
    bool runs_functions;      /* it ran functions of the kernel, if krait_kernel_options asks for that */
    bool kept;                /* options.keep wants its intervals */
    struct krait_kinterval *intervals;
    uint32_t interval_count, interval_cap;
    /* The state machine's own: */
    uint32_t settled_intervals; /* without the last one, which went on when krait_kernel_states_go_on ended */
    bool exiting, call_counts;
    bool freed;       /* it has ended, and the kernel has told that nothing is left of it */
    bool ended;       /* it has ended: a thread with its id is another one */
    bool newborn;     /* it was forked, and has not been woken for the first time */
    bool call_known;  /* it is known whether it is in a system call */
    bool call_dumped; /* it has not run since a state dump told the system call it waits in */
    bool doubtful;    /* before the range, events were lost since its state began */
    /* Blocked: what it waits for according to its switch, or BLOCKED; enum krait_thread_state. */
    uint8_t asleep;
    bool deep;       /* blocked: signals do not wake it */
    bool call_locks; /* by its arguments, the current system call waits for a lock */
    uint8_t state;
    uint32_t state_call, state_khz, state_by; /* of the current interval */
    uint32_t call;                            /* id of the current system call, or KRAIT_NO_ID */
    uint32_t stats_call, stats; /* id of the last system call counted, and its index in `stats` */
    uint32_t ready_on;          /* the CPU for which it is ready; KRAIT_NO_ID: not known */
    int64_t since, call_ns, waking_ns, queued_ns;
    uint64_t waited_ns; /* a wait whose reason is not known until the thread runs */
    /* After a run with options.wakers, blocked: who ends the wait behind the range, as for krait_kernel_cause; 0: no thread. */
    uint32_t ended_by;
    int64_t ended_ns; /* when; 0: the end of that wait was not seen */
    /* The interrupt that ends it, KRAIT_TS_COUNT: none did; what those wait for that it wakes, and its device: as of a CPU. */
    uint8_t ended_cause;
    bool ended_ipi;
    uint32_t ended_device;
};

struct krait_kprocess {
    int32_t pid;
    char name[16]; /* of its first thread, or of another one of its threads */
};

/* Ended calls of one system call by one process. */
struct krait_kcalls {
    uint32_t process; /* index; KRAIT_NO_ID if not known */
    uint32_t call;    /* id in `calls` */
    uint64_t errors;
    struct krait_spread took;
};

/* What the name of a system call says about it. */
struct krait_kcall_kind {
    uint8_t blocks_on; /* enum krait_thread_state */
    bool has_no_end;
    bool is_of_records; /* it may wait for a lock on part of a file */
    bool is_of_files;   /* if a kernel thread ends its wait, the wait was for the disk */
};

struct krait_kcpu {
    uint64_t ns[KRAIT_CS_COUNT]; /* together counted_ns; all 0: the trace has no such CPU */
    struct krait_cycles cycles;  /* while it was neither idle nor unknown */
    bool met;                    /* the trace has events of it */
    /* The state machine's own: */
    uint32_t number, khz;             /* khz 0: not known yet */
    bool known;                       /* it is known which thread runs */
    bool is_carried;                  /* it is known from before the trace: kernel_carried.h */
    bool is_ipi;                      /* the current interrupt is another CPU's request */
    uint8_t state, base;              /* enum krait_cpu_state: the current one; the one without interrupts */
    uint8_t irq_cause, soft_cause;    /* enum krait_thread_state: what threads woken there waited for */
    uint32_t irqs, softirqs;          /* that have begun and not ended */
    uint32_t irq_device, soft_device; /* id in `devices` of these causes, or KRAIT_NO_ID */
    uint32_t softirq;                 /* number of soft interrupts so far, which identifies the current one */
    struct krait_kthread *current;    /* NULL: the idle task, or not known */
    struct krait_kruns runs;          /* the latest ones; none if nobody asks for them */
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
    uint64_t counted_ns;            /* length of the range, or of its parts */
    struct krait_kthread **threads; /* in the order of their first events */
    uint32_t thread_count, thread_cap;
    struct krait_kprocess *processes;
    uint32_t process_count, process_cap;
    struct krait_kcalls *stats;
    uint32_t stats_count, stats_cap;
    struct krait_kcpu *cpus; /* by number */
    uint32_t cpu_count, cpu_cap;
    struct krait_strtab calls;   /* names of system calls */
    struct krait_strtab devices; /* with a watcher: "8:0", "eth0"; see krait_kernel_device */
    struct krait_map disk_names; /* id of "8:0" in `devices`, to the id of its name there */
    struct krait_spread latencies[KRAIT_LATENCIES];
    struct krait_kruns had; /* for the kept intervals */
    struct krait_kernel_steals steals;
    /* The state machine's own: */
    const struct krait_kernel_options *options; /* while it runs */
    struct krait_kernel_watch *watch;           /* until the end of the range; or NULL */
    const struct krait_kcpu *here;              /* the CPU of the current event; NULL: none */
    struct krait_arena arena;
    struct krait_map by_tid;        /* to struct krait_kthread * */
    struct krait_map by_pid;        /* to the index in `processes` */
    struct krait_map by_call;       /* process and call, to the index in `stats` */
    uint32_t gettid;                /* id of that call, or KRAIT_NO_ID */
    uint32_t *call_of;              /* by event class: the id of its system call, or KRAIT_NO_ID */
    struct krait_kcall_kind *kinds; /* by that id */
    uint32_t kind_cap;
    bool has_calls;  /* the trace has classes of system calls */
    bool dumping;    /* from a state dump's first krait_dumped_wait to its end */
    bool has_dumped; /* there was one */
    int64_t now;
    struct krait_kernel_ahead *ahead; /* after the range: the states at its end */
    bool is_over;                     /* after the range: later events add nothing */
    uint32_t settled_had;             /* as settled_intervals, of `had` */
    int64_t *losses;                  /* times at which events were lost, in order */
    uint32_t loss_count, loss_cap;
    bool own;    /* recorded without root: only one program's threads, and no wakers */
    bool failed; /* out of memory */
};

/* A change of a thread's state. */
struct krait_kchange {
    const struct krait_kthread *thread; /* has its new state in `state` and `state_by` */
    const struct krait_kcpu *cpu;       /* the CPU of the event; NULL: none */
    int64_t since_ns, ns;               /* begin and end of the old state */
    uint32_t was_call, was_by;          /* of the old state: see struct krait_kinterval */
    uint8_t was; /* enum krait_thread_state: the old state, in the light of this event */
};

/* A watcher's functions are called as things happen, from from_ns on. At the end of the range, `change` is called once for
 * each thread, with the same state before and after. `begin` and `change` are required; the others may be NULL. */
struct krait_kernel_watch {
    void *ctx;
    void (*begin)(void *ctx, const struct krait_kernel_states *states);
    void (*change)(void *ctx, const struct krait_kchange *change);
    /* A thread enters the system call thread->call. If it was in one already, `was`, the end of that was lost; else `was` is
     * KRAIT_NO_ID. */
    void (*entered)(void *ctx, const struct krait_kthread *thread, uint32_t was, int64_t ns);
    /* A thread leaves a system call: with `own` set, thread->call; otherwise another one, and the end of thread->call was
     * lost, or no kernel records it. */
    void (*left)(void *ctx, const struct krait_kthread *thread, bool own, int64_t ret, int64_t ns);
    /* A function of the kernel begins or ends in a thread. */
    void (*function)(void *ctx, const struct krait_kthread *thread, const struct krait_kernel_event *event,
                     int64_t ns);
    /* The network stack sends or receives a packet, which its address identifies. */
    void (*sent)(void *ctx, const struct krait_kcpu *cpu, uint64_t packet, int64_t ns);
    void (*received)(void *ctx, const struct krait_kcpu *cpu, uint64_t packet, int64_t ns);
    /* An interrupt begins or ends, a CPU changes its frequency, or events of a CPU are missing from now on (LOST). It is
     * called after the state machine has handled the event; also before from_ns, and before `begin`. */
    void (*event)(void *ctx, const struct krait_kernel_event *event, int64_t ns);
    bool asks_who_had; /* set it to call krait_kernel_who_had */
    bool done;         /* the watcher sets it to end the walk */
};

struct krait_kernel_options {
    uint64_t from_ns, until_ns;       /* after the trace's first event; UINT64_MAX: the end */
    struct krait_kernel_watch *watch; /* may be NULL */
    bool wakers;    /* without a watcher: find the ends of all waits that are not over at until_ns */
    bool functions; /* fill in runs_functions of threads */
    /* Count only these parts of the range, in absolute times; NULL: all of it. Not with a watcher; kept intervals are not cut
     * to the parts. */
    const struct krait_ranges *parts;
    /* Whether to keep the intervals of a thread, which takes 40 bytes for each change of its state, and 16 for each switch of
     * a CPU for which it was ready. It is called at the thread's first event. `index` is the thread's place in `threads`,
     * which is the same in each run over a trace. NULL: keep none. */
    bool (*keep)(void *ctx, uint32_t index, int32_t tid);
    bool (*goes_on)(void *ctx, int64_t ns); /* as in struct krait_kernel_event_walk */
    void *ctx;                              /* for keep and goes_on */
};

/* Runs the state machine over all events up to until_ns, and counts from from_ns on. Without a watcher, it reads up to ten
 * seconds beyond until_ns, to find what ends the waits that are not over there. A system call counts if it ends in the
 * range, or in one of its parts. Returns 0, or a negative errno with err set: -ENODATA there are no events, or none in the
 * range; -ECANCELED by `goes_on`. */
int krait_kernel_states_new(struct krait_kernel_states **out, struct krait_kernel_events *events,
                            const struct krait_kernel_options *options, struct krait_err *err);
void krait_kernel_states_free(struct krait_kernel_states *states);

/* Of a recording that goes on: runs the state machine up to until_ns (absolute), before which all events are there
 * (krait_kernel_events_written), so that another call goes on from there, also with another opening of the same folders.
 * *states is NULL the first time, and after an error. Counts nothing at the end: of the states, what does not depend on durations
 * is right, and a watcher gets no last changes; kept intervals have what goes on at until_ns, until the next call. `options` has
 * only watch, keep (both the same each time), functions and goes_on. Returns 0, -ENODATA if there are no events before until_ns,
 * -ENOMEM, or -ECANCELED. */
int krait_kernel_states_go_on(struct krait_kernel_states **states, struct krait_kernel_events *events,
                              const struct krait_kernel_options *options, int64_t until_ns);

/* The thread's state, as far as it is known what it waits for. */
enum krait_thread_state krait_kthread_state_now(const struct krait_kernel_states *states,
                                                const struct krait_kthread *thread);

/* Its id as the program knows it: the one in its own namespace, if that is known. */
static inline int32_t krait_kthread_own_id(const struct krait_kthread *thread)
{
    return thread->own_tid ? thread->own_tid : thread->tid;
}

/* Whether its id in its own namespace differs from the kernel's. */
static inline bool krait_kthread_is_elsewhere(const struct krait_kthread *thread)
{
    return krait_kthread_own_id(thread) != thread->tid;
}

/* Whether it existed in the range. */
static inline bool krait_kthread_was_there(const struct krait_kthread *thread,
                                           const struct krait_kernel_states *states)
{
    return thread->ns[KRAIT_TS_GONE] < states->counted_ns;
}

/* The name of a device; of a disk that no state dump names, its numbers, "8:0". */
const char *krait_kernel_device(const struct krait_kernel_states *states, uint32_t device);

/* The thread that caused a change of state: the waker, or the thread that took the CPU. `by` is 1 + its place in `threads`;
 * for 0, which is an interrupt, the idle task, or not known, it returns NULL. */
static inline const struct krait_kthread *krait_kernel_cause(const struct krait_kernel_states *states,
                                                             uint32_t by)
{
    return by ? states->threads[by - 1] : NULL;
}

/* While the state machine runs and keeps intervals, or has a watcher that asks for it: appends the runs of the CPU for which
 * the thread `t` is ready, from since_ns until now; the first run begins at since_ns. Appends nothing if nothing is known about
 * that CPU. `here` is the CPU that `t` gets now, or NULL. False: out of memory. */
bool krait_kernel_who_had(const struct krait_kernel_states *states, const struct krait_kthread *t,
                          const struct krait_kcpu *here, int64_t since_ns, struct krait_kruns *to);

/* Appends the threads that had a CPU in [from_ns, until_ns) according to `count` runs, the last of which lasts until until_ns:
 * each thread once, ordered by their times, the longest first. False: out of memory. */
bool krait_competitors_add(struct krait_competitors *had, const struct krait_krun *runs, uint32_t count,
                           int64_t from_ns, int64_t until_ns);
/* The one that had it for longest; 0: none. */
uint32_t krait_competitors_longest(const struct krait_competitor *had, uint32_t count);

static inline void krait_competitors_done(struct krait_competitors *had)
{
    free(had->items);
}

/* The last thread with that id, or NULL. */
const struct krait_kthread *krait_kernel_states_thread(const struct krait_kernel_states *states, int32_t tid);

#endif
