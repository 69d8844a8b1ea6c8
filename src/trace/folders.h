/* SPDX-License-Identifier: Apache-2.0
 *
 * Which folders are traces. Only this file looks for them. A path names the folder of a trace, or a folder with
 * traces below it, as deep as `krait record` and LTTng put them:
 *
 *   recording/                      one recording of krait's: a folder for each process, one for the kernel
 *     python3-4711-0/metadata
 *     kernel/metadata
 *   session/                        one session of LTTng's
 *     kernel/metadata
 *     ust/uid/1000/64-bit/metadata
 *
 * If a folder holds several recordings of krait's, it is refused and the error names them, because together they are
 * not one trace. ctf/read/find.h decides which folders are traces. Here each is taken once, even if several paths
 * lead to it, and its metadata is read.
 */
#ifndef KRAIT_TRACE_FOLDERS_H
#define KRAIT_TRACE_FOLDERS_H

#include "ctf/meta/metadata.h"

#include <sys/stat.h>

struct krait_folder {
    char *dir;
    struct krait_ctf_metadata *metadata; /* NULL: it cannot be read, */
    struct krait_err err;                /* and this is why */
    uint32_t path;                       /* below which of the given paths it lies */
    dev_t dev;
    ino_t ino;
};

struct krait_folders {
    struct krait_folder *items; /* paths in the order given; below one path by name */
    uint32_t count, cap;
};

/* Finds the traces and reads their metadata into `folders`, which is zeroed; _done in either case. Errors,
 * with err set: -ENOENT no such path; -EINVAL no trace in it, or several recordings; -ENOMEM. Metadata that
 * cannot be read does not fail it. */
int krait_folders_find(struct krait_folders *folders, const char *const *paths, size_t count,
                       struct krait_err *err);
void krait_folders_done(struct krait_folders *folders);

/* Two numbers that are others once a file below the paths is another, by its name, its size or its time. Files of krait's
 * own beside a recording (.krait-...) do not count. Returns 0 or a negative errno. */
int krait_folders_identity(const char *const *paths, size_t count, uint64_t identity[2]);

/* Which of the paths a trace's folder lies below: the last one that contains it, or is it; 0 if none does. */
uint32_t krait_folders_path_of(const char *const *paths, size_t count, const char *dir);

/* What the metadata says of who recorded it: "krait", "lttng-ust", ...; "" where it does not. */
const char *krait_folder_tracer(const struct krait_folder *folder);
/* Whether a recording of krait's lies there: a process's part, or the kernel's. */
bool krait_folder_is_kraits(const struct krait_folder *folder);

#endif
