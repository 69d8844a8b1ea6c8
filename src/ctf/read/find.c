/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces in folders, and the files of a trace.
 */
#include "ctf/read/find.h"

#include "base/array.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_FOLDERS_DEEP = 32 }; /* links may make circles */

void krait_names_done(struct krait_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->list[i]);
    free(names->list);
    *names = (struct krait_names){ 0 };
}

static int add_name(struct krait_names *names, const char *name)
{
    char *copy = strdup(name);
    if (!copy || !KRAIT_GROW(names->list, names->cap, names->count + 1)) {
        free(copy);
        return -ENOMEM;
    }
    names->list[names->count++] = copy;
    return 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_kind(const char *path, mode_t kind)
{
    struct stat st;
    return stat(path, &st) == 0 && (st.st_mode & S_IFMT) == kind;
}

/* DIR/name of the entries of that kind; hidden ones are left out of files. */
static int list_dir(const char *dir, mode_t kind, struct krait_names *names, struct krait_err *err)
{
    DIR *handle = opendir(dir);
    if (!handle)
        return krait_err_errno(err, "%s", dir);
    int rc = 0;
    for (struct dirent *entry; !rc && (entry = readdir(handle));) {
        const char *name = entry->d_name;
        bool hidden = name[0] == '.';
        KRAIT_AUTO_BUF path = { 0 };
        krait_buf_fmt(&path, "%s/%s", dir, name);
        if (path.failed)
            rc = -ENOMEM;
        else if (!hidden && is_kind(path.data, kind))
            rc = add_name(names, path.data);
    }
    closedir(handle);
    if (rc)
        return krait_err_set(err, rc, "out of memory");
    if (names->count)
        qsort(names->list, names->count, sizeof(*names->list), compare);
    return 0;
}

static bool is_trace(const char *dir)
{
    KRAIT_AUTO_BUF path = { 0 };
    krait_buf_fmt(&path, "%s/metadata", dir);
    return !path.failed && is_kind(path.data, S_IFREG);
}

static int find_below(struct krait_names *traces, const char *dir, unsigned depth, struct krait_err *err)
{
    if (is_trace(dir))
        return add_name(traces, dir) ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
    if (depth == MAX_FOLDERS_DEEP)
        return 0;
    KRAIT_CLEANUP(krait_names_done) struct krait_names below = { 0 };
    int rc = list_dir(dir, S_IFDIR, &below, err);
    for (size_t i = 0; i < below.count && !rc; i++)
        rc = find_below(traces, below.list[i], depth + 1, err);
    return rc;
}

int krait_find_traces(struct krait_names *traces, const char *path, struct krait_err *err)
{
    size_t before = traces->count, n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    KRAIT_AUTO_FREE char *dir = strndup(path, n);
    if (!dir)
        return krait_err_set(err, -ENOMEM, "out of memory");
    int rc = find_below(traces, dir, 0, err);
    if (!rc && traces->count == before)
        return krait_err_set(err, -ENOENT, "%s: no CTF trace in there (a folder with a file 'metadata')",
                             path);
    return rc;
}

int krait_find_streams(struct krait_names *files, const char *dir, struct krait_err *err)
{
    int rc = list_dir(dir, S_IFREG, files, err);
    size_t kept = 0;
    for (size_t i = 0; i < files->count; i++) {
        const char *name = strrchr(files->list[i], '/') + 1;
        if (strcmp(name, "metadata") == 0)
            free(files->list[i]);
        else
            files->list[kept++] = files->list[i];
    }
    files->count = kept;
    return rc;
}
