/* SPDX-License-Identifier: Apache-2.0
 *
 * Text in columns: how wide it is on a terminal, and how a name that is too long is shortened. Text is valid
 * UTF-8 without control characters (krait_fmt_safe makes it so).
 */
#ifndef KRAIT_VIEW_WIDTH_H
#define KRAIT_VIEW_WIDTH_H

#include "base/buf.h"

/* Columns that the first n bytes take: 2 for wide East Asian characters and emoji, 0 for combining marks.
 * Source: Unicode 15, UAX #11 and general category Mn, in the ranges that programs use. */
uint32_t krait_width_of(const char *text, size_t n);

/* Bytes of the longest beginning that takes at most `columns`. */
size_t krait_width_fit(const char *text, size_t n, uint32_t columns);

/* Appends text in at most `columns`. What is too long loses of what it has in brackets, or else its middle; what
 * follows the cut begins, if it can, at a component of a dotted name or path, since a name's end says most. */
void krait_width_shorten(struct krait_buf *out, const char *text, uint32_t columns, bool utf8);

/* Appends text in lines of at most `columns`, broken at blanks; a word that is longer stays whole. `at`
 * columns of the first line are taken; the others begin with `indent` blanks. A line end in the text is a
 * blank, but for empty lines, which stay. */
void krait_width_wrap(struct krait_buf *out, const char *text, uint32_t at, uint32_t indent,
                      uint32_t columns);

#endif
