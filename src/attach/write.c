/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes into the memory of a process. /proc/PID/mem does it without a stop. But since Linux 6.12 a kernel may refuse
 * such writes where the process itself may not write, as in its code (proc_mem.force_override, CONFIG_PROC_MEM_*;
 * proc_mem_foll_force() in fs/proc/base.c; Debian's kernels do). Tracers of a stopped thread may always write: ptrace(2),
 * PTRACE_POKEDATA.
 */
#include "attach/inside.h"
#include "base/clock.h"
#include "base/fmt.h"
#include "remote/stop.h"

#include <fcntl.h>

static bool write_mem(pid_t pid, uint64_t at, const void *bytes, size_t n)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/mem", pid);
    KRAIT_AUTO_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
    return fd >= 0 && pwrite(fd, bytes, n, (off_t)at) == (ssize_t)n;
}

struct piece {
    uint64_t at;
    const void *bytes;
    size_t n;
    struct krait_attach_call *call;
};

static int write_by(void *ctx, pid_t tid)
{
    const struct piece *piece = ctx;
    char ns[KRAIT_FMT_SIZE];
    uint64_t before_ns;
    int rc = krait_stop_begin(tid, &before_ns);
    if (rc)
        return rc;
    rc = krait_write_stopped(tid, piece->at, piece->bytes, piece->n);
    krait_stop_end(tid);
    uint64_t stopped_ns = krait_clock_ns(CLOCK_MONOTONIC) - before_ns;
    piece->call->paused_ns = KRAIT_MAX(piece->call->paused_ns, stopped_ns);
    krait_attach_tell(piece->call, "thread %d was stopped for %s, while krait wrote %zu bytes", tid,
                      krait_fmt_ns(ns, stopped_ns), piece->n);
    return rc;
}

int krait_write(pid_t pid, uint64_t at, const void *bytes, size_t n, struct krait_attach_call *call)
{
    struct piece piece = { at, bytes, n, call };
    return write_mem(pid, at, bytes, n) ? 0 : krait_thread_any(pid, write_by, &piece);
}
