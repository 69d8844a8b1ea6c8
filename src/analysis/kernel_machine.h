/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the machine of kernel_states.h: what its files share.
 */
#ifndef KRAIT_ANALYSIS_KERNEL_MACHINE_H
#define KRAIT_ANALYSIS_KERNEL_MACHINE_H

#include "analysis/kernel_cpu.h"

/* Makes room for one more in the list that `list` points at, its elements of `size` bytes. False: m->failed
 * is set. */
bool krait_kernel_grow(struct krait_kernel_states *m, void *list, uint32_t count, uint32_t *cap, size_t size);

/* The range begins at a time: states go on, what was counted does not count. ctx: the machine. */
void krait_kernel_count_from(void *ctx, int64_t ns);

/* A process is called as its first thread, or as one of them. */
void krait_kernel_name_processes(struct krait_kernel_states *m);

/* Which event classes are of which system calls. Returns 0 or -ENOMEM. */
int krait_kernel_know_calls(struct krait_kernel_states *m, const struct krait_kev_class *classes,
                            uint32_t count);

/* A thread is about to enter the kernel or to leave it, on a CPU of which no switch was seen: the context may
 * say which. */
void krait_kernel_meet_caller(struct krait_kernel_states *m, struct krait_kcpu *cpu,
                              const struct krait_kev *ev);

/* A thread goes on under another number, also in its system call. */
void krait_kernel_hand_over_call(const struct krait_kernel_states *m, struct krait_kthread *from,
                                 struct krait_kthread *to);

krait_kcpu_step krait_kernel_begin_call;
krait_kcpu_step krait_kernel_end_call;

#endif
