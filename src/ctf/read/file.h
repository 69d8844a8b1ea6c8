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

/* Of who goes from one packet's head to another's: what was not let go of yet. */
struct krait_ctf_way {
    const struct krait_ctf_file *file; /* NULL: nothing */
    uint64_t from;                     /* byte */
};

/* To a head, which is not read yet: lets go of pages before it when there are many. */
void krait_ctf_way_to(struct krait_ctf_way *way, const struct krait_ctf_file *file, uint64_t offset);
void krait_ctf_way_done(struct krait_ctf_way *way);

#endif
