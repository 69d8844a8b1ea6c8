/* SPDX-License-Identifier: Apache-2.0 */
#include "view/arrows.h"

#include "base/array.h"

enum {
    COLUMN_BITS = 12,
    TRACK_BITS = 20
}; /* of a key; with more tracks, arrows of several of them may be one */
enum { COLUMNS_MIN = 32 };

void krait_arrows_done(struct krait_arrows *arrows)
{
    free(arrows->items);
    krait_map_done(&arrows->at);
}

uint64_t krait_arrows_column(uint64_t ns, uint64_t columns)
{
    columns = KRAIT_MIN(KRAIT_MAX(columns, 1ull), (uint64_t)KRAIT_ARROW_COLUMNS_MAX);
    return ns / columns + 1;
}

static uint64_t column_of(const struct krait_arrows *arrows, uint64_t t_ns)
{
    uint64_t since = t_ns - KRAIT_MIN(arrows->from_ns, t_ns);
    return KRAIT_MIN(since / arrows->column_ns, KRAIT_ARROW_COLUMNS_MAX - 1ull);
}

static uint64_t key_of(const struct krait_arrows *arrows, const struct krait_arrow *arrow)
{
    const uint64_t track = (1 << TRACK_BITS) - 1;
    uint64_t from = (arrow->from & track) >> arrows->joined << COLUMN_BITS | column_of(arrows, arrow->t_ns);
    uint64_t to = (arrow->to & track) >> arrows->joined << COLUMN_BITS | column_of(arrows, arrow->end_ns);
    return from << (TRACK_BITS + COLUMN_BITS) | to;
}

/* Adds one unless there is one like it, or no room. */
static int add(struct krait_arrows *arrows, struct krait_arrow arrow)
{
    uint64_t key = arrows->column_ns ? key_of(arrows, &arrow) : 0;
    if (arrows->count == arrows->most || (arrows->column_ns && krait_map_get(&arrows->at, key))) {
        arrows->more++;
        return 0;
    }
    if (!KRAIT_GROW(arrows->items, arrows->cap, arrows->count + 1) ||
        (arrows->column_ns && krait_map_put(&arrows->at, key, arrows->count)))
        return -ENOMEM;
    arrows->items[arrows->count++] = arrow;
    return 0;
}

/* Doubles the columns, or the tracks that are as one; so that fewer arrows differ. */
static int widen(struct krait_arrows *arrows)
{
    uint32_t count = arrows->count;
    int rc = 0;
    krait_map_done(&arrows->at);
    arrows->at = (struct krait_map){ 0 };
    if (arrows->column_ns > arrows->ns / COLUMNS_MIN && arrows->joined < TRACK_BITS)
        arrows->joined++;
    else
        arrows->column_ns *= 2;
    arrows->count = 0;
    for (uint32_t i = 0; i < count && !rc; i++)
        rc = add(arrows, arrows->items[i]);
    return rc;
}

/* Whether a column is not yet as wide as any range. */
static bool can_widen(const struct krait_arrows *arrows)
{
    return arrows->column_ns && arrows->most && arrows->column_ns <= UINT64_MAX / 4;
}

int krait_arrows_add(struct krait_arrows *arrows, struct krait_arrow arrow)
{
    int rc = 0;
    while (arrows->count == arrows->most && can_widen(arrows) &&
           !krait_map_get(&arrows->at, key_of(arrows, &arrow)) && !rc)
        rc = widen(arrows);
    return rc ? rc : add(arrows, arrow);
}
