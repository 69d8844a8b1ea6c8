/* SPDX-License-Identifier: Apache-2.0
 *
 * Call frame information: where a function has saved the registers of its caller, for each of its instructions.
 * Compilers write it to .eh_frame for exceptions (Linux Standard Base, Core, "Exception Frames"; DWARF 5, 6.4), so that
 * stripped files have it too.
 */
#ifndef KRAIT_REMOTE_CFI_H
#define KRAIT_REMOTE_CFI_H

#include "remote/elf.h"

/* DWARF's numbers of registers: System V ABI for x86-64, figure 3.36; DWARF for the Arm 64-bit Architecture, 4.1. */
#if defined(__x86_64__)
enum { KRAIT_CFI_REGISTERS = 17, KRAIT_CFI_SP = 7, KRAIT_CFI_PC = 16, KRAIT_CFI_KEPT = 0xf0c8 };
#elif defined(__aarch64__)
enum { KRAIT_CFI_REGISTERS = 33, KRAIT_CFI_SP = 31, KRAIT_CFI_PC = 32, KRAIT_CFI_KEPT = 0x7ff80000 };
#else
#error "no numbers of registers for this machine"
#endif

enum krait_cfi_kind {
    KRAIT_CFI_SAME,      /* the caller's value is still in it */
    KRAIT_CFI_UNDEFINED, /* it is lost; if it is the return address: there is no caller */
    KRAIT_CFI_OFFSET,    /* at CFA + offset */
    KRAIT_CFI_VALUE,     /* is CFA + offset */
    KRAIT_CFI_REGISTER,  /* it is in the register `of`; for the CFA: that register + offset */
    KRAIT_CFI_AT_EXPRESSION,
    KRAIT_CFI_EXPRESSION,
};

struct krait_cfi_rule {
    uint8_t kind; /* enum krait_cfi_kind */
    uint8_t of;
    uint32_t size; /* of the expression */
    union {
        int64_t offset;
        const uint8_t *expression; /* in the file */
    };
};

struct krait_cfi_row {
    struct krait_cfi_rule cfa; /* the caller's frame address: KRAIT_CFI_REGISTER or KRAIT_CFI_EXPRESSION */
    struct krait_cfi_rule registers[KRAIT_CFI_REGISTERS];
};

struct krait_cfi {
    uint64_t begin; /* of the function, as linked */
    struct krait_cfi_row row;
    uint32_t return_address; /* the register that has it */
    bool is_signal;          /* the kernel made the frame: its caller was interrupted, not in a call */
};

/* Reads the rules for the instruction at `address`, as linked. Returns 0; -ENODATA: the file has no rules for it;
 * -EINVAL: they are damaged, or of a kind that compilers do not write. */
int krait_cfi_find(const struct krait_elf *elf, uint64_t address, struct krait_cfi *cfi);

/* -- reading the encodings -- */

struct krait_cursor;
/* Reads a LEB128 number (DWARF 5, 7.6). Returns false at the end of the bytes. */
bool krait_cfi_unsigned(struct krait_cursor *at, uint64_t *value);
bool krait_cfi_signed(struct krait_cursor *at, int64_t *value);

#endif
