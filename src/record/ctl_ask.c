/* SPDX-License-Identifier: Apache-2.0 */
#include "record/ctl.h"

#include "base/base.h"
#include "record/socket_file.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>

enum { PATIENCE_S = 600 }; /* a snapshot of a large recording takes long */

socklen_t krait_ctl_address(struct sockaddr_un *address, uint64_t inode)
{
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    char *name = address->sun_path + 1; /* behind a NUL: abstract */
    int n = snprintf(name, sizeof(address->sun_path) - 1, "krait-ctl-%llu", (unsigned long long)inode);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) + (socklen_t)n;
}

/* ---- which recording ---- */

/* The inode of a line of /proc/PID/maps that names krait's memfd; 0 for others. proc(5): address perms offset dev inode
 * path. */
static uint64_t inode_of_line(const char *line)
{
    const char *path = strchr(line, '/');
    if (!path || strncmp(path, "/memfd:krait (deleted)", strlen("/memfd:krait (deleted)")) != 0)
        return 0;
    const char *at = line;
    for (int field = 1; at && field < 5; field++) {
        at = strchr(at, ' ');
        at = at ? at + strspn(at, " ") : NULL;
    }
    return at ? strtoull(at, NULL, 10) : 0;
}

static int find_by_pid(const char *pid, uint64_t *inode, struct krait_err *err)
{
    char path[64];
    KRAIT_AUTO_BUF maps = { 0 };
    snprintf(path, sizeof(path), "/proc/%s/maps", pid);
    int rc = krait_buf_read_file(&maps, path);
    if (rc == -ENOENT || rc == -ESRCH)
        return krait_err_set(err, -ESRCH, "there is no process %s", pid);
    if (rc)
        return krait_err_set(err, rc, "cannot look at process %s: %s; run krait ctl as its user or as root",
                             pid, strerror(-rc));
    for (const char *line = maps.data; line && *line; line = *line ? line + 1 : line) {
        *inode = inode_of_line(line);
        if (*inode)
            return 0;
        line += strcspn(line, "\n");
    }
    return krait_err_set(
        err, -ENOENT,
        "process %s is neither recorded by krait nor a krait record; krait ctl takes the PID of one "
        "that is, or the folder of its recording",
        pid);
}

static int find_by_folder(const char *dir, uint64_t *inode, struct krait_err *err)
{
    struct stat st;
    KRAIT_AUTO_FREE char *path = NULL;
    KRAIT_AUTO_BUF text = { 0 };
    if (stat(dir, &st) < 0)
        return krait_err_errno(err, "%s is neither a PID nor a folder", dir);
    if (asprintf(&path, "%s/" KRAIT_CTL_FILE, dir) < 0) {
        path = NULL;
        return krait_err_set(err, -ENOMEM, "out of memory");
    }
    int rc = krait_buf_read_file(&text, path);
    *inode = rc || !text.len ? 0 : strtoull(text.data, NULL, 10);
    if (*inode)
        return 0;
    if (rc == -EACCES)
        return krait_err_set(
            err, rc, "the recording %s is another user's; run krait ctl as that user or as root", dir);
    return krait_err_set(err, -ENOENT, "%s is not being recorded: no krait record writes there now", dir);
}

int krait_ctl_find(const char *operand, struct krait_ctl_place *place, struct krait_err *err)
{
    bool is_number = *operand && !operand[strspn(operand, "0123456789")];
    place->folder = is_number ? NULL : operand;
    return is_number ? find_by_pid(operand, &place->inode, err) : find_by_folder(operand, &place->inode, err);
}

/* ---- asking ---- */

/* By its name, or in another network namespace by the file in the recording's folder. */
static int connect_either(int fd, const struct krait_ctl_place *place)
{
    struct sockaddr_un address;
    char file[PATH_MAX];
    socklen_t size = krait_ctl_address(&address, place->inode);
    if (connect(fd, (struct sockaddr *)&address, size) == 0)
        return 0;
    if (!place->folder ||
        snprintf(file, sizeof(file), "%s/" KRAIT_CTL_SOCKET, place->folder) >= (int)sizeof(file))
        return -ECONNREFUSED;
    return krait_socket_file_connect(fd, file);
}

static int connect_to(const struct krait_ctl_place *place, struct krait_err *err)
{
    struct timeval patience = { .tv_sec = PATIENCE_S };
    struct ucred who;
    socklen_t n = sizeof(who);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return krait_err_errno(err, "no socket");
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    int rc = 0;
    if (connect_either(fd, place))
        rc = krait_err_set(
            err, -ECONNREFUSED,
            "nobody collects this recording any more: its krait record has ended or was killed, or is in "
            "another network namespace, where krait ctl takes the folder of the recording");
    else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 ||
             (who.uid != geteuid() && who.uid && geteuid()))
        rc = krait_err_set(err, -EACCES,
                           "the recording is another user's; run krait ctl as that user or as root");
    if (!rc)
        return fd;
    close(fd);
    return rc;
}

static int send_all(int fd, const char *text, struct krait_err *err)
{
    for (size_t left = strlen(text); left;) {
        ssize_t n = TEMP_FAILURE_RETRY(send(fd, text, left, MSG_NOSIGNAL));
        if (n < 0)
            return krait_err_errno(err, "krait record does not listen");
        text += n;
        left -= (size_t)n;
    }
    shutdown(fd, SHUT_WR);
    return 0;
}

int krait_ctl_ask(const struct krait_ctl_place *place, const char *request, struct krait_buf *answer,
                  struct krait_err *err)
{
    enum { PART = 64 * 1024 };
    KRAIT_AUTO_CLOSE int fd = connect_to(place, err);
    int rc = fd < 0 ? fd : send_all(fd, request, err);
    while (!rc) {
        char *room = krait_buf_room(answer, PART);
        ssize_t n = room ? TEMP_FAILURE_RETRY(recv(fd, room, PART, 0)) : -1;
        if (n < 0)
            return room ? krait_err_errno(err, "krait record does not answer")
                        : krait_err_set(err, -ENOMEM, "out of memory");
        answer->len += (size_t)n;
        answer->data[answer->len] = '\0';
        if (!n)
            break;
    }
    if (!rc && !answer->len)
        return krait_err_set(err, -ECONNRESET, "krait record does not answer: it has ended meanwhile");
    return rc;
}
