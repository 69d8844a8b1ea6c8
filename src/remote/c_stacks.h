/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal to remote/: which thread's C stack an address is in.
 *
 * A thread's ident is the address of the C library's struct pthread, which lies at the top of the stack's mapping, above the stack
 * (allocate_stack() in nptl/allocatestack.c of glibc, pthread_create() of musl). That of the first thread is `[stack]` in
 * /proc/PID/maps, and its ident lies elsewhere. So each address below an ident, down to the next mapping or ident, is in the
 * stack of that thread:
 *
 *     ├──── mapping ─────────────────┤                ├── [stack] ──────────────────┤
 *     stack of thread 12  ident of 12                  stack of the first thread
 *
 * C code may run Python in a thread whose ident no thread state has. In its struct pthread is the kernel's number of it.
 */
#ifndef KRAIT_REMOTE_C_STACKS_H
#define KRAIT_REMOTE_C_STACKS_H

#include "remote/thread.h"

#include <sys/types.h>

struct krait_c_stack {
    uint64_t begin, end;
    uint64_t ident;
    pid_t tid;
};

struct krait_c_stacks {
    struct krait_c_stack *items;
    uint32_t count, cap;
};

static inline void krait_c_stacks_done(struct krait_c_stacks *list)
{
    free(list->items);
}

/* Finds the stacks of these threads, whose `ident` and `tid` are set: fills in the rest, and orders them by address. Those whose
 * stack is not found have an empty one. Returns 0, -ENOMEM, or a negative errno: the mappings cannot be read. */
int krait_c_stacks_find(struct krait_c_stacks *list, pid_t pid);

/* The thread whose stack has this address; 0: none that is known. */
pid_t krait_c_stack_of(const struct krait_c_stacks *list, uint64_t address);

/* The same if it is another one of `tasks`, which it adds to the list. 0: it is not certain which. */
pid_t krait_c_stacks_add(struct krait_c_stacks *list, pid_t pid, const struct krait_os_tasks *tasks,
                         uint64_t address);

#endif
