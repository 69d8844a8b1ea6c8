/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/elf.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* `n` items of `size` bytes at `at`, or NULL if they are not all in the file. */
static const void *inside(const struct krait_elf *elf, uint64_t at, uint64_t n, size_t size)
{
    bool fits = at <= elf->size && n <= (elf->size - at) / size;
    return fits ? elf->bytes + at : NULL;
}

static ElfW(Ehdr) head_of(const struct krait_elf *elf)
{
    ElfW(Ehdr) head;
    memcpy(&head, elf->bytes, sizeof(head));
    return head;
}

/* Copies section header i; false if there is none. */
static bool section_at(const struct krait_elf *elf, unsigned i, ElfW(Shdr) * section)
{
    ElfW(Ehdr) head = head_of(elf);
    if (i >= head.e_shnum || head.e_shentsize != sizeof(*section))
        return false;
    const void *at = inside(elf, head.e_shoff + (uint64_t)i * sizeof(*section), 1, sizeof(*section));
    if (at)
        memcpy(section, at, sizeof(*section));
    return at;
}

/* Whether a text at `offset` of the string table `strings` is `name`. */
static bool is_named(const struct krait_elf *elf, const ElfW(Shdr) * strings, uint64_t offset,
                     const char *name)
{
    size_t n = strlen(name) + 1;
    const char *text = offset < strings->sh_size ? inside(elf, strings->sh_offset + offset, n, 1) : NULL;
    return text && memcmp(text, name, n) == 0;
}

static uint64_t find_base(const struct krait_elf *elf)
{
    ElfW(Ehdr) head = head_of(elf);
    for (unsigned i = 0; i < head.e_phnum && head.e_phentsize == sizeof(ElfW(Phdr)); i++) {
        ElfW(Phdr) part;
        const void *at = inside(elf, head.e_phoff + (uint64_t)i * sizeof(part), 1, sizeof(part));
        if (!at)
            break;
        memcpy(&part, at, sizeof(part));
        if (part.p_type == PT_LOAD)
            return part.p_vaddr - part.p_offset;
    }
    return 0;
}

static bool is_elf(const struct krait_elf *elf)
{
    return elf->size >= sizeof(ElfW(Ehdr)) && memcmp(elf->bytes, ELFMAG, SELFMAG) == 0 &&
           elf->bytes[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32);
}

int krait_elf_open(struct krait_elf *elf, const char *path)
{
    struct stat stat;
    KRAIT_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &stat))
        return -errno;
    if (!S_ISREG(stat.st_mode) || !stat.st_size)
        return -ENOEXEC;
    void *bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return -errno;
    struct krait_elf opened = { .bytes = bytes, .size = (size_t)stat.st_size };
    if (!is_elf(&opened)) {
        krait_elf_done(&opened);
        return -ENOEXEC;
    }
    opened.base = find_base(&opened);
    *elf = opened;
    return 0;
}

void krait_elf_done(struct krait_elf *elf)
{
    if (elf->bytes)
        munmap((void *)elf->bytes, elf->size);
    *elf = (struct krait_elf){ 0 };
}

static bool find_in(const struct krait_elf *elf, const ElfW(Shdr) * table, const char *name,
                    uint64_t *address)
{
    ElfW(Shdr) strings;
    ElfW(Sym) symbol;
    uint64_t count = table->sh_size / sizeof(symbol);
    const char *symbols = inside(elf, table->sh_offset, count, sizeof(symbol));
    if (!symbols || !section_at(elf, table->sh_link, &strings))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(&symbol, symbols + i * sizeof(symbol), sizeof(symbol));
        if (symbol.st_shndx != SHN_UNDEF && is_named(elf, &strings, symbol.st_name, name)) {
            *address = symbol.st_value;
            return true;
        }
    }
    return false;
}

bool krait_elf_symbol(const struct krait_elf *elf, const char *name, uint64_t *address)
{
    static const uint32_t kinds[] = { SHT_DYNSYM, SHT_SYMTAB };
    for (size_t k = 0; k < KRAIT_ARRAY_LEN(kinds); k++) {
        ElfW(Shdr) section;
        for (unsigned i = 0; section_at(elf, i, &section); i++) {
            if (section.sh_type == kinds[k] && find_in(elf, &section, name, address))
                return true;
        }
    }
    return false;
}

bool krait_elf_section(const struct krait_elf *elf, const char *name, uint64_t *address)
{
    ElfW(Shdr) names, section;
    if (!section_at(elf, head_of(elf).e_shstrndx, &names))
        return false;
    for (unsigned i = 0; section_at(elf, i, &section); i++) {
        if (is_named(elf, &names, section.sh_name, name)) {
            *address = section.sh_addr;
            return true;
        }
    }
    return false;
}
