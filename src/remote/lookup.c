/* SPDX-License-Identifier: Apache-2.0
 *
 *     dict ── keys ── head | indices | entries: (hash) key value    the value is beside its key
 *       └─ values ── value value value                              or, in the order of the keys, apart from them
 *
 * Instances of one class share the keys, and each has its values (enum krait_attributes). The hash of a text is another one in each
 * process, so names are found by going through the keys.
 */
#include "remote/lookup.h"

#include "base/array.h"
#include "remote/memory.h"
#include "remote/object.h"

#include <string.h>

enum { ITEMS_MAX = 1 << 20, SET_ENTRY_WORDS = 2, WORD = sizeof(uint64_t) };

static int read_word(const struct krait_remote *remote, uint64_t addr, uint64_t *word)
{
    return krait_memory_read(remote->pid, addr, word, sizeof(*word));
}

uint64_t krait_pointer_at(const struct krait_remote *remote, uint64_t place)
{
    uint64_t word = 0;
    return place && !read_word(remote, place, &word) ? word : 0;
}

/* -- keys -- */

struct keys {
    uint64_t entries;
    uint32_t count, stride; /* bytes of an entry */
    uint32_t key;           /* from an entry to the key; the value is behind it */
};

/* Bytes of the table of indices: dictkeys of `size` slots use the smallest type that holds their number. */
static uint64_t index_bytes(const struct krait_keys_layout *at, const char *head)
{
    if (at->kind)
        return (uint64_t)1 << (krait_memory_number(head + at->size, 1) & 31);
    uint64_t size = krait_memory_number(head + at->size, WORD);
    return size <= UINT8_MAX ? size : size <= UINT16_MAX ? 2 * size : 4 * size;
}

static bool read_keys(const struct krait_remote *remote, uint64_t addr, struct keys *keys)
{
    const struct krait_keys_layout at = krait_keys_layout(remote->layout.version->lookup.attributes);
    char head[KRAIT_OBJECT_HEAD];
    if (!addr || krait_memory_read(remote->pid, addr, head, at.indices))
        return false;
    bool has_hash = !at.kind || !krait_memory_number(head + at.kind, 1);
    uint64_t count = krait_memory_number(head + at.count, WORD), skipped = index_bytes(&at, head);
    if (count > UINT32_MAX || skipped > count * WORD + UINT32_MAX)
        return false;
    *keys = (struct keys){ addr + at.indices + skipped, (uint32_t)count, has_hash ? 3 * WORD : 2 * WORD,
                           has_hash ? WORD : 0 };
    return true;
}

static bool is_named(const struct krait_remote *remote, uint64_t text, const char *name)
{
    KRAIT_AUTO_BUF found = { 0 };
    return krait_object_text(remote, text, KRAIT_TYPE_NAME_MAX, &found) == 0 && found.data &&
           strcmp(found.data, name) == 0;
}

/* Of up to CHUNK keys: the one with that name; `count`: none. Only those of the same length are read whole. */
enum { CHUNK = 128 };

static uint32_t find_in_chunk(const struct krait_remote *remote, const uint64_t *texts, uint32_t count,
                              const char *name)
{
    struct krait_memory_piece pieces[CHUNK];
    uint64_t lengths[CHUNK];
    uint32_t i = 0, used = 0;
    for (i = 0; i < count; i++) {
        lengths[i] = strlen(name);
        if (texts[i])
            pieces[used++] = (struct krait_memory_piece){ texts[i] + KRAIT_OBJECT_SIZE, &lengths[i], WORD };
    }
    if (krait_memory_pieces(remote->pid, pieces, used))
        return count;
    for (i = 0; i < count; i++) {
        if (texts[i] && lengths[i] == strlen(name) && is_named(remote, texts[i], name))
            break;
    }
    return i;
}

/* The place of the entry with that name; UINT32_MAX: none has it. */
static uint32_t find_key(const struct krait_remote *remote, const struct keys *keys, const char *name)
{
    char entries[CHUNK * 3 * WORD];
    uint64_t texts[CHUNK];
    for (uint32_t first = 0; first < keys->count; first += CHUNK) {
        uint32_t count = KRAIT_MIN(keys->count - first, (uint32_t)CHUNK);
        if (krait_memory_read(remote->pid, keys->entries + (uint64_t)first * keys->stride, entries,
                              (size_t)count * keys->stride))
            break;
        for (uint32_t i = 0; i < count; i++)
            texts[i] = krait_memory_number(entries + i * keys->stride + keys->key, WORD);
        uint32_t i = find_in_chunk(remote, texts, count, name);
        if (i < count)
            return first + i;
    }
    return UINT32_MAX;
}

/* -- values -- */

/* `values`: 0 if they are beside the keys. */
static uint64_t find_place(const struct krait_remote *remote, uint64_t keys_addr, uint64_t values,
                           const char *name)
{
    const struct krait_keys_layout at = krait_keys_layout(remote->layout.version->lookup.attributes);
    struct keys keys;
    bool is_read = read_keys(remote, keys_addr, &keys) && keys.count <= ITEMS_MAX;
    uint32_t i = is_read ? find_key(remote, &keys, name) : UINT32_MAX;
    if (i == UINT32_MAX)
        return 0;
    return values ? values + at.values + (uint64_t)i * WORD
                  : keys.entries + (uint64_t)i * keys.stride + keys.key + WORD;
}

uint64_t krait_dict_place(const struct krait_remote *remote, uint64_t dict, const char *name)
{
    uint64_t words[2];
    _Static_assert(KRAIT_DICT_VALUES == (int)KRAIT_DICT_KEYS + WORD, "read as one");
    if (!dict || krait_memory_read(remote->pid, dict + KRAIT_DICT_KEYS, words, sizeof(words)))
        return 0;
    return find_place(remote, words[0], words[1], name);
}

uint64_t krait_module_place(const struct krait_remote *remote, uint64_t module, const char *name)
{
    uint64_t dict = module ? krait_pointer_at(remote, module + KRAIT_MODULE_DICT) : 0;
    return krait_dict_place(remote, dict, name);
}

/* Where an instance has its attributes: in a dict, or in values; both 0: nowhere. */
struct attributes {
    uint64_t dict, values;
};

static struct attributes find_managed(const struct krait_remote *remote, uint64_t object, uint64_t flags)
{
    enum krait_attributes where = remote->layout.version->lookup.attributes;
    struct attributes found = { krait_pointer_at(remote, object + KRAIT_MANAGED_DICT), 0 };
    if (where == KRAIT_ATTRIBUTES_APART)
        found.values = krait_pointer_at(remote, object + KRAIT_MANAGED_VALUES);
    else if (where == KRAIT_ATTRIBUTES_TAGGED && found.dict & 1)
        found.values = found.dict + 1;
    else if (where == KRAIT_ATTRIBUTES_INLINE && !found.dict && flags & KRAIT_TYPE_INLINE)
        found.values = object + KRAIT_INLINE_VALUES;
    return found;
}

static struct attributes find_attributes(const struct krait_remote *remote, uint64_t object, uint64_t type)
{
    uint64_t flags = krait_pointer_at(remote, type + KRAIT_TYPE_FLAGS);
    if (flags & KRAIT_TYPE_MANAGED && remote->layout.version->lookup.attributes != KRAIT_ATTRIBUTES_DICT)
        return find_managed(remote, object, flags);
    uint64_t offset = krait_pointer_at(remote, type + KRAIT_TYPE_DICT_OFFSET);
    bool has_dict = offset && offset < ITEMS_MAX;
    return (struct attributes){ has_dict ? krait_pointer_at(remote, object + offset) : 0, 0 };
}

uint64_t krait_attribute_place(const struct krait_remote *remote, uint64_t object, const char *name)
{
    uint64_t type = object ? krait_pointer_at(remote, object + KRAIT_OBJECT_TYPE) : 0;
    if (!type)
        return 0;
    struct attributes found = find_attributes(remote, object, type);
    if (!found.values)
        return krait_dict_place(remote, found.dict, name);
    uint64_t keys = krait_pointer_at(remote, type + remote->layout.version->lookup.type_keys);
    return find_place(remote, keys, found.values, name);
}

/* -- collections -- */

static int add_one(struct krait_found *found, uint64_t object)
{
    if (!KRAIT_GROW(found->items, found->cap, found->count + 1))
        return -ENOMEM;
    found->items[found->count++] = object;
    return 0;
}

static int add_words(const struct krait_remote *remote, uint64_t addr, uint64_t count,
                     struct krait_found *found)
{
    if (!KRAIT_GROW(found->items, found->cap, found->count + (uint32_t)count))
        return -ENOMEM;
    return krait_memory_read(remote->pid, addr, found->items + found->count, count * WORD);
}

/* The table of a set: for each entry the object and its hash; NULL if there never was one, the hash -1 if there is none any more
 * (Objects/setobject.c). */
int krait_set_first(const struct krait_remote *remote, uint64_t set, uint32_t most, struct krait_found *found)
{
    uint64_t mask = 0, table = 0, entries[CHUNK * SET_ENTRY_WORDS];
    int rc = read_word(remote, set + KRAIT_SET_MASK, &mask);
    rc = rc ? rc : read_word(remote, set + KRAIT_SET_TABLE, &table);
    uint32_t begin = found->count, count = (uint32_t)KRAIT_MIN(mask, (uint64_t)ITEMS_MAX - 1) + 1;
    for (uint32_t first = 0; first < count && !rc && found->count - begin < most; first += CHUNK) {
        uint32_t n = KRAIT_MIN(count - first, (uint32_t)CHUNK);
        rc = krait_memory_read(remote->pid, table + (uint64_t)first * SET_ENTRY_WORDS * WORD, entries,
                               (size_t)n * SET_ENTRY_WORDS * WORD);
        for (uint32_t i = 0; i < n && !rc && found->count - begin < most; i++) {
            const uint64_t *entry = entries + i * SET_ENTRY_WORDS;
            rc = entry[0] && entry[1] != UINT64_MAX ? add_one(found, entry[0]) : 0;
        }
    }
    return rc;
}

static int add_counted(const struct krait_remote *remote, uint64_t object, uint64_t items, uint32_t most,
                       struct krait_found *found)
{
    uint64_t size = 0;
    int rc = read_word(remote, object + KRAIT_OBJECT_SIZE, &size);
    size = KRAIT_MIN(size, (uint64_t)most);
    rc = rc ? rc : add_words(remote, items, size, found);
    found->count += rc ? 0 : (uint32_t)size;
    return rc;
}

int krait_list_first(const struct krait_remote *remote, uint64_t list, uint32_t most,
                     struct krait_found *found)
{
    uint64_t items = krait_pointer_at(remote, list + KRAIT_LIST_ITEMS);
    return add_counted(remote, list, items, most, found);
}

int krait_tuple_first(const struct krait_remote *remote, uint64_t tuple, uint32_t most,
                      struct krait_found *found)
{
    return add_counted(remote, tuple, tuple + remote->layout.at[KRAIT_AT_TUPLE_ITEMS], most, found);
}

/* Entries of a dict, from the `first` on; values: where the first value is, 0: they are beside the keys. A key that was deleted is
 * NULL, or has no value. */
static int add_entries(const struct krait_remote *remote, const struct keys *keys, uint64_t values,
                       uint32_t first, uint32_t end, struct krait_found *found)
{
    char entries[CHUNK * 3 * WORD];
    uint64_t apart[CHUNK];
    uint32_t count = KRAIT_MIN(keys->count - first, (uint32_t)CHUNK);
    int rc = krait_memory_read(remote->pid, keys->entries + (uint64_t)first * keys->stride, entries,
                               (size_t)count * keys->stride);
    if (!rc && values)
        rc = krait_memory_read(remote->pid, values + (uint64_t)first * WORD, apart, count * WORD);
    for (uint32_t i = 0; i < count && !rc && found->count < end; i++) {
        const char *at = entries + i * keys->stride + keys->key;
        uint64_t key = krait_memory_number(at, WORD);
        uint64_t value = values ? apart[i] : krait_memory_number(at + sizeof(key), WORD);
        if (key && value)
            rc = add_one(found, key) || add_one(found, value) ? -ENOMEM : 0;
    }
    return rc;
}

int krait_dict_first(const struct krait_remote *remote, uint64_t dict, uint32_t most,
                     struct krait_found *found)
{
    const struct krait_keys_layout at = krait_keys_layout(remote->layout.version->lookup.attributes);
    uint64_t words[2];
    struct keys keys;
    int rc = krait_memory_read(remote->pid, dict + KRAIT_DICT_KEYS, words, sizeof(words));
    if (rc || !read_keys(remote, words[0], &keys))
        return rc ? rc : -EFAULT;
    uint64_t values = words[1] ? words[1] + at.values : 0;
    uint32_t end = found->count + 2 * most;
    for (uint32_t first = 0; first < keys.count && !rc && found->count < end; first += CHUNK)
        rc = add_entries(remote, &keys, values, first, end, found);
    return rc;
}

int krait_set_items(const struct krait_remote *remote, uint64_t set, struct krait_found *found)
{
    return krait_set_first(remote, set, ITEMS_MAX, found);
}

int krait_list_items(const struct krait_remote *remote, uint64_t list, struct krait_found *found)
{
    return krait_list_first(remote, list, ITEMS_MAX, found);
}

int krait_tuple_items(const struct krait_remote *remote, uint64_t tuple, struct krait_found *found)
{
    return krait_tuple_first(remote, tuple, ITEMS_MAX, found);
}

static bool are_same(const struct krait_found *a, const struct krait_found *b)
{
    return a->count == b->count && (!a->count || memcmp(a->items, b->items, a->count * WORD) == 0);
}

int krait_found_read(krait_found_fn *once, void *ctx, struct krait_found *found)
{
    enum { TRIES = 20 };
    KRAIT_CLEANUP(krait_found_done) struct krait_found before = { 0 };
    int rc = -EAGAIN;
    for (int i = 0; i < TRIES && rc == -EAGAIN; i++) {
        before.count = found->count = 0;
        int first = once(ctx, &before);
        rc = first ? first : once(ctx, found);
        rc = !rc && are_same(&before, found) ? 0 : rc == -ENOMEM ? rc : -EAGAIN;
    }
    return rc;
}
