/* SPDX-License-Identifier: Apache-2.0 */
#include "record/folder.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

int krait_folder_refused(struct krait_err *err, const char *what, const char *path)
{
    int rc = errno ? -errno : -EIO;
    return krait_err_set(err, rc, "cannot %s the folder %s: %s; choose another with -o", what, path,
                         strerror(-rc));
}

static int make_dir(const char *path, bool *made, struct krait_err *err)
{
    KRAIT_AUTO_FREE char *copy = strdup(path);
    if (!copy)
        return krait_err_set(err, -ENOMEM, "out of memory");
    for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
        copy[n - 1] = '\0';
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0777) < 0 && errno != EEXIST)
            return krait_folder_refused(err, "make", copy);
        *slash = '/';
    }
    *made = mkdir(copy, 0777) == 0;
    if (!*made && errno != EEXIST)
        return krait_folder_refused(err, "make", copy);
    return 0;
}

static int check_empty(const char *path, struct krait_err *err)
{
    DIR *dir = opendir(path);
    if (!dir)
        return krait_folder_refused(err, "read", path);
    const struct dirent *entry;
    bool empty = true;
    while ((entry = readdir(dir)))
        empty = empty && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
    closedir(dir);
    return empty ? 0
                 : krait_err_set(err, -EEXIST, "the folder %s is not empty; choose another with -o", path);
}

int krait_folder_make(const char *path, bool *made, struct krait_err *err)
{
    int rc = make_dir(path, made, err);
    return rc ? rc : check_empty(path, err);
}
