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
    uint64_t base; /* the address that the first byte of the file is linked for */
};

/* Returns 0; -ENOEXEC: it is not such a file; or the reason why it cannot be read. */
int krait_elf_open(struct krait_elf *elf, const char *path);
/* The same of the code that the kernel maps into each process (vdso(7)), which is in no file: krait's own copy. */
int krait_elf_open_vdso(struct krait_elf *elf);
void krait_elf_done(struct krait_elf *elf);

/* Finds a symbol that is defined in the file, in .dynsym or else in .symtab: its address as linked. */
bool krait_elf_symbol(const struct krait_elf *elf, const char *name, uint64_t *address);
bool krait_elf_section(const struct krait_elf *elf, const char *name, uint64_t *address);

/* The bytes of a section, which are in the file; NULL if there are none. */
const void *krait_elf_section_bytes(const struct krait_elf *elf, const char *name, size_t *size);
/* Where in the file the byte is that is linked for `address`, also one that only is there once it is loaded. */
bool krait_elf_offset(const struct krait_elf *elf, uint64_t address, uint64_t *offset);

/* Finds the function that has the instruction at `address`: its name, in the file, and where it begins. */
bool krait_elf_function_at(const struct krait_elf *elf, uint64_t address, const char **name, uint64_t *begin);

/* The bytes that are linked for `address`, up to the end of their segment in the file; NULL if there are none. */
const void *krait_elf_bytes(const struct krait_elf *elf, uint64_t address, size_t *size);
/* Whether instructions are linked for `address`. */
bool krait_elf_is_code(const struct krait_elf *elf, uint64_t address);
/* The address of .eh_frame_hdr; false if the file has none. */
bool krait_elf_frames(const struct krait_elf *elf, uint64_t *address);
/* The file's build ID as hexadecimal digits; false if it has none. */
enum { KRAIT_BUILD_ID_MAX = 80 };
bool krait_elf_build_id(const struct krait_elf *elf, char id[KRAIT_BUILD_ID_MAX]);

#endif
