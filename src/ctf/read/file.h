/* SPDX-License-Identifier: Apache-2.0
 *
 * Stream files in memory: mapped where huge pages can be, with readable pages behind them.
 */
#ifndef KRAIT_CTF_READ_FILE_H
#define KRAIT_CTF_READ_FILE_H

#include "ctf/read/stream.h"

/* A file of this many bytes or more is mapped at a multiple of them. The page cache may hold it in pieces of
 * this size, of which each is then mapped at once: half of what reading memory costs are page faults (Linux:
 * mm/filemap.c, filemap_map_pmd). */
enum { KRAIT_CTF_HUGE_PAGE = 2 << 20 };

/* Maps the file at file->path; an empty one has no bytes. Errors: as open(2) and mmap(2). */
int krait_ctf_map(struct krait_ctf_file *file, struct krait_err *err);
void krait_ctf_unmap(struct krait_ctf_file *file);

/* Lets go of the file's pages from byte `from` up to `to`: who reads a trace once needs few of them at a
 * time. They come back, from the page cache, when they are read again. */
void krait_ctf_let_go(const struct krait_ctf_file *file, uint64_t from, uint64_t to);

/* From here on small pages of the file are mapped; a wish, which kernels before 6.12 may not grant. */
void krait_ctf_map_small(const struct krait_ctf_file *file);

/* Of who goes forward through files: what was not let go of yet. */
struct krait_ctf_way {
    const struct krait_ctf_file *file; /* NULL: nothing */
    uint64_t from;                     /* byte */
};

enum { KRAIT_CTF_WAY_HOLDS = 4 << 20 }; /* bytes, of one who goes alone */

/* To a byte that is not read yet: lets go of the pages before it when there are `holds` bytes of them or more. */
void krait_ctf_way_to(struct krait_ctf_way *way, const struct krait_ctf_file *file, uint64_t offset,
                      uint64_t holds);
void krait_ctf_way_done(struct krait_ctf_way *way);

#endif
