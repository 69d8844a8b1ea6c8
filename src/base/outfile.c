/* SPDX-License-Identifier: Apache-2.0 */
#include "base/outfile.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum { SPILL = 256 * 1024, NAME_TRIES = 100 };

static const char *shown(const struct krait_outfile *out)
{
    return strcmp(out->path, "-") == 0 ? "standard output" : out->path;
}

static int fail(struct krait_outfile *out, int error, const char *what, struct krait_err *err)
{
    out->error = error;
    return krait_err_set(err, error, "%s: %s: %s", shown(out), what, strerror(-error));
}

/* The folder of a path, owned by the caller. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* The target with symbolic links followed, so that a link stays one. NULL when memory is out. */
static char *follow(const char *path)
{
    char *real = realpath(path, NULL);
    return real || errno == ENOMEM ? real : strdup(path);
}

/* The permissions of the new file: those of the old one, or what the umask leaves. */
static mode_t wanted_mode(const char *target)
{
    struct stat st;
    if (stat(target, &st) == 0)
        return st.st_mode & 0777;
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

static char *try_name(const char *target, int n)
{
    char *name;
    return asprintf(&name, "%s.krait-%d-%d", target, (int)getpid(), n) < 0 ? NULL : name;
}

/* Finds a free name beside the target; `take` creates it or returns -EEXIST. */
static int name_beside(struct krait_outfile *out, int (*take)(struct krait_outfile *out, const char *name))
{
    int rc = -EEXIST;
    for (int n = 0; rc == -EEXIST && n < NAME_TRIES; n++) {
        KRAIT_AUTO_FREE char *name = try_name(out->target, n);
        rc = name ? take(out, name) : -ENOMEM;
        if (rc == 0) {
            out->tmp = name;
            name = NULL;
        }
    }
    return rc;
}

static int take_by_open(struct krait_outfile *out, const char *name)
{
    out->fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return out->fd < 0 ? -errno : 0;
}

static int take_by_link(struct krait_outfile *out, const char *name)
{
    char self[40];
    snprintf(self, sizeof(self), "/proc/self/fd/%d", out->fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

static int open_temporary(struct krait_outfile *out)
{
    KRAIT_AUTO_FREE char *folder = folder_of(out->target);
    if (!folder)
        return -ENOMEM;
    /* Without /proc an unnamed file could not be given its name. */
    if (access("/proc/self/fd", X_OK) == 0)
        out->fd = open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    return out->fd >= 0 ? 0 : name_beside(out, take_by_open);
}

static int open_direct(struct krait_outfile *out)
{
    out->fd = strcmp(out->path, "-") == 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                                          : open(out->path, O_WRONLY | O_CLOEXEC);
    return out->fd < 0 ? -errno : 0;
}

static bool is_written_directly(const char *path)
{
    struct stat st;
    return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

/* Renaming onto a folder would fail too, but only after everything has been written. */
static int check_target(const char *path)
{
    struct stat st;
    if (!*path)
        return -ENOENT;
    if (stat(path, &st))
        return 0;
    return S_ISDIR(st.st_mode) ? -EISDIR : access(path, W_OK) ? -errno : 0;
}

int krait_outfile_open(struct krait_outfile *out, const char *path, struct krait_err *err)
{
    *out = (struct krait_outfile)KRAIT_OUTFILE_INIT;
    out->path = strdup(path);
    if (!out->path)
        return krait_err_set(err, -ENOMEM, "out of memory");
    if (is_written_directly(path)) {
        int rc = open_direct(out);
        return rc ? fail(out, rc, "cannot write", err) : 0;
    }
    int rc = check_target(path);
    if (rc)
        return fail(out, rc, "cannot write", err);
    out->target = follow(path);
    rc = out->target ? open_temporary(out) : -ENOMEM;
    return rc ? fail(out, rc, "cannot write", err) : 0;
}

static int write_all(struct krait_outfile *out)
{
    const char *at = out->buf.data;
    size_t left = out->buf.len;
    while (left) {
        ssize_t n = write(out->fd, at, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        at += n;
        left -= (size_t)n;
    }
    out->bytes += out->buf.len;
    krait_buf_clear(&out->buf);
    return 0;
}

static int flush(struct krait_outfile *out)
{
    if (!out->error)
        out->error = out->buf.failed ? -ENOMEM : write_all(out);
    if (out->error)
        krait_buf_clear(&out->buf);
    return out->error;
}

int krait_outfile_spill(struct krait_outfile *out)
{
    return out->buf.len < SPILL && !out->buf.failed ? out->error : flush(out);
}

/* Gives an unnamed file the target's name if that is free, else one beside it. */
static int take_name(struct krait_outfile *out)
{
    int rc = take_by_link(out, out->target);
    return rc == -EEXIST ? name_beside(out, take_by_link) : rc;
}

static int take_place(struct krait_outfile *out)
{
    if (fchmod(out->fd, wanted_mode(out->target)))
        return -errno;
    int rc = out->tmp ? 0 : take_name(out);
    if (rc || !out->tmp)
        return rc;
    if (rename(out->tmp, out->target))
        return -errno;
    free(out->tmp);
    out->tmp = NULL;
    return 0;
}

/* Some file systems report a full disk only in close(). */
static int close_file(struct krait_outfile *out)
{
    int fd = out->fd;
    out->fd = -1;
    return close(fd) && errno != EINTR ? -errno : 0;
}

int krait_outfile_commit(struct krait_outfile *out, struct krait_err *err)
{
    int rc = flush(out);
    if (!rc && out->target)
        rc = take_place(out);
    if (!rc)
        rc = close_file(out);
    return rc ? fail(out, rc, "cannot write", err) : 0;
}

void krait_outfile_done(struct krait_outfile *out)
{
    if (out->fd >= 0)
        close(out->fd);
    if (out->tmp)
        unlink(out->tmp);
    free(out->tmp);
    free(out->target);
    free(out->path);
    krait_buf_done(&out->buf);
    *out = (struct krait_outfile)KRAIT_OUTFILE_INIT;
}
