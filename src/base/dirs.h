/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole folders: they are removed, and put into one archive.
 */
#ifndef KRAIT_BASE_DIRS_H
#define KRAIT_BASE_DIRS_H

#include "base/buf.h"
#include "base/err.h"

/* Removes a folder with all in it, as far as that can be. Follows no links. */
void krait_dir_remove(const char *path);

/* Makes the folders that a file's path names, as far as that can be; they are the user's alone. */
void krait_dir_make_for(const char *path);

/* Appends an archive of a folder (POSIX 1003.1-2008, pax: "ustar Interchange Format") whose files and folders are named
 * from below `path` on. Links and devices are left out. `goes_on` is asked after each part of a file of `bytes`; false
 * ends it. Returns 0, or a negative errno with err set: -ECANCELED, -ENAMETOOLONG, -EFBIG of a file of 8 GiB, -ENOMEM
 * and those of reading. */
int krait_dir_tar(struct krait_buf *out, const char *path, bool (*goes_on)(void *ctx, uint64_t bytes),
                  void *ctx, struct krait_err *err);

#endif
