/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdarg.h>
#include <string.h>

struct krait_arena_block {
    struct krait_arena_block *next;
    size_t used;
    size_t cap;
    _Alignas(16) char bytes[];
};

/* Each block is twice as large as the one before, up to LAST_BLOCK: there are many small arenas, and calloc clears every
 * byte. */
enum {
    FIRST_BLOCK = 1024 - sizeof(struct krait_arena_block),
    LAST_BLOCK = 64 * 1024 - sizeof(struct krait_arena_block)
};

void krait_arena_done(struct krait_arena *arena)
{
    while (arena->blocks) {
        struct krait_arena_block *block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
}

static struct krait_arena_block *block_with_room(struct krait_arena *arena, size_t n)
{
    struct krait_arena_block *block = arena->blocks;
    if (block && block->cap - block->used >= n)
        return block;
    size_t usual = block ? KRAIT_MIN(block->cap * 2, (size_t)LAST_BLOCK) : FIRST_BLOCK;
    size_t cap = KRAIT_MAX(n, usual);
    if (cap > SIZE_MAX - sizeof(*block))
        return NULL;
    block = calloc(1, sizeof(*block) + cap);
    if (!block)
        return NULL;
    block->cap = cap;
    block->next = arena->blocks;
    arena->blocks = block;
    return block;
}

void *krait_arena_alloc(struct krait_arena *arena, size_t n)
{
    if (n > SIZE_MAX - 15)
        return NULL;
    n = (n + 15) & ~(size_t)15;
    struct krait_arena_block *block = block_with_room(arena, n);
    if (!block)
        return NULL;
    void *p = block->bytes + block->used;
    block->used += n;
    return p;
}

char *krait_arena_strndup(struct krait_arena *arena, const char *s, size_t n)
{
    if (n == SIZE_MAX)
        return NULL;
    char *copy = krait_arena_alloc(arena, n + 1);
    if (copy && n)
        memcpy(copy, s, n);
    return copy;
}

char *krait_arena_strdup(struct krait_arena *arena, const char *s)
{
    return krait_arena_strndup(arena, s, strlen(s));
}

char *krait_arena_fmt(struct krait_arena *arena, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *to = n < 0 ? NULL : krait_arena_alloc(arena, (size_t)n + 1);
    if (!to)
        return NULL;
    va_start(ap, fmt);
    vsnprintf(to, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return to;
}

void *krait_arena_grow(struct krait_arena *arena, void *array, uint32_t count, uint32_t *cap, size_t size)
{
    if (count < *cap)
        return array;
    uint32_t bigger = *cap ? *cap * 2 : 8;
    void *to = krait_arena_alloc(arena, (size_t)bigger * size);
    if (!to)
        return NULL;
    if (count)
        memcpy(to, array, count * size);
    *cap = bigger;
    return to;
}
