/* SPDX-License-Identifier: Apache-2.0
 *
 * Text in columns: its width on a terminal, and how to shorten a name that is too long. Text is valid UTF-8 without
 * control characters (krait_fmt_safe makes it so).
 */
#ifndef KRAIT_VIEW_WIDTH_H
#define KRAIT_VIEW_WIDTH_H

#include "base/buf.h"

/* Columns of the first n bytes: 2 for wide East Asian characters and emoji, 0 for combining marks. Source: Unicode
 * 15, UAX #11 and general category Mn, in the ranges that programs use. */
uint32_t krait_width_of(const char *text, size_t n);

/* The number of bytes of the longest prefix that fits into `columns`. */
size_t krait_width_fit(const char *text, size_t n, uint32_t columns);

/* Appends text in at most `columns`. A text that is too long loses text in brackets, or else its middle. After the
 * cut it continues, if possible, with a component of a dotted name, because the end of a name says most. A path loses its first
 * folders. An address in a file is cut as krait_symbol_brief cuts it; templates of C++ lose their arguments first. */
void krait_width_shorten(struct krait_buf *out, const char *text, uint32_t columns, bool utf8);

/* Appends a command line in at most `columns`: without the folders of its program, and if it is too long without those of what
 * follows, mostly a script, and without its end. */
void krait_width_command(struct krait_buf *out, const char *command, uint32_t columns, bool utf8);

/* Appends text in lines of at most `columns`, broken at blanks; a word that is longer stays whole. The first line
 * already has `at` columns; the others begin with `indent` blanks. A line end in the text counts as a blank, but
 * empty lines stay. */
void krait_width_wrap(struct krait_buf *out, const char *text, uint32_t at, uint32_t indent,
                      uint32_t columns);

#endif
