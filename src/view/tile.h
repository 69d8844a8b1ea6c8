/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread's calls over a row of bins of equal time: all that a picture of so many columns can show, whatever
 * the number of calls.
 *
 *     bins       │   │   │   │   │   │   │   │   │   │   │   │
 *     depth 0    ├──────────── main ─────────────────────────┤     a call of three bins or more: itself
 *     depth 1    ├─── load ──┤░▓▓▓█▓░      ├──── parse ──────┤     shorter ones: of each bin how long they
 *     depth 2        ░▓▓░     ▒▒▒▒▒▒        ░░▒▒▒▒▒░░░             were open in it, how many began, the longest
 *
 * Busy times are sums of what was recorded, cut at the bins' borders; nothing is sampled. Memory grows with
 * bins and depth: 32 bytes for each bin of each depth that is drawn, and 32 for each long call.
 */
#ifndef KRAIT_VIEW_TILE_H
#define KRAIT_VIEW_TILE_H

#include "trace/trace.h"

enum { KRAIT_TILE_WIDE = 3 }; /* bins */

/* A long call, or the run of a generator, cut at the tile's borders. */
struct krait_tile_call {
    uint64_t begin_ns, end_ns;
    uint32_t func, depth;
    uint8_t begin; /* enum krait_op_kind: it goes on, or KRAIT_OP_LIVE had begun before the tile */
    bool cut;      /* its own end was not recorded, or lies behind the tile */
};

/* What short calls of one depth did in one bin. */
struct krait_tile_bin {
    uint64_t busy_ns;
    uint64_t longest_ns; /* of a call's time in this bin */
    uint32_t func;       /* that call's; where no call was open, meaningless */
    uint32_t count;      /* calls that begin in it */
};

struct krait_tile {
    uint64_t from_ns, bin_ns;
    uint32_t bins;
    uint32_t depths;               /* that are kept: `bins` times so many cells */
    uint32_t deepest;              /* of all calls, from 1: more than depths where some are not kept */
    struct krait_tile_bin *cells;  /* by depth, then bin */
    struct krait_tile_call *calls; /* as they ended, those within before those around */
    uint32_t call_count, call_cap, depth_cap;
    uint64_t begun; /* calls that began in the tile, of any depth */
};

struct krait_tile_options {
    struct krait_range range;
    uint32_t bins;       /* columns, above 0; fewer are made of a range of fewer nanoseconds */
    uint32_t depths_max; /* deeper calls are only counted */
};

/* Walks a thread once. `damage`, of `size` bytes: see krait_trace_walk. Returns 0, -EINVAL where there is no such
 * thread, or -ENOMEM; krait_tile_done in any case. */
int krait_tile_make(struct krait_tile *tile, const struct krait_trace *trace, uint32_t thread,
                    const struct krait_tile_options *options, char *damage, size_t size);
void krait_tile_done(struct krait_tile *tile);

static inline const struct krait_tile_bin *krait_tile_cell(const struct krait_tile *tile, uint32_t depth,
                                                           uint32_t bin)
{
    return &tile->cells[(size_t)depth * tile->bins + bin];
}

#endif
