/* SPDX-License-Identifier: Apache-2.0
 *
 * Cells that many tables need: a time, a count, a share. Each function adds the table's next cell (view/table.h).
 */
#ifndef KRAIT_VIEW_CELLS_H
#define KRAIT_VIEW_CELLS_H

#include "view/table.h"

/* "12.34 ms", aligned so that decimal points are below each other. */
void krait_cell_ns(struct krait_table *table, uint64_t ns);
/* The same for a change: "+12.34 ms". */
void krait_cell_change_ns(struct krait_table *table, const char *sign, uint64_t ns, enum krait_style style);
/* "1,234,567" */
void krait_cell_count(struct krait_table *table, uint64_t n);
/* "12.3%", coloured: KRAIT_STYLE_HOT from 10% on, KRAIT_STYLE_WARM from 3% on. */
void krait_cell_share(struct krait_table *table, uint64_t part, uint64_t whole);
/* "62%" of a whole, or "-" for 0; coloured by its share of `all`. */
void krait_cell_part(struct krait_table *table, uint64_t part, uint64_t whole, uint64_t all);
/* "file.py:12" */
void krait_cell_where(struct krait_table *table, const char *file, uint32_t line);

#endif
