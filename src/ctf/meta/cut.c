/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/meta/cut.h"

#include "base/array.h"

#include <string.h>

/* -- a set of numbers, of which the lowest are found at once: a bit each, and a bit for each word that has any -- */

enum { LEVELS = 6, WORD = 64 }; /* 64^6 is more than all numbers of 32 bits */

struct set {
    uint64_t *words; /* owned: those of all levels */
    uint64_t *levels[LEVELS];
    size_t sizes[LEVELS]; /* words */
    unsigned count;
};

static int set_init(struct set *set, uint32_t numbers)
{
    size_t all = 0, size = KRAIT_MAX(numbers, 1u);
    do {
        size = (size + WORD - 1) / WORD;
        set->sizes[set->count++] = size;
        all += size;
    } while (size > 1);
    set->words = calloc(all, sizeof(*set->words));
    if (!set->words)
        return -ENOMEM;
    uint64_t *at = set->words;
    for (unsigned i = 0; i < set->count; at += set->sizes[i++])
        set->levels[i] = at;
    return 0;
}

static void set_done(struct set *set)
{
    free(set->words);
}

static void set_add(struct set *set, size_t n)
{
    for (unsigned i = 0; i < set->count; i++, n /= WORD)
        set->levels[i][n / WORD] |= (uint64_t)1 << n % WORD;
}

static void set_remove(struct set *set, size_t n)
{
    for (unsigned i = 0; i < set->count; i++, n /= WORD) {
        set->levels[i][n / WORD] &= ~((uint64_t)1 << n % WORD);
        if (set->levels[i][n / WORD])
            return;
    }
}

static bool set_is_empty(const struct set *set)
{
    return !set->levels[set->count - 1][0];
}

/* The lowest that is `from` or above, into *found. */
static bool set_next(const struct set *set, size_t from, size_t *found)
{
    for (unsigned i = 0; i < set->count && from / WORD < set->sizes[i]; i++, from = from / WORD + 1) {
        uint64_t word = set->levels[i][from / WORD] >> from % WORD << from % WORD;
        if (!word)
            continue;
        size_t n = from / WORD * WORD + (size_t)__builtin_ctzll(word);
        while (i-- > 0)
            n = n * WORD + (size_t)__builtin_ctzll(set->levels[i][n]);
        *found = n;
        return true;
    }
    return false;
}

/* -- cutting: from the lowest value to the highest, where ranges begin and end -- */

struct edge {
    uint64_t at; /* so that signed values are in order too */
    uint32_t range;
};

struct cutter {
    struct krait_pieces *pieces;
    struct edge *begins, *ends; /* in order; `ends` are the last values */
    uint32_t count, begun, ended;
    uint64_t flip;
    uint32_t most;
    struct set open;
};

static int by_place(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

static int add_range(struct krait_pieces *pieces, uint32_t range)
{
    if (!KRAIT_GROW(pieces->ranges, pieces->range_cap, pieces->range_count + 1))
        return -ENOMEM;
    pieces->ranges[pieces->range_count++] = range;
    return 0;
}

static int add_piece(struct cutter *c, uint64_t lo, uint64_t hi)
{
    struct krait_pieces *pieces = c->pieces;
    struct krait_piece *piece = &pieces->list[pieces->count++];
    *piece = (struct krait_piece){ .lo = lo ^ c->flip, .hi = hi ^ c->flip, .first = pieces->range_count };
    int rc = 0;
    for (size_t at = 0; piece->count < c->most && !rc && set_next(&c->open, at, &at); at++, piece->count++)
        rc = add_range(pieces, (uint32_t)at);
    return rc;
}

static int cut_all(struct cutter *c)
{
    int rc = 0;
    uint64_t at = 0;
    while (c->ended < c->count && !rc) {
        if (set_is_empty(&c->open))
            at = c->begins[c->begun].at;
        for (; c->begun < c->count && c->begins[c->begun].at == at; c->begun++)
            set_add(&c->open, c->begins[c->begun].range);
        uint64_t last = c->ends[c->ended].at;
        if (c->begun < c->count)
            last = KRAIT_MIN(last, c->begins[c->begun].at - 1);
        rc = add_piece(c, at, last);
        for (; c->ended < c->count && c->ends[c->ended].at == last; c->ended++)
            set_remove(&c->open, c->ends[c->ended].range);
        at = last + 1;
    }
    return rc;
}

int krait_cut(struct krait_pieces *pieces, const struct krait_span *ranges, uint32_t count, bool is_signed,
              uint32_t most)
{
    KRAIT_AUTO_FREE struct edge *edges = calloc((size_t)count * 2 + 1, sizeof(*edges));
    KRAIT_CLEANUP(set_done) struct set open = { 0 };
    struct cutter c = { .pieces = pieces,
                        .begins = edges,
                        .ends = edges ? edges + count : NULL,
                        .count = count,
                        .flip = is_signed ? (uint64_t)1 << 63 : 0,
                        .most = most };
    pieces->list = calloc((size_t)count * 2 + 1, sizeof(*pieces->list));
    if (!edges || !pieces->list || set_init(&open, count))
        return -ENOMEM;
    c.open = open;
    for (uint32_t i = 0; i < count; i++) {
        c.begins[i] = (struct edge){ ranges[i].lo ^ c.flip, i };
        c.ends[i] = (struct edge){ ranges[i].hi ^ c.flip, i };
    }
    qsort(c.begins, count, sizeof(*c.begins), by_place);
    qsort(c.ends, count, sizeof(*c.ends), by_place);
    return cut_all(&c);
}

void krait_pieces_done(struct krait_pieces *pieces)
{
    free(pieces->list);
    free(pieces->ranges);
    *pieces = (struct krait_pieces){ 0 };
}
