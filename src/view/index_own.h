/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the index share. Whatever changes while the index is built has a lock. Builders take it once per
 * batch, so that queries run between batches. Each builder has a lock for its track of calls; the view has one for
 * all other tracks, the texts and the progress.
 */
#ifndef KRAIT_VIEW_INDEX_OWN_H
#define KRAIT_VIEW_INDEX_OWN_H

#include "view/columns_build.h"
#include "view/index.h"
#include "view/pyramid.h"

#include <pthread.h>

enum {
    KRAIT_VIEW_THREADS_MAX = 8,
    /* Bytes of a thread's stream: to walk less than these takes less time than to keep an index of it. */
    KRAIT_VIEW_SMALL = 256 << 10,
};

enum krait_view_state {
    KRAIT_VIEW_WALKED, /* calls: no index, each query walks */
    KRAIT_VIEW_WAITS,  /* will be built */
    KRAIT_VIEW_BUILDS,
    KRAIT_VIEW_READY,
};

struct krait_view_track {
    uint8_t state;                 /* atomic; KRAIT_VIEW_READY is set last */
    struct krait_pyramid *pyramid; /* of calls, slices and states; NULL: there are few */
    struct krait_columns *columns; /* of tracks other than calls */
    /* Of calls that go on: what the pyramid was made of, for the next view; only the builder's until all is built. */
    struct krait_pyramid_build *build;
    struct krait_columns_build *kept; /* the same of other tracks (krait_tracks_walk_on) */
};

struct krait_builder {
    pthread_t thread;
    pthread_mutex_t lock;
    struct krait_view *view;
    struct krait_pyramid_build *build; /* under the lock, as the next; NULL between two tracks */
    uint32_t track;
};

struct krait_view {
    struct krait_trace *trace;
    uint64_t origin_ns, length_ns;   /* length: atomic */
    struct krait_view_track *tracks; /* by track id */
    uint8_t *func_hues;
    struct krait_view *before; /* krait_view_options */
    bool is_walk;              /* KRAIT_VIEW_WALK */
    bool has_cache;            /* it is read and written */
    uint64_t small;            /* krait_view_options */
    char **paths;              /* the same, copied */
    size_t path_count;
    uint64_t identity[2];        /* cache.h */
    void *mapped;                /* the cache file that it came from; NULL: it was built */
    const uint8_t *mapped_texts; /* in it */
    size_t mapped_bytes;
    bool cancelled;        /* atomic */
    uint64_t work, done;   /* bytes of the trace; done: atomic */
    uint64_t others_work;  /* of which it takes for the tracks other than calls */
    pthread_mutex_t walks; /* krait_view_lock */
    struct krait_builder builders[KRAIT_VIEW_THREADS_MAX];
    uint32_t builder_count, builders_max;
    uint32_t *jobs; /* tracks of calls to build, the largest first */
    uint32_t job_count;
    uint32_t *others; /* tracks other than calls: one job, of the first builder that comes */
    uint32_t other_count;
    pthread_mutex_t lock; /* of all that follows, and of the other tracks' columns while they are built */
    pthread_cond_t ended; /* a builder has */
    uint32_t next_job, running, building; /* builders that have not ended; that still take jobs */
    bool others_taken;
    uint64_t walked;     /* krait_tracks_walked: of the walk from which tracks have `kept`; 0: none has */
    uint32_t kept_texts; /* so many of the texts are in these */
    int rc;
    uint64_t begun_ns, took_ns, bytes;
    const char **texts; /* of tracks, by id */
    uint8_t *text_hues;
    uint32_t text_count, text_cap, hue_cap;
};

static inline uint64_t krait_view_since(const struct krait_view *view, uint64_t t_ns)
{
    int64_t since = (int64_t)(t_ns - view->origin_ns);
    return since < 0 ? 0 : KRAIT_MIN((uint64_t)since, KRAIT_PYRAMID_TIME_MAX);
}

/* Starts the threads that build (index_build.c). */
int krait_view_build(struct krait_view *view, unsigned threads, struct krait_err *err);

/* Walks a thread's calls in a range, of which the times are absolute, and hands each to `fn` as it ends, with times
 * behind the origin. */
int krait_view_walk_calls(const struct krait_view *view, uint32_t thread, struct krait_range range,
                          int (*fn)(void *ctx, const struct krait_tile_call *call), void *ctx);

#endif
