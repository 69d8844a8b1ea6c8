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

/* Up to the end of the page: the next one may be of a mapping that makes its reader wait, as userfaultfd(2) does. */
static int read_block(struct krait_memory_block *block, uint64_t addr)
{
    size_t size = KRAIT_MAX(sizeof(block->bytes) - addr % sizeof(block->bytes), sizeof(uint64_t));
    struct iovec here = { block->bytes, size };
    struct iovec there = { (void *)(uintptr_t)addr, size };
    ssize_t n = process_vm_readv(block->pid, &here, 1, &there, 1, 0);
    block->addr = addr;
    block->size = n < 0 ? 0 : (size_t)n;
    return n < 0 ? -errno : 0;
}

static bool has_number(const struct krait_memory_block *block, uint64_t addr)
{
    return block->size >= sizeof(uint64_t) && addr >= block->addr &&
           addr - block->addr <= block->size - sizeof(uint64_t);
}

int krait_memory_near(struct krait_memory_block *block, uint64_t addr, uint64_t *value)
{
    int rc = has_number(block, addr) ? 0 : read_block(block, addr);
    if (rc || !has_number(block, addr))
        return rc ? rc : -EFAULT;
    memcpy(value, block->bytes + (addr - block->addr), sizeof(*value));
    return 0;
}

int krait_memory_pieces(pid_t pid, const struct krait_memory_piece *pieces, size_t count)
{
    int rc = 0;
    for (size_t i = 0; i < count && !rc; i += PIECES_MAX)
        rc = read_some(pid, pieces + i, KRAIT_MIN(count - i, (size_t)PIECES_MAX));
    return rc;
}
