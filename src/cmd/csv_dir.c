/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/csv_dir.h"

#include "base/array.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { FLUSH_AT = 64 * 1024, MOST_NAME = 200 /* bytes: file systems have 255 */ };

struct krait_csv_file {
    const struct krait_event_class *event; /* that has its columns */
    char *name;                            /* in the folder; owned */
    struct krait_buf text;
    bool is_there;
};

/* -- the folder -- */

static bool is_empty(const char *path)
{
    DIR *handle = opendir(path);
    bool empty = handle;
    for (struct dirent *entry; empty && (entry = readdir(handle));)
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    if (handle)
        closedir(handle);
    return empty;
}

int krait_csv_dir_open(struct krait_csv_dir *dir, const char *path, struct krait_err *err)
{
    if (mkdir(path, 0777) && errno != EEXIST)
        return krait_err_errno(err, "%s", path);
    if (!is_empty(path))
        return krait_err_set(err, -EEXIST, "%s is not an empty folder; choose another with --csv-dir", path);
    dir->path = path;
    return 0;
}

void krait_csv_dir_done(struct krait_csv_dir *dir)
{
    for (uint32_t i = 0; i < dir->count; i++) {
        free(dir->files[i]->name);
        krait_buf_done(&dir->files[i]->text);
        free(dir->files[i]);
    }
    free(dir->files);
    krait_map_done(&dir->by_class);
    *dir = (struct krait_csv_dir){ 0 };
}

/* -- files -- */

static bool is_taken(const struct krait_csv_dir *dir, const char *name)
{
    bool taken = false;
    for (uint32_t i = 0; i < dir->count && !taken; i++)
        taken =
            strcasecmp(dir->files[i]->name, name) == 0; /* there are file systems that tell no cases apart */
    return taken;
}

/* The event's name as a file's: what leads elsewhere, hides it or cannot be typed becomes '_'. */
static char *new_name(const struct krait_csv_dir *dir, const struct krait_event_class *event)
{
    char base[MOST_NAME + 1];
    snprintf(base, sizeof(base), "%s", event->name[0] ? event->name : "unnamed");
    for (char *c = base; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == '/' || *c == 0x7f || (*c == '.' && c == base))
            *c = '_';
    }
    for (unsigned n = 1;; n++) {
        char number[16] = "", *name;
        if (n > 1)
            snprintf(number, sizeof(number), "-%u", n);
        if (asprintf(&name, "%s%s.csv", base, number) < 0)
            return NULL;
        if (!is_taken(dir, name))
            return name;
        free(name);
    }
}

static struct krait_csv_file *new_file(struct krait_csv_dir *dir, const struct krait_event_class *event)
{
    if (!KRAIT_GROW(dir->files, dir->cap, dir->count + 1))
        return NULL;
    struct krait_csv_file *file = calloc(1, sizeof(*file));
    char *name = new_name(dir, event);
    if (!file || !name) {
        free(file);
        free(name);
        return NULL;
    }
    *file = (struct krait_csv_file){ .event = event, .name = name };
    krait_csv_columns(&file->text, event);
    dir->files[dir->count++] = file;
    return file;
}

static struct krait_csv_file *find_file(struct krait_csv_dir *dir, const struct krait_event_class *event)
{
    struct krait_csv_file *file = NULL;
    for (uint32_t i = 0; i < dir->count && !file; i++)
        file = krait_csv_same_columns(dir->files[i]->event, event) ? dir->files[i] : NULL;
    if (!file)
        file = new_file(dir, event);
    return file && !krait_map_put(&dir->by_class, (uintptr_t)event, (uintptr_t)file) ? file : NULL;
}

static struct krait_csv_file *file_of(struct krait_csv_dir *dir, const struct krait_event_class *event)
{
    const uint64_t *known = krait_map_get(&dir->by_class, (uintptr_t)event);
    return KRAIT_LIKELY(known) ? (struct krait_csv_file *)(uintptr_t)*known : find_file(dir, event);
}

struct krait_buf *krait_csv_dir_of(struct krait_csv_dir *dir, const struct krait_event_class *event)
{
    struct krait_csv_file *file = file_of(dir, event);
    return file ? &file->text : NULL;
}

/* -- writing -- */

static int write_all(int fd, const struct krait_buf *text)
{
    for (size_t done = 0; done < text->len;) {
        ssize_t n = write(fd, text->data + done, text->len - done);
        if (n < 0 && errno != EINTR)
            return -errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int flush_file(struct krait_csv_dir *dir, struct krait_csv_file *file, struct krait_err *err)
{
    KRAIT_AUTO_FREE char *path = NULL;
    if (file->text.failed || asprintf(&path, "%s/%s", dir->path, file->name) < 0) {
        path = NULL;
        return krait_err_set(err, -ENOMEM, "out of memory");
    }
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | (file->is_there ? 0 : O_CREAT | O_EXCL), 0666);
    int rc = fd < 0 ? -errno : write_all(fd, &file->text);
    if (fd >= 0 && close(fd) && !rc)
        rc = -errno;
    file->is_there = true;
    file->text.len = 0;
    return rc ? krait_err_set(err, rc, "cannot write %s: %s", path, strerror(-rc)) : 0;
}

int krait_csv_dir_flush(struct krait_csv_dir *dir, const struct krait_event_class *event,
                        struct krait_err *err)
{
    int rc = 0;
    if (event) {
        struct krait_csv_file *file = file_of(dir, event);
        return file && file->text.len >= FLUSH_AT ? flush_file(dir, file, err) : 0;
    }
    for (uint32_t i = 0; i < dir->count && !rc; i++)
        rc = flush_file(dir, dir->files[i], err);
    return rc;
}
