/* SPDX-License-Identifier: Apache-2.0
 *
 * A file of folded stacks: read into a call tree, and drawn.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* memfd_create */
#endif

#include "analysis/calltree.h"
#include "view/flame.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void draw(const struct krait_calltree *tree, const struct krait_trace *trace)
{
    struct krait_flame_options options = KRAIT_FLAME_OPTIONS_DEFAULT;
    struct krait_err err = { 0 };
    struct krait_flame *flame = NULL;
    KRAIT_AUTO_BUF svg = { 0 };
    options.unit = KRAIT_FLAME_CALLS;
    options.measures = KRAIT_FLAME_SAMPLES;
    if (!krait_flame_new(&flame, tree, trace, &err) && !krait_flame_reverse(&flame, &err) &&
        !krait_flame_finish(flame, &options, &err))
        krait_flame_svg(&svg, flame, &options);
    krait_flame_free(flame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct krait_folded_facts facts;
    struct krait_err err = { 0 };
    struct krait_calltree *tree;
    struct krait_trace *trace;
    char path[32];
    int fd = memfd_create("folded", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (!krait_calltree_read_folded(&tree, &trace, path, &facts, &err)) {
        draw(tree, trace);
        krait_calltree_free(tree);
        krait_trace_close(trace);
    }
    close(fd);
    return 0;
}
