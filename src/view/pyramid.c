/* SPDX-License-Identifier: Apache-2.0 */
#include "view/pyramid.h"

#include "base/array.h"

#include <string.h>

enum {
    WINDOW = 4,           /* cells that are open: a call that is shorter than 3 began in the last 4 */
    CELLS_FREE = 1 << 12, /* cells and calls of the first level that are always kept */
    CALLS_A_CELL = 64,    /* and one more for so many calls */
};

/* A level while it is built. The cells of its window are by depth and number. */
struct window {
    uint64_t base;               /* number of the window's first cell */
    uint32_t depths[WINDOW];     /* that are in use, by the cell's number modulo WINDOW */
    struct krait_tile_bin *bins; /* WINDOW of each depth */
    uint32_t cap;                /* of them */
};

struct krait_pyramid_build {
    struct krait_pyramid pyramid;
    struct window windows[KRAIT_PYRAMID_LEVELS];
    uint64_t next; /* time at which the first level's window moves */
    bool failed;
};

static unsigned shift_of(uint32_t level)
{
    return KRAIT_PYRAMID_SHIFT + KRAIT_PYRAMID_STEP * level;
}

/* Calls that last as long or longer are not in the level's cells. */
static uint64_t wide_of(uint32_t level)
{
    return (uint64_t)KRAIT_TILE_WIDE << shift_of(level);
}

static void level_done(struct krait_pyramid_level *level)
{
    free(level->cells);
    free(level->calls);
    *level = (struct krait_pyramid_level){ 0 };
}

/* ---- building ---- */

int krait_pyramid_build_new(struct krait_pyramid_build **out, uint64_t zero_ns)
{
    struct krait_pyramid_build *build = calloc(1, sizeof(*build));
    if (!build)
        return -ENOMEM;
    build->pyramid.zero_ns = zero_ns;
    *out = build;
    return 0;
}

void krait_pyramid_build_free(struct krait_pyramid_build *build)
{
    if (!build)
        return;
    for (uint32_t i = 0; i < KRAIT_PYRAMID_LEVELS; i++)
        free(build->windows[i].bins);
    krait_pyramid_done(&build->pyramid);
    free(build);
}

static struct krait_tile_bin *bin_at(struct window *window, uint32_t depth, uint64_t cell)
{
    uint32_t slot = cell % WINDOW;
    if (!KRAIT_GROW_FILLED(window->bins, window->cap, (depth + 1) * WINDOW, 0))
        return NULL;
    window->depths[slot] = KRAIT_MAX(window->depths[slot], depth + 1);
    return &window->bins[depth * WINDOW + slot];
}

static void add_to_bin(struct krait_tile_bin *bin, uint64_t busy_ns, uint64_t longest_ns, uint32_t func,
                       uint32_t count)
{
    if (longest_ns > bin->longest_ns || (longest_ns == bin->longest_ns && func < bin->func) ||
        krait_tile_bin_is_empty(bin)) {
        bin->longest_ns = longest_ns;
        bin->func = func;
    }
    bin->busy_ns += busy_ns;
    bin->count += count;
}

/* What the level above has of a cell. */
static void pass_on(struct krait_pyramid_build *build, uint32_t level, uint64_t cell, uint32_t depth,
                    const struct krait_tile_bin *bin)
{
    if (level + 1 == KRAIT_PYRAMID_LEVELS)
        return;
    struct krait_tile_bin *above = bin_at(&build->windows[level + 1], depth, cell >> KRAIT_PYRAMID_STEP);
    if (above)
        add_to_bin(above, bin->busy_ns, bin->longest_ns, bin->func, bin->count);
    else
        build->failed = true;
}

/* A cell is whole: keeps what is in it. */
static void close_cell(struct krait_pyramid_build *build, uint32_t at, uint64_t cell)
{
    struct window *window = &build->windows[at];
    struct krait_pyramid_level *level = &build->pyramid.levels[at];
    uint32_t slot = cell % WINDOW;
    for (uint32_t depth = 0; depth < window->depths[slot]; depth++) {
        struct krait_tile_bin *bin = &window->bins[depth * WINDOW + slot];
        if (krait_tile_bin_is_empty(bin))
            continue;
        if (!KRAIT_GROW(level->cells, level->cell_cap, level->cell_count + 1)) {
            build->failed = true;
            return;
        }
        level->cells[level->cell_count++] =
            (struct krait_pyramid_cell){ cell << 16 | depth, bin->busy_ns, bin->longest_ns, bin->count,
                                         bin->func };
        pass_on(build, at, cell, depth, bin);
        *bin = (struct krait_tile_bin){ 0 };
    }
    window->depths[slot] = 0;
}

/* Moves a level's window up to a base, if it is not there yet. */
static void move_window(struct krait_pyramid_build *build, uint32_t level, uint64_t base)
{
    struct window *window = &build->windows[level];
    uint64_t end = KRAIT_MIN(base, window->base + WINDOW);
    for (uint64_t cell = window->base; cell < end; cell++)
        close_cell(build, level, cell);
    window->base = KRAIT_MAX(window->base, base);
}

/* What the first level has is in the next one, too. */
static void drop_first(struct krait_pyramid_build *build)
{
    struct krait_pyramid *pyramid = &build->pyramid;
    move_window(build, pyramid->first, UINT64_MAX);
    level_done(&pyramid->levels[pyramid->first]);
    free(build->windows[pyramid->first].bins);
    build->windows[pyramid->first] = (struct window){ 0 };
    pyramid->first++;
}

static bool is_too_fine(const struct krait_pyramid *pyramid)
{
    const struct krait_pyramid_level *level = &pyramid->levels[pyramid->first];
    return pyramid->first + 1 < KRAIT_PYRAMID_LEVELS &&
           level->cell_count + level->call_count > CELLS_FREE + pyramid->calls / CALLS_A_CELL;
}

/* From below, so that the windows above still have room for what is passed on. */
static KRAIT_APART void move_windows(struct krait_pyramid_build *build, uint64_t since)
{
    struct krait_pyramid *pyramid = &build->pyramid;
    for (uint32_t i = pyramid->first; i < KRAIT_PYRAMID_LEVELS; i++) {
        uint64_t cell = since >> shift_of(i);
        move_window(build, i, cell < WINDOW ? 0 : cell - (WINDOW - 1));
    }
    while (is_too_fine(pyramid))
        drop_first(build);
    build->next = ((since >> shift_of(pyramid->first)) + 1) << shift_of(pyramid->first);
}

/* A call that is shorter than 3 cells of the level. Times are since zero_ns. */
static inline void fold(struct krait_pyramid_build *build, uint32_t level, uint64_t begin, uint64_t end,
                        const struct krait_tile_call *call)
{
    unsigned shift = shift_of(level);
    uint64_t cell = begin >> shift;
    uint32_t count = call->begin == KRAIT_OP_CALL;
    for (uint64_t at = begin;; cell++) {
        uint64_t border = (cell + 1) << shift;
        struct krait_tile_bin *bin = bin_at(&build->windows[level], call->depth, cell);
        if (KRAIT_UNLIKELY(!bin)) {
            build->failed = true;
            return;
        }
        add_to_bin(bin, KRAIT_MIN(end, border) - at, end - begin, call->func, count);
        if (KRAIT_LIKELY(end <= border))
            return;
        at = border;
        count = 0;
    }
}

/* The class of a call that is too long for the first level's cells: the highest level for which it is. */
static uint32_t class_of(uint32_t first, uint64_t ns)
{
    uint32_t level = first;
    while (level + 1 < KRAIT_PYRAMID_LEVELS && ns >= wide_of(level + 1))
        level++;
    return level;
}

static KRAIT_APART void add_long(struct krait_pyramid_build *build, const struct krait_tile_call *call,
                                 uint64_t begin, uint64_t end)
{
    struct krait_pyramid *pyramid = &build->pyramid;
    uint32_t class = class_of(pyramid->first, end - begin);
    struct krait_pyramid_level *level = &pyramid->levels[class];
    if (!KRAIT_GROW(level->calls, level->call_cap, level->call_count + 1)) {
        build->failed = true;
        return;
    }
    level->calls[level->call_count++] = *call;
    if (class + 1 < KRAIT_PYRAMID_LEVELS)
        fold(build, class + 1, begin, end, call);
}

void krait_pyramid_add(struct krait_pyramid_build *build, const struct krait_tile_call *call)
{
    struct krait_pyramid *pyramid = &build->pyramid;
    uint64_t begin = call->begin_ns - pyramid->zero_ns, end = call->end_ns - pyramid->zero_ns;
    pyramid->calls++;
    if (KRAIT_UNLIKELY(call->depth >= pyramid->deepest))
        pyramid->deepest = call->depth + 1;
    if (KRAIT_UNLIKELY(end >= build->next))
        move_windows(build, end);
    if (KRAIT_UNLIKELY(call->depth >= KRAIT_PYRAMID_DEPTHS))
        return;
    if (KRAIT_LIKELY(end - begin < wide_of(pyramid->first)))
        fold(build, pyramid->first, begin, end, call);
    else
        add_long(build, call, begin, end);
}

static int by_begin(const void *a, const void *b)
{
    const struct krait_tile_call *x = a, *y = b;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    return (x->depth > y->depth) - (x->depth < y->depth);
}

/* What was appended one by one has more room than it needs. */
static void *trim(void *items, size_t bytes)
{
    if (!bytes) {
        free(items);
        return NULL;
    }
    void *trimmed = realloc(items, bytes);
    return trimmed ? trimmed : items;
}

int krait_pyramid_finish(struct krait_pyramid_build *build, struct krait_pyramid *out)
{
    struct krait_pyramid *pyramid = &build->pyramid;
    for (uint32_t i = pyramid->first; i < KRAIT_PYRAMID_LEVELS; i++)
        move_window(build, i, UINT64_MAX);
    if (build->failed)
        return -ENOMEM;
    for (uint32_t i = 0; i < KRAIT_PYRAMID_LEVELS; i++) {
        struct krait_pyramid_level *level = &pyramid->levels[i];
        level->cells = trim(level->cells, level->cell_count * sizeof(*level->cells));
        level->calls = trim(level->calls, level->call_count * sizeof(*level->calls));
        if (level->call_count)
            qsort(level->calls, level->call_count, sizeof(*level->calls), by_begin);
    }
    *out = *pyramid;
    memset(pyramid, 0, sizeof(*pyramid));
    return 0;
}

void krait_pyramid_done(struct krait_pyramid *pyramid)
{
    for (uint32_t i = 0; i < KRAIT_PYRAMID_LEVELS; i++)
        level_done(&pyramid->levels[i]);
}

size_t krait_pyramid_size(const struct krait_pyramid *pyramid)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < KRAIT_PYRAMID_LEVELS; i++) {
        bytes += pyramid->levels[i].cell_count * sizeof(struct krait_pyramid_cell);
        bytes += pyramid->levels[i].call_count * sizeof(struct krait_tile_call);
    }
    return bytes;
}

/* ---- asking ---- */

static size_t first_cell(const struct krait_pyramid_level *level, uint64_t key)
{
    size_t low = 0, high = level->cell_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (level->cells[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t first_call(const struct krait_pyramid_level *level, uint64_t begin_ns)
{
    size_t low = 0, high = level->call_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (level->calls[middle].begin_ns < begin_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The calls of a class are shorter than 3 cells of the next level, so that those that began before the tile began
 * soon before it. */
static int add_class(const struct krait_pyramid *pyramid, uint32_t class, struct krait_tile *tile,
                     uint64_t to_ns)
{
    const struct krait_pyramid_level *level = &pyramid->levels[class];
    uint64_t before = class + 1 < KRAIT_PYRAMID_LEVELS ? wide_of(class + 1) : UINT64_MAX;
    size_t i = tile->from_ns > before ? first_call(level, tile->from_ns - before) : 0;
    int rc = 0;
    for (; i < level->call_count && level->calls[i].begin_ns < to_ns && !rc; i++)
        rc = krait_tile_add(tile, &level->calls[i]);
    return rc;
}

static int add_cells(const struct krait_pyramid *pyramid, uint32_t at, struct krait_tile *tile, uint64_t from,
                     uint64_t to, unsigned bin_shift)
{
    const struct krait_pyramid_level *level = &pyramid->levels[at];
    unsigned shift = shift_of(at);
    int rc = 0;
    for (size_t i = first_cell(level, (from >> shift) << 16); i < level->cell_count && !rc; i++) {
        const struct krait_pyramid_cell *cell = &level->cells[i];
        uint64_t number = cell->key >> 16;
        if (number << shift >= to)
            break;
        const struct krait_tile_bin bin = { cell->busy_ns, cell->longest_ns, cell->func, cell->count };
        rc = krait_tile_add_bin(tile, cell->key & UINT16_MAX,
                                (uint32_t)(((number << shift) - from) >> bin_shift), &bin);
    }
    return rc;
}

static uint32_t level_for(const struct krait_pyramid *pyramid, unsigned bin_shift)
{
    uint32_t level = pyramid->first;
    while (level + 1 < KRAIT_PYRAMID_LEVELS && shift_of(level + 1) <= bin_shift)
        level++;
    return level;
}

int krait_pyramid_tile(const struct krait_pyramid *pyramid, const struct krait_pyramid_short *small,
                       struct krait_tile *tile, uint64_t from_ns, unsigned bin_shift, uint32_t bins,
                       uint32_t depth_limit)
{
    uint64_t to_ns = from_ns + ((uint64_t)bins << bin_shift), from = from_ns - pyramid->zero_ns;
    uint32_t level = level_for(pyramid, bin_shift);
    bool is_short = bin_shift < shift_of(level);
    krait_tile_init(tile, from_ns, (uint64_t)1 << bin_shift, bins, depth_limit);
    int rc = is_short ? small->tell(small->ctx, from_ns, to_ns, wide_of(level), tile)
                      : add_cells(pyramid, level, tile, from, from + (to_ns - from_ns), bin_shift);
    for (uint32_t class = level; class < KRAIT_PYRAMID_LEVELS && !rc; class ++)
        rc = add_class(pyramid, class, tile, to_ns);
    return rc;
}

const struct krait_pyramid *krait_pyramid_so_far(const struct krait_pyramid_build *build)
{
    return &build->pyramid;
}

/* Its classes are not in order. */
int krait_pyramid_peek(const struct krait_pyramid *pyramid, struct krait_tile *tile, uint64_t from_ns,
                       unsigned bin_shift, uint32_t bins, uint32_t depth_limit)
{
    uint64_t from = from_ns - pyramid->zero_ns, to = from + ((uint64_t)bins << bin_shift);
    uint32_t level = level_for(pyramid, bin_shift);
    krait_tile_init(tile, from_ns, (uint64_t)1 << bin_shift, bins, depth_limit);
    int rc = bin_shift < shift_of(level) ? 0 : add_cells(pyramid, level, tile, from, to, bin_shift);
    for (uint32_t class = level; class < KRAIT_PYRAMID_LEVELS; class ++) {
        for (size_t i = 0; i < pyramid->levels[class].call_count && !rc; i++)
            rc = krait_tile_add(tile, &pyramid->levels[class].calls[i]);
    }
    return rc;
}
