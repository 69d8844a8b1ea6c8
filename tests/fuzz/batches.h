/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/batch_check.c on one trace: batches against events, cell by cell.
 */
#ifndef KRAIT_TESTS_FUZZ_BATCHES_H
#define KRAIT_TESTS_FUZZ_BATCHES_H

/* Aborts where something differs. */
void fuzz_batches(const char *path);

#endif
