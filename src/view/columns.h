/* SPDX-License-Identifier: Apache-2.0
 *
 * The entries of one track, except calls, by time: states and slices with begin and end, instants, a counter's
 * values. Times are nanoseconds since an origin; an earlier time counts as the origin.
 */
#ifndef KRAIT_VIEW_COLUMNS_H
#define KRAIT_VIEW_COLUMNS_H

#include "trace/track.h"
#include "view/spans.h"
#include "view/wire.h"

/* A single moment: an instant has a name, above its 32 bits a level (trace/mark_says.h), and a bit if lanes do not draw it
 * (krait_marks_also); a counter a value from then on. */
struct krait_column_moment {
    uint64_t t_ns;
    int64_t value;
};

/* Zeroed memory with a kind is an empty one. */
struct krait_columns {
    uint8_t kind;             /* enum krait_track_kind */
    bool is_mapped;           /* the moments belong to a mapped file (cache.h) */
    bool is_whole;            /* finished */
    struct krait_spans spans; /* of states and slices, by begin, then depth: slices only when it is whole */
    struct krait_column_moment *moments; /* of instants and counters, by time */
    uint32_t count, cap;                 /* of moments */
    uint64_t end_ns;                     /* the latest time */
};

static inline bool krait_columns_have_spans(uint8_t kind)
{
    return kind == KRAIT_TRACK_STATES || kind == KRAIT_TRACK_SLICES;
}

/* Adds a batch of the track during the walk. Returns 0 or -ENOMEM. */
int krait_columns_add(struct krait_columns *columns, const struct krait_trace *trace,
                      const struct krait_track *track, const struct krait_batch *batch, uint64_t origin_ns);
/* Called after the last batch: sorts the entries and finds their depths. Returns 0 or -ENOMEM. */
int krait_columns_finish(struct krait_columns *columns);
void krait_columns_done(struct krait_columns *columns);
/* Its size in bytes. */
size_t krait_columns_size(const struct krait_columns *columns);

/* The ends of the slices around the next one, by depth. */
struct krait_column_depths {
    uint64_t ends[KRAIT_WIRE_DEPTHS];
    uint32_t open;
};

/* Puts slices in the order of begins; if several begin at the same time, the enclosing one comes first. Gives such slices their
 * depths, which follow those that `depths` was passed for before. */
void krait_columns_sort(struct krait_tile_call *spans, uint64_t count);
void krait_columns_give_depths(struct krait_column_depths *depths, struct krait_tile_call *spans,
                               uint64_t count);

/* All spans as an array, which the caller frees; NULL if memory is out. */
struct krait_tile_call *krait_columns_unpack(const struct krait_columns *columns);

/* Adds the spans that are shorter than under_ns and touch [from_ns, to_ns). Returns 0 or -ENOMEM. */
int krait_columns_tell(const struct krait_columns *columns, uint64_t from_ns, uint64_t to_ns,
                       uint64_t under_ns, struct krait_tile *tile);

/* Calls back for each entry that touches a range, in the order of begins; see krait_view_each. An instant's value is 1 if lanes
 * draw it as a mark, or 0. */
int krait_columns_each(const struct krait_columns *columns, struct krait_range range,
                       int (*fn)(void *ctx, const struct krait_tile_call *entry), void *ctx);

/* Whether the value of an instant is a name below `names` with a level. */
bool krait_columns_has_name(const struct krait_column_moment *moment, uint32_t names);

/* Fills in the marks that lanes draw of a row of bins of 2^shift ns; returns how many bins have one. */
uint32_t krait_columns_marks(const struct krait_columns *columns, uint64_t from_ns, unsigned shift,
                             struct krait_wire_mark marks[KRAIT_WIRE_BINS]);
void krait_columns_counters(const struct krait_columns *columns, uint64_t from_ns, unsigned shift,
                            struct krait_wire_counter bins[KRAIT_WIRE_BINS]);

#endif
