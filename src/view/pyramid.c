/* SPDX-License-Identifier: Apache-2.0 */
#include "view/pyramid.h"

#include "base/array.h"

#include <string.h>

enum {
    WINDOW = 4,           /* open cells: a call of less than 3 cells began in the last 4 */
    CELLS_FREE = 1 << 12, /* cells and calls of the first level that are always kept */
    CALLS_A_CELL = 64,    /* and one more for so many calls */
    DEPTHS = KRAIT_PYRAMID_DEPTHS,
};

/* A level while it is built. */
struct window {
    uint64_t base;                               /* number of the window's first cell */
    uint32_t depths[WINDOW];                     /* that are in use, by the cell's number modulo WINDOW */
    struct krait_tile_bin bins[DEPTHS * WINDOW]; /* by depth, then number modulo WINDOW */
};

struct open_call {
    uint64_t begin;
    uint32_t func;
    uint8_t kind; /* enum krait_op_kind */
};

struct krait_pyramid_build {
    struct krait_pyramid pyramid;
    struct window windows[KRAIT_PYRAMID_LEVELS];
    struct open_call *open; /* of krait_pyramid_ops */
    uint32_t open_count, open_cap;
    uint64_t next; /* time at which the first level's window moves */
    uint64_t last; /* of krait_pyramid_ops */
    bool failed;
};

static unsigned shift_of(uint32_t level)
{
    return KRAIT_PYRAMID_SHIFT + KRAIT_PYRAMID_STEP * level;
}

/* Calls of this length or longer are not in the level's cells. */
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

/* ---- building: cells ---- */

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
    free(build->open);
    krait_pyramid_done(&build->pyramid);
    free(build);
}

static inline struct krait_tile_bin *bin_at(struct window *window, uint32_t depth, uint64_t cell)
{
    uint32_t slot = cell % WINDOW;
    if (KRAIT_UNLIKELY(depth >= window->depths[slot]))
        window->depths[slot] = depth + 1;
    return &window->bins[depth * WINDOW + slot];
}

/* As krait_tile_add_bin does. */
static inline void add_to_bin(struct krait_tile_bin *bin, uint64_t busy_ns, uint64_t longest_ns,
                              uint32_t func, uint32_t count)
{
    if (KRAIT_UNLIKELY(longest_ns >= bin->longest_ns) && (busy_ns || count) &&
        (longest_ns > bin->longest_ns || func < bin->func || krait_tile_bin_is_empty(bin))) {
        bin->longest_ns = longest_ns;
        bin->func = func;
    }
    bin->busy_ns += busy_ns;
    bin->count += count;
}

/* A cell is complete: stores it, and adds it to the level above. */
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
            (struct krait_pyramid_cell){ cell << KRAIT_PYRAMID_DEPTH_BITS | depth, bin->busy_ns,
                                         bin->longest_ns, bin->count, bin->func };
        if (at + 1 < KRAIT_PYRAMID_LEVELS)
            add_to_bin(bin_at(&build->windows[at + 1], depth, cell >> KRAIT_PYRAMID_STEP), bin->busy_ns,
                       bin->longest_ns, bin->func, bin->count);
        *bin = (struct krait_tile_bin){ 0 };
    }
    window->depths[slot] = 0;
}

/* Moves a level's window to a base, if it is not there yet. */
static void move_window(struct krait_pyramid_build *build, uint32_t level, uint64_t base)
{
    struct window *window = &build->windows[level];
    uint64_t end = KRAIT_MIN(base, window->base + WINDOW);
    for (uint64_t cell = window->base; cell < end; cell++)
        close_cell(build, level, cell);
    window->base = KRAIT_MAX(window->base, base);
}

/* ---- building: what is too deep for cells ---- */

/* Of the next level's cells. Where the stack stays deep from one of these cells into the next, it is so at its begin. */
static void widen_deep(struct krait_pyramid *pyramid)
{
    size_t n = 0;
    for (size_t i = 0; i < pyramid->deep_count; i++) {
        struct krait_pyramid_deep deep = pyramid->deep[i];
        bool begins_later = deep.cell & ((1u << KRAIT_PYRAMID_STEP) - 1);
        deep.cell >>= KRAIT_PYRAMID_STEP;
        if (n && pyramid->deep[n - 1].cell == deep.cell) {
            struct krait_pyramid_deep *before = &pyramid->deep[n - 1];
            before->deepest = KRAIT_MAX(before->deepest, deep.deepest);
            before->begun += deep.begun;
            before->height = deep.height;
            continue;
        }
        if (n && begins_later && pyramid->deep[n - 1].height > DEPTHS)
            deep.deepest = KRAIT_MAX(deep.deepest, pyramid->deep[n - 1].height);
        pyramid->deep[n++] = deep;
    }
    pyramid->deep_count = n;
}

/* The stack's height changes, from or to more than DEPTHS. A call that ends at a cell's begin is not in the cell. */
static KRAIT_APART void add_deep(struct krait_pyramid_build *build, uint64_t t, uint32_t before,
                                 uint32_t after, bool begins)
{
    struct krait_pyramid *pyramid = &build->pyramid;
    uint64_t cell = t >> shift_of(pyramid->first);
    bool is_inside = t > cell << shift_of(pyramid->first);
    if (!pyramid->deep_count || pyramid->deep[pyramid->deep_count - 1].cell != cell) {
        if (!KRAIT_GROW(pyramid->deep, pyramid->deep_cap, pyramid->deep_count + 1)) {
            build->failed = true;
            return;
        }
        pyramid->deep[pyramid->deep_count++] = (struct krait_pyramid_deep){ .cell = cell };
    }
    struct krait_pyramid_deep *deep = &pyramid->deep[pyramid->deep_count - 1];
    deep->deepest = KRAIT_MAX(deep->deepest, KRAIT_MAX(is_inside ? before : 0, after > before ? after : 0));
    deep->begun += begins;
    deep->height = after;
}

/* ---- building: calls ---- */

/* The next level also contains what the first level has. */
static void drop_first(struct krait_pyramid_build *build)
{
    struct krait_pyramid *pyramid = &build->pyramid;
    move_window(build, pyramid->first, UINT64_MAX);
    level_done(&pyramid->levels[pyramid->first]);
    widen_deep(pyramid);
    pyramid->first++;
}

static bool is_too_fine(const struct krait_pyramid *pyramid)
{
    const struct krait_pyramid_level *level = &pyramid->levels[pyramid->first];
    return pyramid->first + 1 < KRAIT_PYRAMID_LEVELS &&
           level->cell_count + level->call_count + pyramid->deep_count >
               CELLS_FREE + pyramid->calls / CALLS_A_CELL;
}

/* From below, so that the windows above still have room for the cells that are added. */
static KRAIT_APART void move_windows(struct krait_pyramid_build *build, uint64_t since)
{
    struct krait_pyramid *pyramid = &build->pyramid;
    for (uint32_t i = pyramid->first; i < KRAIT_PYRAMID_LEVELS; i++) {
        uint64_t cell = since >> shift_of(i);
        uint64_t base = cell < WINDOW ? 0 : cell - (WINDOW - 1);
        if (i > pyramid->first && base <= build->windows[i].base)
            break; /* nor do those above */
        move_window(build, i, base);
    }
    while (is_too_fine(pyramid))
        drop_first(build);
    build->next = ((since >> shift_of(pyramid->first)) + 1) << shift_of(pyramid->first);
}

/* A call that is shorter than 3 cells of the level. Times are since zero_ns. */
static void fold(struct krait_pyramid_build *build, uint32_t level, uint64_t begin, uint64_t end,
                 const struct krait_tile_call *call)
{
    unsigned shift = shift_of(level);
    uint64_t cell = begin >> shift;
    uint32_t count = call->begin == KRAIT_OP_CALL;
    for (uint64_t at = begin;; cell++) {
        uint64_t border = (cell + 1) << shift;
        add_to_bin(bin_at(&build->windows[level], call->depth, cell), KRAIT_MIN(end, border) - at,
                   end - begin, call->func, count);
        if (end <= border)
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

static void add_long(struct krait_pyramid_build *build, const struct krait_tile_call *call, uint64_t begin,
                     uint64_t end)
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

static KRAIT_APART void add_apart(struct krait_pyramid_build *build, const struct krait_tile_call *call)
{
    struct krait_pyramid *pyramid = &build->pyramid;
    uint64_t begin = call->begin_ns - pyramid->zero_ns, end = call->end_ns - pyramid->zero_ns;
    if (end - begin < wide_of(pyramid->first))
        fold(build, pyramid->first, begin, end, call);
    else
        add_long(build, call, begin, end);
}

void krait_pyramid_add(struct krait_pyramid_build *build, const struct krait_tile_call *call)
{
    build->pyramid.calls++;
    if (KRAIT_UNLIKELY(call->end_ns - build->pyramid.zero_ns >= build->next))
        move_windows(build, call->end_ns - build->pyramid.zero_ns);
    if (call->depth < DEPTHS)
        add_apart(build, call);
}

static KRAIT_APART bool grow_open(struct krait_pyramid_build *build)
{
    build->failed |= !KRAIT_GROW(build->open, build->open_cap, build->open_count + 1);
    return !build->failed;
}

/* Times are since zero_ns. hot path */
static inline void end_call(struct krait_pyramid_build *build, uint64_t t, uint8_t kind)
{
    struct krait_pyramid *pyramid = &build->pyramid;
    const struct open_call call = build->open[--build->open_count];
    const uint32_t depth = build->open_count;
    const unsigned shift = shift_of(pyramid->first);
    if (KRAIT_UNLIKELY(depth >= DEPTHS))
        add_deep(build, t, depth + 1, depth, false);
    else if (KRAIT_LIKELY(call.begin >> shift == t >> shift))
        add_to_bin(bin_at(&build->windows[pyramid->first], depth, t >> shift), t - call.begin, t - call.begin,
                   call.func, call.kind == KRAIT_OP_CALL);
    else
        add_apart(build, &(struct krait_tile_call){ .begin_ns = call.begin + pyramid->zero_ns,
                                                    .end_ns = t + pyramid->zero_ns,
                                                    .func = call.func,
                                                    .depth = depth,
                                                    .begin = call.kind,
                                                    .end = kind });
}

int krait_pyramid_ops(struct krait_pyramid_build *build, const struct krait_call_batch *batch,
                      uint64_t origin_ns)
{
    for (uint32_t i = 0; i < batch->n; i++) {
        uint64_t t = batch->t_ns[i] - origin_ns;
        uint8_t kind = krait_op_shown(batch, i);
        t = KRAIT_UNLIKELY(t > KRAIT_PYRAMID_TIME_MAX) ? (int64_t)t < 0 ? 0 : KRAIT_PYRAMID_TIME_MAX : t;
        build->last = t;
        if (krait_op_is_end(kind)) {
            if (KRAIT_UNLIKELY(t >= build->next))
                move_windows(build, t);
            end_call(build, t, kind);
            continue;
        }
        if (KRAIT_UNLIKELY(build->open_count == build->open_cap) && !grow_open(build))
            return -ENOMEM;
        if (KRAIT_UNLIKELY(build->open_count >= DEPTHS))
            add_deep(build, t, build->open_count, build->open_count + 1, kind == KRAIT_OP_CALL);
        build->open[build->open_count++] = (struct open_call){ t, batch->func[i], kind };
    }
    build->pyramid.calls += batch->n / 2;
    return build->failed ? -ENOMEM : 0;
}

static int by_begin(const void *a, const void *b)
{
    const struct krait_tile_call *x = a, *y = b;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    return (x->depth > y->depth) - (x->depth < y->depth);
}

/* They came in the order of their ends. Calls of a class that were added since the last time began shortly before. */
static void sort_calls(struct krait_pyramid_level *level)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = level->call_sorted; i < level->call_count; i++)
        least = KRAIT_MIN(least, level->calls[i].begin_ns);
    size_t first = KRAIT_PARTITION_POINT(i, level->call_sorted, level->calls[i].begin_ns < least);
    if (first < level->call_count)
        qsort(level->calls + first, level->call_count - first, sizeof(*level->calls), by_begin);
    level->call_sorted = level->call_count;
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
        KRAIT_TRIM(level->cells, level->cell_cap, level->cell_count);
        KRAIT_TRIM(level->calls, level->call_cap, level->call_count);
        sort_calls(level);
    }
    *out = *pyramid;
    memset(pyramid, 0, sizeof(*pyramid));
    return 0;
}

int krait_pyramid_finish_new(struct krait_pyramid_build *build, struct krait_pyramid **out)
{
    struct krait_pyramid *pyramid = calloc(1, sizeof(*pyramid));
    int rc = pyramid ? krait_pyramid_finish(build, pyramid) : -ENOMEM;
    if (rc)
        free(pyramid);
    else
        *out = pyramid;
    return rc;
}

/* NULL for nothing, and without memory: *failed is set then. */
static void *copy_of(const void *items, size_t count, size_t size, bool *failed)
{
    void *copy = count ? malloc(count * size) : NULL;
    if (copy)
        memcpy(copy, items, count * size);
    *failed |= count && !copy;
    return copy;
}

/* Its arrays have no more room than they need. */
static struct krait_pyramid_build *copy_build(const struct krait_pyramid_build *build)
{
    struct krait_pyramid_build *copy = malloc(sizeof(*copy));
    if (!copy)
        return NULL;
    memcpy(copy, build, sizeof(*copy));
    struct krait_pyramid *pyramid = &copy->pyramid;
    copy->open = copy_of(build->open, copy->open_count, sizeof(*copy->open), &copy->failed);
    copy->open_cap = copy->open_count;
    pyramid->deep = copy_of(pyramid->deep, pyramid->deep_count, sizeof(*pyramid->deep), &copy->failed);
    pyramid->deep_cap = pyramid->deep_count;
    for (uint32_t i = 0; i < KRAIT_PYRAMID_LEVELS; i++) {
        struct krait_pyramid_level *level = &pyramid->levels[i];
        level->cells = copy_of(level->cells, level->cell_count, sizeof(*level->cells), &copy->failed);
        level->calls = copy_of(level->calls, level->call_count, sizeof(*level->calls), &copy->failed);
        level->cell_cap = level->cell_count;
        level->call_cap = level->call_count;
    }
    return copy;
}

static void end_all(struct krait_pyramid_build *build, uint64_t end)
{
    uint64_t t = KRAIT_MAX(KRAIT_MIN(end, KRAIT_PYRAMID_TIME_MAX), build->last);
    if (build->open_count && t >= build->next)
        move_windows(build, t);
    while (build->open_count)
        end_call(build, t, KRAIT_OP_CUT);
}

struct krait_pyramid_build *krait_pyramid_build_copy(struct krait_pyramid_build *build)
{
    for (uint32_t i = 0; i < KRAIT_PYRAMID_LEVELS; i++)
        sort_calls(&build->pyramid.levels[i]);
    struct krait_pyramid_build *copy = copy_build(build);
    if (!copy || !copy->failed)
        return copy;
    krait_pyramid_build_free(copy);
    return NULL;
}

int krait_pyramid_now(struct krait_pyramid_build *build, uint64_t end_ns, struct krait_pyramid *out)
{
    struct krait_pyramid_build *copy = krait_pyramid_build_copy(build);
    if (!copy)
        return -ENOMEM;
    end_all(copy, end_ns - build->pyramid.zero_ns);
    int rc = krait_pyramid_finish(copy, out);
    krait_pyramid_build_free(copy);
    return rc;
}

void krait_pyramid_done(struct krait_pyramid *pyramid)
{
    for (uint32_t i = 0; i < KRAIT_PYRAMID_LEVELS && !pyramid->is_mapped; i++)
        level_done(&pyramid->levels[i]);
    if (!pyramid->is_mapped)
        free(pyramid->deep);
    *pyramid = (struct krait_pyramid){ 0 };
}

size_t krait_pyramid_size(const struct krait_pyramid *pyramid)
{
    size_t bytes = pyramid->deep_count * sizeof(*pyramid->deep);
    for (uint32_t i = 0; i < KRAIT_PYRAMID_LEVELS; i++) {
        bytes += pyramid->levels[i].cell_count * sizeof(struct krait_pyramid_cell);
        bytes += pyramid->levels[i].call_count * sizeof(struct krait_tile_call);
    }
    return bytes;
}

/* ---- asking ---- */

static size_t first_cell(const struct krait_pyramid_level *level, uint64_t key)
{
    return KRAIT_PARTITION_POINT(i, level->cell_count, level->cells[i].key < key);
}

static size_t first_call(const struct krait_pyramid_level *level, uint64_t begin_ns)
{
    return KRAIT_PARTITION_POINT(i, level->call_count, level->calls[i].begin_ns < begin_ns);
}

/* The calls of a class are shorter than 3 cells of the next level, so calls from before the tile began only shortly
 * before it. */
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
    for (size_t i = first_cell(level, (from >> shift) << KRAIT_PYRAMID_DEPTH_BITS);
         i < level->cell_count && !rc; i++) {
        const struct krait_pyramid_cell *cell = &level->cells[i];
        uint64_t number = cell->key >> KRAIT_PYRAMID_DEPTH_BITS;
        if (number << shift >= to || number << shift < from)
            break;
        const struct krait_tile_bin bin = { cell->busy_ns, cell->longest_ns, cell->func, cell->count };
        rc = krait_tile_add_bin(tile, cell->key & (DEPTHS - 1),
                                (uint32_t)(((number << shift) - from) >> bin_shift), &bin);
    }
    return rc;
}

/* Calls that are too deep for cells: their depth, and how many begin. The tile consists of whole cells. */
static void tell_deep(const struct krait_pyramid *pyramid, struct krait_tile *tile, uint64_t from,
                      uint64_t to)
{
    uint64_t first = from >> shift_of(pyramid->first);
    size_t low = KRAIT_PARTITION_POINT(i, pyramid->deep_count, pyramid->deep[i].cell < first);
    bool starts = low < pyramid->deep_count && pyramid->deep[low].cell == first;
    if (low && !starts && pyramid->deep[low - 1].height > DEPTHS)
        tile->deepest = KRAIT_MAX(tile->deepest, pyramid->deep[low - 1].height);
    for (; low < pyramid->deep_count && pyramid->deep[low].cell << shift_of(pyramid->first) < to; low++) {
        tile->deepest = KRAIT_MAX(tile->deepest, pyramid->deep[low].deepest);
        tile->begun += pyramid->deep[low].begun;
    }
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
    if (!is_short)
        tell_deep(pyramid, tile, from, from + (to_ns - from_ns));
    for (uint32_t class = level; class < KRAIT_PYRAMID_LEVELS && !rc; class ++)
        rc = add_class(pyramid, class, tile, to_ns);
    return rc;
}

const struct krait_pyramid *krait_pyramid_so_far(const struct krait_pyramid_build *build)
{
    return &build->pyramid;
}

/* Its classes are not sorted yet. */
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
