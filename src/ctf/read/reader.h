/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads CTF traces: finds them in folders, maps their files, lists their packets, and hands out events, stream by
 * stream or in the order of time.
 *
 * Files are mapped, and never read beyond the size that they had when they were opened. If another process truncates a
 * file meanwhile, the reading process gets SIGBUS, as with every mapped file. Read a copy of a trace that another
 * process may still truncate.
 *
 * Half a packet at the end of a file is damage, unless krait is still recording into the file (base/growing.h): then
 * the packet is not there yet.
 *
 * Damage ends the stream that it is in, not the reading: what is intact is handed out, then the reason (file, offset,
 * why).
 */
#ifndef KRAIT_CTF_READ_READER_H
#define KRAIT_CTF_READ_READER_H

#include "ctf/read/stream.h"

/* Opens the traces in the folders: each folder itself if it has a file `metadata`, else all such folders below it.
 * Errors: -ENOENT there is no trace; those of krait_ctf_metadata_open. *out is then untouched. Damaged files are no
 * error, nor is it if options->wants accepts no trace. */
int krait_ctf_open(struct krait_ctf_reader **out, const char *const *paths, size_t count,
                   const struct krait_ctf_options *options, struct krait_err *err);
void krait_ctf_close(struct krait_ctf_reader *reader);

#endif
