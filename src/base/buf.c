/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

void krait_buf_done(struct krait_buf *buf)
{
    if (!buf->borrowed)
        free(buf->data);
    *buf = (struct krait_buf){ 0 };
}

void krait_buf_clear(struct krait_buf *buf)
{
    buf->len = 0;
    if (buf->data)
        buf->data[0] = '\0';
}

char *krait_buf_room(struct krait_buf *buf, size_t n)
{
    if (buf->failed)
        return NULL;
    if (buf->cap - buf->len > n)
        return buf->data + buf->len;
    size_t cap = buf->cap ? buf->cap : 64;
    while (cap - buf->len <= n) {
        if (cap > SIZE_MAX / 2)
            goto fail;
        cap *= 2;
    }
    char *data = realloc(buf->borrowed ? NULL : buf->data, cap);
    if (!data)
        goto fail;
    if (buf->borrowed)
        memcpy(data, buf->data, buf->len + 1);
    buf->borrowed = false;
    buf->data = data;
    buf->cap = cap;
    return data + buf->len;
fail:
    buf->failed = true;
    return NULL;
}

void krait_buf_add(struct krait_buf *buf, const void *bytes, size_t n)
{
    char *to = krait_buf_room(buf, n);
    if (!to)
        return;
    if (n)
        memcpy(to, bytes, n);
    buf->len += n;
    buf->data[buf->len] = '\0';
}

void krait_buf_str(struct krait_buf *buf, const char *s)
{
    krait_buf_add(buf, s, strlen(s));
}

void krait_buf_fmt(struct krait_buf *buf, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *to = n < 0 ? NULL : krait_buf_room(buf, (size_t)n);
    if (!to)
        return;
    va_start(ap, fmt);
    vsnprintf(to, (size_t)n + 1, fmt, ap);
    va_end(ap);
    buf->len += (size_t)n;
}

int krait_buf_read_file(struct krait_buf *buf, const char *path)
{
    KRAIT_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    for (;;) {
        char *to = krait_buf_room(buf, 65536);
        if (!to)
            return -ENOMEM;
        ssize_t n = read(fd, to, 65536);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        buf->len += (size_t)n;
        buf->data[buf->len] = '\0';
        if (n == 0)
            return 0;
    }
}
