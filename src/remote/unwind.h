/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the registers of a function's caller from its own, by the call frame information of its file (remote/cfi.h).
 */
#ifndef KRAIT_REMOTE_UNWIND_H
#define KRAIT_REMOTE_UNWIND_H

#include "remote/cfi.h"

#include <sys/types.h>

struct krait_registers {
    uint64_t value[KRAIT_CFI_REGISTERS];
    uint64_t known; /* a bit for each known register */
    bool called;    /* the place is a return address, not the current instruction */
};

static inline uint64_t krait_registers_pc(const struct krait_registers *registers)
{
    return registers->value[KRAIT_CFI_PC];
}

/* The address without the code that pointer authentication (AArch64) puts into its high bits. */
uint64_t krait_unwind_address(uint64_t address);
/* Reads the registers of a thread that ptrace(2) has stopped. -ENOTSUP: it runs a 32-bit program. */
int krait_registers_read(pid_t tid, struct krait_registers *registers);

/* Goes to the caller. `moved` is the difference between the addresses in memory and in the file. Returns 0; -ENOENT:
 * there is no caller; -ENODATA: the file has no information; -ENXIO: a register is needed that is not known;
 * -EFAULT, -ESRCH, -EPERM: the stack cannot be read; -EINVAL: the result cannot be right. */
int krait_unwind_step(struct krait_registers *registers, const struct krait_elf *elf, uint64_t moved,
                      pid_t pid);

/* The register from which the function at this place counts the addresses of its frame: mostly the stack pointer, or the frame
 * pointer. Its distance from the stack pointer is the place's, unless the function has called alloca(3). KRAIT_CFI_REGISTERS:
 * none, or not known. */
uint32_t krait_unwind_base(const struct krait_registers *registers, const struct krait_elf *elf,
                           uint64_t moved);

#endif
