/* SPDX-License-Identifier: Apache-2.0 */
#include "view/tile.h"

#include "base/array.h"

#include <string.h>

struct open_call {
    uint64_t begin_ns;
    uint32_t func;
    uint8_t begin; /* enum krait_op_kind */
};

struct making {
    struct krait_tile *tile;
    uint64_t end_ns; /* of the last bin */
    uint32_t depths_max;
    double per_ns; /* bins */
    struct open_call *open;
    uint32_t open_count, open_cap;
};

/* A quotient of doubles may be one off at a border. */
static uint32_t bin_of(const struct making *m, uint64_t t_ns)
{
    const struct krait_tile *tile = m->tile;
    uint64_t since = t_ns - tile->from_ns;
    uint64_t bin = KRAIT_MIN((uint64_t)((double)since * m->per_ns), (uint64_t)tile->bins - 1);
    if (bin * tile->bin_ns > since)
        return (uint32_t)bin - 1;
    return (uint32_t)(bin + ((bin + 1) * tile->bin_ns <= since && bin + 1 < tile->bins));
}

static bool has_depth(struct making *m, uint32_t depth)
{
    struct krait_tile *tile = m->tile;
    if (depth < tile->depths)
        return true;
    if (!KRAIT_GROW(tile->cells, tile->depth_cap, (size_t)(depth + 1) * tile->bins))
        return false;
    memset(tile->cells + (size_t)tile->depths * tile->bins, 0,
           (size_t)(depth + 1 - tile->depths) * tile->bins * sizeof(*tile->cells));
    tile->depths = depth + 1;
    return true;
}

static bool add_long(struct making *m, const struct open_call *call, uint64_t end_ns, uint32_t depth,
                     bool cut)
{
    struct krait_tile *tile = m->tile;
    if (!KRAIT_GROW(tile->calls, tile->call_cap, tile->call_count + 1))
        return false;
    tile->calls[tile->call_count++] =
        (struct krait_tile_call){ call->begin_ns, end_ns, call->func, depth, call->begin, cut };
    return true;
}

static void fold(struct making *m, const struct open_call *call, uint64_t end_ns, uint32_t depth)
{
    struct krait_tile *tile = m->tile;
    struct krait_tile_bin *cells = &tile->cells[(size_t)depth * tile->bins];
    uint32_t bin = bin_of(m, call->begin_ns);
    for (uint64_t at_ns = call->begin_ns;; bin++) {
        uint64_t border_ns = tile->from_ns + (bin + 1) * tile->bin_ns;
        uint64_t ns = KRAIT_MIN(end_ns, border_ns) - at_ns;
        struct krait_tile_bin *cell = &cells[bin];
        cell->busy_ns += ns;
        cell->count += at_ns == call->begin_ns && call->begin == KRAIT_OP_CALL;
        if (ns >= cell->longest_ns) {
            cell->longest_ns = ns;
            cell->func = call->func;
        }
        at_ns = border_ns;
        if (end_ns <= border_ns || bin + 1 == tile->bins)
            return;
    }
}

static bool end_call(struct making *m, uint64_t t_ns, bool cut)
{
    struct krait_tile *tile = m->tile;
    const struct open_call *call = &m->open[--m->open_count];
    uint32_t depth = m->open_count;
    uint64_t end_ns = KRAIT_MIN(t_ns, m->end_ns);
    tile->deepest = KRAIT_MAX(tile->deepest, depth + 1);
    if (depth >= m->depths_max)
        return true;
    if (!has_depth(m, depth))
        return false;
    if (end_ns - call->begin_ns >= KRAIT_TILE_WIDE * tile->bin_ns)
        return add_long(m, call, end_ns, depth, cut);
    fold(m, call, end_ns, depth);
    return true;
}

static int on_ops(void *ctx, const struct krait_call_batch *ops)
{
    struct making *m = ctx;
    for (uint32_t i = 0; i < ops->n; i++) {
        uint8_t kind = ops->kind[i];
        if (krait_op_is_end(kind)) {
            if (!end_call(m, ops->t_ns[i], kind == KRAIT_OP_CUT))
                return -ENOMEM;
            continue;
        }
        if (!KRAIT_GROW(m->open, m->open_cap, m->open_count + 1))
            return -ENOMEM;
        m->open[m->open_count++] =
            (struct open_call){ KRAIT_MAX(ops->t_ns[i], m->tile->from_ns), ops->func[i], kind };
        m->tile->begun += kind == KRAIT_OP_CALL;
    }
    return 0;
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
    uint64_t ns = range.to_ns - range.from_ns;
    tile->bin_ns = (ns + options->bins - 1) / options->bins;
    tile->bins = (uint32_t)((ns + tile->bin_ns - 1) / tile->bin_ns);
    struct making m = { .tile = tile,
                        .end_ns = range.to_ns,
                        .depths_max = options->depths_max,
                        .per_ns = 1 / (double)tile->bin_ns };
    int rc = krait_trace_walk(trace, thread, range, on_ops, &m, damage, size);
    free(m.open);
    return rc;
}

void krait_tile_done(struct krait_tile *tile)
{
    free(tile->cells);
    free(tile->calls);
    *tile = (struct krait_tile){ 0 };
}
