/* SPDX-License-Identifier: Apache-2.0
 *
 * A mapped file ends within a page, and what is read behind its end is 0 and no crash: here the address
 * sanitizer is told where it ends. Linked with --wrap=mmap,--wrap=munmap.
 */
#include <sanitizer/asan_interface.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

void *__real_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t size);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t size);

void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
    char *p = __real_mmap(at, size, prot, flags, fd, offset);
    if (p != MAP_FAILED && fd >= 0)
        __asan_poison_memory_region(p + size, -size % PAGE);
    return p;
}

int __wrap_munmap(void *at, size_t size)
{
    __asan_unpoison_memory_region(at, size + -size % PAGE);
    return __real_munmap(at, size);
}
