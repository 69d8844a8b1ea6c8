/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations shared by cache.c and cache_read.c.
 */
#ifndef KRAIT_VIEW_CACHE_OWN_H
#define KRAIT_VIEW_CACHE_OWN_H

#include "view/cache.h"

/* Continues a sum over 8-byte words; ignores a remainder of less than 8 bytes. */
uint64_t krait_cache_sum(uint64_t sum, const void *words, size_t bytes);

/* Like krait_cache_open, for one file. */
int krait_cache_map(struct krait_view *view, const char *path);

#endif
