/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run over all of a machine's events says of its tracks: which threads and CPUs there are, what each of them has,
 * and from when to when. It is small, so a cache can keep it (view/cache.h): a trace that is opened again is then handed
 * the list, and needs no run.
 */
#ifndef KRAIT_TRACE_KERNEL_LIST_H
#define KRAIT_TRACE_KERNEL_LIST_H

#include "trace/kernel/kernel.h"

enum { KRAIT_KERNEL_NAME = 16 }; /* bytes of a thread's name, terminated, as in struct krait_kthread */

struct krait_kernel_listed_thread {
    char name[KRAIT_KERNEL_NAME], process_name[KRAIT_KERNEL_NAME]; /* terminated; may be empty */
    uint32_t tid, pid;        /* the kernel's numbers; pid 0: not known */
    uint32_t thread, process; /* the trace's that it is, and that it is of: indexes, or KRAIT_NO_ID */
    uint8_t makes_calls, runs_functions, wakes, says; /* as in struct krait_kthread: 0 or 1 */
};

struct krait_kernel_listed_cpu {
    uint32_t number;
    uint32_t has_frequency; /* an event said it: 0 or 1 */
};

struct krait_kernel_list {
    int64_t begin_ns, end_ns;
    const struct krait_kernel_listed_thread *threads; /* in the order of struct krait_kernel_states */
    const struct krait_kernel_listed_cpu *cpus;       /* by number */
    uint32_t thread_count, cpu_count;
};

/* The list of a machine. Where none was handed in, krait_trace_kernel_known_of makes it, once; it lives as long as the
 * trace. Returns 0, or with err set what that function returns. */
int krait_kernel_list_of(const struct krait_trace *trace, uint32_t machine,
                         const struct krait_kernel_list **out, struct krait_err *err);

/* The same for who keeps it: NULL if nobody has asked for it yet, or if its run met damage, which a later run has to
 * find again. */
const struct krait_kernel_list *krait_kernel_list_to_keep(const struct krait_trace *trace, uint32_t machine);

/* Hands in a kept list, before anybody asks for tracks; it is copied. If the machine has one already, that one stays.
 * Returns 0; -EINVAL: there is no such machine, or the list does not fit the trace; or -ENOMEM. */
int krait_kernel_list_give(struct krait_trace *trace, uint32_t machine, const struct krait_kernel_list *list);

/* Takes back all lists that were handed in, and the tracks that were made of them. Their ids are no longer valid. */
void krait_kernel_lists_forget(struct krait_trace *trace);

/* For kernel.c: lists what a run says. The memory is the trace's. Returns 0 or -ENOMEM. */
int krait_kernel_list_make(struct krait_kernel_list *list, const struct krait_trace *trace,
                           const struct krait_kernel_known *known);
/* For kernel.c: whether a list from elsewhere can be one of this trace. */
bool krait_kernel_list_fits(const struct krait_kernel_list *list, const struct krait_trace *trace);
/* For kernel.c: a copy in the trace's memory. Returns 0 or -ENOMEM. */
int krait_kernel_list_copy(struct krait_kernel_list *to, const struct krait_trace *trace,
                           const struct krait_kernel_list *from);

#endif
