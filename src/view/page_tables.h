/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of view/page.h's page.
 */
#ifndef KRAIT_VIEW_PAGE_TABLES_H
#define KRAIT_VIEW_PAGE_TABLES_H

#include "view/page.h"

/* Cells of a table's row; of a sum "-" where it is 0. */
void krait_page_time_cell(struct krait_buf *to, uint64_t ns);
void krait_page_sum_cell(struct krait_buf *to, uint64_t ns);
void krait_page_count_cell(struct krait_buf *to, uint64_t n);
void krait_page_share_cell(struct krait_buf *to, uint64_t part, uint64_t whole);

/* What all threads did, as a bar; nothing where that is not known. */
void krait_page_split(struct krait_buf *to, const struct krait_profile *profile);
/* What each thread did. */
void krait_page_threads(struct krait_buf *to, const struct krait_page *page);
void krait_page_functions(struct krait_buf *to, const struct krait_page *page);
/* States of threads, who had the CPUs, system calls, waits for the GIL, and counters: those that there are. */
void krait_page_sums(struct krait_buf *to, const struct krait_page *page);
/* How many rows these have, were there no bound; threads is 0 when memory is out. */
struct krait_page_sum_rows {
    uint32_t threads, cpus, syscalls, gil, counters;
};
struct krait_page_sum_rows krait_page_count_sums(const struct krait_page *page);
/* The source of the first functions of the table, where it is at hand. */
void krait_page_sources(struct krait_buf *to, const struct krait_page *page);

#endif
