/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/maps.h"

#include "base/array.h"

#include <elf.h>
#include <limits.h>
#include <string.h>

void krait_maps_done(struct krait_maps *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        free(list->items[i].path);
    free(list->items);
}

static int add_mapping(struct krait_maps *list, char *line)
{
    unsigned long long begin, end, offset, inode;
    unsigned major, minor;
    int path = 0;
    line[strcspn(line, "\n")] = '\0';
    list->any = true;
    int found = sscanf(line, "%llx-%llx %*s %llx %x:%x %llu %n", &begin, &end, &offset, &major, &minor,
                       &inode, &path);
    if (found < 6 || offset || line[path] != '/')
        return 0;
    if (!KRAIT_GROW(list->items, list->cap, list->count + 1))
        return -ENOMEM;
    char *copy = strdup(line + path);
    list->items[list->count] =
        (struct krait_mapped){ begin, end, (uint64_t)major << 32 | minor, inode, copy };
    list->count += copy != NULL;
    return copy ? 0 : -ENOMEM;
}

int krait_maps_read(pid_t pid, struct krait_maps *list)
{
    char path[64], *line = NULL;
    size_t cap = 0;
    int rc = 0;
    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    KRAIT_AUTO_FILE FILE *file = fopen(path, "re");
    if (!file)
        return -errno;
    while (!rc && getline(&line, &cap, file) > 0)
        rc = add_mapping(list, line);
    rc = rc ? rc : ferror(file) ? -errno : 0;
    free(line);
    return rc ? rc : list->any ? 0 : -ESRCH;
}

bool krait_mapped_same(const struct krait_mapped *a, const struct krait_mapped *b)
{
    return a->begin == b->begin && a->end == b->end && a->device == b->device && a->inode == b->inode;
}

/* greenlet/_greenlet.cpython-313-x86_64-linux-gnu.so; before 1.0 greenlet.cpython-38-x86_64-linux-gnu.so. */
bool krait_mapped_is_greenlet(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strncmp(*name == '_' ? name + 1 : name, "greenlet.", strlen("greenlet.")) == 0;
}

int krait_maps_open(pid_t pid, const struct krait_mapped *mapped, struct krait_elf *elf)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", pid, (unsigned long long)mapped->begin,
             (unsigned long long)mapped->end);
    int rc = krait_elf_open(elf, path);
    if (!rc || rc == -ENOEXEC)
        return rc;
    snprintf(path, sizeof(path), "/proc/%d/root%s", pid, mapped->path);
    return krait_elf_open(elf, path);
}

/* proc(5): pairs of a key and a value. */
uint64_t krait_maps_auxv(pid_t pid, uint64_t type)
{
    char path[64];
    uint64_t pair[2];
    snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
    KRAIT_AUTO_FILE FILE *file = fopen(path, "re");
    while (file && fread(pair, sizeof(pair), 1, file) == 1 && pair[0] != AT_NULL) {
        if (pair[0] == type)
            return pair[1];
    }
    return 0;
}
