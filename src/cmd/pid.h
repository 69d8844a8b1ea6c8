/* SPDX-License-Identifier: Apache-2.0
 *
 * A process id on the command line.
 */
#ifndef KRAIT_CMD_PID_H
#define KRAIT_CMD_PID_H

#include "base/err.h"

#include <sys/types.h>

/* Returns 0, or -EINVAL with err saying what a PID is. */
int krait_pid_parse(const char *text, pid_t *pid, struct krait_err *err);

/* For --children, where neither the process nor any that it started runs Python: returns -ENOEXEC, with err saying so. */
int krait_pid_no_python(pid_t pid, struct krait_err *err);

#endif
