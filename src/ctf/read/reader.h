/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads CTF traces: finds them in folders, maps their files, indexes their packets, and hands out events,
 * stream by stream or in the order of time.
 *
 * Files are mapped, and never read beyond the size they had when they were opened. A file that another
 * process makes shorter meanwhile ends the reading process with SIGBUS, as with every mapped file: read
 * copies of what is still cut.
 *
 * Half a packet at the end of a file that krait is recording into (base/growing.h) is not there yet. Else it
 * is damage.
 *
 * Damage ends the stream it is in, not the reading: what is intact is handed out, then the reason (file, offset, why).
 */
#ifndef KRAIT_CTF_READ_READER_H
#define KRAIT_CTF_READ_READER_H

#include "ctf/read/stream.h"

/* Opens the traces in the folders: a folder with a file `metadata`, else all such below it. Errors: -ENOENT
 * no trace there; what krait_ctf_metadata_open returns. *out is then untouched. Damaged files do not fail it,
 * nor does it that options->wants leaves no trace.
 */
int krait_ctf_open(struct krait_ctf_reader **out, const char *const *paths, size_t count,
                   const struct krait_ctf_options *options, struct krait_err *err);
void krait_ctf_close(struct krait_ctf_reader *reader);

#endif
