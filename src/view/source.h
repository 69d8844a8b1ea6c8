/* SPDX-License-Identifier: Apache-2.0
 *
 * The source files that a recording names, if they can be read. A trace may name any file, so krait reads only Python
 * source files.
 */
#ifndef KRAIT_VIEW_SOURCE_H
#define KRAIT_VIEW_SOURCE_H

#include "base/buf.h"
#include "base/err.h"
#include "trace/trace.h"

#include <sys/stat.h>

/* Reads a whole regular file of at most `most` bytes. Returns 0, -EFBIG, -EINVAL if it is not a regular file,
 * -ENOMEM, or an error of open(2). */
int krait_source_file(const char *path, size_t most, struct krait_buf *out, struct stat *of);

struct krait_source {
    struct krait_buf text; /* the file */
    bool changed;          /* the file is newer than the trace */
};

/* Reads the file of a function, if it has one. Returns 0, or with err set -ENOENT the file cannot be read, -ENOMEM.
 * Call krait_source_done in any case. */
int krait_source_read(struct krait_source *source, const struct krait_trace *trace,
                      const struct krait_func *func, struct krait_err *err);
void krait_source_done(struct krait_source *source);

/* Calls back for `count` lines from line `first` on, counted from 1, without line ends; fewer if the file ends. Returns how many
 * lines the file has after those. */
uint32_t krait_source_lines(const struct krait_source *source, uint32_t first, uint32_t count,
                            void (*fn)(void *ctx, uint32_t line, const char *text, size_t n), void *ctx);

#endif
