/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/csv_dir.h"

#include "base/array.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { FLUSH_AT = 64 * 1024, MOST_NAME = 200 /* bytes: file systems have 255 */ };

struct krait_csv_file {
    char *name; /* in the folder; owned */
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
    krait_map_done(&dir->last_numbers);
    krait_strtab_done(&dir->keys);
    krait_strtab_done(&dir->names);
    *dir = (struct krait_csv_dir){ 0 };
}

/* -- files -- */

/* The id of a file's name, in small letters; `*is_new` where no file has it. */
static uint32_t add_name(struct krait_csv_dir *dir, const char *name, bool *is_new)
{
    char small[2 * MOST_NAME];
    size_t n = 0;
    for (; name[n]; n++)
        small[n] = (char)(name[n] >= 'A' && name[n] <= 'Z' ? name[n] + 'a' - 'A' : name[n]);
    uint32_t before = dir->names.len, id = krait_strtab_add(&dir->names, small, n);
    *is_new = dir->names.len > before;
    return id;
}

/* "other.csv", or "other-2.csv" where that is taken, and so on. NULL: out of memory. */
static char *number_name(struct krait_csv_dir *dir, const char *base)
{
    char *name;
    bool is_new;
    if (asprintf(&name, "%s.csv", base) < 0)
        return NULL;
    uint32_t first = add_name(dir, name, &is_new);
    const uint64_t *last = first == KRAIT_NO_ID ? NULL : krait_map_get(&dir->last_numbers, first);
    for (uint64_t n = last ? *last + 1 : 2; first != KRAIT_NO_ID && !is_new; n++) {
        free(name);
        if (asprintf(&name, "%s-%llu.csv", base, (unsigned long long)n) < 0)
            return NULL;
        if (add_name(dir, name, &is_new) == KRAIT_NO_ID || krait_map_put(&dir->last_numbers, first, n))
            first = KRAIT_NO_ID;
    }
    if (first != KRAIT_NO_ID)
        return name;
    free(name);
    return NULL;
}

/* The event's name as a file's: what leads elsewhere, hides it or cannot be typed becomes '_'. */
static char *new_name(struct krait_csv_dir *dir, const struct krait_event_class *event)
{
    char base[MOST_NAME + 1];
    snprintf(base, sizeof(base), "%s", event->name[0] ? event->name : "unnamed");
    for (char *c = base; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == '/' || *c == 0x7f || (*c == '.' && c == base))
            *c = '_';
    }
    return number_name(dir, base);
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
    *file = (struct krait_csv_file){ .name = name };
    krait_csv_columns(&file->text, event);
    dir->files[dir->count++] = file;
    return file;
}

static struct krait_csv_file *find_file(struct krait_csv_dir *dir, const struct krait_event_class *event)
{
    KRAIT_AUTO_BUF key = { 0 };
    krait_csv_key(&key, event);
    uint32_t id = key.failed ? KRAIT_NO_ID : krait_strtab_add(&dir->keys, key.data, key.len);
    if (id == KRAIT_NO_ID)
        return NULL;
    struct krait_csv_file *file = id < dir->count ? dir->files[id] : new_file(dir, event);
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
