/* SPDX-License-Identifier: Apache-2.0
 *
 * What the recorder itself needs: shared memory, processors, disk, limits.
 */
#include "kernel/probe.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
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

/* ---- ptrace ---- */

#ifdef __x86_64__
#define ATTACHING "record --pid, top and dump"
#else
#define ATTACHING "top and dump" /* record --pid and top --exact know x86-64 alone */
#endif
#define CONTAINER \
    "in a container, start it with docker run --cap-add SYS_PTRACE --security-opt seccomp=unconfined"

/* Of kernel.yama.ptrace_scope: Documentation/admin-guide/LSM/Yama.rst of the kernel. */
static const struct {
    const char *rule;
    const char *fix;
} yama_levels[] = {
    { "any process of yours can be attached to", "" },
    { "only children can be attached to; " ATTACHING " work only for what krait starts",
      "run krait as root (sudo), or allow it: sudo sysctl kernel.yama.ptrace_scope=0; " CONTAINER },
    { "only an administrator can attach; record --sample, " ATTACHING " do not work",
      "run krait as root (sudo), or allow it: sudo sysctl kernel.yama.ptrace_scope=0; " CONTAINER },
    { "nobody can attach until the next boot; record --sample, " ATTACHING " do not work",
      "set kernel.yama.ptrace_scope to 0 where it is set at boot (/etc/sysctl.d), and boot again" },
};

enum { YAMA_NOBODY = 3 };

/* As attaching and native stacks do: see remote/stop.h. */
static int try_stop(pid_t other)
{
    return ptrace(PTRACE_SEIZE, other, NULL, NULL) < 0 ? errno : 0;
}

/* As dump and sampling do. The process is a fork, so the address is the same there. */
static int try_read(pid_t other)
{
    static char byte;
    char copy;
    struct iovec to = { &copy, sizeof(copy) }, from = { &byte, sizeof(byte) };
    return process_vm_readv(other, &to, 1, &from, 1, 0) < 0 ? errno : 0;
}

/* In a process that is not a parent of the other one, since Yama lets parents do more. Returns 0 or an errno; a filter
 * may also kill it. */
static int try_beside(int (*try)(pid_t other), pid_t other)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(try(other));
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid < 0 ? 0 : WIFSIGNALED(status) ? EPERM : WEXITSTATUS(status);
}

static void try_on_fork(int *stop, int *read)
{
    pid_t other = fork();
    if (other == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    if (other < 0)
        return;
    *stop = try_beside(try_stop, other);
    *read = try_beside(try_read, other);
    kill(other, SIGKILL);
    while (waitpid(other, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* The rule that refused it: Yama's, or another's. */
static void refuse_ptrace(struct krait_check *check, long scope, int stop, int read)
{
    bool yama = scope >= YAMA_NOBODY || (scope > 0 && !krait_probe_capable(CAP_SYS_PTRACE));
    if (yama) {
        krait_check_value(check, "kernel.yama.ptrace_scope is %ld: %s", scope, yama_levels[scope].rule);
        krait_check_fix(check, KRAIT_CHECK_WARN, "%s", yama_levels[scope].fix);
        return;
    }
    krait_check_value(
        check, "blocked by a seccomp filter (%s): %s do not work", strerror(read ? read : stop),
        read ? "record --sample, " ATTACHING
             : "record --pid, top --exact, dump --native and --native-stacks of running threads");
    krait_check_fix(check, KRAIT_CHECK_WARN,
                    "let the seccomp profile (or SELinux: sudo setsebool deny_ptrace off) allow ptrace and "
                    "process_vm_readv; " CONTAINER);
}

/* Where nothing refuses ptrace itself. */
static void allow_ptrace(struct krait_check *check)
{
    bool capable = krait_probe_capable(CAP_SYS_PTRACE);
    if (geteuid() == 0 && !capable) {
        krait_check_value(check,
                          "root without CAP_SYS_PTRACE: " ATTACHING " work only for processes of root's");
        krait_check_fix(check, KRAIT_CHECK_WARN, CONTAINER);
    } else if (prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER) {
        krait_check_value(check, "programs started here inherit a seccomp filter: top and dump work, record "
                                 "--pid and top --exact refuse them");
        krait_check_fix(
            check, KRAIT_CHECK_WARN,
            "start the program with krait record, or sample it: krait record --sample --pid PID; " CONTAINER);
    } else
        krait_check_value(check, ATTACHING " work for processes of %s", capable ? "all users" : "this user");
}

void krait_probe_ptrace(struct krait_check *check)
{
    long scope = 0;
    int stop = 0, read = 0;
    krait_probe_number(YAMA, &scope);
    scope = KRAIT_MAX(0, KRAIT_MIN(scope, YAMA_NOBODY));
    try_on_fork(&stop, &read);
    if (stop || read)
        refuse_ptrace(check, scope, stop, read);
    else
        allow_ptrace(check);
}
