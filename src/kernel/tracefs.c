/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/tracefs.h"

#include <dirent.h>
#include <fcntl.h>
#include <mntent.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define MOUNT_POINT "/sys/kernel/tracing"

/* linux/mount.h, which does not go together with the C library's sys/mount.h in all versions. */
enum { FSOPEN_CLOSE_ON_EXEC = 1, FSMOUNT_CLOSE_ON_EXEC = 1, CONFIG_CREATE = 6 };

/* ---- where it is ---- */

static int open_mounted(void)
{
    FILE *mounts = setmntent("/proc/self/mounts", "r");
    if (!mounts)
        return -errno;
    struct mntent entry;
    char line[4096];
    int fd = -ENOENT;
    while (fd == -ENOENT && getmntent_r(mounts, &entry, line, sizeof(line))) {
        if (strcmp(entry.mnt_type, "tracefs") != 0)
            continue;
        fd = open(entry.mnt_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            fd = -errno;
    }
    endmntent(mounts);
    return fd;
}

/* fsopen(2), fsmount(2): a mount that is attached nowhere. */
static int open_unmounted(void)
{
#ifdef SYS_fsopen
    KRAIT_AUTO_CLOSE int fs = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOSE_ON_EXEC);
    if (fs < 0 || syscall(SYS_fsconfig, fs, CONFIG_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    int fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOSE_ON_EXEC, 0);
    return fd < 0 ? -errno : fd;
#else
    return -ENOSYS;
#endif
}

static bool kernel_has_tracefs(void)
{
    KRAIT_AUTO_BUF text = { 0 };
    return !krait_buf_read_file(&text, "/proc/filesystems") && text.data && strstr(text.data, "\ttracefs\n");
}

static int cannot_open(int rc, bool mounted, struct krait_err *err)
{
    if (mounted)
        return krait_err_set(err, rc, "tracefs is not this user's to use (%s); run krait as root",
                             strerror(-rc));
    return krait_err_set(err, rc,
                         "tracefs is not mounted, and this user may not mount it (%s); run krait as root, or "
                         "mount it: sudo mount -t tracefs nodev " MOUNT_POINT,
                         strerror(-rc));
}

/* The same descriptor when instances can be made there; else it is closed. Containers see the host's mount,
 * read-only. */
static int usable(int fd)
{
    if (fd < 0 || faccessat(fd, KRAIT_TRACEFS_INSTANCES, W_OK | X_OK, AT_EACCESS) == 0)
        return fd;
    int rc = -errno;
    close(fd);
    return rc;
}

int krait_tracefs_open(struct krait_err *err)
{
    if (!kernel_has_tracefs())
        return krait_err_set(err, -ENOENT,
                             "this kernel has no tracefs; boot one with CONFIG_FTRACE and "
                             "CONFIG_EVENT_TRACING");
    int mounted = usable(open_mounted());
    if (mounted >= 0)
        return mounted;
    int own = usable(open_unmounted());
    if (own >= 0)
        return own;
    return mounted == -ENOENT ? cannot_open(own, false, err) : cannot_open(mounted, true, err);
}

/* ---- files ---- */

int krait_tracefs_read(int dir, const char *path, struct krait_buf *text)
{
    KRAIT_AUTO_CLOSE int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    for (;;) {
        char *room = krait_buf_room(text, 4096);
        if (!room)
            return -ENOMEM;
        ssize_t n = read(fd, room, 4096);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        text->len += (size_t)n;
        text->data[text->len] = '\0';
        if (n == 0)
            return 0;
    }
}

int krait_tracefs_write(int dir, const char *path, const char *text)
{
    KRAIT_AUTO_CLOSE int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    size_t n = strlen(text);
    ssize_t written;
    do
        written = write(fd, text, n);
    while (written < 0 && errno == EINTR);
    return written < 0 ? -errno : (size_t)written == n ? 0 : -EIO;
}

/* ---- instances ---- */

static void own_name(char *path, size_t size)
{
    snprintf(path, size, KRAIT_TRACEFS_INSTANCES "/" KRAIT_TRACEFS_PREFIX "%d", (int)getpid());
}

int krait_tracefs_make_instance(int root, struct krait_err *err)
{
    char path[64];
    own_name(path, sizeof(path));
    unlinkat(root, path, AT_REMOVEDIR); /* of a process that had our number, and died */
    if (mkdirat(root, path, 0700) < 0)
        return krait_err_errno(err, "cannot make the tracing instance %s", path);
    int fd = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    int rc = krait_err_errno(err, "cannot open the tracing instance %s", path);
    unlinkat(root, path, AT_REMOVEDIR);
    return rc;
}

/* What is on in an instance that stays would go on for ever, and all of the machine pays for it. This is for
 * our own alone: what looks left behind may be another container's, whose processes have no number here. */
static void switch_off(int root, const char *path)
{
    KRAIT_AUTO_CLOSE int dir = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0) {
        krait_tracefs_write(dir, "events/enable", "0");
        krait_tracefs_write(dir, "current_tracer", "nop");
    }
}

int krait_tracefs_remove_instance(int root, struct krait_err *err)
{
    char path[64];
    own_name(path, sizeof(path));
    int rc = unlinkat(root, path, AT_REMOVEDIR) < 0 ? -errno : 0;
    if (rc)
        switch_off(root, path);
    return rc ? krait_err_set(err, rc,
                              "tracing's %s is left behind (%s), as where somebody has a file of it open; "
                              "the next krait record --kernel removes it",
                              path, strerror(-rc))
              : 0;
}

/* krait-PID with a PID that is nobody's. */
static bool is_stale(const char *name)
{
    size_t n = strlen(KRAIT_TRACEFS_PREFIX);
    char *end;
    if (strncmp(name, KRAIT_TRACEFS_PREFIX, n) != 0 || name[n] < '1' || name[n] > '9')
        return false;
    long pid = strtol(name + n, &end, 10);
    return !*end && pid <= INT32_MAX && kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

void krait_tracefs_stale(int root, void (*each)(void *data, const char *name), void *data)
{
    int fd = openat(root, KRAIT_TRACEFS_INSTANCES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        if (is_stale(entry->d_name))
            each(data, entry->d_name);
    }
    closedir(dir);
}

static void remove_stale(void *data, const char *name)
{
    char path[64];
    if (snprintf(path, sizeof(path), KRAIT_TRACEFS_INSTANCES "/%s", name) < (int)sizeof(path))
        unlinkat(*(const int *)data, path, AT_REMOVEDIR);
}

void krait_tracefs_sweep(int root)
{
    krait_tracefs_stale(root, remove_stale, &root);
}
