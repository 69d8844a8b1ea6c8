/* SPDX-License-Identifier: Apache-2.0
 *
 * The timeline: a lane for each thread, time from left to right, its calls by depth and above them what the
 * thread was doing. One picture that stands alone, without scripts, as wide as it is asked for.
 *
 *                   0 ms        10 ms       20 ms       30 ms
 *     python3 app.py
 *       MainThread  ████▒▒▒░░░░░░░█████████░░░░░████        what it was doing (analysis/wall.h)
 *                   ├────────── main ─────────────┤         calls (view/tile.h)
 *                   ├── load ──┤▓▓░▓▓├─ dump ─────┤
 */
#ifndef KRAIT_VIEW_TIMELINE_H
#define KRAIT_VIEW_TIMELINE_H

#include "analysis/wall.h"
#include "base/buf.h"
#include "view/tile.h"

enum {
    KRAIT_TIMELINE_WIDTH_MIN = 400, /* pixels */
    KRAIT_TIMELINE_BIN = 2,         /* pixels a bin of tiles */
};

struct krait_timeline_lane {
    uint32_t thread;        /* of the trace */
    struct krait_tile tile; /* owned by the caller, as are its states; its `depths` may be made fewer */
    struct krait_wall_track states; /* items NULL: not known */
};

struct krait_timeline {
    const struct krait_trace *trace;
    struct krait_timeline_lane *lanes; /* those of a process one after the other */
    uint32_t lane_count;
    struct krait_range range; /* within the trace */
    uint64_t zero_ns;         /* what times are told from */
    uint32_t width;           /* pixels */
    const char *title, *subtitle;
    bool is_part;             /* of a page, which has the title */
    const char *const *notes; /* below the picture: what is missing in it */
    uint32_t note_count;
};

/* How many bins a tile of a picture so wide has. */
uint32_t krait_timeline_bins(uint32_t width);

/* The picture, appended to `to` (check to->failed). Texts are untrusted. Returns 0 or -ENOMEM. */
int krait_timeline_svg(struct krait_buf *to, const struct krait_timeline *timeline);

#endif
