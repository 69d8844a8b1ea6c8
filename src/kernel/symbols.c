/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/symbols.h"

#include "base/array.h"
#include "base/buf.h"

#include <fnmatch.h>
#include <string.h>

#define KALLSYMS "/proc/kallsyms"

static int append(struct krait_kernel_symbols *symbols, uint64_t address, const char *name)
{
    const char *kept = krait_arena_strdup(&symbols->names, name);
    if (!kept || !KRAIT_GROW(symbols->items, symbols->cap, symbols->count + 1))
        return -ENOMEM;
    symbols->items[symbols->count++] = (struct krait_kernel_symbol){ address, kept };
    return 0;
}

/* "ffffffff81234560 T vfs_read", for a module's with "\t[ext4]" behind. */
int krait_kernel_symbols_add(struct krait_kernel_symbols *symbols, char *text, const char *glob)
{
    char *save = NULL;
    int rc = 0;
    for (char *line = strtok_r(text, "\n", &save); line && !rc; line = strtok_r(NULL, "\n", &save)) {
        unsigned long long address;
        char type, name[512];
        if (sscanf(line, "%llx %c %511s", &address, &type, name) == 3 && strchr("tTwW", type) &&
            !strchr(name, '"') && fnmatch(glob, name, 0) == 0)
            rc = append(symbols, address, name);
    }
    return rc;
}

int krait_kernel_symbols_load(struct krait_kernel_symbols *symbols, const char *glob, struct krait_err *err)
{
    KRAIT_AUTO_BUF text = { 0 };
    int rc = krait_buf_read_file(&text, KALLSYMS);
    if (rc || !text.data)
        return krait_err_set(err, rc ? rc : -ENOENT, "cannot read " KALLSYMS);
    rc = krait_kernel_symbols_add(symbols, text.data, glob);
    if (rc)
        return krait_err_set(err, rc, "out of memory");
    if (!symbols->count)
        return krait_err_set(err, -ENOENT, "this kernel has no function that matches '%s'", glob);
    if (!symbols->items[0].address)
        return krait_err_set(err, -EPERM,
                             KALLSYMS " does not tell addresses; sudo sysctl kernel.kptr_restrict=1");
    return 0;
}

void krait_kernel_symbols_done(struct krait_kernel_symbols *symbols)
{
    free(symbols->items);
    krait_arena_done(&symbols->names);
}
