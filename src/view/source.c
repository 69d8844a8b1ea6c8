/* SPDX-License-Identifier: Apache-2.0 */
#include "view/source.h"

#include <fcntl.h>
#include <string.h>

enum { SOURCE_MAX = 4 << 20 };

int krait_source_file(const char *path, size_t most, struct krait_buf *out, struct stat *of)
{
    char part[16384];
    KRAIT_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, of) ? -errno : !S_ISREG(of->st_mode) ? -EINVAL : 0;
    ssize_t n = 0;
    while (!rc && (n = read(fd, part, sizeof(part))) > 0) {
        krait_buf_add(out, part, (size_t)n);
        rc = out->len > most ? -EFBIG : out->failed ? -ENOMEM : 0;
    }
    return rc ? rc : n < 0 ? -errno : 0;
}

static bool is_python(const char *path, const struct krait_buf *text)
{
    const char *end = strrchr(path, '.');
    if (end && (strcmp(end, ".py") == 0 || strcmp(end, ".pyw") == 0))
        return true;
    const char *line_end = text->len ? memchr(text->data, '\n', text->len) : NULL;
    size_t n = line_end ? (size_t)(line_end - text->data) : text->len;
    return n > 2 && memcmp(text->data, "#!", 2) == 0 && memmem(text->data, n, "python", 6);
}

int krait_source_read(struct krait_source *source, const struct krait_trace *trace,
                      const struct krait_func *func, struct krait_err *err)
{
    struct stat of = { 0 };
    if (func->kind != KRAIT_FUNC_PYTHON || *func->file != '/')
        return krait_err_set(err, -ENOENT, "the recording names no source file of this function");
    int rc = krait_source_file(func->file, SOURCE_MAX, &source->text, &of);
    if (rc == -ENOMEM)
        return krait_err_set(err, rc, "out of memory");
    if (rc)
        return krait_err_set(err, -ENOENT, "cannot read %s: %s", func->file, strerror(-rc));
    if (!is_python(func->file, &source->text))
        return krait_err_set(err, -ENOENT, "%s is not a Python source file", func->file);
    uint64_t changed_ns = (uint64_t)of.st_mtim.tv_sec * KRAIT_NS_PER_S + (uint64_t)of.st_mtim.tv_nsec;
    source->changed = changed_ns > trace->end_ns;
    return 0;
}

void krait_source_done(struct krait_source *source)
{
    krait_buf_done(&source->text);
}

uint32_t krait_source_lines(const struct krait_source *source, uint32_t first, uint32_t count,
                            void (*fn)(void *ctx, uint32_t line, const char *text, size_t n), void *ctx)
{
    const char *at = source->text.data, *end = at + source->text.len;
    uint32_t after = 0;
    for (uint32_t line = 1; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        if (line >= first && line - first < count)
            fn(ctx, line, at, (size_t)(stop - at));
        else
            after += line >= first;
        at = stop + 1;
    }
    return after;
}
