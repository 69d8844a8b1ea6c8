/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing byte string. Failure sticks: after an allocation failed, appends do nothing and `failed` stays
 * set, so that a writer appends freely and checks once at the end. `data` is always NUL-terminated once
 * anything was appended.
 */
#ifndef KRAIT_BASE_BUF_H
#define KRAIT_BASE_BUF_H

#include "base/base.h"

struct krait_buf {
    char *data; /* owned unless `borrowed`; NULL while empty */
    size_t len; /* bytes, without the NUL */
    size_t cap;
    bool failed;
    bool borrowed; /* the memory is the caller's, until more is needed */
};

/* An empty one in an array of the caller's, most often on the stack: what fits there needs no allocation. The array lives
 * as long as the buffer. */
#define KRAIT_BUF_IN(array)                                                          \
    {                                                                                \
        .data = ((array)[0] = '\0', (array)), .cap = sizeof(array), .borrowed = true \
    }

void krait_buf_done(struct krait_buf *buf);
void krait_buf_clear(struct krait_buf *buf); /* keeps the memory */

/* Makes room for n more bytes and a NUL. Returns where to write them, or NULL (then `failed` is set). The caller
 * advances `len`. */
char *krait_buf_room(struct krait_buf *buf, size_t n);

void krait_buf_add(struct krait_buf *buf, const void *bytes, size_t n);
void krait_buf_str(struct krait_buf *buf, const char *s);
static inline void krait_buf_char(struct krait_buf *buf, char c)
{
    char *to = !buf->failed && buf->cap - buf->len > 1 ? buf->data + buf->len : krait_buf_room(buf, 1);
    if (!to)
        return;
    to[0] = c;
    to[1] = '\0';
    buf->len++;
}
void krait_buf_fmt(struct krait_buf *buf, const char *fmt, ...) KRAIT_PRINTF(2, 3);

/* Reads a whole file into buf. Returns 0 or a negative errno. */
int krait_buf_read_file(struct krait_buf *buf, const char *path);

#define KRAIT_AUTO_BUF KRAIT_CLEANUP(krait_buf_done) struct krait_buf

#endif
