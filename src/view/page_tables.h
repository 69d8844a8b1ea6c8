/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of view/page.h's page.
 */
#ifndef KRAIT_VIEW_PAGE_TABLES_H
#define KRAIT_VIEW_PAGE_TABLES_H

#include "view/page.h"

/* What all threads did, as a bar; nothing where that is not known. */
void krait_page_split(struct krait_buf *to, const struct krait_profile *profile);
/* What each thread did. */
void krait_page_threads(struct krait_buf *to, const struct krait_page *page);
void krait_page_functions(struct krait_buf *to, const struct krait_page *page);
/* The source of the first functions of the table, where it is at hand. */
void krait_page_sources(struct krait_buf *to, const struct krait_page *page);

#endif
