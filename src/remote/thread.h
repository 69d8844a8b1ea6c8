/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's data on a process and its threads: proc(5).
 */
#ifndef KRAIT_REMOTE_THREAD_H
#define KRAIT_REMOTE_THREAD_H

#include "base/buf.h"

#include <sys/types.h>

struct krait_os_task {
    pid_t tid;
    pid_t inner; /* the id in the process's own PID namespace */
    char state; /* R running or ready, S sleeping, D in uninterruptible sleep, T stopped, t traced, Z ended */
    char name[32];
    char kernel_function[64]; /* the kernel function in which it sleeps; "": not known */
    int call;                 /* the system call that it is in; -1: none, or not known */
    uint64_t arg;             /* its first argument */
    uint64_t read_ns;         /* CLOCK_MONOTONIC, just before it was read */
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
/* NULL: it was not there. */
const struct krait_os_task *krait_tasks_find(const struct krait_os_tasks *tasks, pid_t tid);

/* Opens /proc/PID/task/TID/NAME. Returns its file descriptor, or -1 with errno set, as open(2). */
int krait_task_open(pid_t pid, pid_t tid, const char *name);

/* Reads that file once, at most size - 1 bytes of it, as text with a NUL behind it: "" if it cannot be read. Returns the text's
 * length, or a negative errno. */
ssize_t krait_task_read(pid_t pid, pid_t tid, const char *name, char *text, size_t size);

/* Reads the system call that a thread is in; sets its state to R if it runs. */
void krait_task_read_call(struct krait_os_task *task, pid_t pid);

/* CPU times of a process in ns. */
struct krait_task_times {
    uint64_t own;      /* of its threads */
    uint64_t children; /* of the children that it has waited for, and of theirs */
    uint32_t threads;
};
/* Returns false if it is gone. */
bool krait_task_times(pid_t pid, struct krait_task_times *times);

/* How long ago it began, in ns, to 10 ms; UINT64_MAX if it is gone. */
uint64_t krait_task_age(pid_t pid);

/* Whether there is no such process any more, or its parent alone has yet to hear of its end. */
bool krait_task_has_ended(pid_t pid);

/* A number in /proc/PID/status, of a process or thread; 0 if it is not there. */
long krait_task_number(pid_t pid, const char *name);

/* Bytes of its memory that are resident; 0 if it is gone. */
uint64_t krait_task_memory(pid_t pid);

/* Appends the command line of a process as a user would type it; nothing for a kernel thread. */
void krait_task_command(struct krait_buf *out, pid_t pid);

struct krait_pids {
    pid_t *items;
    uint32_t count, cap;
};

static inline void krait_pids_done(struct krait_pids *pids)
{
    free(pids->items);
}

/* Appends the children of a process, and their children. Returns 0 or -ENOMEM. */
int krait_pids_add_children(struct krait_pids *pids, pid_t pid);
/* Appends the children of a process that are not there yet, without theirs. Its time grows with the threads of the process,
 * not with all processes that there are. If a child ends meanwhile, others may be left out. Returns 0, -ENOMEM, or -ENOSYS
 * if the kernel has no lists of children. */
int krait_pids_add_direct(struct krait_pids *pids, pid_t pid);

#endif
