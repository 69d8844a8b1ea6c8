/* SPDX-License-Identifier: Apache-2.0
 *
 * A tile as the page reads it: what one track shows over 512 bins of 2^level nanoseconds. Tile number I begins
 * I * 512 * 2^level ns behind the view's origin. Little-endian, packed; parts follow each other in this order, each as
 * often as the head says:
 *
 *   head      ┌──────┬─────────┬──────┬───────┬───────┬──────┬──────┬────────┬───────┬─────────┬─────┐
 *   40 bytes  │ KTIL │ version │ kind │ level │ flags │ tile │ rows │ slices │ marks │ deepest │ ops │
 *             │ 4    │ 1       │ 1    │ 1     │ 1     │ 8    │ 4    │ 4      │ 4     │ 4       │ 8   │
 *             └──────┴─────────┴──────┴───────┴───────┴──────┴──────┴────────┴───────┴─────────┴─────┘
 *   row       ┌───────┬──────────────────────────┬─────┐   a bin: hue u8 of the longest that touches it,
 *   1,540     │ depth │ 512 x  hue, busy, number │     │   busy u8 share of its time, from 1 to 255; 0: nothing there,
 *             │ 4     │        3                 │     │   number u8 floor(log2 of how many begin) + 1; 0: none does
 *             └───────┴──────────────────────────┴─────┘
 *   slice     ┌───────┬─────┬──────┬───────┬─────┬───────┬───────┐   begin and end i64 from the tile's begin, also
 *   32 bytes  │ begin │ end │ name │ depth │ hue │ flags │ value │   where that lies before or behind it; name u32
 *             │ 8     │ 8   │ 4    │ 2     │ 1   │ 1     │ 8     │   func or text id, depth u16, value i64
 *             └───────┴─────┴──────┴───────┴─────┴───────┴───────┘
 *   mark      ┌─────┬───────┬──────┬──────┐                    a bin with instants: how many, text id of the first
 *   16 bytes  │ bin │ count │ name │ zero │                    u32 each
 *             └─────┴───────┴──────┴──────┘
 *   counter   ┌──────────────────────┐                         no number in the head: there where kind is COUNTER
 *   12,288    │ 512 x min, max, last │                         f64 each, NaN where the value is not known
 *             └──────────────────────┘
 *
 * The head's kind is enum krait_track_kind, its flags are enum krait_wire_flags, ops is how many calls begin within,
 * at any depth, and deepest how deep the deepest that touches the tile lies, from 1. Rows are in the order of depths,
 * below KRAIT_WIRE_DEPTHS, those without anything are left out. A slice is what lasts KRAIT_TILE_WIDE bins or more
 * and touches the tile; what is shorter is in the bins. Slices are ordered by begin, then depth. Calls, slices and
 * states have rows and slices, instants marks, counters counters, and flows nothing.
 *
 * Example: the head of the tile 3 of a track of calls, at bins of 256 ns, with a row, no slice, and 2 calls:
 *
 *   4b 54 49 4c  01  00  08  00  03 00 00 00 00 00 00 00  01 00 00 00  00 00 00 00  00 00 00 00
 *   01 00 00 00  02 00 00 00 00 00 00 00                                                     behind it the row:
 *   00 00 00 00  05 ff 01  05 7f 01  00 00 00  ...  bin 0 all busy, bin 1 half, one call of hue 5 begins in each
 *
 * Version rule: `version` changes with any change of these bytes; a reader refuses what it does not know. The page and
 * the server come from one binary, so that no reader needs two.
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
    KRAIT_WIRE_UNFINISHED = 1 << 0, /* the index is being built: ask again, there may be more */
    KRAIT_WIRE_LOST = 1 << 1,       /* events were lost within */
    KRAIT_WIRE_DEEPER = 1 << 2,     /* there are deeper calls than KRAIT_WIRE_DEPTHS */
};

enum krait_wire_slice_flags {
    KRAIT_WIRE_LIVE = 1 << 0,    /* it had begun before */
    KRAIT_WIRE_CUT = 1 << 1,     /* its own end was not recorded */
    KRAIT_WIRE_RESUMED = 1 << 2, /* a generator goes on */
    KRAIT_WIRE_UNWOUND = 1 << 3, /* an exception ended it */
    KRAIT_WIRE_YIELDS = 1 << 4,  /* it is a generator that waits from its end on */
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
    uint32_t bin, count, name, zero;
} __attribute__((packed));

struct krait_wire_counter {
    double min, max, last;
} __attribute__((packed));

_Static_assert(sizeof(struct krait_wire_head) == 40 && sizeof(struct krait_wire_row) == 1540 &&
                   sizeof(struct krait_wire_slice) == 32 && sizeof(struct krait_wire_mark) == 16 &&
                   sizeof(struct krait_wire_counter) == 24,
               "the parts are drawn above");

/* What is put into a tile. */
struct krait_wire_tile {
    uint64_t tile;
    uint8_t kind, level, flags;          /* KRAIT_WIRE_DEEPER follows from `calls` */
    struct krait_tile *calls;            /* NULL: no rows, no slices; its calls are put into order */
    const struct krait_wire_mark *marks; /* by bin */
    uint32_t mark_count;
    const struct krait_wire_counter *counters; /* NULL where the kind has none */
    const uint8_t *hues;                       /* by func or text id */
    uint32_t hue_count;                        /* above it the hue is 0 */
};

/* Appends the tile; out->failed says that memory is out. */
void krait_wire_put(struct krait_buf *out, const struct krait_wire_tile *tile);

/* A bin as it is drawn. */
struct krait_wire_bin krait_wire_bin(const struct krait_tile_bin *bin, uint64_t bin_ns, uint8_t hue);

#endif
