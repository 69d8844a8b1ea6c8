/* SPDX-License-Identifier: Apache-2.0 */
#include "view/wire.h"

#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tiles are stored as they lie in memory: wire.c needs a little-endian machine"
#endif

struct krait_wire_bin krait_wire_bin(const struct krait_tile_bin *bin, uint64_t bin_ns, uint8_t hue)
{
    if (krait_tile_bin_is_empty(bin))
        return (struct krait_wire_bin){ 0 };
    uint64_t busy = (uint64_t)((unsigned __int128)bin->busy_ns * 255 / bin_ns);
    return (struct krait_wire_bin){
        .hue = hue,
        .busy = (uint8_t)KRAIT_MAX(1u, KRAIT_MIN(busy, 255u)),
        .number = bin->count ? (uint8_t)(32 - __builtin_clz(bin->count)) : 0,
    };
}

static uint8_t hue_of(const struct krait_wire_tile *tile, uint32_t name)
{
    return name < tile->hue_count ? tile->hues[name] : 0;
}

static uint8_t flags_of(const struct krait_tile_call *call)
{
    return (
        uint8_t)((call->begin == KRAIT_OP_LIVE ? KRAIT_WIRE_LIVE : 0) |
                 (call->begin == KRAIT_OP_RESUME || call->begin == KRAIT_OP_THROW ? KRAIT_WIRE_RESUMED : 0) |
                 (call->end == KRAIT_OP_CUT ? KRAIT_WIRE_CUT : 0) |
                 (call->end == KRAIT_OP_UNWIND ? KRAIT_WIRE_UNWOUND : 0) |
                 (call->end == KRAIT_OP_YIELD ? KRAIT_WIRE_YIELDS : 0));
}

static bool is_row_empty(const struct krait_tile *calls, uint32_t depth)
{
    for (uint32_t bin = 0; bin < calls->bins; bin++) {
        if (!krait_tile_bin_is_empty(krait_tile_cell(calls, depth, bin)))
            return false;
    }
    return true;
}

static uint32_t put_rows(struct krait_buf *out, const struct krait_wire_tile *tile)
{
    const struct krait_tile *calls = tile->calls;
    uint32_t rows = 0;
    for (uint32_t depth = 0; depth < KRAIT_MIN(calls->depths, (uint32_t)KRAIT_WIRE_DEPTHS); depth++) {
        if (is_row_empty(calls, depth))
            continue;
        struct krait_wire_row row = { .depth = depth };
        for (uint32_t bin = 0; bin < KRAIT_MIN(calls->bins, (uint32_t)KRAIT_WIRE_BINS); bin++) {
            const struct krait_tile_bin *cell = krait_tile_cell(calls, depth, bin);
            row.bins[bin] = krait_wire_bin(cell, calls->bin_ns, hue_of(tile, cell->func));
        }
        krait_buf_add(out, &row, sizeof(row));
        rows++;
    }
    return rows;
}

static int by_begin(const void *a, const void *b)
{
    const struct krait_tile_call *x = a, *y = b;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static uint32_t put_slices(struct krait_buf *out, const struct krait_wire_tile *tile)
{
    struct krait_tile *calls = tile->calls;
    uint32_t slices = 0;
    if (calls->call_count)
        qsort(calls->calls, calls->call_count, sizeof(*calls->calls), by_begin);
    for (uint32_t i = 0; i < calls->call_count; i++) {
        const struct krait_tile_call *call = &calls->calls[i];
        if (call->depth >= KRAIT_WIRE_DEPTHS)
            continue;
        const struct krait_wire_slice slice = {
            .begin = (int64_t)(call->begin_ns - calls->from_ns),
            .end = (int64_t)(call->end_ns - calls->from_ns),
            .name = call->func,
            .depth = (uint16_t)call->depth,
            .hue = hue_of(tile, call->func),
            .flags = flags_of(call),
            .value = call->value,
        };
        krait_buf_add(out, &slice, sizeof(slice));
        slices++;
    }
    return slices;
}

void krait_wire_put(struct krait_buf *out, const struct krait_wire_tile *tile)
{
    struct krait_wire_head head = {
        .magic = KRAIT_WIRE_MAGIC,
        .version = KRAIT_WIRE_VERSION,
        .kind = tile->kind,
        .level = tile->level,
        .flags = tile->flags,
        .tile = tile->tile,
        .marks = tile->mark_count,
    };
    size_t at = out->len;
    krait_buf_add(out, &head, sizeof(head));
    if (tile->calls) {
        head.rows = put_rows(out, tile);
        head.slices = put_slices(out, tile);
        head.deepest = tile->calls->deepest;
        head.ops = tile->calls->begun;
        head.flags |= head.deepest > KRAIT_WIRE_DEPTHS ? KRAIT_WIRE_DEEPER : 0;
    }
    if (tile->mark_count)
        krait_buf_add(out, tile->marks, tile->mark_count * sizeof(*tile->marks));
    if (tile->counters)
        krait_buf_add(out, tile->counters, KRAIT_WIRE_BINS * sizeof(*tile->counters));
    if (!out->failed)
        memcpy(out->data + at, &head, sizeof(head));
}
