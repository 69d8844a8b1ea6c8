/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the machine of kernel_states.h: what its files share.
 */
#ifndef KRAIT_ANALYSIS_KERNEL_MACHINE_H
#define KRAIT_ANALYSIS_KERNEL_MACHINE_H

#include "analysis/kernel_states.h"

/* Makes room for one more in the list that `list` points at, its elements of `size` bytes. False: m->failed
 * is set. */
bool krait_kernel_grow(struct krait_kernel_states *m, void *list, uint32_t count, uint32_t *cap, size_t size);

/* Which event classes are of which system calls. Returns 0 or -ENOMEM. */
int krait_kernel_know_calls(struct krait_kernel_states *m, const struct krait_kev_class *classes,
                            uint32_t count);

/* A thread's system call has ended, of which the begin is known. */
void krait_kernel_count_call(struct krait_kernel_states *m, struct krait_kthread *t,
                             const struct krait_kev *ev);

#endif
