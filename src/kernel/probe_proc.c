/* SPDX-License-Identifier: Apache-2.0
 *
 * What the recorder itself needs: shared memory, processors, disk, limits.
 */
#include "kernel/probe.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#define YAMA "/proc/sys/kernel/yama/ptrace_scope"

enum {
    PROBE_BYTES = 1 << 20,
    FILES_WANTED = 1024,
    GIB = 1 << 30,
};

/* The agent maps the collector's memory by way of /proc/PID/fd, so that is tried as well. */
static int map_by_path(int fd)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    KRAIT_AUTO_CLOSE int again = open(path, O_RDWR | O_CLOEXEC);
    if (again < 0)
        return -errno;
    char *p = mmap(NULL, PROBE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0);
    if (p == MAP_FAILED)
        return -errno;
    memset(p, 1, PROBE_BYTES);
    munmap(p, PROBE_BYTES);
    return 0;
}

static int try_memfd(void)
{
    KRAIT_AUTO_CLOSE int fd = memfd_create("krait-doctor", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, PROBE_BYTES))
        return -errno;
    return map_by_path(fd);
}

void krait_probe_memfd(struct krait_check *check)
{
    int rc = try_memfd();
    if (!rc) {
        krait_check_value(check, "memfd, mapped through /proc");
        return;
    }
    krait_check_value(check, "memfd does not work: %s", strerror(-rc));
    krait_check_fix(
        check, KRAIT_CHECK_FAIL,
        "mount /proc (sudo mount -t proc proc /proc) and let the container's seccomp profile allow "
        "memfd_create");
}

void krait_probe_cpus(struct krait_check *check)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int usable = sched_getaffinity(0, sizeof(set), &set) ? (int)online : CPU_COUNT(&set);
    krait_check_value(check, usable == online ? "%d" : "%d usable of %ld", usable, online);
    if (usable == 1)
        krait_check_fix(
            check, KRAIT_CHECK_WARN,
            "give it a second CPU: the collector shares the only one with the program and slows it");
}

void krait_probe_disk(struct krait_check *check)
{
    struct statvfs fs;
    if (statvfs(".", &fs)) {
        krait_check_value(check, "the current folder cannot be read: %s", strerror(errno));
        krait_check_fix(check, KRAIT_CHECK_WARN, "cd to a folder that exists, or give krait record -o DIR");
        return;
    }
    double free_gib = (double)fs.f_bavail * (double)fs.f_frsize / GIB;
    krait_check_value(check, "%.1f GiB in the current folder", free_gib);
    if (access(".", W_OK))
        krait_check_fix(check, KRAIT_CHECK_WARN,
                        "the current folder is not yours to write: krait record -o DIR");
    else if (free_gib < 1)
        krait_check_fix(
            check, KRAIT_CHECK_WARN,
            "a busy program writes 100 MB a second: record to another disk with krait record -o DIR");
}

static void limit_text(rlim_t limit, char *to, size_t n)
{
    if (limit == RLIM_INFINITY)
        snprintf(to, n, "unlimited");
    else
        snprintf(to, n, "%llu", (unsigned long long)limit);
}

void krait_probe_files(struct krait_check *check)
{
    struct rlimit limit;
    char soft[32];
    char hard[32];
    getrlimit(RLIMIT_NOFILE, &limit);
    limit_text(limit.rlim_cur, soft, sizeof(soft));
    limit_text(limit.rlim_max, hard, sizeof(hard));
    krait_check_value(check, "%s (at most %s)", soft, hard);
    if (limit.rlim_cur < FILES_WANTED)
        krait_check_fix(check, KRAIT_CHECK_WARN, "a thread needs a file: ulimit -n %d", FILES_WANTED);
}

/* perf_event_open(2): ring buffers count against RLIMIT_MEMLOCK beyond perf_event_mlock_kb a CPU. */
void krait_probe_memlock(struct krait_check *check)
{
    struct rlimit limit;
    char soft[32];
    long kb = 0;
    getrlimit(RLIMIT_MEMLOCK, &limit);
    limit_text(limit.rlim_cur == RLIM_INFINITY ? limit.rlim_cur : limit.rlim_cur / 1024, soft, sizeof(soft));
    krait_probe_number("/proc/sys/kernel/perf_event_mlock_kb", &kb);
    krait_check_value(check, "%s%s, and %ld KiB a CPU for perf", soft,
                      limit.rlim_cur == RLIM_INFINITY ? "" : " KiB", kb);
    if (limit.rlim_cur != RLIM_INFINITY && (long)(limit.rlim_cur / 1024) + kb < 512 &&
        !krait_probe_capable(CAP_IPC_LOCK))
        krait_check_fix(check, KRAIT_CHECK_WARN,
                        "ulimit -l unlimited, or sudo sysctl kernel.perf_event_mlock_kb=2048");
}

/* Documentation/admin-guide/LSM/Yama.rst of the kernel. */
static const char *const yama_levels[] = {
    "any process of yours can be attached to",
    "only children can be attached to",
    "only an administrator can attach",
    "nobody can attach until the next boot",
};

/* A child asks to be traced, which no rule but a seccomp filter forbids. Returns 0 or an errno. */
static int try_ptrace(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 ? errno : 0);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid < 0 ? 0 : WIFSIGNALED(status) ? EPERM : WEXITSTATUS(status);
}

/* No verb attaches to a process: whatever is found there is nothing to do. */
void krait_probe_ptrace(struct krait_check *check)
{
    static const char unused[] = "; no verb uses it yet";
    long scope = 0;
    int refused = try_ptrace();
    bool restricted = krait_probe_number(YAMA, &scope) == 0;
    if (refused)
        krait_check_value(check, "blocked by a seccomp filter (%s)%s", strerror(refused), unused);
    else if (!restricted)
        krait_check_value(check, "not restricted: %s%s", yama_levels[0], unused);
    else
        krait_check_value(check, "%ld: %s%s", scope, yama_levels[KRAIT_MAX(0, KRAIT_MIN(scope, 3))], unused);
}
