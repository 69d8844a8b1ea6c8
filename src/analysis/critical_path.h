/* SPDX-License-Identifier: Apache-2.0
 *
 * The critical path of a thread: the threads and devices on which its wall time depended. While the thread runs, or could
 * run, the path is on the thread itself. While it is blocked, the path is on the thread or device that ended the wait, as
 * far as that one was active meanwhile:
 *
 *      reader   ████┊┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ waits for a pipe ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┊░░████
 *      writer     ██┊█████┊┄┄ fsync ┄┄┊░████ writes ████████████████████┊███
 *      disk               ┊▓▓▓▓▓▓▓▓▓▓▓┊
 *      path     reader     writer disk writer                            reader
 *
 * The algorithm is the bounded one of Giraldeau and Dagenais (Wait analysis of distributed systems using kernel
 * tracing, IEEE TPDS 2016), as in Trace Compass's CriticalPathAlgorithmBounded. If another thread (the waker) ended a
 * wait, the wait is replaced by what the waker did, followed backward from the wakeup to the beginning of the wait.
 * The waker's own waits are replaced in the same way, each within its own bounds. If an interrupt ended the wait, the
 * wait was for its source: a timer, the disk, the network, another CPU's request. Before a thread was created, the
 * path is on the thread that created it. If a received packet was sent by a thread of this host, known by its
 * address, the path continues with that thread.
 *
 * A thread that waits for Python's GIL sleeps for 5 ms at a time; then a timer wakes it to ask for the GIL. It does
 * not wait for that timer. If the program recorded its GIL waits, the parts of such a wait that no thread ended are
 * replaced by what the holders of the GIL did meanwhile. The wait is followed as a whole when it is over, because
 * only then is it known what ended the holders' own waits.
 *
 * The path is computed while the events are read. Memory holds only the changes of thread states since the followed
 * thread was blocked (32 bytes each), until it is woken. If they become too many, the older half is dropped, except
 * for the current state of each thread; what a thread on the path did in the dropped time is UNKNOWN. Wakeups of
 * threads that do not wait are not stored. Sent packets that nobody receives are dropped when their slot is needed.
 */
#ifndef KRAIT_ANALYSIS_CRITICAL_PATH_H
#define KRAIT_ANALYSIS_CRITICAL_PATH_H

#include "trace/gil_holders.h"
#include "trace/kernel/kernel_states.h"

/* X(name, for programs). Up to PREEMPTED a thread itself is on the path, from TIMER to IRQ something that a
 * thread waits for. */
#define KRAIT_PATH_KINDS(X)                                                          \
    X(RUNNING, "running")                                                            \
    X(INTERRUPTED, "interrupted") /* stopped by an interrupt on its CPU */           \
    X(WOKEN, "woken")             /* runnable after a wait, or after its creation */ \
    X(PREEMPTED, "preempted")     /* runnable, but another had taken the CPU */      \
    X(TIMER, "timer")                                                                \
    X(DISK, "disk")                                                                  \
    X(NETWORK, "network")                                                            \
    X(IPI, "ipi")         /* another CPU's request */                                \
    X(IRQ, "interrupt")   /* an interrupt that says nothing more */                  \
    X(BLOCKED, "blocked") /* it is not known what ended the wait, or nothing did */  \
    X(UNKNOWN, "unknown")

enum krait_path_kind {
#define X(name, text) KRAIT_PATH_##name,
    KRAIT_PATH_KINDS(X)
#undef X
        KRAIT_PATH_KIND_COUNT,
};

static inline bool krait_path_is_device(enum krait_path_kind kind)
{
    return kind >= KRAIT_PATH_TIMER && kind <= KRAIT_PATH_IRQ;
}

/* A segment of the path. The next begins where it ends. */
struct krait_path_segment {
    int64_t begin_ns, end_ns;
    uint32_t host;   /* index in `hosts`, of the thread */
    uint32_t thread; /* index in `states->threads`: the thread that runs or waits */
    uint32_t call;   /* of a wait: id of the system call in `states->calls`, or KRAIT_NO_ID */
    /* WOKEN, PREEMPTED: index and number of the threads in `had` that had the CPU meanwhile; 0: not known. */
    uint32_t had, had_count;
    uint32_t device; /* DISK, NETWORK: for krait_kernel_device; KRAIT_NO_ID: not known */
    uint16_t depth;  /* 0: the thread whose path it is; 1: its waker; ... */
    uint8_t kind;    /* enum krait_path_kind */
};

struct krait_critical_path {
    struct krait_kernel_states *states;  /* owned: threads, names of calls, the begin of the trace */
    const char **hosts;                  /* names, may be empty; for now there is one */
    uint32_t thread;                     /* index: whose path it is */
    struct krait_path_segment *segments; /* owned; ordered by time, none of them empty */
    uint32_t count;
    struct krait_competitor *had; /* owned; of a segment, those that had the CPU for longest come first */
    uint64_t forgotten_ns;        /* time of the path that is UNKNOWN because options.memory was used up */
    struct krait_arena arena;
};

struct krait_path_options {
    int32_t tid;                            /* the first thread with this id in the range */
    uint64_t from_ns, to_ns;                /* after the trace's first event; UINT64_MAX: the end */
    const struct krait_gil_holders *gil;    /* by the ids that the threads themselves know; NULL: not known */
    bool (*goes_on)(void *ctx, int64_t ns); /* as in struct krait_kernel_event_walk */
    void *ctx;
    uint64_t memory; /* bytes for the events during a wait; briefly a quarter more; 0: 256 MiB */
};

/* The path begins with the thread's first event in the range; it ends with the range, the thread or the trace, whichever is
 * first. Returns 0, or a negative errno with err set: -ENODATA the range has no events; -ESRCH the thread has none in it;
 * -ECANCELED by `goes_on`. */
int krait_critical_path_new(struct krait_critical_path **out, struct krait_kernel_events *events,
                            const struct krait_path_options *options, struct krait_err *err);
void krait_critical_path_free(struct krait_critical_path *path);

#endif
