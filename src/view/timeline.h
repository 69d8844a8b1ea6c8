/* SPDX-License-Identifier: Apache-2.0
 *
 * The timeline: lanes below each other, time from left to right. A lane for each thread, its calls by depth, above
 * them what the thread was doing, below them its system calls; a lane for each CPU. One picture that stands alone,
 * without scripts, as wide as it is asked for. It shows what the page of `krait view` shows, in the same colours.
 *
 *                       0 ms        10 ms       20 ms       30 ms
 *     4711 python3 app.py
 *       MainThread 4711 ████▒▒▒░░░░░░░█████████░░░░░████        what it was doing (analysis/wall.h)
 *                       ├────────── main ─────────────┤         calls (view/tile.h)
 *                       ├── load ──┤▓▓░▓▓├─ dump ─────┤
 *          system calls   ├ read ┤                  ░░          other tracks of the thread (trace/track.h)
 *     CPUs
 *       CPU 0           ├ python3 ┤ idle ├ python3 ───┤
 *          frequency    ▂▂▂▂▂▂▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▅▅▅▅▅▅▅▅
 *
 * It is made in two steps: krait_timeline_fill walks the trace and sums it up over bins of two pixels,
 * krait_timeline_svg draws that. In between lanes and depths can be made fewer.
 */
#ifndef KRAIT_VIEW_TIMELINE_H
#define KRAIT_VIEW_TIMELINE_H

#include "analysis/wall.h"
#include "base/buf.h"
#include "trace/track.h"
#include "view/tile.h"

enum {
    KRAIT_TIMELINE_WIDTH_MIN = 400, /* pixels */
    KRAIT_TIMELINE_BIN = 2,         /* pixels a bin of tiles */
};

/* Lanes below one head, in this order, but that CPUs stand first where no process was recorded. */
enum krait_timeline_group {
    KRAIT_TIMELINE_PROCESS,  /* of krait's recording, or LTTng's function events: index of the process */
    KRAIT_TIMELINE_KPROCESS, /* that only the kernel's part knows: pid */
    KRAIT_TIMELINE_THREADS,  /* the only ones of such processes */
    KRAIT_TIMELINE_CPUS,
    KRAIT_TIMELINE_EVENTS, /* streams of other traces */
    KRAIT_TIMELINE_LANES,  /* that analyses made; above all others */
};

/* Of a bin of instants: how many, and what the first is. Of a counter: its values. */
struct krait_timeline_bin {
    uint32_t count, name;
    int64_t least, most, last;
    bool known; /* the counter's value is */
};

/* A track over the picture's bins. */
struct krait_timeline_part {
    uint32_t track;                  /* of the trace */
    struct krait_tile tile;          /* of calls, slices and states; its `depths` may be made fewer */
    struct krait_timeline_bin *bins; /* of instants and counters; else NULL */
};

struct krait_timeline_lane {
    uint8_t group; /* enum krait_timeline_group */
    uint32_t group_id, order;
    uint32_t track;                 /* one of its own, which says what it is of */
    struct krait_wall_track states; /* items NULL: none, or not known */
    struct krait_timeline_part *parts;
    uint32_t part_count, part_cap;
    uint64_t weight; /* calls that begin, or the time that a thread ran: the lanes with the most are kept */
};

struct krait_timeline {
    const struct krait_trace *trace;
    struct krait_timeline_lane *lanes; /* those below a head one after the other */
    uint32_t lane_count, lane_cap;
    struct krait_range range; /* within the trace */
    uint64_t zero_ns;         /* what times are told from */
    uint32_t width;           /* pixels */
    const char *title, *subtitle;
    bool is_part;             /* of a page, which has the title */
    const char *const *notes; /* below the picture: what is missing in it */
    uint32_t note_count;
    /* Of what krait_timeline_fill found: */
    uint64_t calls;      /* that begin in the range, of the lanes that were kept at first */
    uint32_t over_limit; /* threads that were not kept; krait_timeline_keep adds to it */
    uint32_t deepest;    /* call, where deeper ones than are drawn; else 0 */
    uint32_t threads;    /* that have lanes */
    uint32_t unrecorded; /* threads without lanes, because only the kernel's part has them */
    char damage[1024];   /* the first that was met */
};

struct krait_timeline_options {
    uint32_t depths_max;           /* deeper calls are only counted */
    uint32_t most;                 /* lanes of threads; 0: all */
    const struct krait_wall *wall; /* NULL: nobody knows what threads did */
    /* Whether a thread, or a track that is not of a recorded thread, is taken. */
    bool (*take_thread)(void *ctx, const struct krait_trace *trace, uint32_t thread);
    bool (*take_track)(void *ctx, const struct krait_trace *trace, const struct krait_track *track);
    void *ctx;
};

/* Other tracers' streams do not say when they end: raises `to_ns` to behind the last event of these, and of
 * lanes. Walks them, and notes the first damage in `timeline`. The trace's tracks were found. Returns 0 or
 * -ENOMEM. */
int krait_timeline_find_end(struct krait_timeline *timeline, const struct krait_trace *trace,
                            uint64_t *to_ns);

/* Finds the trace's tracks and walks them. `trace`, `range`, `zero_ns` and `width` are given. Recorded threads without
 * calls in the range have no lane. Memory grows with the lanes that are kept and, by some bytes each, with the system
 * calls and interrupts in the range. Returns 0, or -ENOMEM with err set; krait_timeline_done in any case. */
int krait_timeline_fill(struct krait_timeline *timeline, struct krait_trace *trace,
                        const struct krait_timeline_options *options, struct krait_err *err);
void krait_timeline_done(struct krait_timeline *timeline);

/* Gives up lanes, those with the least weight first, until there are `most`; CPUs and events go last. */
void krait_timeline_keep(struct krait_timeline *timeline, uint32_t most);
/* Of calls: how many depths are drawn at most, and fewer of them. */
uint32_t krait_timeline_depths(const struct krait_timeline *timeline);
void krait_timeline_cut(struct krait_timeline *timeline, uint32_t depths);

/* The picture, appended to `to` (check to->failed). Texts are untrusted. Returns 0 or -ENOMEM. */
int krait_timeline_svg(struct krait_buf *to, const struct krait_timeline *timeline);

/* How many of its lanes are of tasks. */
uint32_t krait_timeline_tasks(const struct krait_timeline *timeline);

#endif
