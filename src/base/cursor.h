/* SPDX-License-Identifier: Apache-2.0
 *
 * A view of bytes that are read from the front: each read moves `at` towards `end`. It owns nothing.
 */
#ifndef KRAIT_BASE_CURSOR_H
#define KRAIT_BASE_CURSOR_H

#include "base/base.h"

#include <string.h>

struct krait_cursor {
    const uint8_t *at;
    const uint8_t *end;
};

/* Reads the next n bytes. Returns false and reads nothing if there are fewer. hot path */
static inline bool krait_read_bytes(struct krait_cursor *cursor, void *to, size_t n)
{
    if (KRAIT_UNLIKELY((size_t)(cursor->end - cursor->at) < n))
        return false;
    memcpy(to, cursor->at, n);
    cursor->at += n;
    return true;
}

/* The text up to the next NUL, without a copy. Returns false if there is no NUL. */
static inline bool krait_read_text(struct krait_cursor *cursor, const char **to)
{
    const uint8_t *nul = memchr(cursor->at, 0, (size_t)(cursor->end - cursor->at));
    if (!nul)
        return false;
    *to = (const char *)cursor->at;
    cursor->at = nul + 1;
    return true;
}

#endif
