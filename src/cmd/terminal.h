/* SPDX-License-Identifier: Apache-2.0
 *
 * What a verb has to know of the terminal that it prints to.
 */
#ifndef KRAIT_CMD_TERMINAL_H
#define KRAIT_CMD_TERMINAL_H

#include "base/err.h"
#include "view/table.h"

/* Of stdout. Width 0: it is none. */
struct krait_table_look krait_terminal_look(void);

/* Prints `out` to stdout, and behind it the lines of `notes`, which it uses up, to stderr: where that is a
 * terminal they are broken to fit it, and dim, red those that begin with lost:, damaged: or unfinished:.
 * Where stdout cannot be written, err says that `what` could not. */
int krait_terminal_print(const struct krait_buf *out, struct krait_buf *notes, const char *what,
                         struct krait_err *err);

#endif
