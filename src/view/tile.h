/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls over a row of bins of equal time: all that a picture of so many columns can show, whatever the number of
 * calls. States and system calls are calls to it, too.
 *
 *     bins       │   │   │   │   │   │   │   │   │   │   │   │
 *     depth 0    ├──────────── main ─────────────────────────┤     a call of three bins or more: itself
 *     depth 1    ├─── load ──┤░▓▓▓█▓░      ├──── parse ──────┤     shorter ones: of each bin how long they
 *     depth 2        ░▓▓░     ▒▒▒▒▒▒        ░░▒▒▒▒▒░░░             were open in it, how many began, the longest
 *
 * Busy times are sums of what was recorded, cut at the bins' borders; nothing is sampled. Memory grows with
 * bins and depth: 32 bytes for each bin of each depth that is drawn, and 40 for each long call.
 */
#ifndef KRAIT_VIEW_TILE_H
#define KRAIT_VIEW_TILE_H

#include "trace/trace.h"

enum { KRAIT_TILE_WIDE = 3 }; /* bins */

/* A call, or the run of a generator. */
struct krait_tile_call {
    uint64_t begin_ns, end_ns;
    int64_t value;        /* for states and system calls krait_batch.value; else 0 */
    uint32_t func, depth; /* func: of other tracks than calls, the id of a name */
    uint8_t begin;        /* enum krait_op_kind: a resume, or KRAIT_OP_LIVE: it began before */
    uint8_t end; /* enum krait_op_kind: KRAIT_OP_CUT: its own end was not recorded, or lies behind the tile */
    bool is_cut; /* of krait_tile_on_batch: krait_op_is_cut its begin or its end; else false */
    uint8_t zero[5]; /* so that all bytes are known where it is stored */
};

/* What short calls of one depth did in one bin. */
struct krait_tile_bin {
    uint64_t busy_ns;
    uint64_t longest_ns; /* of a call that was open in it, from its begin to its end */
    uint32_t func;       /* that call's function; undefined if no call was open */
    uint32_t count;      /* calls that begin in it */
};

struct krait_tile {
    uint64_t from_ns, bin_ns;
    uint32_t bins;
    uint32_t depth_limit; /* deeper calls are only counted */
    uint32_t depths;      /* depths that have cells, `bins` each */
    uint32_t deepest; /* depth of the deepest call, from 1; more than `depths` if some calls have no cells */
    struct krait_tile_bin *cells; /* by depth, then bin */
    struct krait_tile_call *calls;
    uint32_t call_count, call_cap, depth_cap;
    uint64_t begun; /* calls that began in the tile, of any depth */
    double per_ns;  /* bins */
};

/* Makes an empty tile of `bins` bins (more than 0) of bin_ns each. */
void krait_tile_init(struct krait_tile *tile, uint64_t from_ns, uint64_t bin_ns, uint32_t bins,
                     uint32_t depth_limit);
void krait_tile_done(struct krait_tile *tile);

/* Adds a call: as itself if it lasts KRAIT_TILE_WIDE bins or more, else to the bins that it touches. A call outside
 * of the tile changes nothing, nor does the rest of one that is 0 ns long: it neither begins there nor takes time.
 * Returns 0 or -ENOMEM. */
int krait_tile_add(struct krait_tile *tile, const struct krait_tile_call *call);

/* Adds what several calls did in the bin at `bin`, which is in the tile. Returns 0 or -ENOMEM. */
int krait_tile_add_bin(struct krait_tile *tile, uint32_t depth, uint32_t bin,
                       const struct krait_tile_bin *of);

struct krait_tile_options {
    struct krait_range range;
    uint32_t bins;       /* columns, above 0; fewer are made of a range of fewer nanoseconds */
    uint32_t depths_max; /* deeper calls are only counted */
};

/* Makes a tile of a thread's calls in one walk, and cuts calls at its borders. `damage`, of `size` bytes: see
 * krait_trace_walk. Returns 0, -EINVAL if there is no such thread, or -ENOMEM; call krait_tile_done in any case. */
int krait_tile_make(struct krait_tile *tile, const struct krait_trace *trace, uint32_t thread,
                    const struct krait_tile_options *options, char *damage, size_t size);

/* Hands out the calls of a thread's batches when they end. */
struct krait_tile_open {
    struct krait_tile_call *calls; /* calls that are open */
    uint32_t count, cap;
    int (*fn)(void *ctx, const struct krait_tile_call *call); /* a result other than 0 ends the walk */
    void *ctx;
};

/* A krait_call_batch_fn: `open` is a struct krait_tile_open. */
int krait_tile_on_batch(void *open, const struct krait_call_batch *batch);
void krait_tile_open_done(struct krait_tile_open *open);

static inline bool krait_tile_bin_is_empty(const struct krait_tile_bin *bin)
{
    return !bin->count && !bin->busy_ns;
}

static inline const struct krait_tile_bin *krait_tile_cell(const struct krait_tile *tile, uint32_t depth,
                                                           uint32_t bin)
{
    return &tile->cells[(size_t)depth * tile->bins + bin];
}

#endif
