/* SPDX-License-Identifier: Apache-2.0
 *
 * The binary form of a tile, which the page reads: one track over 512 bins of 2^level nanoseconds. Tile number I begins
 * I * 512 * 2^level ns after the view's origin. All numbers are little-endian and packed. The parts follow in this order;
 * the head has their numbers:
 *
 *   head      ┌──────┬─────────┬──────┬───────┬───────┬──────┬──────┬────────┬───────┬─────────┬─────┐
 *   40 bytes  │ KTIL │ version │ kind │ level │ flags │ tile │ rows │ slices │ marks │ deepest │ ops │
 *             │ 4    │ 1       │ 1    │ 1     │ 1     │ 8    │ 4    │ 4      │ 4     │ 4       │ 8   │
 *             └──────┴─────────┴──────┴───────┴───────┴──────┴──────┴────────┴───────┴─────────┴─────┘
 *   row       ┌───────┬──────────────────────────┬─────┐   a bin: hue u8 of the longest entry in it,
 *   1,540     │ depth │ 512 x  hue, busy, number │     │   busy u8 share of its time, from 1 to 255; 0: empty,
 *             │ 4     │        3                 │     │   number u8 floor(log2(calls that begin)) + 1; 0: none
 *             └───────┴──────────────────────────┴─────┘
 *   slice     ┌───────┬─────┬──────┬───────┬─────┬───────┬───────┐   begin and end i64 from the tile's begin, also
 *   32 bytes  │ begin │ end │ name │ depth │ hue │ flags │ value │   if outside of the tile; name u32
 *             │ 8     │ 8   │ 4    │ 2     │ 1   │ 1     │ 8     │   func or text id, depth u16, value i64
 *             └───────┴─────┴──────┴───────┴─────┴───────┴───────┘
 *   mark      ┌─────┬───────┬──────┬───────┐                   a bin with instants: their number, text id of the first,
 *   16 bytes  │ bin │ count │ name │ level │                   level of the most serious (trace/mark_says.h); u32 each
 *             └─────┴───────┴──────┴───────┘
 *   counter   ┌──────────────────────┐                         no number in the head: it exists if kind is COUNTER
 *   12,288    │ 512 x min, max, last │                         f64 each, NaN if the value is unknown
 *             └──────────────────────┘
 *
 * The head's kind is an enum krait_track_kind, its flags are enum krait_wire_flags. ops is the number of calls that begin
 * in the tile, at any depth; deepest is the depth of the deepest call that touches the tile, from 1. Rows are in the order
 * of depths, below KRAIT_WIRE_DEPTHS, without empty ones. An entry that touches the tile and lasts KRAIT_TILE_WIDE bins or
 * more is a slice; shorter ones are in the bins. Slices are ordered by begin, then depth. Tracks of calls, slices and
 * states have rows and slices, those of instants have marks, those of counters have counters, and those of flows nothing.
 *
 * Example: the head of tile 3 of a track of calls, with bins of 256 ns, one row, no slice, and 2 calls:
 *
 *   4b 54 49 4c  01  00  08  00  03 00 00 00 00 00 00 00  01 00 00 00  00 00 00 00  00 00 00 00
 *   01 00 00 00  02 00 00 00 00 00 00 00                                                     then the row:
 *   00 00 00 00  05 ff 01  05 7f 01  00 00 00  ...  bin 0 is all busy, bin 1 half; one call of hue 5 begins in each
 *
 * Version rule: `version` changes with any change of these bytes; a reader rejects versions that it does not know. The
 * page and the server come from one binary, so no reader needs two versions.
 */
#ifndef KRAIT_VIEW_WIRE_H
#define KRAIT_VIEW_WIRE_H

#include "base/buf.h"
#include "trace/track.h"
#include "view/tile.h"

enum {
    KRAIT_WIRE_MAGIC = 0x4c49544b, /* "KTIL" */
    KRAIT_WIRE_VERSION = 1,
    KRAIT_WIRE_BINS = 512,
    KRAIT_WIRE_BINS_LOG2 = 9,
    KRAIT_WIRE_DEPTHS = 128, /* of rows and slices */
    KRAIT_WIRE_LEVEL_MAX = 54,
};

enum krait_wire_flags {
    KRAIT_WIRE_UNFINISHED = 1 << 0, /* the index is still being built, and there may be more: ask again */
    KRAIT_WIRE_LOST = 1 << 1,       /* events were lost in the tile */
    KRAIT_WIRE_DEEPER = 1 << 2,     /* there are deeper calls than KRAIT_WIRE_DEPTHS */
};

enum krait_wire_slice_flags {
    KRAIT_WIRE_LIVE = 1 << 0,    /* it began before the recording or the range */
    KRAIT_WIRE_CUT = 1 << 1,     /* its own end was not recorded */
    KRAIT_WIRE_RESUMED = 1 << 2, /* a generator goes on */
    KRAIT_WIRE_UNWOUND = 1 << 3, /* an exception ended it */
    KRAIT_WIRE_YIELDS = 1 << 4,  /* a generator that waits from the slice's end on */
};

struct krait_wire_head {
    uint32_t magic;
    uint8_t version, kind, level, flags;
    uint64_t tile;
    uint32_t rows, slices, marks, deepest;
    uint64_t ops;
} __attribute__((packed));

struct krait_wire_bin {
    uint8_t hue, busy, number;
} __attribute__((packed));

struct krait_wire_row {
    uint32_t depth;
    struct krait_wire_bin bins[KRAIT_WIRE_BINS];
} __attribute__((packed));

struct krait_wire_slice {
    int64_t begin, end;
    uint32_t name;
    uint16_t depth;
    uint8_t hue, flags;
    int64_t value;
} __attribute__((packed));

struct krait_wire_mark {
    uint32_t bin, count, name, level;
} __attribute__((packed));

struct krait_wire_counter {
    double min, max, last;
} __attribute__((packed));

_Static_assert(sizeof(struct krait_wire_head) == 40 && sizeof(struct krait_wire_row) == 1540 &&
                   sizeof(struct krait_wire_slice) == 32 && sizeof(struct krait_wire_mark) == 16 &&
                   sizeof(struct krait_wire_counter) == 24,
               "the parts are drawn above");

/* The content of a tile, for krait_wire_put. */
struct krait_wire_tile {
    uint64_t tile;
    uint8_t kind, level, flags;          /* KRAIT_WIRE_DEEPER follows from `calls` */
    struct krait_tile *calls;            /* NULL: no rows, no slices. krait_wire_put sorts its calls */
    const struct krait_wire_mark *marks; /* by bin */
    uint32_t mark_count;
    const struct krait_wire_counter *counters; /* NULL if the kind has none */
    const uint8_t *hues;                       /* by func or text id */
    uint32_t hue_count;                        /* ids from here on have hue 0 */
};

/* Appends the tile; sets out->failed if memory is out. */
void krait_wire_put(struct krait_buf *out, const struct krait_wire_tile *tile);

/* Makes a bin of the wire's form. */
struct krait_wire_bin krait_wire_bin(const struct krait_tile_bin *bin, uint64_t bin_ns, uint8_t hue);

#endif
