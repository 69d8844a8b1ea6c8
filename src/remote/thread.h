/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernel says of a process and its threads: proc(5).
 */
#ifndef KRAIT_REMOTE_THREAD_H
#define KRAIT_REMOTE_THREAD_H

#include "base/buf.h"

#include <sys/types.h>

struct krait_os_task {
    pid_t tid;
    pid_t inner; /* the number in the process's own PID namespace */
    char state; /* R running or ready, S sleeping, D in uninterruptible sleep, T stopped, t traced, Z ended */
    char name[32];
    char kernel_function[64]; /* where it sleeps in the kernel; "" if not known */
    int call;                 /* the system call that it is in; -1: none, or not known */
    uint64_t arg;             /* its first argument */
};

struct krait_os_tasks {
    struct krait_os_task *items;
    uint32_t count, cap;
};

static inline void krait_tasks_done(struct krait_os_tasks *tasks)
{
    free(tasks->items);
}

/* Reads all threads of a process, in the order of their numbers; with_calls: also the system calls that they are in, which takes
 * twice as long. Returns 0, -ESRCH or -ENOMEM. */
int krait_tasks_read(struct krait_os_tasks *tasks, pid_t pid, bool with_calls);

/* The system call that one of them is in; sets its state to R if it runs. */
void krait_task_read_call(struct krait_os_task *task, pid_t pid);

/* CPU time that all threads of a process have used; 0 if it is gone. */
uint64_t krait_task_cpu_ns(pid_t pid);

/* Bytes of its memory that are resident; 0 if it is gone. */
uint64_t krait_task_memory(pid_t pid);

/* "futex"; NULL if it is not one that programs wait in. */
const char *krait_task_call_name(int call);

/* Appends the words of its command line, with blanks between, as they would be typed; nothing for a kernel thread. */
void krait_task_command(struct krait_buf *out, pid_t pid);

struct krait_pids {
    pid_t *items;
    uint32_t count, cap;
};

static inline void krait_pids_done(struct krait_pids *pids)
{
    free(pids->items);
}

/* Appends the children of a process and theirs. Returns 0 or -ENOMEM. */
int krait_pids_add_children(struct krait_pids *pids, pid_t pid);

#endif
