/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the calls lead that one file of the program makes to functions of other files.
 */
#ifndef KRAIT_PYTHON_GOT_H
#define KRAIT_PYTHON_GOT_H

#include <stddef.h>

struct krait_got_call {
    const char *name; /* of the function that is called */
    void *ours;       /* what is called from now on */
};

/* Leads all calls of `calls` in the file (the executable or a shared library) in which `address` lies to ours: all of
 * them, or, where one is not called by way of the global offset table or the table cannot be written, none. Other
 * files call what they called before. One thread at a time: it makes pages read-only again. Returns 0 or -ENOENT. */
int krait_got_lead(const void *address, const struct krait_got_call *calls, size_t count);

#endif
