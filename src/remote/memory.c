/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/memory.h"

#include <sys/uio.h>

enum { PIECES_MAX = 512 }; /* the kernel takes UIO_MAXIOV, 1024 */

static int read_some(pid_t pid, const struct krait_memory_piece *pieces, size_t count)
{
    struct iovec here[PIECES_MAX], there[PIECES_MAX];
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        here[i] = (struct iovec){ pieces[i].to, pieces[i].size };
        there[i] = (struct iovec){ (void *)(uintptr_t)pieces[i].addr, pieces[i].size };
        size += pieces[i].size;
    }
    ssize_t n = process_vm_readv(pid, here, count, there, count, 0);
    return n < 0 ? -errno : (size_t)n == size ? 0 : -EFAULT;
}

int krait_memory_pieces(pid_t pid, const struct krait_memory_piece *pieces, size_t count)
{
    int rc = 0;
    for (size_t i = 0; i < count && !rc; i += PIECES_MAX)
        rc = read_some(pid, pieces + i, KRAIT_MIN(count - i, (size_t)PIECES_MAX));
    return rc;
}
