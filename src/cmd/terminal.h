/* SPDX-License-Identifier: Apache-2.0
 *
 * What a verb needs to know about the terminal that it prints to.
 */
#ifndef KRAIT_CMD_TERMINAL_H
#define KRAIT_CMD_TERMINAL_H

#include "base/err.h"
#include "view/table.h"

#include <stdio.h>

/* How to print to stdout or stderr. Width 0: it is no terminal. Only terminals get colours, and not if TERM is dumb or
 * NO_COLOR is set (https://no-color.org). Columns that its tables drop are kept for krait_terminal_note_dropped. */
struct krait_table_look krait_terminal_look(FILE *to);

/* `code` if `to` gets colours, else "". */
const char *krait_terminal_colour(FILE *to, const char *code);

/* Prints text, and makes control characters and bytes that are not UTF-8 visible (krait_fmt_safe). */
void krait_terminal_safe(FILE *to, const char *text);

/* Prints text in the same way, and a line end, in the colour `code`, which may be NULL. On a terminal, it breaks the text at
 * blanks to fit the width: the first line already has `at` columns, the others begin with `indent` blanks. */
void krait_terminal_wrap(FILE *to, const char *code, uint32_t at, uint32_t indent, const char *text);

/* Prints the reason of a failure to stderr like krait_terminal_wrap; the line already has `at` columns. With err->lines, line
 * ends in the text stay. */
void krait_terminal_error(uint32_t at, const struct krait_err *err);

/* Prints a message to stderr, `at` columns from the left; its other lines begin two columns further. */
void krait_terminal_say(const char *code, uint32_t at, const char *fmt, ...) KRAIT_PRINTF(3, 4);

/* Prints to stderr that a verb wrote a file or a folder, unless `path` is "-": "krait cut: wrote part (1.2 MiB, 345 events)".
 * `what` it holds, and what is `next`, "open it in a browser", may be NULL. */
void krait_terminal_say_written(const char *verb, const char *path, uint64_t bytes, const char *what,
                                const char *next);

/* Prints `out` to stdout, and then the lines of `notes`, which it overwrites, to stderr. If that is a terminal, it breaks
 * them to fit, and prints them dim, or red if they begin with lost:, damaged: or unfinished:. If stdout cannot be written,
 * err says that `what` could not be. Ends with krait_terminal_note_dropped. */
int krait_terminal_print(const struct krait_buf *out, struct krait_buf *notes, const char *what,
                         struct krait_err *err);

/* Where stdout is a terminal: a note on stderr which columns its tables dropped, if any. For verbs that do not print with
 * krait_terminal_print. */
void krait_terminal_note_dropped(void);

#endif
