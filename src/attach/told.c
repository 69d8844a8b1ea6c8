/* SPDX-License-Identifier: Apache-2.0
 *
 * What who attaches is told, and when it may do other things.
 */
#include "attach/inside.h"
#include "remote/remote.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

void krait_attach_tell(const struct krait_attach_call *call, const char *fmt, ...)
{
    char text[256];
    va_list args;
    if (!call->step)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    call->step(call->ctx, text);
}

void krait_attach_pause(const struct krait_attach_call *call, uint64_t ns)
{
    if (call->between)
        call->between(call->ctx);
    nanosleep(&(struct timespec){ 0, (long)ns }, NULL);
}

int krait_attach_refusal(pid_t pid, int rc, struct krait_err *err)
{
    if (rc == KRAIT_THREAD_UNSAFE)
        return krait_err_set(err, -EBUSY,
                             "process %d was at no safe place for 10 s: each thread was in malloc, in the "
                             "loader, in the kernel, deep in its stack, or on a stack that the program made "
                             "itself (for signals or coroutines); try again",
                             pid);
    if (rc == -ETIMEDOUT)
        return krait_err_set(err, -EBUSY,
                             "no thread of process %d stopped within 2 s: each was in a system call that "
                             "cannot be interrupted, such as a slow disk's, or got no CPU; try again",
                             pid);
    if (rc == -EBUSY)
        return krait_err_set(err, rc, "process %d is stopped; continue it: kill -CONT %d", pid, pid);
    if (rc == -ENOTSUP)
        return krait_err_set(
            err, rc,
            "process %d is no 64-bit program of x86-64 or AArch64, or its return addresses are guarded by a stack of "
            "their own (GCS); start it with krait record -- COMMAND",
            pid);
    if (rc == -EIO)
        return krait_err_set(err, rc, "cannot write to the memory of process %d: %s", pid, strerror(-rc));
    return krait_remote_refusal(pid, rc, err);
}
