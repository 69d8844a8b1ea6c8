/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes a right from a process that a test has forked.
 */
#ifndef KRAIT_TESTS_FORBID_H
#define KRAIT_TESTS_FORBID_H

#include "base/base.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* mprotect fails from now on, as where mappings are sealed. False where that cannot be had. */
static inline bool forbid_mprotect(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { KRAIT_ARRAY_LEN(steps), steps };
    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

#endif
