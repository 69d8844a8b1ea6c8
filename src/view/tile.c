/* SPDX-License-Identifier: Apache-2.0 */
#include "view/tile.h"

#include "base/array.h"

#include <string.h>

/* ---- a tile ---- */

void krait_tile_init(struct krait_tile *tile, uint64_t from_ns, uint64_t bin_ns, uint32_t bins,
                     uint32_t depth_limit)
{
    *tile = (struct krait_tile){
        .from_ns = from_ns,
        .bin_ns = bin_ns,
        .bins = bins,
        .depth_limit = depth_limit,
        .per_ns = 1 / (double)bin_ns,
    };
}

void krait_tile_done(struct krait_tile *tile)
{
    free(tile->cells);
    free(tile->calls);
    *tile = (struct krait_tile){ 0 };
}

/* A quotient of doubles may be one off at a border. */
static uint32_t bin_of(const struct krait_tile *tile, uint64_t t_ns)
{
    uint64_t since = t_ns - tile->from_ns;
    uint64_t bin = KRAIT_MIN((uint64_t)((double)since * tile->per_ns), (uint64_t)tile->bins - 1);
    if (bin * tile->bin_ns > since)
        return (uint32_t)bin - 1;
    return (uint32_t)(bin + ((bin + 1) * tile->bin_ns <= since && bin + 1 < tile->bins));
}

static bool has_depth(struct krait_tile *tile, uint32_t depth)
{
    if (depth < tile->depths)
        return true;
    if (!KRAIT_GROW(tile->cells, tile->depth_cap, (size_t)(depth + 1) * tile->bins))
        return false;
    memset(tile->cells + (size_t)tile->depths * tile->bins, 0,
           (size_t)(depth + 1 - tile->depths) * tile->bins * sizeof(*tile->cells));
    tile->depths = depth + 1;
    return true;
}

/* The longest call of a bin; of two equally long ones, that with the lower id, so that the order of adding does not
 * matter. */
static void add_up(struct krait_tile_bin *bin, const struct krait_tile_bin *of)
{
    bool longer =
        of->longest_ns > bin->longest_ns || (of->longest_ns == bin->longest_ns && of->func < bin->func);
    if (krait_tile_bin_is_empty(bin) || longer) {
        bin->longest_ns = of->longest_ns;
        bin->func = of->func;
    }
    bin->busy_ns += of->busy_ns;
    bin->count += of->count;
}

int krait_tile_add_bin(struct krait_tile *tile, uint32_t depth, uint32_t bin, const struct krait_tile_bin *of)
{
    tile->deepest = KRAIT_MAX(tile->deepest, depth + 1);
    tile->begun += of->count;
    if (depth >= tile->depth_limit)
        return 0;
    if (!has_depth(tile, depth))
        return -ENOMEM;
    add_up(&tile->cells[(size_t)depth * tile->bins + bin], of);
    return 0;
}

static void fold(struct krait_tile *tile, const struct krait_tile_call *call, uint64_t to_ns)
{
    struct krait_tile_bin *cells = &tile->cells[(size_t)call->depth * tile->bins];
    uint64_t at_ns = KRAIT_MAX(call->begin_ns, tile->from_ns), end_ns = KRAIT_MIN(call->end_ns, to_ns);
    for (uint32_t bin = bin_of(tile, at_ns);; bin++) {
        uint64_t border_ns = tile->from_ns + (bin + 1) * tile->bin_ns;
        const struct krait_tile_bin part = {
            .busy_ns = KRAIT_MIN(end_ns, border_ns) - at_ns,
            .longest_ns = call->end_ns - call->begin_ns,
            .func = call->func,
            .count = at_ns == call->begin_ns && call->begin == KRAIT_OP_CALL,
        };
        add_up(&cells[bin], &part);
        at_ns = border_ns;
        if (end_ns <= border_ns)
            return;
    }
}

static int add_long(struct krait_tile *tile, const struct krait_tile_call *call)
{
    if (!KRAIT_GROW(tile->calls, tile->call_cap, tile->call_count + 1))
        return -ENOMEM;
    tile->calls[tile->call_count++] = *call;
    return 0;
}

/* A call of no length at the tile's begin is in the tile, one at its end is not. */
static bool overlaps(const struct krait_tile *tile, const struct krait_tile_call *call, uint64_t to_ns)
{
    return call->begin_ns < to_ns && (call->end_ns > tile->from_ns || call->begin_ns >= tile->from_ns);
}

int krait_tile_add(struct krait_tile *tile, const struct krait_tile_call *call)
{
    uint64_t to_ns = tile->from_ns + tile->bins * tile->bin_ns;
    bool is_seen = call->begin == KRAIT_OP_CALL || call->end_ns > call->begin_ns;
    if (!is_seen || !overlaps(tile, call, to_ns))
        return 0;
    tile->deepest = KRAIT_MAX(tile->deepest, call->depth + 1);
    tile->begun += call->begin == KRAIT_OP_CALL && call->begin_ns >= tile->from_ns;
    if (call->depth >= tile->depth_limit)
        return 0;
    if (!has_depth(tile, call->depth))
        return -ENOMEM;
    if (call->end_ns - call->begin_ns >= KRAIT_TILE_WIDE * tile->bin_ns)
        return add_long(tile, call);
    fold(tile, call, to_ns);
    return 0;
}

/* ---- from batches ---- */

int krait_tile_on_batch(void *ctx, const struct krait_call_batch *batch)
{
    struct krait_tile_open *open = ctx;
    for (uint32_t i = 0; i < batch->n; i++) {
        uint8_t kind = krait_op_shown(batch, i);
        if (krait_op_is_end(kind)) {
            struct krait_tile_call *call = &open->calls[--open->count];
            call->end_ns = batch->t_ns[i];
            call->end = kind;
            call->is_cut |= krait_op_is_cut(batch, i);
            int rc = open->fn(open->ctx, call);
            if (rc)
                return rc;
            continue;
        }
        if (!KRAIT_GROW(open->calls, open->cap, open->count + 1))
            return -ENOMEM;
        open->calls[open->count] = (struct krait_tile_call){
            .begin_ns = batch->t_ns[i],
            .func = batch->func[i],
            .depth = open->count,
            .begin = kind,
            .is_cut = krait_op_is_cut(batch, i),
        };
        open->count++;
    }
    return 0;
}

void krait_tile_open_done(struct krait_tile_open *open)
{
    free(open->calls);
}

static int add_call(void *tile, const struct krait_tile_call *call)
{
    return krait_tile_add(tile, call);
}

int krait_tile_make(struct krait_tile *tile, const struct krait_trace *trace, uint32_t thread,
                    const struct krait_tile_options *options, char *damage, size_t size)
{
    struct krait_range range = { KRAIT_MAX(options->range.from_ns, trace->begin_ns),
                                 KRAIT_MIN(options->range.to_ns, trace->end_ns + 1) };
    *tile = (struct krait_tile){ .from_ns = range.from_ns };
    if (thread >= trace->thread_count)
        return -EINVAL;
    if (range.from_ns >= range.to_ns)
        return 0;
    uint64_t ns = range.to_ns - range.from_ns, bin_ns = (ns + options->bins - 1) / options->bins;
    krait_tile_init(tile, range.from_ns, bin_ns, (uint32_t)((ns + bin_ns - 1) / bin_ns), options->depths_max);
    struct krait_tile_open open = { .fn = add_call, .ctx = tile };
    int rc = krait_trace_walk(trace, thread, range, krait_tile_on_batch, &open, damage, size);
    krait_tile_open_done(&open);
    return rc;
}
