/* SPDX-License-Identifier: Apache-2.0
 *
 * Line numbers of instructions, from the tables of code objects.
 */
#ifndef KRAIT_PYTHON_COMPAT_LINES_H
#define KRAIT_PYTHON_COMPAT_LINES_H

#include "python/compat/layout.h"

/* The line of the instruction at `offset` bytes of a code object that begins in line `first`; `first` for an
 * instruction before the code, 0 if the table gives it no line. The table may contain any bytes. */
int32_t krait_lines_find(enum krait_line_table kind, const uint8_t *table, size_t size, int32_t first,
                         int64_t offset);

#endif
