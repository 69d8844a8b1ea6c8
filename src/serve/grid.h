/* SPDX-License-Identifier: Apache-2.0
 *
 * Begins and durations as points of a picture: exact sums in the cells of a grid. The grid has a column for each part of
 * a range, and a bucket for durations of about the same length.
 *
 *      bucket   0  1  ..  7  8  9  ..  15  16      17      18  ..     8 for each doubling from 8 ns on,
 *      from ns  0  1  ..  7  8  9  ..  15  16-17   18-19   20-21      so the error is at most an eighth
 */
#ifndef KRAIT_SERVE_GRID_H
#define KRAIT_SERVE_GRID_H

#include "base/buf.h"
#include "base/map.h"
#include "trace/track.h"

enum { KRAIT_GRID_OCTAVE = 8, KRAIT_GRID_COLUMNS = 600, KRAIT_GRID_COLUMNS_MAX = 8192 };

/* Times are nanoseconds from the same origin as the range. */
struct krait_grid_point {
    uint64_t begin_ns, end_ns;
    int64_t value;
    uint32_t track, name, depth;
    bool failed;
};

struct krait_grid { /* the caller sets `range` and `columns`; the rest is 0 */
    struct krait_range range;
    uint64_t columns;
    struct krait_grid_cell *cells;
    uint32_t count, cap;
    uint64_t total;
    struct krait_map index; /* column << 32 | bucket to cell */
};

void krait_grid_done(struct krait_grid *grid);

/* Limits a number of columns to 1 and the maximum. */
uint64_t krait_grid_columns(uint64_t wanted);

/* Returns 0 or -ENOMEM. */
int krait_grid_add(struct krait_grid *grid, const struct krait_grid_point *point);

/* Appends members of an object: `total`, `octave`, `columns` and `cells`, each cell with its longest point. */
void krait_grid_put(struct krait_buf *out, const struct krait_grid *grid);

#endif
