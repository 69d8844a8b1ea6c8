/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens and parses the file `metadata` of a trace.
 */
#ifndef KRAIT_CTF_META_OPEN_H
#define KRAIT_CTF_META_OPEN_H

#include "ctf/meta/metadata.h"

/* Reads DIR/metadata, of CTF 1.8 or 2, as plain text or packets of either byte order. Errors: -ENOENT there is no such
 * file; -EBADMSG it is damaged (err names file, line or byte, and reason); -ENOTSUP it needs something that krait does
 * not read (other versions, extensions, integers of more than 64 bits); -ENOMEM. *out is then untouched. */
int krait_ctf_metadata_open(struct krait_ctf_metadata **out, const char *dir, struct krait_err *err);

/* The same from the file's bytes; `dir` only names the trace in messages. */
int krait_ctf_metadata_parse(struct krait_ctf_metadata **out, const char *dir, const void *bytes, size_t size,
                             struct krait_err *err);

void krait_ctf_metadata_free(struct krait_ctf_metadata *metadata);

#endif
