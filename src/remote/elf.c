/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/elf.h"

#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
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

/* Copies the entry of `size` bytes at `at` in the file; false if the file ends before it does. */
static bool copy_entry(const struct krait_elf *elf, uint64_t at, void *entry, size_t size)
{
    const void *bytes = inside(elf, at, 1, size);
    if (bytes)
        memcpy(entry, bytes, size);
    return bytes;
}

/* Copies section header i; false if there is none. */
static bool section_at(const struct krait_elf *elf, unsigned i, ElfW(Shdr) * section)
{
    const ElfW(Ehdr) head = head_of(elf);
    return i < head.e_shnum && head.e_shentsize == sizeof(*section) &&
           copy_entry(elf, head.e_shoff + (uint64_t)i * sizeof(*section), section, sizeof(*section));
}

/* Whether a text at `offset` of the string table `strings` is `name`. */
static bool is_named(const struct krait_elf *elf, const ElfW(Shdr) * strings, uint64_t offset,
                     const char *name)
{
    size_t n = strlen(name) + 1;
    const char *text = offset < strings->sh_size ? inside(elf, strings->sh_offset + offset, n, 1) : NULL;
    return text && memcmp(text, name, n) == 0;
}

/* Copies program header i; false if there is none. */
static bool part_at(const struct krait_elf *elf, unsigned i, ElfW(Phdr) * part)
{
    const ElfW(Ehdr) head = head_of(elf);
    return i < head.e_phnum && head.e_phentsize == sizeof(*part) &&
           copy_entry(elf, head.e_phoff + (uint64_t)i * sizeof(*part), part, sizeof(*part));
}

static uint64_t find_base(const struct krait_elf *elf)
{
    ElfW(Phdr) part;
    for (unsigned i = 0; part_at(elf, i, &part); i++) {
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
    struct krait_elf opened = { .bytes = bytes, .size = (size_t)stat.st_size, .inode = stat.st_ino };
    if (!is_elf(&opened)) {
        krait_elf_done(&opened);
        return -ENOEXEC;
    }
    opened.base = find_base(&opened);
    *elf = opened;
    return 0;
}

int krait_elf_open_vdso(struct krait_elf *elf)
{
    const char *from = (const char *)getauxval(AT_SYSINFO_EHDR);
    ElfW(Ehdr) head;
    if (!from)
        return -ENOENT;
    memcpy(&head, from, sizeof(head));
    size_t size = head.e_shoff + (size_t)head.e_shnum * head.e_shentsize; /* the section headers come last */
    char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED)
        return -errno;
    memcpy(bytes, from, size);
    *elf = (struct krait_elf){ .bytes = bytes, .size = size };
    elf->base = find_base(elf);
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

static bool find_section(const struct krait_elf *elf, const char *name, ElfW(Shdr) * section)
{
    ElfW(Shdr) names;
    if (!section_at(elf, head_of(elf).e_shstrndx, &names))
        return false;
    for (unsigned i = 0; section_at(elf, i, section); i++) {
        if (is_named(elf, &names, section->sh_name, name))
            return true;
    }
    return false;
}

bool krait_elf_section(const struct krait_elf *elf, const char *name, uint64_t *address)
{
    ElfW(Shdr) section;
    bool found = find_section(elf, name, &section);
    if (found)
        *address = section.sh_addr;
    return found;
}

const void *krait_elf_section_bytes(const struct krait_elf *elf, const char *name, size_t *size)
{
    ElfW(Shdr) section;
    const void *bytes = find_section(elf, name, &section) && section.sh_type != SHT_NOBITS
                            ? inside(elf, section.sh_offset, section.sh_size, 1)
                            : NULL;
    *size = bytes ? section.sh_size : 0;
    return bytes;
}

/* -- by address -- */

/* The segment that `address` is linked into. */
static bool find_load(const struct krait_elf *elf, uint64_t address, ElfW(Phdr) * part)
{
    bool found = false;
    for (unsigned i = 0; !found && part_at(elf, i, part); i++)
        found = part->p_type == PT_LOAD && address - part->p_vaddr < part->p_memsz;
    return found;
}

const void *krait_elf_bytes(const struct krait_elf *elf, uint64_t address, size_t *size)
{
    ElfW(Phdr) part;
    if (!find_load(elf, address, &part) || address - part.p_vaddr >= part.p_filesz)
        return NULL;
    uint64_t skipped = address - part.p_vaddr;
    const char *at = inside(elf, part.p_offset, part.p_filesz, 1);
    *size = at ? part.p_filesz - skipped : 0;
    return at ? at + skipped : NULL;
}

bool krait_elf_offset(const struct krait_elf *elf, uint64_t address, uint64_t *offset)
{
    ElfW(Phdr) part;
    bool found = find_load(elf, address, &part);
    if (found)
        *offset = address - part.p_vaddr + part.p_offset;
    return found;
}

bool krait_elf_is_code(const struct krait_elf *elf, uint64_t address)
{
    ElfW(Phdr) part;
    return find_load(elf, address, &part) && part.p_flags & PF_X;
}

static bool find_part(const struct krait_elf *elf, uint32_t type, ElfW(Phdr) * part)
{
    bool found = false;
    for (unsigned i = 0; !found && part_at(elf, i, part); i++)
        found = part->p_type == type;
    return found;
}

bool krait_elf_frames(const struct krait_elf *elf, uint64_t *address)
{
    ElfW(Phdr) part;
    bool found = find_part(elf, PT_GNU_EH_FRAME, &part);
    if (found)
        *address = part.p_vaddr;
    return found;
}

/* The name of a symbol; NULL: it has none. */
static const char *name_of(const struct krait_elf *elf, const ElfW(Shdr) * strings, const ElfW(Sym) * symbol)
{
    uint64_t rest = symbol->st_name < strings->sh_size ? strings->sh_size - symbol->st_name : 0;
    const char *text = inside(elf, strings->sh_offset + symbol->st_name, rest, 1);
    return rest && text && *text && memchr(text, 0, rest) ? text : NULL;
}

/* Of several names of one function, programs use that which is exported, not for old programs alone (name@VERSION), with the fewest
 * underscores before it: read, of __GI___read, __read, read@@GLIBC_2.2.5 and __read_alias_1. _Z begins what a C++ compiler
 * made of a name. */
static unsigned rank_of(const ElfW(Sym) * symbol, const char *name)
{
    enum { UNDERSCORES = 16 };
    const char *version = strchr(name, '@');
    unsigned exported = symbol->st_info >> 4 != STB_LOCAL, is_new = !version || version[1] == '@';
    bool is_made = strncmp(name, "_Z", 2) == 0;
    unsigned underscores = is_made ? 0 : (unsigned)KRAIT_MIN(strspn(name, "_"), UNDERSCORES - 1ul);
    return (2 * exported + is_new) * UNDERSCORES + UNDERSCORES - underscores;
}

/* Of names that rank the same: the shorter one, or the first by its letters, whatever their order in the file. */
static bool is_shorter(const char *name, const char *than)
{
    size_t length = strlen(name), other = strlen(than);
    return length < other || (length == other && strcmp(name, than) < 0);
}

static bool is_around(const ElfW(Sym) * symbol, uint64_t address)
{
    unsigned type = symbol->st_info & 15;
    return symbol->st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_GNU_IFUNC) &&
           address - symbol->st_value < KRAIT_MAX(symbol->st_size, 1u);
}

/* The name in a symbol table of the function around `address`: of the one that begins last. */
static bool find_around(const struct krait_elf *elf, const ElfW(Shdr) * table, uint64_t address,
                        const char **name, uint64_t *begin)
{
    ElfW(Shdr) strings;
    ElfW(Sym) symbol;
    uint64_t count = table->sh_size / sizeof(symbol);
    const char *symbols = inside(elf, table->sh_offset, count, sizeof(symbol));
    unsigned best = 0;
    if (!symbols || !section_at(elf, table->sh_link, &strings))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(&symbol, symbols + i * sizeof(symbol), sizeof(symbol));
        const char *text = is_around(&symbol, address) ? name_of(elf, &strings, &symbol) : NULL;
        unsigned rank = text ? rank_of(&symbol, text) : 0;
        bool later = best && symbol.st_value > *begin, same = !best || symbol.st_value == *begin;
        bool plainer = same && (rank > best || (best && rank == best && is_shorter(text, *name)));
        if (!text || !(later || plainer))
            continue;
        *name = text;
        *begin = symbol.st_value;
        best = rank;
    }
    return best;
}

bool krait_elf_function_at(const struct krait_elf *elf, uint64_t address, const char **name, uint64_t *begin)
{
    static const uint32_t kinds[] = { SHT_SYMTAB, SHT_DYNSYM };
    for (size_t k = 0; k < KRAIT_ARRAY_LEN(kinds); k++) {
        ElfW(Shdr) section;
        for (unsigned i = 0; section_at(elf, i, &section); i++) {
            if (section.sh_type == kinds[k] && find_around(elf, &section, address, name, begin))
                return true;
        }
    }
    return false;
}

bool krait_elf_build_id(const struct krait_elf *elf, char id[KRAIT_BUILD_ID_MAX])
{
    ElfW(Phdr) part;
    ElfW(Nhdr) note;
    for (unsigned i = 0; part_at(elf, i, &part); i++) {
        const char *at = part.p_type == PT_NOTE ? inside(elf, part.p_offset, part.p_filesz, 1) : NULL;
        for (uint64_t left = part.p_filesz; at && left >= sizeof(note);) {
            memcpy(&note, at, sizeof(note));
            uint64_t name = (note.n_namesz + 3ull) & ~3ull,
                     size = sizeof(note) + name + ((note.n_descsz + 3ull) & ~3ull);
            if (size > left)
                break;
            const char *bytes = at + sizeof(note) + name;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz && note.n_descsz < KRAIT_BUILD_ID_MAX / 2) {
                for (unsigned k = 0; k < note.n_descsz; k++)
                    snprintf(id + 2 * k, 3, "%02x", (uint8_t)bytes[k]);
                return true;
            }
            at += size;
            left -= size;
        }
    }
    return false;
}
