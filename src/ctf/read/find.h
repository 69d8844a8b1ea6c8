/* SPDX-License-Identifier: Apache-2.0
 *
 * Which folders are traces, which files are streams.
 */
#ifndef KRAIT_CTF_READ_FIND_H
#define KRAIT_CTF_READ_FIND_H

#include "base/buf.h"
#include "base/err.h"

struct krait_names {
    char **list; /* owned */
    size_t count, cap;
};

void krait_names_done(struct krait_names *names);

/* Appends the folder itself if it has a file `metadata`, else all such folders below it, sorted by name.
 * -ENOENT: none. */
int krait_find_traces(struct krait_names *traces, const char *path, struct krait_err *err);

/* Appends the paths of a trace's stream files: all regular files but `metadata` and hidden ones, sorted by name. */
int krait_find_streams(struct krait_names *files, const char *dir, struct krait_err *err);

#endif
