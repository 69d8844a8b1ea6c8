/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that the package krait puts around decorated ones. Their file's name begins with KRAIT_OWN_FILE.
 */
#ifndef KRAIT_EVENT_OWN_H
#define KRAIT_EVENT_OWN_H

#include "base/base.h"

/* Whether a function of this file is one of these. */
bool krait_own_file(const char *file);

/* The function that one of these stands before. */
struct krait_own_before {
    const char *module, *qualname, *file;
};

/* Reads it from such a file's name: from a copy, which is changed, and has to stay. False: it does not tell. */
bool krait_own_read(char *file, struct krait_own_before *before);

#endif
