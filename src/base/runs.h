/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorting what is nearly sorted: items of which long runs are in order already, such as the events of several threads
 * one after the other. It merges the runs: what is one run costs a look at each item, k runs cost log2(k) passes.
 */
#ifndef KRAIT_BASE_RUNS_H
#define KRAIT_BASE_RUNS_H

#include "base/base.h"

/* Sorts `count` items of `size` bytes; those that `compare` finds equal keep their order. Takes the memory of the items
 * once more. Returns 0 or -ENOMEM. */
int krait_runs_sort(void *items, size_t count, size_t size, int (*compare)(const void *, const void *));

#endif
