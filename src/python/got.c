/* SPDX-License-Identifier: Apache-2.0
 *
 * The global offset table of a loaded file has a slot for each function that it calls elsewhere; the loader's
 * relocations say which (System V gABI, "Dynamic Linking"; the processors' supplements name the two types).
 */
#include "python/got.h"

#include "base/base.h"

#include <link.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
enum { IS_CALL = R_X86_64_JUMP_SLOT, IS_ADDRESS = R_X86_64_GLOB_DAT }; /* -fno-plt makes the second */
#elif defined(__aarch64__)
enum { IS_CALL = R_AARCH64_JUMP_SLOT, IS_ADDRESS = R_AARCH64_GLOB_DAT };
#endif

enum { CALLS_MAX = 4, SLOTS_MAX = 2 }; /* a function may have a slot of either type */

struct file {
    uintptr_t address; /* that is looked for */
    uintptr_t base;
    uintptr_t relro, relro_end; /* what the loader has made read-only */
    const ElfW(Dyn) * dynamic;
};

static int find_file(struct dl_phdr_info *info, size_t size, void *data)
{
    struct file *file = data;
    struct file found = { .address = file->address, .base = info->dlpi_addr };
    bool here = false;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t begin = found.base + part->p_vaddr;
        here |= part->p_type == PT_LOAD && file->address - begin < part->p_memsz;
        if (part->p_type == PT_DYNAMIC)
            found.dynamic = (const ElfW(Dyn) *)begin;
        if (part->p_type == PT_GNU_RELRO) {
            found.relro = begin;
            found.relro_end = begin + part->p_memsz;
        }
    }
    if (here)
        *file = found;
    return here;
}

/* Some loaders leave addresses in the dynamic section as they are in the file, others add the base. */
static const void *dynamic_address(const struct file *file, ElfW(Sxword) tag)
{
    for (const ElfW(Dyn) *d = file->dynamic; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == tag)
            return (const void *)(d->d_un.d_ptr < file->base ? file->base + d->d_un.d_ptr : d->d_un.d_ptr);
    }
    return NULL;
}

static size_t dynamic_size(const struct file *file, ElfW(Sxword) tag)
{
    for (const ElfW(Dyn) *d = file->dynamic; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == tag)
            return d->d_un.d_val;
    }
    return 0;
}

struct slots {
    void **at[CALLS_MAX][SLOTS_MAX];
    size_t count[CALLS_MAX];
};

static void find_slots(struct slots *slots, const struct file *file, ElfW(Sxword) table,
                       ElfW(Sxword) table_size, const struct krait_got_call *calls, size_t count)
{
    const ElfW(Rela) *rela = dynamic_address(file, table);
    const ElfW(Sym) *symbols = dynamic_address(file, DT_SYMTAB);
    const char *names = dynamic_address(file, DT_STRTAB);
    size_t n = rela && symbols && names ? dynamic_size(file, table_size) / sizeof(*rela) : 0;
    for (size_t i = 0; i < n; i++) {
        unsigned type = ELF64_R_TYPE(rela[i].r_info);
        const char *name = names + symbols[ELF64_R_SYM(rela[i].r_info)].st_name;
        for (size_t c = 0; c < count && (type == IS_CALL || type == IS_ADDRESS); c++) {
            if (slots->count[c] < SLOTS_MAX && strcmp(name, calls[c].name) == 0)
                slots->at[c][slots->count[c]++] = (void **)(file->base + rela[i].r_offset);
        }
    }
}

static uintptr_t page_size(void)
{
    return (uintptr_t)sysconf(_SC_PAGESIZE);
}

/* Of a slot in a page that the loader has made read-only: whole pages, as _dl_protect_relro in glibc's
 * elf/dl-reloc.c does. Returns false where the kernel forbids it, as for sealed mappings. */
static bool protect(const struct file *file, void **slot, int protection)
{
    uintptr_t page = (uintptr_t)slot & -page_size();
    bool is_relro = page >= (file->relro & -page_size()) && page < (file->relro_end & -page_size());
    return !is_relro || mprotect((void *)page, page_size(), protection) == 0;
}

/* Whether all slots were there and could be made writable. */
static bool open_slots(const struct slots *slots, const struct file *file, size_t count)
{
    bool open = true;
    for (size_t c = 0; c < count; c++) {
        open &= slots->count[c] != 0;
        for (size_t i = 0; open && i < slots->count[c]; i++)
            open = protect(file, slots->at[c][i], PROT_READ | PROT_WRITE);
    }
    return open;
}

static void close_slots(const struct slots *slots, const struct file *file, size_t count)
{
    for (size_t c = 0; c < count; c++) {
        for (size_t i = 0; i < slots->count[c]; i++)
            protect(file, slots->at[c][i], PROT_READ);
    }
}

static void write_slots(const struct slots *slots, const struct krait_got_call *calls, size_t count)
{
    for (size_t c = 0; c < count; c++) {
        for (size_t i = 0; i < slots->count[c]; i++)
            __atomic_store_n(slots->at[c][i], calls[c].ours, __ATOMIC_RELEASE);
    }
}

int krait_got_redirect(const void *address, const struct krait_got_call *calls, size_t count)
{
    struct file file = { .address = (uintptr_t)address };
    struct slots slots = { 0 };
    if (count > CALLS_MAX || !dl_iterate_phdr(find_file, &file) || !file.dynamic)
        return -ENOENT;
    find_slots(&slots, &file, DT_JMPREL, DT_PLTRELSZ, calls, count);
    find_slots(&slots, &file, DT_RELA, DT_RELASZ, calls, count);
    bool open = open_slots(&slots, &file, count);
    if (open)
        write_slots(&slots, calls, count);
    close_slots(&slots, &file, count);
    return open ? 0 : -ENOENT;
}
