/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the two files of the cache share.
 */
#ifndef KRAIT_VIEW_CACHE_OWN_H
#define KRAIT_VIEW_CACHE_OWN_H

#include "view/cache.h"

/* Continues the sum over whole words. */
uint64_t krait_cache_sum(uint64_t sum, const void *words, size_t bytes);

/* Like krait_cache_load, for one file. */
int krait_cache_read(struct krait_view *view, const char *path);

#endif
