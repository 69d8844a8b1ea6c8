/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the threads that the kernel tells of recorded themselves: a number may be used again, and in a
 * namespace of their own threads know another number than the kernel, which there may be another thread's.
 */
#ifndef KRAIT_TRACE_OWN_THREADS_H
#define KRAIT_TRACE_OWN_THREADS_H

#include "trace/kernel/kernel_states.h"
#include "trace/trace.h"

struct krait_own_threads {
    const struct krait_trace *trace; /* NULL: none did */
    uint32_t *sorted;                /* the trace's threads, by number and begin */
    /* the kernel's but for those of its own work, by own number and birth */
    const struct krait_kthread **lives;
    uint32_t life_count;
    struct krait_map elsewhere; /* numbers of threads in a namespace of their own, to the kernel's number */
};

/* Of a program's part and the kernel's beside it; both may be NULL and have to outlive it. Returns 0 or
 * -ENOMEM; krait_own_threads_done in any case. */
int krait_own_threads_init(struct krait_own_threads *own, const struct krait_trace *trace,
                           const struct krait_kernel_states *states);
void krait_own_threads_done(struct krait_own_threads *own);

/* The trace's thread that a thread of the kernel's was at a time, as an index: the last one of its number
 * that had begun then, in its life. After an exec that is another than before. UINT64_MAX: at its end.
 * KRAIT_NO_ID where it recorded nothing. */
uint32_t krait_own_thread_at(const struct krait_own_threads *own, const struct krait_kthread *thread,
                             uint64_t t_ns);

/* The last of the trace's threads that know themselves by a number and had begun at a time, as an index;
 * KRAIT_NO_ID if there is none. */
uint32_t krait_own_threads_last(const struct krait_own_threads *own, uint32_t id, uint64_t t_ns);

/* The kernel's thread that knows itself by a number at a time: the last one born by then that recorded
 * itself, or else the last one born; NULL if there is none. */
const struct krait_kthread *krait_own_threads_life(const struct krait_own_threads *own, int32_t id,
                                                   uint64_t t_ns);

/* The name that the program gave a thread of the kernel's, the last one; NULL where it gave none. The text is
 * the trace's. */
const char *krait_own_thread_name(const struct krait_own_threads *own, const struct krait_kthread *thread);

/* The kernel's number of a thread or process that calls itself so. */
uint32_t krait_own_threads_kernels_id(const struct krait_own_threads *own, uint32_t id);

#endif
