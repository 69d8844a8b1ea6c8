/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include "base/array.h"

#include <string.h>

void krait_map_done(struct krait_map *map)
{
    free(map->slots);
    *map = (struct krait_map){ 0 };
}

static struct krait_map_slot *map_slot(const struct krait_map *map, uint64_t key)
{
    size_t i = krait_hash_u64(key) & (map->cap - 1);
    while (map->slots[i].used && map->slots[i].key != key)
        i = (i + 1) & (map->cap - 1);
    return &map->slots[i];
}

uint64_t *krait_map_get(const struct krait_map *map, uint64_t key)
{
    if (!map->len)
        return NULL;
    struct krait_map_slot *slot = map_slot(map, key);
    return slot->used ? &slot->value : NULL;
}

static int map_grow(struct krait_map *map)
{
    struct krait_map bigger = { .cap = map->cap ? map->cap * 2 : 64, .len = map->len };
    bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
    if (!bigger.slots)
        return -ENOMEM;
    for (size_t i = 0; i < map->cap; i++) {
        if (map->slots[i].used)
            *map_slot(&bigger, map->slots[i].key) = map->slots[i];
    }
    free(map->slots);
    *map = bigger;
    return 0;
}

int krait_map_put(struct krait_map *map, uint64_t key, uint64_t value)
{
    if (map->len * 4 >= map->cap * 3) {
        int rc = map_grow(map);
        if (rc)
            return rc;
    }
    struct krait_map_slot *slot = map_slot(map, key);
    map->len += !slot->used;
    *slot = (struct krait_map_slot){ .key = key, .value = value, .used = true };
    return 0;
}

void krait_map_trim(struct krait_map *map, size_t *most)
{
    enum { FEW = 1024 };
    struct krait_map kept = { 0 };
    int rc = 0;
    if (map->len < KRAIT_MAX(*most, (size_t)FEW))
        return;
    for (size_t i = 0; i < map->cap && !rc; i++) {
        if (map->slots[i].used && map->slots[i].value)
            rc = krait_map_put(&kept, map->slots[i].key, map->slots[i].value);
    }
    *most = (rc ? map->len : kept.len) * 2;
    krait_map_done(rc ? &kept : map);
    if (!rc)
        *map = kept;
}

uint64_t krait_hash_bytes(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint64_t h = 0xcbf29ce484222325ull ^ n;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = krait_hash_u64(h ^ word);
    }
    uint64_t tail = 0;
    if (n)
        memcpy(&tail, p, n);
    return krait_hash_u64(h ^ tail);
}

void krait_strtab_done(struct krait_strtab *tab)
{
    free(tab->texts);
    free(tab->lens);
    free(tab->slots);
    krait_arena_done(&tab->arena);
    *tab = (struct krait_strtab){ 0 };
}

/* The slot that holds the string, or the free one where it belongs. */
static uint32_t *strtab_slot(const struct krait_strtab *tab, const char *s, size_t n)
{
    size_t i = krait_hash_bytes(s, n) & (tab->slot_cap - 1);
    for (; tab->slots[i]; i = (i + 1) & (tab->slot_cap - 1)) {
        uint32_t id = tab->slots[i] - 1;
        if (tab->lens[id] == n && memcmp(tab->texts[id], s, n) == 0)
            break;
    }
    return &tab->slots[i];
}

uint32_t krait_strtab_find(const struct krait_strtab *tab, const char *s, size_t n)
{
    return tab->len ? *strtab_slot(tab, s, n) - 1 : KRAIT_NO_ID;
}

static int strtab_grow_ids(struct krait_strtab *tab)
{
    uint32_t text_cap = tab->cap, len_cap = tab->cap;
    if (!KRAIT_GROW(tab->texts, text_cap, tab->cap + 1) || !KRAIT_GROW(tab->lens, len_cap, tab->cap + 1))
        return -ENOMEM;
    tab->cap = KRAIT_MIN(text_cap, len_cap);
    return 0;
}

static int strtab_grow_slots(struct krait_strtab *tab)
{
    size_t cap = tab->slot_cap ? tab->slot_cap * 2 : 128;
    uint32_t *slots = calloc(cap, sizeof(*slots));
    if (!slots)
        return -ENOMEM;
    free(tab->slots);
    tab->slots = slots;
    tab->slot_cap = cap;
    for (uint32_t id = 0; id < tab->len; id++)
        *strtab_slot(tab, tab->texts[id], tab->lens[id]) = id + 1;
    return 0;
}

uint32_t krait_strtab_add(struct krait_strtab *tab, const char *s, size_t n)
{
    if (n >= UINT32_MAX || tab->len >= UINT32_MAX / 4)
        return KRAIT_NO_ID;
    if (tab->len == tab->cap && strtab_grow_ids(tab))
        return KRAIT_NO_ID;
    if ((size_t)tab->len * 2 >= tab->slot_cap && strtab_grow_slots(tab))
        return KRAIT_NO_ID;
    uint32_t *slot = strtab_slot(tab, s, n);
    if (*slot)
        return *slot - 1;
    char *text = krait_arena_strndup(&tab->arena, s, n);
    if (!text)
        return KRAIT_NO_ID;
    tab->texts[tab->len] = text;
    tab->lens[tab->len] = (uint32_t)n;
    *slot = ++tab->len;
    return tab->len - 1;
}
