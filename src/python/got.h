/* SPDX-License-Identifier: Apache-2.0
 *
 * Redirects the calls that one file of the program makes to functions of other files.
 */
#ifndef KRAIT_PYTHON_GOT_H
#define KRAIT_PYTHON_GOT_H

#include <stddef.h>

struct krait_got_call {
    const char *name; /* of the function that is called */
    void *ours;       /* what to call instead */
};

/* Redirects all functions of `calls` in the file (the executable or a shared library) that contains `address`; or none
 * if one of them is not called through the global offset table, or the table cannot be written. Other files are not
 * changed. One thread at a time, because it makes pages read-only again. Returns 0 or -ENOENT. */
int krait_got_redirect(const void *address, const struct krait_got_call *calls, size_t count);

#endif
