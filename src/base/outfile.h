/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that appears whole or not at all. krait writes to an unnamed file in the target's folder and gives it the
 * target's name when it is complete. So neither a full disk nor a kill leaves half a file, and only a complete file
 * replaces an older one. A kill can leave a file TARGET.krait-PID-N in two cases: while krait replaces an older file, and
 * where the file system has no unnamed files, so that krait writes to one of that name. The next writer does not remove
 * it: a process with this PID may still write it on another machine or in another container.
 *
 * "-" is standard output; krait writes to pipes, terminals and devices directly.
 *
 * Writers append to `buf` and call krait_outfile_spill now and then. Failures stick, so that only the commit must be
 * checked. A long writer also checks the result of spill, to stop early.
 */
#ifndef KRAIT_BASE_OUTFILE_H
#define KRAIT_BASE_OUTFILE_H

#include "base/buf.h"
#include "base/err.h"

struct krait_outfile {
    struct krait_buf buf; /* what is not written yet */
    int fd;
    int error;      /* the first failure, a negative errno */
    uint64_t bytes; /* written already */
    char *path;     /* as the user named it */
    char *target;   /* the file to replace, symbolic links resolved; NULL when written directly */
    char *tmp;      /* name of the temporary file while it has one */
};

/* A value that krait_outfile_done accepts before _open. */
#define KRAIT_OUTFILE_INIT \
    {                      \
        .fd = -1           \
    }

/* Errors name the path and say what is wrong with it. */
int krait_outfile_open(struct krait_outfile *out, const char *path, struct krait_err *err);
/* Writes out `buf` when it has grown over 256 KiB. Returns 0 or the first failure. */
int krait_outfile_spill(struct krait_outfile *out);
/* Writes the rest and gives the file its name. The file does not exist before that. */
int krait_outfile_commit(struct krait_outfile *out, struct krait_err *err);
/* Frees everything. Without a commit before, it leaves no file behind. */
void krait_outfile_done(struct krait_outfile *out);

#define KRAIT_AUTO_OUTFILE KRAIT_CLEANUP(krait_outfile_done) struct krait_outfile

#endif
