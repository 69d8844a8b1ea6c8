/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds up the cells of a batch whose rows do not lie side by side. Rows are short and of changing lengths: a
 * loop over each costs a mispredicted branch a row, which is a fifth of the time that reading it takes.
 */
#ifndef KRAIT_BENCH_SUM_ROWS_H
#define KRAIT_BENCH_SUM_ROWS_H

#include <krait/trace_read.h>

uint64_t sum_cells(const uint64_t *cells, uint64_t count);

/* row_sizes is by class. */
uint64_t sum_rows(const struct krait_reader_batch *batch, const uint32_t *row_sizes);

#endif
