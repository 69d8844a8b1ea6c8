/* SPDX-License-Identifier: Apache-2.0
 *
 * A folder of CSV files, one for the events of each name. If events of the same name have other fields, in another
 * trace, they go to a file of their own: NAME-2.csv. A file is opened to append what has gathered, then closed, so
 * that thousands of names need no more descriptors than one.
 */
#ifndef KRAIT_CMD_CSV_DIR_H
#define KRAIT_CMD_CSV_DIR_H

#include "base/err.h"
#include "ctf/text/csv_columns.h"

struct krait_csv_file;

/* Zeroed memory is what _done takes. */
struct krait_csv_dir {
    const char *path; /* the caller's; NULL: none is open */
    struct krait_csv_file **files;
    uint32_t count, cap;
    struct krait_map by_class; /* event class to its file */
    struct krait_strtab keys;  /* of columns, in the order of files: ids are their places */
    /* of files, in small letters: there are file systems that tell no cases apart */
    struct krait_strtab names;
    struct krait_map last_numbers; /* by id in `names`: the last number that was put behind it */
};

/* Makes the folder, which must not be there, or be empty. */
int krait_csv_dir_open(struct krait_csv_dir *dir, const char *path, struct krait_err *err);
/* Where the class's lines are appended; the first of a file is there. NULL: out of memory. */
struct krait_buf *krait_csv_dir_of(struct krait_csv_dir *dir, const struct krait_event_class *event);
/* Writes out what has gathered for the class, when it is enough to; all of them, for NULL. */
int krait_csv_dir_flush(struct krait_csv_dir *dir, const struct krait_event_class *event,
                        struct krait_err *err);
void krait_csv_dir_done(struct krait_csv_dir *dir);

#endif
