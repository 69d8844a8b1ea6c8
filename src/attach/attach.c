/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/attach.h"

#include "attach/stub.h"
#include "base/clock.h"
#include "remote/remote.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

/* A number in /proc/PID/status; 0 where it is not there. */
static int status_number(pid_t pid, const char *name)
{
    char path[64], line[256];
    size_t n = strlen(name);
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    KRAIT_AUTO_FILE FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, name, n) == 0 && line[n] == ':')
            return atoi(line + n + 1);
    }
    return 0;
}

static int check(pid_t pid, struct krait_err *err)
{
    enum { FILTERED = 2 };
    int tracer = status_number(pid, "TracerPid");
    if (tracer)
        return krait_err_set(err, -EBUSY,
                             "process %d is traced by process %d (a debugger or strace), and a process has "
                             "one tracer at a time; end that one",
                             pid, tracer);
    if (status_number(pid, "Seccomp") == FILTERED)
        return krait_err_set(err, -EPERM,
                             "process %d has a seccomp filter, which may end it for what krait would do; run "
                             "it by krait record -- COMMAND",
                             pid);
    return 0;
}

/* The mapping is private, so that only this process sees it; ptrace's rights allow it (proc(5), /proc/PID/mem). */
static int write_stub(const struct krait_target *target, const struct krait_attach_call *call,
                      struct krait_err *err)
{
    uint8_t bytes[KRAIT_STUB_MAX];
    char path[64];
    size_t n = krait_stub_make(bytes, target, call);
    if (!n)
        return krait_err_set(err, -ENOTSUP,
                             "krait attaches on x86-64, and where the path of its agent is shorter: %s",
                             call->library);
    snprintf(path, sizeof(path), "/proc/%d/mem", target->pid);
    KRAIT_AUTO_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || pwrite(fd, bytes, n, (off_t)target->room) != (ssize_t)n)
        return krait_err_errno(err, "cannot write to the memory of process %d", target->pid);
    return 0;
}

/* Tries each thread once. */
static int try_threads(const struct krait_target *target, uint64_t *paused_ns)
{
    char path[64];
    int rc = -ESRCH;
    snprintf(path, sizeof(path), "/proc/%d/task", target->pid);
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir && rc && (entry = readdir(dir))) {
        int tid = atoi(entry->d_name);
        int tried = tid > 0 ? krait_thread_send(target, tid, paused_ns) : -ESRCH;
        bool ends =
            tried == -ESRCH ||
            (tried == -EPERM && tid != target->pid); /* ptrace(2) says EPERM of a thread that is ending */
        if (!ends)
            rc = tried;
    }
    if (dir)
        closedir(dir);
    return rc;
}

static int refuse(pid_t pid, int rc, struct krait_err *err)
{
    if (rc == KRAIT_THREAD_UNSAFE || rc == -ETIMEDOUT)
        return krait_err_set(err, -EBUSY,
                             "process %d was at no safe place for 10 s: each thread was in malloc, in the "
                             "loader, in the kernel, or deep in its stack; try again",
                             pid);
    if (rc == -EBUSY)
        return krait_err_set(err, rc, "process %d is stopped; continue it: kill -CONT %d", pid, pid);
    if (rc == -ENOTSUP)
        return krait_err_set(err, rc, "process %d is no 64-bit program; krait attaches on x86-64", pid);
    return krait_remote_refusal(pid, rc, err);
}

int krait_attach(pid_t pid, struct krait_attach_call *call, struct krait_err *err)
{
    struct krait_target target;
    uint64_t end = krait_clock_ns(CLOCK_MONOTONIC) + 10 * KRAIT_NS_PER_S;
    int rc = check(pid, err);
    rc = rc ? rc : krait_target_find(&target, pid, err);
    rc = rc ? rc : write_stub(&target, call, err);
    if (rc)
        return rc;
    do {
        rc = try_threads(&target, &call->paused_ns);
        if (rc > 0)
            nanosleep(&(struct timespec){ 0, 3000000 }, NULL);
    } while (rc > 0 && krait_clock_ns(CLOCK_MONOTONIC) < end);
    return rc ? refuse(pid, rc, err) : 0;
}
