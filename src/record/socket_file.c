/* SPDX-License-Identifier: Apache-2.0 */
#include "record/socket_file.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* A path that is too long for an address goes through its folder, which is then opened: /proc/self/fd/N/NAME. *folder is for the
 * caller to close, or -1. */
static int address_of(struct sockaddr_un *address, const char *file, int *folder)
{
    const char *slash = strrchr(file, '/');
    char path[PATH_MAX];
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    *folder = -1;
    if (strlen(file) < sizeof(address->sun_path)) {
        strcpy(address->sun_path, file);
        return 0;
    }
    if (!slash || strlen(file) >= sizeof(path))
        return -ENAMETOOLONG;
    memcpy(path, file, (size_t)(slash - file));
    path[slash - file] = '\0';
    *folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*folder < 0)
        return -errno;
    snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/%.32s", *folder, slash + 1);
    return 0;
}

/* bind(2) or connect(2). */
typedef int use_fn(int fd, const struct sockaddr *address, socklen_t size);

static int use(use_fn *call, int fd, const char *file)
{
    struct sockaddr_un address;
    int folder;
    int rc = address_of(&address, file, &folder);
    if (!rc && call(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        rc = -errno;
    if (folder >= 0)
        close(folder);
    return rc;
}

int krait_socket_file_bind(int fd, const char *file)
{
    /* the file's mode is that of the unbound socket: unix_bind_bsd in net/unix/af_unix.c */
    return fchmod(fd, 0600) ? -errno : use(bind, fd, file);
}

int krait_socket_file_connect(int fd, const char *file)
{
    return use(connect, fd, file);
}
