/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies memory of another process while that process runs (process_vm_readv(2)).
 */
#ifndef KRAIT_REMOTE_MEMORY_H
#define KRAIT_REMOTE_MEMORY_H

#include "base/base.h"

#include <string.h>
#include <sys/types.h>

struct krait_memory_piece {
    uint64_t addr; /* there */
    void *to;      /* here */
    size_t size;   /* bytes */
};

/* Copies all pieces, up to 512 of them with one system call. Returns 0; -EFAULT: some of the memory is not mapped;
 * -ESRCH: the process is gone; -EPERM: this user may not read it. */
int krait_memory_pieces(pid_t pid, const struct krait_memory_piece *pieces, size_t count);

static inline int krait_memory_read(pid_t pid, uint64_t addr, void *to, size_t size)
{
    struct krait_memory_piece piece = { addr, to, size };
    return krait_memory_pieces(pid, &piece, 1);
}

/* A little-endian number of 1 to 8 bytes from copied memory. */
static inline uint64_t krait_memory_number(const void *from, size_t size)
{
    uint64_t n = 0;
    memcpy(&n, from, size);
    return n;
}

#endif
