/* SPDX-License-Identifier: Apache-2.0
 *
 * Symbols and sections of an ELF file of this machine's word size (System V gABI). A file may be damaged, so every
 * offset is checked against the file's size.
 */
#ifndef KRAIT_REMOTE_ELF_H
#define KRAIT_REMOTE_ELF_H

#include "base/base.h"

struct krait_elf {
    const char *bytes; /* mapped; NULL: not open */
    size_t size;
    uint64_t base;  /* the address that the first byte of the file is linked for */
    uint64_t inode; /* 0: it is in no file */
};

/* Returns 0; -ENOEXEC: it is not such a file; or another negative errno if it cannot be read. */
int krait_elf_open(struct krait_elf *elf, const char *path);
/* Opens the code that the kernel maps into each process (vdso(7)). It is in no file, so this uses krait's own copy. */
int krait_elf_open_vdso(struct krait_elf *elf);
void krait_elf_done(struct krait_elf *elf);

/* Finds a symbol that the file defines, in .dynsym or else in .symtab, and its address as linked. */
bool krait_elf_symbol(const struct krait_elf *elf, const char *name, uint64_t *address);
bool krait_elf_section(const struct krait_elf *elf, const char *name, uint64_t *address);

/* The bytes of a section, in the mapped file; NULL if there are none. */
const void *krait_elf_section_bytes(const struct krait_elf *elf, const char *name, size_t *size);
/* Where in the file the byte is that is linked for `address`, also one that only is there once it is loaded. */
bool krait_elf_offset(const struct krait_elf *elf, uint64_t address, uint64_t *offset);

/* Finds the function that contains the instruction at `address`: its name, which points into the file and may have a version
 * (name@@VERSION), and its begin. */
bool krait_elf_function_at(const struct krait_elf *elf, uint64_t address, const char **name, uint64_t *begin);

/* The bytes that are linked for `address`, up to the end of their segment in the file; NULL if there are none. */
const void *krait_elf_bytes(const struct krait_elf *elf, uint64_t address, size_t *size);
/* Whether `address` is that of an instruction in the file. */
bool krait_elf_is_code(const struct krait_elf *elf, uint64_t address);
/* The address of .eh_frame_hdr; false if the file has none. */
bool krait_elf_frames(const struct krait_elf *elf, uint64_t *address);
/* The file's build ID as hexadecimal digits; false if it has none. */
enum { KRAIT_BUILD_ID_MAX = 80 };
bool krait_elf_build_id(const struct krait_elf *elf, char id[KRAIT_BUILD_ID_MAX]);

#endif
