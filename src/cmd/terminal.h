/* SPDX-License-Identifier: Apache-2.0
 *
 * What a verb needs to know about the terminal that it prints to.
 */
#ifndef KRAIT_CMD_TERMINAL_H
#define KRAIT_CMD_TERMINAL_H

#include "base/err.h"
#include "view/table.h"

#include <stdio.h>

/* Of stdout or stderr. Width 0: it is no terminal. Colour is for terminals alone, but not for TERM=dumb nor
 * where NO_COLOR is set (https://no-color.org). */
struct krait_table_look krait_terminal_look(FILE *to);

/* The code where `to` takes colours, else "". */
const char *krait_terminal_colour(FILE *to, const char *code);

/* Prints text with control characters, and bytes that are no UTF-8, made visible (krait_fmt_safe). */
void krait_terminal_safe(FILE *to, const char *text);

/* Prints text, made safe like that, and a line end, in the colour `code` or, where that is NULL, in none. On
 * a terminal, which would break a long line in mid-word, it is broken at blanks to fit: `at` columns of the
 * first line are taken, the others begin with `indent` blanks. */
void krait_terminal_wrap(FILE *to, const char *code, uint32_t at, uint32_t indent, const char *text);

/* The reason of a failure on stderr, behind `at` columns: krait_terminal_wrap, and as they are the lines that
 * err->lines says it has. */
void krait_terminal_error(uint32_t at, const struct krait_err *err);

/* A message on stderr that begins `at` columns from the left; its other lines begin two columns further. */
void krait_terminal_say(const char *code, uint32_t at, const char *fmt, ...) KRAIT_PRINTF(3, 4);

/* Prints `out` to stdout, and behind it the lines of `notes`, which it uses up, to stderr: where that is a
 * terminal they are broken to fit it, and dim, red those that begin with lost:, damaged: or unfinished:.
 * Where stdout cannot be written, err says that `what` could not. */
int krait_terminal_print(const struct krait_buf *out, struct krait_buf *notes, const char *what,
                         struct krait_err *err);

#endif
