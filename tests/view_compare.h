/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether two views of one trace give the same tiles: one with an index, and one that walks.
 */
#ifndef KRAIT_TESTS_VIEW_COMPARE_H
#define KRAIT_TESTS_VIEW_COMPARE_H

#include "view/index.h"

#include <string.h>

struct view_dice {
    uint64_t seed;
};

static inline uint32_t view_dice(struct view_dice *dice)
{
    dice->seed = dice->seed * 6364136223846793005ull + 1442695040888963407ull; /* Knuth's MMIX generator */
    return (uint32_t)(dice->seed >> 33);
}

/* Says on stderr where they differ. */
static inline bool view_same_tile(struct krait_view *a, struct krait_view *b, struct krait_view_query query)
{
    KRAIT_AUTO_BUF x = { 0 };
    KRAIT_AUTO_BUF y = { 0 };
    int rc_a = krait_view_tile(a, &query, &x), rc_b = krait_view_tile(b, &query, &y);
    size_t n = KRAIT_MIN(x.len, y.len), at = 0;
    if (rc_a || rc_b) {
        fprintf(stderr, "track %u level %u tile %llu: %d and %d\n", query.track, query.level,
                (unsigned long long)query.tile, rc_a, rc_b);
        return false;
    }
    while (at < n && x.data[at] == y.data[at])
        at++;
    if (at == n && x.len == y.len)
        return true;
    fprintf(stderr, "track %u level %u tile %llu: byte %zu of %zu and %zu differs\n", query.track,
            query.level, (unsigned long long)query.tile, at, x.len, y.len);
    return false;
}

static inline uint8_t view_top_level(struct krait_view *view)
{
    uint8_t level = 0;
    while ((uint64_t)KRAIT_WIRE_BINS << level <= krait_view_length(view))
        level++;
    return level;
}

/* Tiles of a track: at each level the first, the last, and `count` by chance. Returns how many differ. */
static inline uint32_t view_compare_track(struct krait_view *a, struct krait_view *b, uint32_t track,
                                          uint32_t count, struct view_dice *dice)
{
    uint32_t differ = 0;
    for (uint8_t level = 0; level <= view_top_level(a); level++) {
        uint64_t last = krait_view_length(a) >> level >> KRAIT_WIRE_BINS_LOG2;
        differ += !view_same_tile(a, b, (struct krait_view_query){ track, level, 0 });
        differ += last && !view_same_tile(a, b, (struct krait_view_query){ track, level, last });
        for (uint32_t i = 0; i < count && last; i++) {
            uint64_t tile = ((uint64_t)view_dice(dice) << 31 | view_dice(dice)) % (last + 1);
            differ += !view_same_tile(a, b, (struct krait_view_query){ track, level, tile });
        }
    }
    return differ;
}

#endif
