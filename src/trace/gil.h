/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits for the global interpreter lock, by thread. Recordings have them unless they were made with --no-gil. There
 * are none in a process in which no thread waited, nor in a trace of another tracer.
 *
 *     struct krait_gil_waits waits = { 0 };
 *     int rc = krait_gil_waits_read(&waits, trace, thread, KRAIT_RANGE_ALL);
 *     for (uint32_t i = 0; !rc && i < waits.count; i++)
 *         ... waits.items[i].begin_ns, .end_ns, .holder ...
 *     krait_gil_waits_done(&waits);
 *
 * The waits of a thread are ordered by time and do not overlap. Between two of them the thread had the GIL, or did
 * not need it. A wait never crosses the begin or end of a call, because a waiting thread begins and ends none: the
 * innermost call that is open at begin_ns is the one that waits. During a wait, the kernel has the thread blocked in
 * a futex, runnable, or running for some microseconds. Whoever joins waits with the kernel's states decides how these
 * parts count.
 */
#ifndef KRAIT_TRACE_GIL_H
#define KRAIT_TRACE_GIL_H

#include "trace/trace.h"

struct krait_gil_wait {
    uint64_t begin_ns, end_ns;
    /* The tid, in the same process, of the thread that held the GIL at begin_ns; 0: not known. */
    uint32_t holder;
    uint32_t of; /* the interpreter that has the GIL for itself; 0: it is the main interpreter's */
    /* The thread took the GIL; else it released it, and waited until it was handed over to another. */
    bool taken;
};

struct krait_gil_waits {
    struct krait_gil_wait *items;
    uint32_t count, cap;
};

/* A thread takes or releases the GIL while others wait. */
struct krait_gil_turn {
    uint64_t ns;
    uint32_t of; /* as of a wait */
    bool taken;
};

struct krait_gil_turns {
    struct krait_gil_turn *items;
    uint32_t count, cap;
};

/* Reads the waits of one thread in the range, cut at its edges. `waits` is zeroed, or was used for this before. A wait without
 * an end is left out. It reads the thread's packets in that range, and one before. Returns 0, -EINVAL if there is no such
 * thread, or -ENOMEM. Damage ends its packet; krait_trace_walk reports it. */
int krait_gil_waits_read(struct krait_gil_waits *waits, const struct krait_trace *trace, uint32_t thread,
                         struct krait_range range);
/* The same for the whole trace, with the moments at which the thread took and released the GIL. */
int krait_gil_turns_read(struct krait_gil_waits *waits, struct krait_gil_turns *turns,
                         const struct krait_trace *trace, uint32_t thread);
/* Whether any thread waited for the GIL: 1 or 0, or -ENOMEM. It reads events up to the first wait. It skips processes whose
 * metadata says that they have no waits; old recordings, and those without an end, do not say so. */
int krait_gil_was_waited_for(const struct krait_trace *trace);
void krait_gil_turns_done(struct krait_gil_turns *turns);
void krait_gil_waits_done(struct krait_gil_waits *waits);

#endif
