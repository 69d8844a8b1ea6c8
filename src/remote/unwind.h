/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the registers of a function's caller from its own, by the call frame information of its file (remote/cfi.h).
 */
#ifndef KRAIT_REMOTE_UNWIND_H
#define KRAIT_REMOTE_UNWIND_H

#include "remote/cfi.h"
#include "remote/memory.h"

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

/* The rules for the place. `moved` is the difference between the addresses in memory and in the file. Errors: krait_cfi_find. */
int krait_unwind_find(const struct krait_registers *registers, const struct krait_elf *elf, uint64_t moved,
                      struct krait_cfi *cfi);

/* Goes to the caller by the rules for the place. `stack` may keep what it has read as long as the thread does not run. Returns 0;
 * -ENOENT: there is no caller; -ENXIO: a register is needed that is not known; -EFAULT, -ESRCH, -EPERM: the stack cannot be
 * read; -EINVAL: the result cannot be right. */
int krait_unwind_by(struct krait_registers *registers, const struct krait_cfi *cfi,
                    struct krait_memory_block *stack);
/* Finds the rules, and goes to the caller. Returns also -ENODATA: the file has no rules. */
int krait_unwind_step(struct krait_registers *registers, const struct krait_elf *elf, uint64_t moved,
                      struct krait_memory_block *stack);

/* The register from which these rules count the addresses of its frame: mostly the stack pointer, or the frame
 * pointer. Its distance from the stack pointer is the place's, unless the function has called alloca(3). KRAIT_CFI_REGISTERS:
 * none, or not known. */
uint32_t krait_unwind_base(const struct krait_cfi *cfi);

#endif
