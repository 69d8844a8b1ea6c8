/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/modules.h"

#include "base/array.h"
#include "base/map.h"
#include "remote/cfi.h"
#include "remote/memory.h"

#include <elf.h>
#include <string.h>

/* ELF header, program headers and notes come first. */
enum { HEAD_BYTES = 1024 };

static const uint64_t NO_INODE = UINT64_MAX;

void krait_modules_done(struct krait_modules *modules)
{
    for (uint32_t i = 0; modules->items && i < modules->maps.count; i++) {
        krait_elf_done(&modules->items[i].elf);
        krait_elf_done(&modules->items[i].debug);
    }
    free(modules->items);
    krait_maps_done(&modules->maps);
    krait_elf_done(&modules->vdso.elf);
    *modules = (struct krait_modules){ .pid = modules->pid };
}

/* -- the list -- */

static void find_vdso(pid_t pid, struct krait_module *vdso)
{
    uint64_t head = krait_maps_auxv(pid, AT_SYSINFO_EHDR);
    if (head && !krait_elf_open_vdso(&vdso->elf))
        vdso->moved = head - vdso->elf.base;
    vdso->path = "[vdso]";
    vdso->tried = vdso->debug_tried = true;
}

int krait_modules_read(struct krait_modules *modules)
{
    int rc = krait_maps_read(modules->pid, &modules->maps);
    struct krait_module *items = rc ? NULL : calloc(modules->maps.count + 1, sizeof(*items));
    if (!items) {
        krait_modules_done(modules);
        return rc ? rc : -ENOMEM;
    }
    for (uint32_t i = 0; i < modules->maps.count; i++)
        items[i].path = modules->maps.items[i].path;
    modules->items = items;
    find_vdso(modules->pid, &modules->vdso);
    return 0;
}

bool krait_modules_same(const struct krait_modules *a, const struct krait_modules *b)
{
    bool same = a->items && b->items && a->maps.count == b->maps.count;
    for (uint32_t i = 0; same && i < a->maps.count; i++)
        same = krait_mapped_same(&a->maps.items[i], &b->maps.items[i]);
    return same;
}

/* The last file that begins at or before an address; NULL: none does. */
static struct krait_mapped *mapped_at(const struct krait_modules *modules, uint64_t pc)
{
    const struct krait_maps *maps = &modules->maps;
    uint32_t behind = (uint32_t)KRAIT_PARTITION_POINT(i, maps->count, maps->items[i].begin <= pc);
    return behind ? &maps->items[behind - 1] : NULL;
}

bool krait_modules_same_at(const struct krait_modules *a, const struct krait_modules *b, uint64_t pc)
{
    const struct krait_mapped *x = mapped_at(a, pc), *y = mapped_at(b, pc);
    return x && y ? krait_mapped_same(x, y) : x == y;
}

static void swap_modules(struct krait_module *a, struct krait_module *b)
{
    struct krait_module swapped = *a;
    *a = *b;
    *b = swapped;
}

/* With its path: that of a file which was deleted meanwhile ends in " (deleted)". */
void krait_modules_replace(struct krait_modules *modules, struct krait_modules *newer)
{
    for (uint32_t i = 0, k = 0; modules->items && i < modules->maps.count; i++) {
        struct krait_mapped *old = &modules->maps.items[i];
        while (k < newer->maps.count && newer->maps.items[k].begin < old->begin)
            k++;
        if (k == newer->maps.count || !krait_mapped_same(old, &newer->maps.items[k]))
            continue;
        char *path = old->path;
        old->path = newer->maps.items[k].path;
        newer->maps.items[k].path = path;
        swap_modules(&modules->items[i], &newer->items[k]);
    }
    krait_modules_done(modules);
    *modules = *newer;
}

/* -- files -- */

static uint64_t hash_head(const struct krait_modules *modules, const struct krait_mapped *mapped)
{
    char bytes[HEAD_BYTES];
    size_t size = KRAIT_MIN(sizeof(bytes), (size_t)(mapped->end - mapped->begin));
    int rc = krait_memory_read(modules->pid, mapped->begin, bytes, size);
    return rc ? 0 : krait_hash_bytes(bytes, size);
}

bool krait_modules_check(struct krait_modules *modules)
{
    bool same = true;
    for (uint32_t i = 0; i < modules->maps.count; i++) {
        struct krait_mapped *mapped = &modules->maps.items[i];
        if (!modules->items[i].elf.bytes || hash_head(modules, mapped) == modules->items[i].head)
            continue;
        mapped->inode = NO_INODE;
        same = false;
    }
    return same;
}

/* Returns false if it does not look like the file of the list. Then another one was loaded after the list was read; the same list,
 * when it is read again, tells of programs that change their first bytes, and of filesystems whose inodes have two numbers
 * (overlayfs). A file that differs in both has taken the path of the one that the process has. */
static bool open_file(const struct krait_modules *modules, const struct krait_mapped *mapped,
                      struct krait_module *module)
{
    module->tried = true;
    if (krait_maps_open(modules->pid, mapped, &module->elf))
        return true;
    size_t size = KRAIT_MIN((size_t)HEAD_BYTES, (size_t)(mapped->end - mapped->begin));
    module->moved = mapped->begin - module->elf.base;
    module->head = hash_head(modules, mapped);
    bool same_inode = module->elf.inode == mapped->inode;
    bool same_head = module->elf.size >= size && module->head == krait_hash_bytes(module->elf.bytes, size);
    if (!same_inode && !same_head)
        krait_elf_done(&module->elf);
    return same_inode && same_head;
}

struct krait_module *krait_modules_find(struct krait_modules *modules, uint64_t pc)
{
    struct krait_module *vdso = &modules->vdso;
    if (vdso->elf.bytes && krait_elf_is_code(&vdso->elf, pc - vdso->moved))
        return vdso;
    const struct krait_mapped *mapped = mapped_at(modules, pc);
    struct krait_module *module = mapped ? &modules->items[mapped - modules->maps.items] : NULL;
    if (!module || (!module->tried && !open_file(modules, mapped, module)))
        return NULL;
    return module->elf.bytes && krait_elf_is_code(&module->elf, pc - module->moved) ? module : NULL;
}

/* Where distributions put the symbols of a stripped file (GDB's manual, "Separate Debug Files"). */
static const struct krait_elf *symbols_of(const struct krait_modules *modules, struct krait_module *module)
{
    char id[KRAIT_BUILD_ID_MAX], path[2 * KRAIT_BUILD_ID_MAX + 64];
    if (!module->debug_tried && krait_elf_build_id(&module->elf, id)) {
        snprintf(path, sizeof(path), "/proc/%d/root/usr/lib/debug/.build-id/%.2s/%s.debug", modules->pid, id,
                 id + 2);
        krait_elf_open(&module->debug, path);
    }
    module->debug_tried = true;
    return module->debug.bytes ? &module->debug : &module->elf;
}

void krait_module_function(const struct krait_modules *modules, struct krait_module *module, uint64_t address,
                           const char **name, uint64_t *begin)
{
    struct krait_cfi cfi;
    *name = NULL;
    if (krait_elf_function_at(symbols_of(modules, module), address, name, begin) ||
        krait_elf_function_at(&module->elf, address, name, begin))
        return;
    bool found = !krait_cfi_find(&module->elf, address, &cfi);
    *begin = found ? cfi.begin : address;
}
