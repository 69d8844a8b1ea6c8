/* SPDX-License-Identifier: Apache-2.0
 *
 * Stream files in memory: mapped so that huge pages are possible, with readable pages after the file's end.
 */
#ifndef KRAIT_CTF_READ_FILE_H
#define KRAIT_CTF_READ_FILE_H

#include "ctf/read/stream.h"

/* A file of at least this size is mapped at a multiple of it. The page cache may hold the file in pieces of this size,
 * and the kernel then maps each of them at once. Page faults are half of the cost of reading memory (Linux:
 * mm/filemap.c, filemap_map_pmd). */
enum { KRAIT_CTF_HUGE_PAGE = 2 << 20 };

/* Maps the file at file->path; an empty one has no bytes. Errors: as open(2) and mmap(2). */
int krait_ctf_map(struct krait_ctf_file *file, struct krait_err *err);
void krait_ctf_unmap(struct krait_ctf_file *file);

/* Unmaps the file's pages from byte `from` up to `to`: reading a trace once needs few of them at a time. They are
 * mapped again, from the page cache, when they are read again. */
void krait_ctf_let_go(const struct krait_ctf_file *file, uint64_t from, uint64_t to);

/* Asks the kernel to map small pages of the file from now on. Kernels before 6.12 may ignore it. */
void krait_ctf_map_small(const struct krait_ctf_file *file);

/* For a reader that moves forward through files: what it has not unmapped yet. */
struct krait_ctf_way {
    const struct krait_ctf_file *file; /* NULL: nothing */
    uint64_t from;                     /* byte */
};

enum { KRAIT_CTF_WAY_HOLDS = 4 << 20 }; /* bytes, for a single reader */

/* Moves to a byte that was not read yet. Unmaps the pages before it if they have at least `holds` bytes. */
void krait_ctf_way_to(struct krait_ctf_way *way, const struct krait_ctf_file *file, uint64_t offset,
                      uint64_t holds);
void krait_ctf_way_done(struct krait_ctf_way *way);

#endif
