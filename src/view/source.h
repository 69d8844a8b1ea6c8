/* SPDX-License-Identifier: Apache-2.0
 *
 * The source that a recording names, where it is at hand. A trace may name any file: what is no Python source stays
 * where it is.
 */
#ifndef KRAIT_VIEW_SOURCE_H
#define KRAIT_VIEW_SOURCE_H

#include "base/buf.h"
#include "base/err.h"
#include "trace/trace.h"

#include <sys/stat.h>

/* A regular file of at most `most` bytes, whole. Returns 0, -EFBIG, -EINVAL for what is no file, -ENOMEM, or open's. */
int krait_source_file(const char *path, size_t most, struct krait_buf *out, struct stat *of);

struct krait_source {
    struct krait_buf text; /* the file */
    bool changed;          /* it is newer than the trace */
};

/* Reads the file of a function, which may be none. Returns 0, or with err set -ENOENT it cannot be had, -ENOMEM.
 * krait_source_done in any case. */
int krait_source_read(struct krait_source *source, const struct krait_trace *trace,
                      const struct krait_func *func, struct krait_err *err);
void krait_source_done(struct krait_source *source);

/* Hands out `count` lines from number `first` on, counted from 1, without their ends; fewer where the file ends. */
void krait_source_lines(const struct krait_source *source, uint32_t first, uint32_t count,
                        void (*fn)(void *ctx, uint32_t line, const char *text, size_t n), void *ctx);

#endif
