/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing CSV (RFC 4180) from untrusted text: the output is always one cell of valid UTF-8.
 */
#ifndef KRAIT_BASE_CSV_H
#define KRAIT_BASE_CSV_H

#include "base/buf.h"

/* A cell, in quotes if it contains a separator, a quote or a line end. Each byte that is not part of valid UTF-8
 * becomes U+FFFD: the kernel cuts names after 15 bytes, even in the middle of a character. */
void krait_csv_str(struct krait_buf *buf, const char *s, size_t n);
void krait_csv_cstr(struct krait_buf *buf, const char *s);

#endif
