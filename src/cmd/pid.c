/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/pid.h"

#include <limits.h>

int krait_pid_parse(const char *text, pid_t *pid, struct krait_err *err)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (*end || end == text || errno || n <= 0 || n > INT_MAX)
        return krait_err_set(err, -EINVAL, "'%s' is no PID; PIDs are numbers, as pgrep and ps print them",
                             text);
    *pid = (pid_t)n;
    return 0;
}

int krait_pid_no_python(pid_t pid, struct krait_err *err)
{
    return krait_err_set(err, -ENOEXEC, "neither process %d nor a process that it started runs Python", pid);
}
