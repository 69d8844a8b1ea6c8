/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the kernel's functions whose names match a pattern, in /proc/kallsyms.
 */
#ifndef KRAIT_KERNEL_SYMBOLS_H
#define KRAIT_KERNEL_SYMBOLS_H

#include "base/arena.h"
#include "base/err.h"

struct krait_kernel_symbol {
    uint64_t address;
    const char *name;
};

/* In the order of the file. Zeroed memory has none. */
struct krait_kernel_symbols {
    struct krait_kernel_symbol *items;
    size_t count, cap;
    struct krait_arena names;
};

/* Adds what matches `glob` (fnmatch) of a text in the form of /proc/kallsyms. Returns 0 or -ENOMEM. */
int krait_kernel_symbols_add(struct krait_kernel_symbols *symbols, char *text, const char *glob);
/* Reads /proc/kallsyms. -ENOENT: nothing matches; -EPERM: this user is not told the addresses. */
int krait_kernel_symbols_load(struct krait_kernel_symbols *symbols, const char *glob, struct krait_err *err);
void krait_kernel_symbols_done(struct krait_kernel_symbols *symbols);

#endif
