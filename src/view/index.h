/* SPDX-License-Identifier: Apache-2.0
 *
 * An open trace for views: tiles of any track at any zoom, at a cost that depends on the picture, not on the trace.
 *
 *     struct krait_trace *trace                          whose tracks were found (krait_tracks_find)
 *        └─ krait_view_open ─▶ struct krait_view         an index for each track, built by threads of its own
 *              ├─ krait_view_tile                        bytes of view/wire.h; at once, also while the index is built
 *              ├─ krait_view_bin                         exact numbers of one bin
 *              ├─ krait_view_progress, _wait, _cancel
 *              └─ krait_view_close
 *
 * Several threads may query at a time. No query waits until the index is complete: an answer leaves out what is not
 * built yet, and says so by KRAIT_WIRE_UNFINISHED. Times are nanoseconds since the origin, krait_trace_zero. The
 * trace and its tracks must not change while the view is open. To walk its tracks directly, except for calls, hold
 * krait_view_lock.
 */
#ifndef KRAIT_VIEW_INDEX_H
#define KRAIT_VIEW_INDEX_H

#include "view/wire.h"

enum krait_view_flags {
    KRAIT_VIEW_WALK =
        1
        << 0, /* no index: each answer walks the whole track. For tests: an index must give the same answers. */
    KRAIT_VIEW_NO_CACHE = 1 << 1, /* neither read nor write a cache file */
};

struct krait_view_options {
    const char *const *paths; /* of the trace, as it was opened: the cache file lies beside the first */
    size_t path_count;
    unsigned flags;   /* enum krait_view_flags */
    unsigned threads; /* threads that build; 0: one for each processor, at most 8 */
    /* For a trace that krait_trace_open_on opened after the one of this view: takes the sums of its calls over, so that only the
     * calls that came since are added. It has been built, answers queries as before, and is not taken from again. NULL: none */
    struct krait_view *before;
    uint64_t small; /* bytes: tracks up to this size have no pyramid; 0: 256 KiB */
};

struct krait_view;

/* Starts to build, and returns. The caller keeps the trace; options->before must stay until the build is done. Errors: -ENOMEM,
 * -EAGAIN if no thread can start, or those of krait_tracks_find. */
int krait_view_open(struct krait_view **out, struct krait_trace *trace,
                    const struct krait_view_options *options, struct krait_err *err);
/* Stops the build first. NULL is fine. */
void krait_view_close(struct krait_view *view);

/* Only one walk of tracks other than calls may run at a time, and the index runs one after the view was opened: hold
 * this lock. */
void krait_view_lock(struct krait_view *view);
void krait_view_unlock(struct krait_view *view);

/* The begin of the view's time in nanoseconds since the epoch, and its length. */
uint64_t krait_view_origin(const struct krait_view *view);
uint64_t krait_view_length(struct krait_view *view);

struct krait_view_progress {
    double share;     /* built share of the index, from 0 to 1 */
    bool is_done;     /* all threads have ended: built, cancelled, or failed */
    bool is_cached;   /* it came from a cache file */
    int rc;           /* 0, or the reason why it is not complete: -ECANCELED, -ENOMEM */
    uint64_t bytes;   /* size of the index so far */
    uint64_t took_ns; /* time that building has taken so far, or took in all */
};

void krait_view_progress(struct krait_view *view, struct krait_view_progress *out);
/* Waits until all threads have ended; returns progress.rc. */
int krait_view_wait(struct krait_view *view);
/* Makes the threads end soon. The built part stays and answers queries. */
void krait_view_cancel(struct krait_view *view);

struct krait_view_query {
    uint32_t track;
    uint8_t level;
    uint64_t tile;
};

/* Appends a tile to `out`. Returns 0; -EINVAL if there is no such track, level or tile: level is at most
 * KRAIT_WIRE_LEVEL_MAX, and a tile ends before 2^63 ns; or -ENOMEM. Safe for several threads. */
int krait_view_tile(struct krait_view *view, const struct krait_view_query *query, struct krait_buf *out);

/* The numbers behind one bin of a tile, of calls, slices and states. */
struct krait_view_bin {
    uint64_t busy_ns, longest_ns, count;
    uint32_t name; /* func or text id of the longest entry; KRAIT_NO_ID: the bin is empty */
    uint8_t flags; /* of the tile: enum krait_wire_flags */
};

/* Returns as krait_view_tile does; -EINVAL also if there is no such bin or depth. */
int krait_view_bin(struct krait_view *view, const struct krait_view_query *query, uint32_t bin,
                   uint32_t depth, struct krait_view_bin *out);

/* Adds to ns[KRAIT_WIRE_BINS] how long an outermost entry was open in each bin of a tile. Sets KRAIT_WIRE_UNFINISHED
 * in *flags if the track is not built yet. For tracks of calls, slices and states. Returns as krait_view_tile does. */
int krait_view_busy(struct krait_view *view, const struct krait_view_query *query, uint64_t *ns,
                    uint8_t *flags);

/* Adds a stretch of time to the bins of a tile that it overlaps. */
void krait_view_spread(uint64_t *ns, struct krait_range range, uint64_t from_ns, uint64_t bin_ns);

/* Puts all calls that are open at a moment, at any depth, into `out`, with their whole extent in times since the
 * origin. Calls of less than 3 ns are not among them. Returns as krait_view_tile does, or -EAGAIN while the track is
 * not built; call krait_tile_done in any case. */
int krait_view_at(struct krait_view *view, uint32_t track, uint64_t at_ns, struct krait_tile *out);

/* Calls fn for the states, slices, instants or counter's values of a track that touch a range, in the order of their
 * begins, uncut; times are since the origin. A value of a counter ends where the next begins, the last one at
 * UINT64_MAX. An instant's value is 1 if lanes draw it as a mark, or 0. A result of fn other than 0 ends the loop and is
 * returned. Returns 0, -EINVAL if there is no such track, or -EAGAIN while it is not built. */
int krait_view_each(struct krait_view *view, uint32_t track, struct krait_range range,
                    int (*fn)(void *ctx, const struct krait_tile_call *entry), void *ctx);

/* The hue of a function in tiles (classes.h). */
uint8_t krait_view_func_hue(const struct krait_view *view, uint32_t func);

/* The texts of tracks that are known so far, by id. While the index is built, there may be more later. The address
 * of a text does not change. */
uint32_t krait_view_text_count(struct krait_view *view);
const char *krait_view_text(struct krait_view *view, uint32_t id);

#endif
