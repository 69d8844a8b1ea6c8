/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of view/page.h's page.
 */
#ifndef KRAIT_VIEW_PAGE_TABLES_H
#define KRAIT_VIEW_PAGE_TABLES_H

#include "view/page.h"

/* Cells of a table's row; a sum of 0 is "-". */
void krait_page_time_cell(struct krait_buf *to, uint64_t ns);
void krait_page_sum_cell(struct krait_buf *to, uint64_t ns);
void krait_page_count_cell(struct krait_buf *to, uint64_t n);
void krait_page_share_cell(struct krait_buf *to, uint64_t part, uint64_t whole);

/* A bar of what all threads did; nothing if that is not known. */
void krait_page_split(struct krait_buf *to, const struct krait_profile *profile);
/* A table of what each thread did. */
void krait_page_threads(struct krait_buf *to, const struct krait_page *page);
void krait_page_functions(struct krait_buf *to, const struct krait_page *page);
/* Tables of states of threads, CPUs, system calls, waits for the GIL, and counters, if the recording has them. */
void krait_page_sums(struct krait_buf *to, const struct krait_page *page);
/* The number of rows of these tables without limits; threads is 0 if memory is out. */
struct krait_page_sum_rows {
    uint32_t threads, cpus, syscalls, gil, counters;
};
struct krait_page_sum_rows krait_page_count_sums(const struct krait_page *page);
/* The source of the first functions of the table, if it can be read. */
void krait_page_sources(struct krait_buf *to, const struct krait_page *page);

#endif
