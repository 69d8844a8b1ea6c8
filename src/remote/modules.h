/* SPDX-License-Identifier: Apache-2.0
 *
 * The files whose code a process runs. krait reads the list of its mappings once, and opens a file when an address in it is met.
 *
 * What is known of an address holds as long as its file is there. Files go without a word (dlclose(3)), and others come to their
 * addresses. So krait compares now and then the first bytes of each opened file in the process's memory with what they were: its
 * headers, and mostly its build ID. Only if they differ, or an address is in no file that is known, it reads the list again.
 */
#ifndef KRAIT_REMOTE_MODULES_H
#define KRAIT_REMOTE_MODULES_H

#include "remote/maps.h"

struct krait_module {
    struct krait_elf elf, debug; /* debug: its symbols, where they are in a file of their own */
    uint64_t moved;              /* the difference between the addresses in memory and in the file */
    uint64_t head;               /* a hash of its first bytes in the process; 0: they cannot be read */
    const char *path;            /* as the process names it; "[vdso]" */
    bool tried, debug_tried;
};

/* All zero but for `pid`: none are known. */
struct krait_modules {
    pid_t pid;
    struct krait_maps maps;
    struct krait_module *items; /* of maps.items */
    struct krait_module vdso;
};

void krait_modules_done(struct krait_modules *modules);

/* Reads the list; `modules` has `pid` alone. Returns 0, or the errors of krait_maps_read. */
int krait_modules_read(struct krait_modules *modules);
/* Whether both lists have the same files at the same addresses. */
bool krait_modules_same(const struct krait_modules *a, const struct krait_modules *b);
/* Whether an address is in the same file, or in none, by both lists. */
bool krait_modules_same_at(const struct krait_modules *a, const struct krait_modules *b, uint64_t pc);
/* Replaces the list by a newer one. Files that are in both stay open. */
void krait_modules_replace(struct krait_modules *modules, struct krait_modules *newer);
/* Whether the process still has the files that were opened. Those that it has no more are the same as none from now on. */
bool krait_modules_check(struct krait_modules *modules);

/* The file that has the code at an address. NULL: none that can be read; or the file there is not that of the list, which is told
 * once. */
struct krait_module *krait_modules_find(struct krait_modules *modules, uint64_t pc);
/* Finds the function at an address, as linked: its begin, and its name in the file, or NULL. */
void krait_module_function(const struct krait_modules *modules, struct krait_module *module, uint64_t address,
                           const char **name, uint64_t *begin);

#endif
