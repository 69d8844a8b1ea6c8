/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of Python, the same in all versions: Include/object.h, Include/cpython/unicodeobject.h. Without Python.h, for this process
 * (running.h) and for others (layout.h).
 */
#ifndef KRAIT_PYTHON_COMPAT_UNICODE_H
#define KRAIT_PYTHON_COMPAT_UNICODE_H

#include "base/base.h"

/* Offsets, in bytes. */
enum {
    KRAIT_OBJECT_SIZE = 16, /* how many parts an object has; of a text, its length in characters */
    KRAIT_TEXT_STATE = 32,
};

/* What the state says. */
static inline unsigned krait_text_kind(uint64_t state) /* bytes of a character: 1, 2 or 4 */
{
    return state >> 2 & 7;
}

static inline bool krait_text_is_compact(uint64_t state)
{
    return state >> 5 & 1;
}

static inline bool krait_text_is_ascii(uint64_t state)
{
    return state >> 6 & 1;
}

#endif
