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

/* The memory that was read last, from where the reading began to the end of the page, for numbers that are near each other. Set
 * `pid`, and `size` to 0: nothing has been read. It is for memory that does not change meanwhile. */
enum { KRAIT_MEMORY_BLOCK = 4096 }; /* pages have as many bytes, or a multiple */
struct krait_memory_block {
    pid_t pid;
    uint64_t addr;
    size_t size; /* bytes that are known */
    char bytes[KRAIT_MEMORY_BLOCK];
};

/* Reads a number of 8 bytes from the block, or a new block that begins with it. Returns 0 or an error of krait_memory_pieces. */
int krait_memory_near(struct krait_memory_block *block, uint64_t addr, uint64_t *value);

/* A little-endian number of 1 to 8 bytes from copied memory. */
static inline uint64_t krait_memory_number(const void *from, size_t size)
{
    uint64_t n = 0;
    memcpy(&n, from, size);
    return n;
}

#endif
