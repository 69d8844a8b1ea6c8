/* SPDX-License-Identifier: Apache-2.0
 *
 * Stream files in memory: mapped where huge pages can be, with readable pages behind them.
 */
#ifndef KRAIT_CTF_READ_FILE_H
#define KRAIT_CTF_READ_FILE_H

#include "ctf/read/reader.h"

/* Maps the file at file->path; an empty one has no bytes. Errors: as open(2) and mmap(2). */
int krait_ctf_map(struct krait_ctf_file *file, struct krait_err *err);
void krait_ctf_unmap(struct krait_ctf_file *file);

#endif
