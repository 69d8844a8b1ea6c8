/* SPDX-License-Identifier: Apache-2.0
 *
 * Symbols and sections of an ELF file of this machine's word size (System V gABI). Files may be damaged: everything is
 * checked against the file's size.
 */
#ifndef KRAIT_REMOTE_ELF_H
#define KRAIT_REMOTE_ELF_H

#include "base/base.h"

struct krait_elf {
    const char *bytes; /* mapped; NULL: not open */
    size_t size;
    uint64_t
        base; /* the address that the first byte of the file is linked for: what is added when it is loaded at 0 */
};

/* Returns 0; -ENOEXEC: it is not such a file; or the reason why it cannot be read. */
int krait_elf_open(struct krait_elf *elf, const char *path);
void krait_elf_done(struct krait_elf *elf);

/* Finds a symbol that is defined in the file, in .dynsym or else in .symtab: its address as linked. */
bool krait_elf_symbol(const struct krait_elf *elf, const char *name, uint64_t *address);
bool krait_elf_section(const struct krait_elf *elf, const char *name, uint64_t *address);

#endif
