/* SPDX-License-Identifier: Apache-2.0
 *
 * What --args says: which arguments of which functions are recorded.
 *
 *   shop.Cart.add(item, self.owner, token!h) -> return!r
 *   └── glob ───┘ └── arguments, and what hangs on them ┘
 *
 * Blanks count nowhere, and neither do one or two stars before an argument. The glob is as for --include. !r asks for the
 * program's own __repr__, !h for a hash instead of the value.
 */
#ifndef KRAIT_BASE_ARGSPEC_H
#define KRAIT_BASE_ARGSPEC_H

#include "base/err.h"

enum { KRAIT_ARGSPEC_ITEMS = 16, KRAIT_ARGSPEC_GLOB = 256, KRAIT_ARGSPEC_PATH = 128 };

enum krait_argspec_how {
    KRAIT_ARGSPEC_PLAIN, /* values of builtin types; of others the type */
    KRAIT_ARGSPEC_REPR,
    KRAIT_ARGSPEC_HASH,
};

struct krait_argspec {
    char glob[KRAIT_ARGSPEC_GLOB];
    uint32_t count;
    bool has_result; /* the last item is "return" */
    struct krait_argspec_item {
        char path[KRAIT_ARGSPEC_PATH]; /* name, name.attr.attr */
        enum krait_argspec_how how;
    } items[KRAIT_ARGSPEC_ITEMS];
};

/* Returns -EINVAL, with err saying where, for what is no such text. */
int krait_argspec_read(struct krait_argspec *out, const char *text, struct krait_err *err);

#endif
