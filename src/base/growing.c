/* SPDX-License-Identifier: Apache-2.0 */
#include "base/growing.h"

#include <fcntl.h>

int krait_growing_open(const char *path, int flags)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
    if (fd >= 0)
        fcntl(fd, F_OFD_SETLK, &(struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET });
    return fd;
}

bool krait_growing(int fd)
{
    struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_WRLCK;
}
