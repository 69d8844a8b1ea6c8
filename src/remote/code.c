/* SPDX-License-Identifier: Apache-2.0
 *
 * Code objects: their names and line tables. They do not change, but die; another one may come to lie at the same address.
 *
 * The objects that they hold tell them apart. That is not enough if an interpreter has ended and another one begins: it maps its
 * memory in the same place, and if it runs code of the same form, all that the code objects hold lies where it lay before. Then the
 * hashes of the texts tell them apart, which Python computes from their characters, in all interpreters alike.
 */
#include "base/array.h"
#include "remote/memory.h"
#include "remote/object.h"
#include "remote/running_task.h"
#include "remote/stack.h"

#include <string.h>

enum { LINES_MAX = 1 << 20, HEADER_MAX = 192, FIELDS = 4, HASHES = 2 };

/* What tells one code object from another: the objects that it holds. */
static const enum krait_at identity[FIELDS] = { KRAIT_AT_CODE_NAME, KRAIT_AT_CODE_FILE, KRAIT_AT_CODE_LINES,
                                                KRAIT_AT_CODE_LOCALS };

/* A str, or NULL if there is none. */
static const char *read_text(const struct krait_remote *remote, struct krait_arena *arena, uint64_t addr)
{
    KRAIT_AUTO_BUF text = { 0 };
    int rc = krait_object_text(remote, addr, KRAIT_TEXT_MAX, &text);
    return rc < 0 ? NULL : krait_arena_strndup(arena, text.data ? text.data : "", text.len);
}

/* A bytes object. */
static bool read_bytes(const struct krait_remote *remote, struct krait_arena *arena, uint64_t addr,
                       const uint8_t **bytes, size_t *size)
{
    uint64_t count = 0;
    if (krait_memory_read(remote->pid, addr + KRAIT_OBJECT_SIZE, &count, sizeof(count)) || count > LINES_MAX)
        return false;
    uint8_t *to = krait_arena_alloc(arena, count + 1);
    *bytes = to;
    *size = count;
    return to && krait_memory_read(remote->pid, addr + KRAIT_BYTES_DATA, to, count) == 0;
}

/* Bytes of a code object's head that are looked at. */
static size_t header_size(const struct krait_remote *remote)
{
    const uint32_t *at = remote->layout.at;
    size_t size = at[KRAIT_AT_CODE_FIRST_LINE] + sizeof(uint64_t);
    for (size_t i = 0; i < FIELDS; i++)
        size = KRAIT_MAX(size, at[identity[i]] + sizeof(uint64_t));
    return size;
}

/* Whether it is a code object's. */
static bool take_header(const struct krait_remote *remote, const char *header, uint64_t fields[FIELDS])
{
    for (size_t i = 0; i < FIELDS; i++)
        fields[i] = krait_memory_number(header + remote->layout.at[identity[i]], sizeof(uint64_t));
    uint64_t type = krait_memory_number(header + KRAIT_OBJECT_TYPE, sizeof(type));
    return !remote->code_type || type == remote->code_type;
}

/* Whether a code object is there; copies its head. */
static bool read_header(const struct krait_remote *remote, uint64_t addr, char *header,
                        uint64_t fields[FIELDS])
{
    size_t size = header_size(remote);
    return size <= HEADER_MAX && !krait_memory_read(remote->pid, addr, header, size) &&
           take_header(remote, header, fields);
}

/* What to read for the hashes of the first fields. */
static void hash_pieces(const uint64_t fields[FIELDS], uint64_t hashes[HASHES],
                        struct krait_memory_piece pieces[HASHES])
{
    for (size_t i = 0; i < HASHES; i++)
        pieces[i] = (struct krait_memory_piece){ fields[i] + KRAIT_TEXT_HASH, &hashes[i], sizeof(hashes[i]) };
}

/* 0 if no other interpreter can have put other texts there. */
static bool read_hashes(const struct krait_remote *remote, const uint64_t fields[FIELDS],
                        uint64_t hashes[HASHES])
{
    struct krait_memory_piece pieces[HASHES];
    memset(hashes, 0, HASHES * sizeof(*hashes));
    hash_pieces(fields, hashes, pieces);
    return !remote->nests || !krait_memory_pieces(remote->pid, pieces, HASHES);
}

/* A frame a little above with the same code, as in a recursion; `i`: there is none. */
static uint32_t find_same(const struct krait_raw_frame *frames, uint32_t i)
{
    enum { ABOVE = 16 };
    uint32_t first = i > ABOVE ? i - ABOVE : 0;
    for (uint32_t k = i; k-- > first;) {
        if (frames[k].code == frames[i].code)
            return k;
    }
    return i;
}

/* A code object that is looked at. */
struct look {
    const struct krait_remote_code *code; /* the one that was there */
    uint64_t hashes[HASHES];
    char header[HEADER_MAX];
};

/* Adds what is read of it. */
static uint32_t add_pieces(const struct krait_remote *remote, struct look *look,
                           struct krait_memory_piece *pieces)
{
    pieces[0] = (struct krait_memory_piece){ look->code->addr, look->header, header_size(remote) };
    if (remote->nests)
        hash_pieces(look->code->fields, look->hashes, pieces + 1);
    return remote->nests ? 1 + HASHES : 1;
}

static bool is_as_before(const struct krait_remote *remote, const struct look *look)
{
    uint64_t fields[FIELDS];
    return take_header(remote, look->header, fields) &&
           memcmp(look->code->fields, fields, sizeof(fields)) == 0 &&
           (!remote->nests || memcmp(look->code->hashes, look->hashes, sizeof(look->hashes)) == 0);
}

bool krait_codes_known(struct krait_remote *remote, const struct krait_raw_frame *frames, uint32_t count,
                       const struct krait_remote_code **codes, const struct krait_memory_piece *more,
                       uint32_t more_count)
{
    KRAIT_AUTO_FREE struct krait_memory_piece *pieces =
        calloc((1 + HASHES) * count + more_count + 1, sizeof(*pieces));
    KRAIT_AUTO_FREE struct look *looks = malloc((count + 1) * sizeof(*looks));
    bool known = pieces && looks && header_size(remote) <= HEADER_MAX;
    uint32_t n = 0, piece_count = 0;
    for (uint32_t i = 0; i < count && known; i++) {
        uint32_t same = find_same(frames, i);
        uint64_t *found = same == i ? krait_map_get(&remote->codes.by_addr, frames[i].code) : NULL;
        codes[i] = same != i ? codes[same] : found ? (const void *)(uintptr_t)*found : NULL;
        known = codes[i];
        if (same != i || !known)
            continue;
        looks[n].code = codes[i];
        piece_count += add_pieces(remote, &looks[n++], pieces + piece_count);
    }
    if (known && more_count)
        memcpy(pieces + piece_count, more, more_count * sizeof(*more));
    known = known && !krait_memory_pieces(remote->pid, pieces, piece_count + more_count);
    for (uint32_t i = 0; i < n && known; i++) {
        known = is_as_before(remote, &looks[i]);
        krait_code_meet(remote, looks[i].code);
    }
    return known;
}

static void free_code(struct krait_remote_code *code)
{
    krait_arena_done(&code->arena);
    free(code);
}

/* What its head does not tell. */
static bool read_rest(const struct krait_remote *remote, struct krait_remote_code *code)
{
    uint32_t at = remote->layout.at[KRAIT_AT_CODE_QUALNAME];
    uint64_t name = code->fields[0];
    if (at != KRAIT_NOWHERE && krait_memory_read(remote->pid, code->addr + at, &name, sizeof(name)))
        return false;
    code->name = read_text(remote, &code->arena, name);
    code->file = read_text(remote, &code->arena, code->fields[1]);
    return code->name && code->file &&
           read_bytes(remote, &code->arena, code->fields[2], &code->lines, &code->lines_size);
}

static bool keep(struct krait_codes *codes, struct krait_remote_code *code)
{
    if (!KRAIT_GROW(codes->items, codes->cap, codes->count + 1) ||
        krait_map_put(&codes->by_addr, code->addr, (uintptr_t)code))
        return false;
    codes->items[codes->count++] = code;
    code->number = ++codes->numbers;
    code->met = codes->sweeps;
    return true;
}

static struct krait_remote_code *read_new(struct krait_remote *remote, uint64_t addr, const char *header,
                                          const uint64_t fields[FIELDS], const uint64_t hashes[HASHES])
{
    struct krait_remote_code *code = calloc(1, sizeof(*code));
    if (!code)
        return NULL;
    code->addr = addr;
    memcpy(code->fields, fields, sizeof(code->fields));
    memcpy(code->hashes, hashes, sizeof(code->hashes));
    code->first_line = (int32_t)krait_memory_number(header + remote->layout.at[KRAIT_AT_CODE_FIRST_LINE], 4);
    if (read_rest(remote, code) && keep(&remote->codes, code))
        return code;
    free_code(code);
    return NULL;
}

/* Whether what was read before the process had several interpreters is what is read now. */
static bool is_same_function(const struct krait_remote_code *a, const struct krait_remote_code *b)
{
    return memcmp(a->fields, b->fields, sizeof(a->fields)) == 0 && strcmp(a->name, b->name) == 0 &&
           strcmp(a->file, b->file) == 0 && a->first_line == b->first_line &&
           a->lines_size == b->lines_size && memcmp(a->lines, b->lines, a->lines_size) == 0;
}

const struct krait_remote_code *krait_code_read(struct krait_remote *remote, uint64_t addr)
{
    char header[HEADER_MAX];
    uint64_t fields[FIELDS], after[FIELDS], hashes[HASHES], hashes_after[HASHES];
    if (!read_header(remote, addr, header, fields) || !read_hashes(remote, fields, hashes))
        return NULL;
    uint64_t *known = krait_map_get(&remote->codes.by_addr, addr);
    struct krait_remote_code *before = known ? (void *)(uintptr_t)*known : NULL, *code = before;
    if (code && memcmp(code->fields, fields, sizeof(fields)) == 0 &&
        (!remote->nests || memcmp(code->hashes, hashes, sizeof(hashes)) == 0)) {
        krait_code_meet(remote, code);
        return code;
    }
    code = read_new(remote, addr, header, fields, hashes);
    bool stayed = code && read_header(remote, addr, header, after) &&
                  memcmp(fields, after, sizeof(fields)) == 0 && read_hashes(remote, fields, hashes_after) &&
                  memcmp(hashes, hashes_after, sizeof(hashes)) == 0;
    if (stayed && before && is_same_function(before, code) && !before->hashes[0]) {
        memcpy(before->hashes, hashes, sizeof(before->hashes));
        krait_map_put(&remote->codes.by_addr, addr, (uintptr_t)before);
        krait_code_meet(remote, before);
        return before;
    }
    return stayed ? code : NULL;
}

/* -- sweeping -- */

bool krait_codes_begin_sweep(struct krait_remote *remote)
{
    enum { FEW = 1024 };
    bool many = remote->codes.count >= KRAIT_MAX(remote->codes.most, (uint32_t)FEW);
    remote->codes.sweeps += many;
    return many;
}

/* What else points to one that is going to be freed. */
static void forget(struct krait_remote *remote, const struct krait_remote_code *code)
{
    uint64_t *at = krait_map_get(&remote->codes.by_addr, code->addr);
    if (at && *at == (uintptr_t)code)
        *at = 0;
    remote->no_step = remote->no_step == code ? NULL : remote->no_step;
}

void krait_codes_sweep(struct krait_remote *remote)
{
    struct krait_codes *codes = &remote->codes;
    uint32_t left = 0;
    memset(remote->lines, 0, sizeof(remote->lines));
    krait_running_tasks_sweep(remote);
    for (uint32_t i = 0; i < codes->count; i++) {
        struct krait_remote_code *code = codes->items[i];
        if (code->met == codes->sweeps) {
            codes->items[left++] = code;
            continue;
        }
        forget(remote, code);
        free_code(code);
    }
    codes->count = left;
    codes->most = 2 * left;
    krait_map_trim(&codes->by_addr, &codes->by_addr_most);
}

void krait_codes_done(struct krait_codes *codes)
{
    for (uint32_t i = 0; i < codes->count; i++)
        free_code(codes->items[i]);
    free(codes->items);
    krait_map_done(&codes->by_addr);
}
