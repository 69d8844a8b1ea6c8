/* SPDX-License-Identifier: Apache-2.0
 *
 * A sparse pyramid over one track. It has what a picture of any part of the track can show, at a cost that depends on
 * the picture.
 *
 *     level 0   cells of 2^s ns       ▪▪▪ ▪▪      ▪▪▪▪▪▪  ▪▪▪       calls shorter than 3 of its cells
 *     level 1   cells of 2^(s+4) ns   ▪   ▪   ▪       ▪   ▪         ... of its cells: those below, and class 0
 *     level 2   cells of 2^(s+8) ns   ▪               ▪
 *     classes   class L: calls of 3 cells of level L up to 3 of level L + 1, each with begin and end
 *
 * A cell has, for each depth that occurs in it, how long calls were open, how many began, and the longest call with
 * its name. These are exact sums, not samples. Only cells in which something happened are stored. If the bins of a
 * picture (2^k ns) are at least as wide as the cells of level 0, the picture uses the highest level whose cells are
 * not wider than a bin, and the classes from that level on. Calls of KRAIT_TILE_WIDE bins or more are drawn
 * themselves; the others are in their bins. A picture with narrower bins uses the classes, and gets the short calls
 * themselves from elsewhere (struct krait_pyramid_short).
 *
 * The cells of level 0 are 256 ns at first. When cells and single calls become more than a share of all calls, level
 * 0 and class 0 are dropped; the level above has their contents. A pyramid therefore takes less than a byte per call,
 * whatever the durations are. docs/decisions/view-index.md has the measurements.
 */
#ifndef KRAIT_VIEW_PYRAMID_H
#define KRAIT_VIEW_PYRAMID_H

#include "view/tile.h"

enum {
    KRAIT_PYRAMID_LEVELS = 13,
    KRAIT_PYRAMID_SHIFT = 8, /* the width of level 0's cells at first, as a power of 2 */
    KRAIT_PYRAMID_STEP = 4,  /* a cell covers 2^4 cells of the level below */
    KRAIT_PYRAMID_DEPTH_BITS = 7,
    KRAIT_PYRAMID_DEPTHS = 1 << KRAIT_PYRAMID_DEPTH_BITS, /* deeper calls are only counted */
};

/* Times of damaged traces are at most this long after zero_ns. */
#define KRAIT_PYRAMID_TIME_MAX ((uint64_t)1 << 62)

/* What happened in one cell at one depth. */
struct krait_pyramid_cell {
    uint64_t key; /* number of the cell << KRAIT_PYRAMID_DEPTH_BITS | depth */
    uint64_t busy_ns, longest_ns;
    uint32_t count, func;
};

struct krait_pyramid_level {
    struct krait_pyramid_cell *cells; /* by key */
    size_t cell_count, cell_cap;
    struct krait_tile_call *calls; /* of the class of this level, by begin */
    size_t call_count, call_cap;
    size_t call_sorted; /* so many of the first ones are in that order while it is built */
};

/* A cell of the first level in which a call began or ended at KRAIT_PYRAMID_DEPTHS or deeper. */
struct krait_pyramid_deep {
    uint64_t cell;
    uint64_t begun;   /* calls at such depths that begin in it */
    uint32_t deepest; /* depth of the deepest open call in it, from 1 */
    /* open calls at its end, and up to the next such cell: at most KRAIT_PYRAMID_DEPTHS when none is deep */
    uint32_t height;
};

/* Times are counted from `zero_ns`. */
struct krait_pyramid {
    uint64_t zero_ns;
    struct krait_pyramid_level levels[KRAIT_PYRAMID_LEVELS];
    uint32_t first;                  /* the level that is 0 in the drawing; lower levels were dropped */
    uint64_t calls;                  /* approximate number, at all depths */
    struct krait_pyramid_deep *deep; /* by cell */
    size_t deep_count, deep_cap;
    bool is_mapped; /* the arrays belong to a mapped file (cache.h) */
};

/* ---- building: in the order of ends ---- */

struct krait_pyramid_build;

int krait_pyramid_build_new(struct krait_pyramid_build **out, uint64_t zero_ns);
void krait_pyramid_build_free(struct krait_pyramid_build *build);

/* Adds a call that has ended, not deeper than KRAIT_PYRAMID_DEPTHS. Times are between zero_ns and
 * KRAIT_PYRAMID_TIME_MAX after it, and ends never decrease. */
void krait_pyramid_add(struct krait_pyramid_build *build, const struct krait_tile_call *call);

/* Adds instead the next batch of a thread's calls, and makes times relative to origin_ns; zero_ns is 0. Returns 0 or
 * -ENOMEM. hot path */
int krait_pyramid_ops(struct krait_pyramid_build *build, const struct krait_call_batch *batch,
                      uint64_t origin_ns);

/* The complete part so far, for krait_pyramid_peek; valid until the next call is added. */
const struct krait_pyramid *krait_pyramid_so_far(const struct krait_pyramid_build *build);

/* Called after the last call: moves the result into `out`, which the caller then owns. Returns 0 or -ENOMEM. */
int krait_pyramid_finish(struct krait_pyramid_build *build, struct krait_pyramid *out);
/* The same into a new one, which the caller frees; *out stays as it is after an error. */
int krait_pyramid_finish_new(struct krait_pyramid_build *build, struct krait_pyramid **out);

/* A copy, to which other calls may be added; NULL without memory. Takes time for the pyramid's size, and for what was added since
 * the last copy. */
struct krait_pyramid_build *krait_pyramid_build_copy(struct krait_pyramid_build *build);

/* The result as it is now: what is open ends at end_ns, as relative to zero_ns as the calls are. Calls may be added afterwards.
 * Takes time for the pyramid's size, which is copied, and for what was added since. Returns 0 or -ENOMEM. */
int krait_pyramid_now(struct krait_pyramid_build *build, uint64_t end_ns, struct krait_pyramid *out);

void krait_pyramid_done(struct krait_pyramid *pyramid);

/* Its size in bytes. */
size_t krait_pyramid_size(const struct krait_pyramid *pyramid);

/* ---- asking ---- */

/* Passes to krait_tile_add the calls that overlap [from_ns, to_ns) and are shorter than `under_ns`, or at
 * KRAIT_PYRAMID_DEPTHS or deeper. It passes no other calls of `under_ns` or more. */
struct krait_pyramid_short {
    int (*tell)(void *ctx, uint64_t from_ns, uint64_t to_ns, uint64_t under_ns, struct krait_tile *tile);
    void *ctx;
};

/* Fills a tile of `bins` bins of 2^bin_shift ns from from_ns on, a multiple of a bin counted from zero_ns. Depths
 * from tile->depth_limit on are only counted. Returns 0 or a negative errno; call krait_tile_done in any case. */
int krait_pyramid_tile(const struct krait_pyramid *pyramid, const struct krait_pyramid_short *small,
                       struct krait_tile *tile, uint64_t from_ns, unsigned bin_shift, uint32_t bins,
                       uint32_t depth_limit);

/* The same for a pyramid that is being built. Incomplete parts, and calls shorter than the cells, are missing. */
int krait_pyramid_peek(const struct krait_pyramid *pyramid, struct krait_tile *tile, uint64_t from_ns,
                       unsigned bin_shift, uint32_t bins, uint32_t depth_limit);

#endif
