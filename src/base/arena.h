/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that is freed all at once, for objects that live as long as their trace, tree or metadata.
 */
#ifndef KRAIT_BASE_ARENA_H
#define KRAIT_BASE_ARENA_H

#include "base/base.h"

struct krait_arena_block;

struct krait_arena {
    struct krait_arena_block *blocks; /* newest first; zeroed memory is an empty arena */
};

void krait_arena_done(struct krait_arena *arena);
/* n bytes aligned to 16, zeroed; NULL when memory is out. */
void *krait_arena_alloc(struct krait_arena *arena, size_t n);
/* A NUL-terminated copy of n bytes; NULL when memory is out. */
char *krait_arena_strndup(struct krait_arena *arena, const char *s, size_t n);
char *krait_arena_strdup(struct krait_arena *arena, const char *s);
char *krait_arena_fmt(struct krait_arena *arena, const char *fmt, ...) KRAIT_PRINTF(2, 3);

/* A growing array in an arena: makes room for one more item of `size` bytes after `count` items. *cap is its capacity, 0 at
 * first; the old array is not freed before the arena is. Returns the array, or NULL when memory is out. */
void *krait_arena_grow(struct krait_arena *arena, void *array, uint32_t count, uint32_t *cap, size_t size);

#define KRAIT_ARENA_NEW(arena, type) ((type *)krait_arena_alloc(arena, sizeof(type)))

#endif
