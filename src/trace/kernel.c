/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel.h"

#include "trace/importer.h"

#include <string.h>

struct kernel {
    const char **dirs;
    uint32_t count;
    struct krait_kevs *kevs; /* NULL until they are asked for */
};

bool krait_kernel_takes(const struct krait_folder *folder)
{
    const struct krait_ctf_metadata *metadata = folder->metadata;
    return metadata &&
           (strcmp(krait_ctf_env_text(metadata, "domain", ""), "kernel") == 0 || krait_kevs_takes(metadata));
}

int krait_trace_kernel(const struct krait_trace *trace, struct krait_kevs **out, struct krait_err *err)
{
    struct kernel *kernel = trace->impl->source[KRAIT_IMPORTER_kernel];
    if (!kernel)
        return krait_err_set(err, -ENODATA, "nothing was recorded in the kernel");
    int rc = kernel->kevs ? 0 : krait_kevs_open(&kernel->kevs, kernel->dirs, kernel->count, err);
    if (!rc)
        *out = kernel->kevs;
    return rc;
}

int64_t krait_kernel_first(const struct krait_trace *trace)
{
    struct krait_kevs *kevs = NULL;
    struct krait_err ignored;
    bool is_there = trace->has_kernel && krait_trace_kernel(trace, &kevs, &ignored) == 0;
    return is_there ? krait_kevs_first(kevs) : INT64_MAX;
}

static int open_kernel(struct krait_trace *trace, struct krait_folder *const *folders, uint32_t count,
                       struct krait_err *err)
{
    struct krait_arena *arena = &trace->impl->arena;
    struct kernel *kernel = krait_arena_alloc(arena, sizeof(*kernel));
    const char **dirs = krait_arena_alloc(arena, count * sizeof(*dirs));
    if (!kernel || !dirs)
        return krait_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        dirs[i] = krait_arena_strdup(arena, folders[i]->dir);
        if (!dirs[i])
            return krait_err_set(err, -ENOMEM, "out of memory");
    }
    *kernel = (struct kernel){ .dirs = dirs, .count = count };
    trace->impl->source[KRAIT_IMPORTER_kernel] = kernel;
    trace->has_kernel = true;
    return 0;
}

static void close_kernel(void *source)
{
    const struct kernel *kernel = source;
    krait_kevs_close(kernel->kevs);
}

const struct krait_importer krait_importer_kernel = { .takes = krait_kernel_takes,
                                                      .open = open_kernel,
                                                      .close = close_kernel };
