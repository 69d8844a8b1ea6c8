/* SPDX-License-Identifier: Apache-2.0
 *
 * What a verb has to know of the terminal that it prints to.
 */
#ifndef KRAIT_CMD_TERMINAL_H
#define KRAIT_CMD_TERMINAL_H

#include "view/table.h"

/* Of stdout. Width 0: it is none. */
struct krait_table_look krait_terminal_look(void);

/* Prints lines to stderr, dim where it is a terminal, red those that begin with lost:, damaged: or
 * unfinished:. */
void krait_terminal_notes(const struct krait_buf *notes);

#endif
