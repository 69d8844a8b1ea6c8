/* SPDX-License-Identifier: Apache-2.0
 *
 * Enumerations: the labels of a value, found without going through all.
 */
#include "base/array.h"
#include "ctf/meta/cut.h"
#include "ctf/meta/model.h"
#include "ctf/scalar/text.h"

#include <string.h>

/* Labels of one value whose text is made ready. Nobody's enumeration has so many; one that is made to have them would
 * take its square of memory. */
enum { MOST_SHOWN = 16 };

/* -- look-ups -- */

const struct krait_enum_range *krait_enum_search(const struct krait_enum_map *map, uint64_t value,
                                                 bool is_signed)
{
    uint64_t flip = is_signed ? (uint64_t)1 << 63 : 0; /* orders signed numbers as unsigned ones */
    size_t i = KRAIT_PARTITION_POINT(at, map->piece_count, (map->pieces[at].hi ^ flip) < (value ^ flip));
    bool found = i < map->piece_count && krait_enum_holds(&map->pieces[i], value, is_signed);
    return found ? &map->pieces[i] : NULL;
}

const char *krait_enum_label(const struct krait_fc *fc, uint64_t value)
{
    const struct krait_enum_range *piece = krait_enum_range_of(fc->labels, value, fc->is_signed);
    return piece ? piece->label : NULL;
}

/* -- what is printed -- */

static void show_value(struct krait_buf *text, uint64_t value, bool is_signed)
{
    if (is_signed)
        krait_buf_fmt(text, "%lld )", (long long)value);
    else
        krait_buf_fmt(text, "%llu )", (unsigned long long)value);
}

/* How a map's labels are printed. */
struct shown {
    bool is_signed, in_braces;
};

/* A piece's labels, those of ranges in the order of label_id: what is printed before its value; and with it, where it
 * is the only one. */
static int show(struct krait_arena *arena, struct krait_enum_range *piece,
                const struct krait_enum_range *const *ranges, uint32_t count, const struct shown *as)
{
    KRAIT_AUTO_BUF text = { 0 };
    bool several = as->in_braces && ranges[count - 1]->label_id != ranges[0]->label_id;
    krait_buf_str(&text, several ? "( { " : "( ");
    for (uint32_t i = 0; i < count; i++) {
        if (i && ranges[i]->label_id == ranges[i - 1]->label_id)
            continue;
        krait_buf_str(&text, i ? ", " : "");
        krait_text_quoted(&text, ranges[i]->label, strlen(ranges[i]->label));
    }
    krait_buf_str(&text, several ? " } : container = " : " : container = ");
    piece->shown_len = (uint32_t)text.len;
    if (piece->lo == piece->hi)
        show_value(&text, piece->lo, as->is_signed);
    piece->whole_len = piece->lo == piece->hi ? (uint32_t)text.len : 0;
    piece->shown = text.failed ? NULL : krait_arena_strndup(arena, text.data, text.len);
    return piece->shown ? 0 : -ENOMEM;
}

/* -- pieces -- */

static int by_lo(const void *a, const void *b)
{
    uint64_t x = ((const struct krait_enum_range *)a)->lo, y = ((const struct krait_enum_range *)b)->lo;
    return x < y ? -1 : x > y;
}

static int by_signed_lo(const void *a, const void *b)
{
    int64_t x = (int64_t)((const struct krait_enum_range *)a)->lo;
    int64_t y = (int64_t)((const struct krait_enum_range *)b)->lo;
    return x < y ? -1 : x > y;
}

static int by_label(const void *a, const void *b)
{
    const struct krait_enum_range *x = *(const struct krait_enum_range *const *)a;
    const struct krait_enum_range *y = *(const struct krait_enum_range *const *)b;
    return x->label_id != y->label_id ? (x->label_id < y->label_id ? -1 : 1) : (x > y) - (x < y);
}

/* The ranges as they are, where none overlaps another. Returns whether that is so, or -ENOMEM. */
static int take_ranges(struct krait_arena *arena, struct krait_enum_map *map, bool is_signed)
{
    uint64_t flip = is_signed ? (uint64_t)1 << 63 : 0;
    struct krait_enum_range *pieces = krait_arena_alloc(arena, KRAIT_MAX(map->count, 1u) * sizeof(*pieces));
    if (!pieces)
        return -ENOMEM;
    if (map->count)
        memcpy(pieces, map->ranges, map->count * sizeof(*pieces));
    qsort(pieces, map->count, sizeof(*pieces), is_signed ? by_signed_lo : by_lo);
    for (uint32_t i = 1; i < map->count; i++) {
        if ((pieces[i].lo ^ flip) <= (pieces[i - 1].hi ^ flip))
            return false;
    }
    const struct shown as = { .is_signed = is_signed };
    for (uint32_t i = 0; i < map->count; i++) {
        const struct krait_enum_range *range = &pieces[i];
        if (show(arena, &pieces[i], &range, 1, &as))
            return -ENOMEM;
    }
    map->pieces = pieces;
    map->piece_count = map->count;
    return true;
}

static int cut(struct krait_pieces *pieces, const struct krait_enum_range *const *ranges, uint32_t count,
               bool is_signed, uint32_t most)
{
    KRAIT_AUTO_FREE struct krait_span *spans = calloc(count, sizeof(*spans));
    for (uint32_t i = 0; spans && i < count; i++)
        spans[i] = (struct krait_span){ ranges[i]->lo, ranges[i]->hi };
    return spans ? krait_cut(pieces, spans, count, is_signed, most) : -ENOMEM;
}

/* Both cuts have the same pieces: `named` with each's ranges by label, `first` with the first in the metadata's order. */
static int take_pieces(struct krait_arena *arena, struct krait_enum_map *map,
                       const struct krait_pieces *named, const struct krait_pieces *first, bool is_signed)
{
    const struct shown as = { .is_signed = is_signed, .in_braces = map->in_braces };
    int rc = 0;
    map->pieces = krait_arena_alloc(arena, named->count * sizeof(*map->pieces));
    if (!map->pieces)
        return -ENOMEM;
    map->piece_count = named->count;
    for (uint32_t i = 0; i < named->count && !rc; i++) {
        const struct krait_piece *piece = &named->list[i];
        const struct krait_enum_range *ranges[MOST_SHOWN + 1];
        for (uint32_t k = 0; k < piece->count; k++)
            ranges[k] = map->by_label[named->ranges[piece->first + k]];
        map->pieces[i] = map->ranges[first->ranges[first->list[i].first]];
        map->pieces[i].lo = piece->lo;
        map->pieces[i].hi = piece->hi;
        map->is_deep = map->is_deep || piece->count > MOST_SHOWN;
        if (piece->count <= MOST_SHOWN)
            rc = show(arena, &map->pieces[i], ranges, piece->count, &as);
    }
    return rc;
}

static int cut_ranges(struct krait_arena *arena, struct krait_enum_map *map, bool is_signed)
{
    KRAIT_CLEANUP(krait_pieces_done) struct krait_pieces named = { 0 };
    KRAIT_CLEANUP(krait_pieces_done) struct krait_pieces first = { 0 };
    map->by_label = krait_arena_alloc(arena, map->count * sizeof(*map->by_label));
    if (!map->by_label)
        return -ENOMEM;
    for (uint32_t i = 0; i < map->count; i++)
        map->by_label[i] = &map->ranges[i];
    int rc = cut(&first, map->by_label, map->count, is_signed, 1);
    qsort(map->by_label, map->count, sizeof(*map->by_label), by_label);
    if (!rc)
        rc = cut(&named, map->by_label, map->count, is_signed, MOST_SHOWN + 1);
    return rc ? rc : take_pieces(arena, map, &named, &first, is_signed);
}

/* Most enumerations count up from some number, with few gaps. No range ends before it begins: parsers see to it. */
static int index_values(struct krait_arena *arena, struct krait_enum_map *map)
{
    enum { GAPS = 64 };
    const struct krait_enum_range *pieces = map->pieces;
    uint32_t count = map->piece_count;
    uint64_t first = count ? pieces[0].lo : 0, last = count ? pieces[count - 1].hi : 0;
    if (!count || last - first >= (uint64_t)count * 2 + GAPS)
        return 0;
    map->by_value = krait_arena_alloc(arena, (last - first + 1) * sizeof(*map->by_value));
    if (!map->by_value)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        for (uint64_t at = pieces[i].lo - first; at <= pieces[i].hi - first; at++)
            map->by_value[at] = &pieces[i];
    }
    map->first = first;
    map->span = last - first + 1;
    return 0;
}

int krait_model_index_enum(struct krait_arena *arena, struct krait_enum_map *map, bool is_signed)
{
    map->indexed = true;
    int rc = take_ranges(arena, map, is_signed);
    if (!rc)
        rc = cut_ranges(arena, map, is_signed);
    return rc < 0 ? rc : index_values(arena, map);
}
