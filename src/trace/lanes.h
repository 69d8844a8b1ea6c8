/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes: tracks that nobody recorded, but that an analysis makes of what was. They are kept in memory.
 *
 *   lane 0 "order"     SLICES   ├── order 7 ──┤ ├─ order 9 ─┤     a lane has one track or several
 *                      SLICES        ├── order 8 ──┤              slices that cross are in another one
 *   lane 1 "oven"      STATES   ├ hot ┤ warm ├ hot ┤
 *   lane 2 "waiting"   COUNTER  4 ┴ 3 ┴ 2
 *
 * Times are nanoseconds since the epoch. Names are texts, not ids of the trace: lanes that were made of a trace may be
 * added to the same trace, opened again.
 */
#ifndef KRAIT_TRACE_LANES_H
#define KRAIT_TRACE_LANES_H

#include "base/arena.h"
#include "base/map.h"
#include "trace/track.h"

struct krait_lane_entry {
    uint64_t begin_ns, end_ns; /* of a counter the latter is not looked at */
    int64_t value;             /* of a counter */
    uint32_t name;             /* krait_lanes.names */
};

/* Entries are in the order that track.h says of their kind. */
struct krait_lane_track {
    uint8_t kind;            /* SLICES, STATES or COUNTER */
    uint32_t lane;           /* its number: from 0 */
    const char *title;       /* of the lane */
    const char *name, *unit; /* of the track */
    uint32_t parts;          /* as krait_track.parts */
    struct krait_lane_entry *entries;
    uint32_t count, cap;
};

struct krait_lanes { /* zeroed memory has none */
    struct krait_lane_track *tracks;
    uint32_t count, cap, lanes; /* lanes: how many there are */
    struct krait_strtab names;
    struct krait_arena arena; /* titles, names and units */
};

void krait_lanes_done(struct krait_lanes *lanes);

/* One more track of a lane; strings are copied. NULL when memory is out. Valid until the next one. */
struct krait_lane_track *krait_lanes_add(struct krait_lanes *lanes, const struct krait_lane_track *track);

/* One more entry. Returns 0, -ENOMEM, or -EFBIG: a track has room for 2^31. */
int krait_lane_track_add(struct krait_lane_track *track, const struct krait_lane_entry *entry);

/* Makes them tracks of the trace, behind all others, once; takes them in any case. The other tracks were found, and
 * none are found later: ids stay. Returns 0 or -ENOMEM. */
int krait_trace_add_lanes(struct krait_trace *trace, struct krait_lanes *lanes);

/* The tracks in front of the lanes. */
uint32_t krait_trace_recorded_tracks(const struct krait_trace *trace);

#endif
