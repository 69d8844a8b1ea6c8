/* SPDX-License-Identifier: Apache-2.0
 *
 * From a function's registers to those of its caller, by the call frame information of its file (remote/cfi.h).
 */
#ifndef KRAIT_REMOTE_UNWIND_H
#define KRAIT_REMOTE_UNWIND_H

#include "remote/cfi.h"

#include <sys/types.h>

struct krait_registers {
    uint64_t value[KRAIT_CFI_REGISTERS];
    uint64_t known; /* a bit for each one */
    bool called;    /* the place is behind a call, not at an instruction that runs */
};

static inline uint64_t krait_registers_pc(const struct krait_registers *registers)
{
    return registers->value[KRAIT_CFI_PC];
}

/* Those of a thread that ptrace(2) has stopped. -ENOTSUP: it runs a program of 32 bits. */
int krait_registers_read(pid_t tid, struct krait_registers *registers);

/* Goes on to the caller. `moved` is what was added to the file's addresses. Returns 0; -ENOENT: nobody called
 * it; -ENODATA: the file has no information; -ENXIO: this needs a register that is not known; -EFAULT,
 * -ESRCH, -EPERM: the stack cannot be read; -EINVAL: it makes no sense. */
int krait_unwind_step(struct krait_registers *registers, const struct krait_elf *elf, uint64_t moved,
                      pid_t pid);

#endif
