/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded, lets one allocation of a program fail: KRAIT_TEST_FAIL_ALLOC says which, 1 for the first. Without it, and
 * at the exit, prints on stderr how many there were, as "allocations: N".
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* glibc's own (malloc/malloc.c). */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

static unsigned long counted, failing;

__attribute__((constructor)) static void begin(void)
{
    const char *which = getenv("KRAIT_TEST_FAIL_ALLOC");
    failing = which ? strtoul(which, NULL, 10) : 0;
    counted = 0;
}

__attribute__((destructor)) static void end(void)
{
    if (!failing)
        fprintf(stderr, "allocations: %lu\n", counted);
}

static bool fails(void)
{
    bool is_it = ++counted == failing;
    errno = is_it ? ENOMEM : errno;
    return is_it;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    return fails() ? NULL : __libc_realloc(memory, size);
}
