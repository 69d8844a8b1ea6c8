/* SPDX-License-Identifier: Apache-2.0
 *
 * What every file of krait may use: cleanup attributes, branch hints, sizes.
 */
#ifndef KRAIT_BASE_BASE_H
#define KRAIT_BASE_BASE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KRAIT_LIKELY(x)                  __builtin_expect(!!(x), 1)
#define KRAIT_UNLIKELY(x)                __builtin_expect(!!(x), 0)
#define KRAIT_PRINTF(f, a)               __attribute__((format(printf, f, a)))
#define KRAIT_PUBLIC                     __attribute__((visibility("default")))
#define KRAIT_COLD                       __attribute__((cold, noinline))
#define KRAIT_APART                      __attribute__((noinline)) /* not on the hot path, but not rare either */
#define KRAIT_ARRAY_LEN(a)               (sizeof(a) / sizeof((a)[0]))
#define KRAIT_MIN(a, b)                  ((a) < (b) ? (a) : (b))
#define KRAIT_MAX(a, b)                  ((a) > (b) ? (a) : (b))
#define KRAIT_CONTAINER(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))

#define KRAIT_NS_PER_S  1000000000ull
#define KRAIT_NS_PER_MS 1000000ull
#define KRAIT_NS_PER_US 1000ull

/* KRAIT_CLEANUP(f) T x: f(&x) runs when x leaves its scope. */
#define KRAIT_CLEANUP(f) __attribute__((cleanup(f)))

static inline void krait_free_ptr(void *p)
{
    free(*(void **)p);
}

static inline void krait_close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static inline void krait_close_file(FILE **f)
{
    if (*f)
        fclose(*f);
}

/* n bytes of text and a NUL into `to`, which has `size`. False, and nothing is changed, where they do not fit. */
static inline bool krait_copy_text(char *to, size_t size, const char *from, size_t n)
{
    if (n >= size)
        return false;
    memcpy(to, from, n);
    to[n] = '\0';
    return true;
}

#define KRAIT_AUTO_FREE  KRAIT_CLEANUP(krait_free_ptr)
#define KRAIT_AUTO_CLOSE KRAIT_CLEANUP(krait_close_fd)
#define KRAIT_AUTO_FILE  KRAIT_CLEANUP(krait_close_file)

#endif
