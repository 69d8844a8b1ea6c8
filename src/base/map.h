/* SPDX-License-Identifier: Apache-2.0
 *
 * Two hash tables: from a 64-bit key to a 64-bit value, and from a string to a small dense id (interning).
 * Neither is safe for two threads at once.
 */
#ifndef KRAIT_BASE_MAP_H
#define KRAIT_BASE_MAP_H

#include "base/arena.h"

/* Open addressing, linear probes, grows at 3/4; zeroed memory is an empty map. Keys and values are any 64 bits. */
struct krait_map {
    struct krait_map_slot {
        uint64_t key;
        uint64_t value;
        bool used;
    } * slots;
    size_t cap; /* 0 or a power of two */
    size_t len;
};

void krait_map_done(struct krait_map *map);
/* A pointer to the value, or NULL if there is no such key. Valid until the next put. */
uint64_t *krait_map_get(const struct krait_map *map, uint64_t key);
/* Sets or replaces. Returns 0 or -ENOMEM. */
int krait_map_put(struct krait_map *map, uint64_t key, uint64_t value);
/* Takes out the keys whose value is 0, once there are *most keys: at first 0, then twice as many as were left the last time.
 * Without memory they stay. Call it before a put; pointers to values end. */
void krait_map_trim(struct krait_map *map, size_t *most);

static inline uint64_t krait_hash_u64(uint64_t x)
{
    x ^= x >> 32;
    x *= 0x9e3779b97f4a7c15ull; /* 2^64 / golden ratio: Knuth, TAOCP 3, 6.4 */
    return x ^ (x >> 29);
}

uint64_t krait_hash_bytes(const void *bytes, size_t n);

/* Interned strings: equal strings get equal ids, ids count up from 0, and texts do not move until _done. */
struct krait_strtab {
    const char **texts; /* by id, NUL-terminated */
    uint32_t *lens;     /* by id, bytes */
    uint32_t len;       /* how many */
    uint32_t cap;
    uint32_t *slots; /* id + 1, 0 is free */
    size_t slot_cap;
    struct krait_arena arena; /* the texts */
};

#define KRAIT_NO_ID UINT32_MAX

void krait_strtab_done(struct krait_strtab *tab);
/* The id of the string, which is added if it is new; KRAIT_NO_ID when memory is out. */
uint32_t krait_strtab_add(struct krait_strtab *tab, const char *s, size_t n);
/* The id, or KRAIT_NO_ID if there is no such string. */
uint32_t krait_strtab_find(const struct krait_strtab *tab, const char *s, size_t n);

#endif
