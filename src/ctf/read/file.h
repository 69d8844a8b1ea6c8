/* SPDX-License-Identifier: Apache-2.0
 *
 * Stream files in memory: mapped where huge pages can be, with readable pages behind them.
 */
#ifndef KRAIT_CTF_READ_FILE_H
#define KRAIT_CTF_READ_FILE_H

#include "ctf/read/stream.h"

/* Maps the file at file->path; an empty one has no bytes. Errors: as open(2) and mmap(2). */
int krait_ctf_map(struct krait_ctf_file *file, struct krait_err *err);
void krait_ctf_unmap(struct krait_ctf_file *file);

/* Lets go of the file's pages from byte `from` up to `to`: who reads a trace once needs few of them at a
 * time. They come back, from the page cache, when they are read again. */
void krait_ctf_let_go(const struct krait_ctf_file *file, uint64_t from, uint64_t to);

#endif
