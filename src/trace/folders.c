/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/folders.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/shell.h"
#include "ctf/meta/open.h"
#include "ctf/read/find.h"

#include <dirent.h>
#include <ftw.h>
#include <limits.h>
#include <string.h>

void krait_folders_done(struct krait_folders *folders)
{
    for (uint32_t i = 0; i < folders->count; i++) {
        free(folders->items[i].dir);
        krait_ctf_metadata_free(folders->items[i].metadata);
    }
    free(folders->items);
    *folders = (struct krait_folders){ 0 };
}

const char *krait_folder_tracer(const struct krait_folder *folder)
{
    return folder->metadata ? krait_ctf_env_text(folder->metadata, "tracer_name", "") : "";
}

bool krait_folder_is_kraits(const struct krait_folder *folder)
{
    return strcmp(krait_folder_tracer(folder), "krait") == 0;
}

static int add_folder(struct krait_folders *folders, const char *dir, uint32_t path)
{
    struct stat st;
    if (stat(dir, &st) < 0)
        return -errno;
    for (uint32_t i = 0; i < folders->count; i++) {
        if (folders->items[i].dev == st.st_dev && folders->items[i].ino == st.st_ino)
            return 0;
    }
    if (!KRAIT_GROW(folders->items, folders->cap, folders->count + 1))
        return -ENOMEM;
    struct krait_folder folder = { .dir = strdup(dir), .dev = st.st_dev, .ino = st.st_ino, .path = path };
    if (!folder.dir)
        return -ENOMEM;
    int rc = krait_ctf_metadata_open(&folder.metadata, dir, &folder.err);
    folders->items[folders->count++] = folder;
    return rc == -ENOMEM ? rc : 0;
}

/* -- one path -- */

static int by_name(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* The length of the folder's name in which a folder lies. */
static size_t parent_of(const char *dir)
{
    const char *slash = strrchr(dir, '/');
    return slash ? (size_t)(slash - dir) : 0;
}

static size_t length_of(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return n;
}

/* Whether a recording of krait's lies further below: the path is none, but holds it. */
static bool is_held(const struct krait_folder *folder, const char *path)
{
    size_t n = length_of(path);
    return krait_folder_is_kraits(folder) && strlen(folder->dir) > n && parent_of(folder->dir) > n;
}

/* The recordings that the folders from `first` on are of; a name to each line. Sets err and returns its code. */
static int say_held(const struct krait_folders *folders, uint32_t first, const char *path,
                    struct krait_err *err)
{
    enum { SHOWN = 8 };
    KRAIT_AUTO_BUF list = { 0 };
    const char *last = "";
    uint32_t found = 0;
    for (uint32_t i = first; i < folders->count; i++) {
        const char *dir = folders->items[i].dir;
        size_t n = parent_of(dir);
        if (!is_held(&folders->items[i], path) || (parent_of(last) == n && strncmp(dir, last, n) == 0))
            continue;
        last = dir;
        if (found++ >= SHOWN)
            continue;
        KRAIT_AUTO_FREE char *name = strndup(dir, n);
        krait_buf_str(&list, "\n  ");
        krait_shell_file(&list, name ? name : "");
    }
    return krait_err_lines(
        err, krait_err_set(err, -EINVAL, "%s: not a recording, but contains some; name those you mean:%s%s",
                           path, list.data ? list.data : "", found > SHOWN ? "\n  ..." : ""));
}

static int check_held(const struct krait_folders *folders, uint32_t first, const char *path,
                      struct krait_err *err)
{
    for (uint32_t i = first; i < folders->count; i++) {
        if (is_held(&folders->items[i], path))
            return say_held(folders, first, path, err);
    }
    return 0;
}

static bool is_empty(const char *path)
{
    DIR *dir = opendir(path);
    bool empty = dir != NULL;
    for (const struct dirent *entry; empty && (entry = readdir(dir));)
        empty = entry->d_name[0] == '.';
    if (dir)
        closedir(dir);
    return empty;
}

static int find_path(struct krait_folders *folders, const char *path, uint32_t number, struct krait_err *err)
{
    KRAIT_CLEANUP(krait_names_done) struct krait_names dirs = { 0 };
    uint32_t first = folders->count;
    struct stat st;
    if (stat(path, &st) < 0)
        return krait_err_errno(err, "%s", path);
    if (!S_ISDIR(st.st_mode))
        return krait_err_set(err, -EINVAL, "%s: not a folder; give the folder that `krait record` wrote",
                             path);
    int rc = krait_find_traces(&dirs, path, err);
    if (rc == -ENOENT)
        return krait_err_set(err, -EINVAL, "%s: %s", path,
                             is_empty(path) ? "the folder is empty"
                                            : "not a recording: no folder with a file `metadata` in it");
    if (rc)
        return rc;
    qsort(dirs.list, dirs.count, sizeof(*dirs.list), by_name);
    for (size_t i = 0; i < dirs.count && !rc; i++) {
        rc = add_folder(folders, dirs.list[i], number);
        if (rc)
            krait_err_set(err, rc, "%s: %s", dirs.list[i], strerror(-rc));
    }
    return rc ? rc : check_held(folders, first, path, err);
}

int krait_folders_find(struct krait_folders *folders, const char *const *paths, size_t count,
                       struct krait_err *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < count; i++)
        rc = find_path(folders, paths[i], (uint32_t)i, err);
    if (!rc && !folders->count)
        rc = krait_err_set(err, -EINVAL, "no recording given");
    return rc;
}

/* -- identity -- */

/* The files of a folder in any order: what is known of each is summed up. nftw has no context. */
static _Thread_local struct {
    uint64_t sum, count;
    size_t base; /* bytes of the path that it began with */
} files;

static int add_file(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    char text[PATH_MAX + 128];
    if (flag != FTW_F || strncmp(path + at->base, ".krait-", 7) == 0)
        return 0;
    int n = snprintf(text, sizeof(text), "%s %lld %lld.%09ld", path + files.base, (long long)st->st_size,
                     (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
    files.sum += krait_hash_bytes(text, (size_t)KRAIT_MIN(n, (int)sizeof(text) - 1));
    files.count++;
    return 0;
}

int krait_folders_identity(const char *const *paths, size_t count, uint64_t identity[2])
{
    identity[0] = identity[1] = 0;
    for (size_t i = 0; i < count; i++) {
        files.sum = files.count = 0;
        files.base = strlen(paths[i]);
        if (nftw(paths[i], add_file, 16, FTW_PHYS) < 0)
            return -errno;
        identity[0] = krait_hash_u64(identity[0] ^ files.sum);
        identity[1] += files.count;
    }
    return 0;
}

uint32_t krait_folders_path_of(const char *const *paths, size_t count, const char *dir)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        size_t n = strlen(paths[i]);
        while (n > 1 && paths[i][n - 1] == '/')
            n--;
        if (strncmp(dir, paths[i], n) == 0 && (dir[n] == '/' || !dir[n]))
            found = i;
    }
    return found;
}
