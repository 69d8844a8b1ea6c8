/* SPDX-License-Identifier: Apache-2.0
 *
 * The timeline as a stand-alone SVG without scripts. Time runs from left to right. Each thread has a lane with its
 * states at the top, then its calls by depth, then its system calls. Each CPU has a lane, too. The picture shows what
 * the page of `krait view` shows, in the same colours.
 *
 *                       0 ms        10 ms       20 ms       30 ms
 *     4711 python3 app.py
 *       MainThread 4711 ████▒▒▒░░░░░░░█████████░░░░░████        states of the thread (analysis/wall.h)
 *                       ├────────── main ─────────────┤         calls (view/tile.h)
 *                       ├── load ──┤▓▓░▓▓├─ dump ─────┤
 *          system calls   ├ read ┤                  ░░          other tracks of the thread (trace/track.h)
 *     CPUs
 *       CPU 0           ├ python3 ┤ idle ├ python3 ───┤
 *          frequency    ▂▂▂▂▂▂▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▅▅▅▅▅▅▅▅
 *
 * krait_timeline_fill walks the trace and sums it up in bins of two pixels, and krait_timeline_svg draws the bins.
 * Between the two, the caller can reduce the lanes and depths. One thread at a time may use a timeline.
 */
#ifndef KRAIT_VIEW_TIMELINE_H
#define KRAIT_VIEW_TIMELINE_H

#include "analysis/wall.h"
#include "base/buf.h"
#include "trace/track.h"
#include "view/tile.h"

enum {
    KRAIT_TIMELINE_WIDTH_MIN = 400, /* pixels */
    KRAIT_TIMELINE_BIN = 2,         /* pixels per bin of a tile */
};

/* Groups of lanes with a common heading, in this order; CPUs come first if no process was recorded. The comments say
 * what group_id is. */
enum krait_timeline_group {
    KRAIT_TIMELINE_PROCESS,  /* a process that krait or LTTng's function events recorded: its index */
    KRAIT_TIMELINE_KPROCESS, /* a process known only from kernel events: its pid */
    KRAIT_TIMELINE_THREADS,  /* threads of such processes that have one lane each */
    KRAIT_TIMELINE_CPUS,
    KRAIT_TIMELINE_EVENTS, /* streams of other traces */
    KRAIT_TIMELINE_LANES,  /* declared lanes; above all others */
};

/* A bin of instants: their number, the name of the first, and what the most serious of them says (trace/mark_says.h). A bin of a
 * counter: its values. */
struct krait_timeline_bin {
    uint32_t count, name;
    uint8_t mark_level;
    const char *says; /* in the timeline's arena; only if there are marks */
    int64_t least, most, last;
    bool known; /* the counter has a value in this bin */
};

/* A track in the bins of the picture. */
struct krait_timeline_part {
    uint32_t track;                  /* of the trace */
    struct krait_tile tile;          /* for calls, slices and states; krait_timeline_cut changes `depths` */
    struct krait_timeline_bin *bins; /* for instants and counters; else NULL */
};

struct krait_timeline_lane {
    uint8_t group; /* enum krait_timeline_group */
    uint8_t of;    /* enum krait_track_of, of `track` */
    uint32_t group_id, order;
    uint32_t track;                 /* one of the lane's tracks; it identifies the thread, CPU or group */
    struct krait_wall_track states; /* items NULL: no states are known */
    struct krait_timeline_part *parts;
    uint32_t part_count, part_cap;
    /* Calls that begin, or running time, also of samples; of a task how long it was there. krait_timeline_keep keeps the heaviest
     * lanes, those of tasks behind those of threads. */
    uint64_t weight;
    bool is_absent; /* while lanes are chosen: nothing of it was found in the range */
};

struct krait_timeline_count {
    uint32_t threads, tasks;
};

struct krait_timeline {
    const struct krait_trace *trace;
    struct krait_timeline_lane *lanes; /* sorted by group */
    uint32_t lane_count, lane_cap;
    struct krait_range range; /* within the trace */
    uint64_t zero_ns;         /* labels show times relative to this */
    uint32_t width;           /* pixels */
    const char *title, *subtitle;
    bool is_part;             /* part of a page that shows the title itself */
    const char *const *notes; /* lines below the picture about what it lacks */
    uint32_t note_count;
    /* Results of krait_timeline_fill: */
    uint64_t calls; /* calls that begin in the range, also of threads that the limit leaves out */
    struct krait_timeline_count over_limit; /* left out by the limit; krait_timeline_keep adds to it */
    uint32_t deepest;                  /* depth of the deepest call, if it is too deep to be drawn; else 0 */
    struct krait_timeline_count drawn; /* that have lanes */
    struct krait_arena said;           /* what marks say */
    char damage[1024];                 /* the first damage found in the trace; "": none */
};

struct krait_timeline_options {
    uint32_t depths_max;           /* deeper calls are counted but not drawn */
    uint32_t most;                 /* most lanes of threads and tasks; 0: no limit */
    bool is_part;                  /* the range is a part of the trace: who was not there in it has no lane */
    const struct krait_wall *wall; /* states of threads; NULL: not known */
    /* Select recorded threads, and tracks that do not belong to a recorded thread. */
    bool (*take_thread)(void *ctx, const struct krait_trace *trace, uint32_t thread);
    bool (*take_track)(void *ctx, const struct krait_trace *trace, const struct krait_track *track);
    void *ctx;
};

/* Raises `to_ns` past the last event of other tracers' streams and of declared lanes, because these streams do not
 * store when they end. Walks them all, and stores the first damage in `timeline`. The caller has found the trace's
 * tracks. Returns 0 or -ENOMEM. */
int krait_timeline_find_end(struct krait_timeline *timeline, const struct krait_trace *trace,
                            uint64_t *to_ns);

/* Finds the trace's tracks and walks them. The caller has set `range`, `zero_ns` and `width` (ns, pixels). Recorded
 * threads without calls in the range get no lane, nor do tasks, and threads of kernel traces, that were not there. Memory
 * grows with the kept lanes, and by a few bytes for each system call and interrupt in the range. Returns 0, or -ENOMEM with
 * err set; call krait_timeline_done in either case. The trace must outlive the timeline. */
int krait_timeline_fill(struct krait_timeline *timeline, struct krait_trace *trace,
                        const struct krait_timeline_options *options, struct krait_err *err);
void krait_timeline_done(struct krait_timeline *timeline);

/* Removes lanes until `most` are left, those with the least weight first; CPUs and events go last. */
void krait_timeline_keep(struct krait_timeline *timeline, uint32_t most);
/* The number of depths of calls that are drawn, and a limit for it. */
uint32_t krait_timeline_depths(const struct krait_timeline *timeline);
void krait_timeline_cut(struct krait_timeline *timeline, uint32_t depths);

/* Appends the picture to `to`. Title, subtitle and notes may be untrusted text. Returns 0 or -ENOMEM. */
int krait_timeline_svg(struct krait_buf *to, const struct krait_timeline *timeline);

#endif
