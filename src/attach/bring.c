/* SPDX-License-Identifier: Apache-2.0
 *
 * Brings a library along for a process that cannot see its file, because the process has another root (chroot, a
 * container) or another user without access to a folder above the file.
 */
#include "attach/inside.h"
#include "attach/stub.h"
#include "base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define MEMFD "krait-agent"

static bool is_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

static bool is_ours(pid_t pid)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%d", pid); /* belongs to the process's user: proc(5) */
    return stat(path, &st) == 0 && st.st_uid == geteuid();
}

int krait_bring_how(pid_t pid, const char *library, struct krait_err *err)
{
    char path[PATH_MAX + 64];
    if (krait_attach_has_loaded(pid, "memfd:" MEMFD))
        return KRAIT_BRING_LOADED;
    snprintf(path, sizeof(path), "/proc/%d/root%s", pid, library);
    if (is_ours(pid) && is_same_file(path, library))
        return KRAIT_BRING_NOT;
    snprintf(path, sizeof(path), "/proc/%d/root/proc/version", pid);
    if (access(path, F_OK) == 0)
        return KRAIT_BRING_MEMFD;
    return krait_err_set(
        err, -ENOTSUP,
        "process %d has a root folder of its own without /proc, so it cannot load krait's agent; mount /proc there, or start the program with krait record -- COMMAND",
        pid);
}

void krait_bring_name(char name[KRAIT_BRING_NAME])
{
    snprintf(name, KRAIT_BRING_NAME, MEMFD "-%d", getpid());
}

/* The number of the memfd among the process's descriptors, or -1. */
static int find_memfd(pid_t pid)
{
    char folder[64], wanted[KRAIT_BRING_NAME + 8], target[PATH_MAX];
    int found = -1;
    struct dirent *entry;
    snprintf(wanted, sizeof(wanted), "/memfd:" MEMFD "-%d ", getpid());
    snprintf(folder, sizeof(folder), "/proc/%d/fd", pid);
    DIR *dir = opendir(folder);
    while (dir && found < 0 && (entry = readdir(dir))) {
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target));
        if (n > (ssize_t)strlen(wanted) && memcmp(target, wanted, strlen(wanted)) == 0)
            found = atoi(entry->d_name);
    }
    if (dir)
        closedir(dir);
    return found;
}

static int wait_for_memfd(pid_t pid, const struct krait_attach_call *call)
{
    uint64_t end = krait_clock_ns(CLOCK_MONOTONIC) + 3 * KRAIT_NS_PER_S; /* the thread waits for five */
    int fd;
    while ((fd = find_memfd(pid)) < 0 && krait_clock_ns(CLOCK_MONOTONIC) < end)
        krait_attach_pause(call, KRAIT_NS_PER_MS);
    return fd;
}

/* Makes sure that this is the memfd and nothing else: the process may belong to another user and can put any file in
 * its place. A memfd has no links, and this one is still empty. */
static int open_memfd(const char *path)
{
    struct stat at;
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || (fstat(fd, &at) == 0 && S_ISREG(at.st_mode) && at.st_nlink == 0 && at.st_size == 0))
        return fd;
    close(fd);
    errno = EBADF;
    return -1;
}

static bool copy_into(int to, int from)
{
    char bytes[64 * 1024];
    ssize_t n;
    while ((n = read(from, bytes, sizeof(bytes))) > 0) {
        if (write(to, bytes, (size_t)n) != n)
            return false;
    }
    return n == 0;
}

/* Writes the path first, and then `ready`. */
static int tell_path(const struct krait_target *target, const struct krait_stub *stub, int memfd,
                     struct krait_attach_call *call)
{
    char text[KRAIT_STUB_PATH] = { 0 };
    uint64_t ready = 1;
    snprintf(text, sizeof(text), "/proc/self/fd/%d", memfd);
    int rc = krait_write(target->pid, target->room + stub->path_at, text, sizeof(text), call);
    return rc ? rc : krait_write(target->pid, target->room + stub->ready_at, &ready, sizeof(ready), call);
}

int krait_bring(const struct krait_target *target, const struct krait_stub *stub,
                struct krait_attach_call *call, struct krait_err *err)
{
    char path[64];
    int memfd = wait_for_memfd(target->pid, call);
    if (memfd < 0)
        return krait_err_set(err, -ETIMEDOUT, "process %d made no memfd for krait's agent within 3 s",
                             target->pid);
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", target->pid, memfd);
    KRAIT_AUTO_CLOSE int to = open_memfd(path);
    KRAIT_AUTO_CLOSE int from = open(call->library, O_RDONLY | O_CLOEXEC);
    if (to < 0 || from < 0 || !copy_into(to, from))
        return krait_err_errno(err, "cannot bring %s into process %d", call->library, target->pid);
    int rc = tell_path(target, stub, memfd, call);
    return rc ? krait_attach_refusal(target->pid, rc, err) : 0;
}
