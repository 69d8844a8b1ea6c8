/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds out what is mapped in the process. It opens files as the process sees them, as remote/find.c does.
 */
#include "attach/inside.h"
#include "attach/stub.h"
#include "base/array.h"
#include "remote/elf.h"
#include "remote/maps.h"
#include "remote/remote.h"

#include <limits.h>
#include <link.h>
#include <string.h>
#include <sys/resource.h>

/* Functions of libc that hold locks while they call other functions: locks of malloc, of fork, of the list of
 * threads. Each number is larger than the function's length in the symbol table of Debian 12's glibc 2.36, with a
 * margin for other versions. */
static const struct {
    const char *name;
    uint64_t bytes;
} holding[] = {
    { "malloc", 0x500 },         { "free", 0x400 },          { "calloc", 0x500 },
    { "realloc", 0x600 },        { "memalign", 0x200 },      { "mallinfo", 0x300 },
    { "posix_memalign", 0x200 }, { "aligned_alloc", 0x200 }, { "malloc_trim", 0x400 },
    { "mallinfo2", 0x300 },      { "malloc_stats", 0x300 },  { "fork", 0x600 },
    { "pthread_exit", 0x100 },   { "mallopt", 0x300 },       { "pthread_create", 0x1000 },
    { "vfork", 0x80 },
};

static const char *const functions[] = {
    [KRAIT_TARGET_CREATE] = "pthread_create",
    [KRAIT_TARGET_DETACH] = "pthread_detach",
    [KRAIT_TARGET_DLOPEN] = "dlopen",
    [KRAIT_TARGET_DLSYM] = "dlsym",
};

static void add(struct krait_address_ranges *ranges, uint64_t begin, uint64_t end)
{
    if (ranges->count < KRAIT_ARRAY_LEN(ranges->items))
        ranges->items[ranges->count++] = (struct krait_address_range){ begin, end };
}

static void look_at_libc(struct krait_target *target, const struct krait_elf *elf, uint64_t load)
{
    uint64_t address;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(functions); i++) {
        if (!target->functions[i] && krait_elf_symbol(elf, functions[i], &address))
            target->functions[i] = load + address;
    }
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(holding); i++) {
        if (krait_elf_symbol(elf, holding[i].name, &address))
            add(&target->holds, load + address, load + address + holding[i].bytes);
    }
}

/* One line of /proc/PID/maps (proc(5)). */
struct line {
    struct krait_address_range range;
    char rights[5];
    unsigned long long offset;
    char path[PATH_MAX];
};

static bool next_line(FILE *maps, struct line *line)
{
    char text[PATH_MAX + 128];
    unsigned long long begin, end;
    if (!fgets(text, sizeof(text), maps))
        return false;
    line->path[0] = '\0';
    if (sscanf(text, "%llx-%llx %4s %llx %*s %*s %4095[^\n]", &begin, &end, line->rights, &line->offset,
               line->path) < 4)
        return false;
    line->range = (struct krait_address_range){ begin, end };
    return true;
}

static FILE *open_maps(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    return fopen(path, "re");
}

static bool is_mapped(pid_t pid, uint64_t address)
{
    struct line line;
    bool found = false;
    KRAIT_AUTO_FILE FILE *maps = open_maps(pid);
    while (!found && maps && next_line(maps, &line))
        found = address >= line.range.begin && address < line.range.end;
    return found;
}

/* The last page of a file's code is mapped as a whole; nothing uses its rest behind the code. */
static void look_for_room(struct krait_target *target, const struct krait_elf *elf, uint64_t load)
{
    enum { PAGE = 4096 };
    ElfW(Ehdr) head;
    memcpy(&head, elf->bytes, sizeof(head));
    for (unsigned i = 0; i < head.e_phnum; i++) {
        ElfW(Phdr) part;
        uint64_t at = head.e_phoff + (uint64_t)i * sizeof(part);
        if (at > elf->size || elf->size - at < sizeof(part))
            return;
        memcpy(&part, elf->bytes + at, sizeof(part));
        uint64_t end = (load + part.p_vaddr + part.p_filesz + 15) & ~15ull;
        bool is_code = part.p_type == PT_LOAD && (part.p_flags & (PF_X | PF_W)) == PF_X;
        if (!target->room && is_code && part.p_filesz == part.p_memsz && end % PAGE &&
            PAGE - end % PAGE >= KRAIT_STUB_MAX && is_mapped(target->pid, end))
            target->room = end;
    }
}

static bool begins(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, name, strlen(name)) == 0;
}

static bool is_libc(const char *path)
{
    static const char *const libraries[] = { "libc.so.", "libc-2.", "libpthread", "libdl" };
    bool found = false;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(libraries); i++)
        found |= begins(path, libraries[i]);
    return found;
}

/* The loader, or an allocator that replaces libc's. */
static bool is_loader(const char *path)
{
    static const char *const names[] = { "ld-", "libjemalloc", "libtcmalloc", "libmimalloc" };
    bool found = false;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(names); i++)
        found |= begins(path, names[i]);
    return found;
}

bool krait_attach_has_loaded(pid_t pid, const char *name)
{
    struct line line;
    bool found = false;
    KRAIT_AUTO_FILE FILE *maps = open_maps(pid);
    while (!found && maps && next_line(maps, &line))
        found = begins(line.path, name);
    return found;
}

/* Takes `elf` over. */
static void add_file(struct krait_target *target, struct krait_elf *elf, const struct line *line,
                     uint64_t moved)
{
    if (!KRAIT_GROW(target->files.items, target->files.cap, target->files.count + 1)) {
        krait_elf_done(elf);
        return;
    }
    target->files.items[target->files.count++] =
        (struct krait_target_file){ *elf, line->range.begin, moved, krait_mapped_is_greenlet(line->path) };
}

/* A thread that reads the clock is in the kernel's code for that (vdso(7)), and is unwound from there. */
static void look_at_vdso(struct krait_target *target, const struct line *line)
{
    struct krait_elf elf;
    if (!krait_elf_open_vdso(&elf))
        add_file(target, &elf, line, line->range.begin - elf.base);
}

static void look_at_file(struct krait_target *target, const struct line *line)
{
    char full[PATH_MAX + 64];
    struct krait_elf elf = { 0 };
    snprintf(full, sizeof(full), "/proc/%d/root%s", target->pid, line->path);
    int rc = krait_elf_open(&elf, full);
    if (rc) { /* a process with a root of its own (chroot) may name files as krait does */
        snprintf(full, sizeof(full), "/proc/%d/map_files/%llx-%llx", target->pid,
                 (unsigned long long)line->range.begin, (unsigned long long)line->range.end);
        rc = krait_elf_open(&elf, full);
    }
    if (rc)
        return;
    ElfW(Ehdr) head;
    memcpy(&head, elf.bytes, sizeof(head));
    uint64_t load = head.e_type == ET_EXEC ? 0 : line->range.begin - elf.base;
    if (is_libc(line->path))
        look_at_libc(target, &elf, load);
    if (!target->room)
        look_for_room(target, &elf, load);
    add_file(target, &elf, line, load);
}

/* The end of the main thread's stack when it has grown to its limit: the kernel maps pages only when the thread uses
 * them. */
static uint64_t grown_stack(pid_t pid, const struct krait_address_range *mapped)
{
    enum { AT_MOST = 1 << 20 };
    struct rlimit limit;
    if (prlimit(pid, RLIMIT_STACK, NULL, &limit))
        return mapped->begin;
    uint64_t allowed = limit.rlim_cur - KRAIT_MIN(limit.rlim_cur, mapped->end - mapped->begin);
    return mapped->begin - KRAIT_MIN(allowed, (uint64_t)AT_MOST);
}

int krait_target_look(struct krait_target *target, struct krait_err *err)
{
    struct line line;
    KRAIT_AUTO_FILE FILE *maps = open_maps(target->pid);
    if (!maps)
        return krait_err_errno(err, "cannot read what is mapped in process %d", target->pid);
    target->data.count = 0;
    while (next_line(maps, &line)) {
        if (line.rights[1] != 'w')
            continue;
        if (!KRAIT_GROW(target->data.items, target->data.cap, target->data.count + 1))
            return krait_err_set(err, -ENOMEM, "out of memory");
        if (strcmp(line.path, "[stack]") == 0) {
            line.range.begin = grown_stack(target->pid, &line.range);
            target->main_stack = line.range.end;
        }
        target->data.items[target->data.count++] = line.range;
    }
    return 0;
}

const struct krait_address_range *krait_target_data(const struct krait_target *target, uint64_t address)
{
    const struct krait_address_range *items = target->data.items;
    uint32_t i = KRAIT_PARTITION_POINT(at, target->data.count, items[at].end <= address);
    return i < target->data.count && items[i].begin <= address ? &items[i] : NULL;
}

const struct krait_target_file *krait_target_file(const struct krait_target *target, uint64_t address)
{
    uint32_t behind =
        KRAIT_PARTITION_POINT(at, target->files.count, target->files.items[at].begin <= address);
    return behind ? &target->files.items[behind - 1] : NULL;
}

void krait_target_done(struct krait_target *target)
{
    for (uint32_t i = 0; i < target->files.count; i++)
        krait_elf_done(&target->files.items[i].elf);
    free(target->files.items);
    free(target->data.items);
}

int krait_target_find(struct krait_target *target, pid_t pid, struct krait_err *err)
{
    struct line line;
    *target = (struct krait_target){ .pid = pid };
    KRAIT_AUTO_FILE FILE *maps = open_maps(pid);
    if (!maps)
        return krait_err_errno(err, "cannot read what is mapped in process %d", pid);
    while (next_line(maps, &line)) {
        if (line.path[0] == '/' && !line.offset)
            look_at_file(target, &line);
        if (strcmp(line.path, "[vdso]") == 0)
            look_at_vdso(target, &line);
        bool is_code = strchr(line.rights, 'x');
        if (is_code && is_loader(line.path))
            add(&target->holds, line.range.begin, line.range.end);
        if (is_code && is_libc(line.path))
            add(&target->libc, line.range.begin, line.range.end);
    }
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(functions); i++) {
        if (!target->functions[i])
            return krait_err_set(
                err, -ENOTSUP,
                "process %d has no %s of glibc (it is linked statically, or with musl), so krait cannot load its agent into it; sample it: krait record --sample --pid %d",
                pid, functions[i], pid);
    }
    return target->room
               ? 0
               : krait_err_set(
                     err, -ENOSPC,
                     "process %d has no mapped file with room behind its code; start the program with krait record -- COMMAND",
                     pid);
}
