/* SPDX-License-Identifier: Apache-2.0
 *
 * What the endpoints answer from: an open trace and its index. Several threads of the server answer at a time; what
 * only one may do at a time is behind a lock.
 */
#ifndef KRAIT_SERVE_SERVING_H
#define KRAIT_SERVE_SERVING_H

#include "analysis/rules.h"
#include "analysis/track_sums.h"
#include "analysis/wall.h"
#include "serve/request.h"
#include "view/index.h"

#include <pthread.h>

struct krait_gil_holders;
struct krait_listing;
struct krait_listing_cursor;

struct krait_serving {
    uint32_t refs;       /* answers that are made from it, and the server: under the server's lock */
    uint32_t generation; /* counts what the server has shown before */
    bool growing;        /* the recording goes on: another one will follow */
    void (*close)(struct krait_view *view,
                  struct krait_trace *trace); /* of both, at the end; NULL: the caller's */
    struct krait_view *view;
    struct krait_trace *trace; /* the view's */
    struct krait_rules rules;  /* of declared lanes; used under the view's lock */
    bool (*takes)(void *ctx, const struct krait_trace *trace, const struct krait_track *track);
    void *takes_ctx;         /* which tracks these are of; NULL: all */
    uint64_t origin_ns;      /* times in requests and answers count from it */
    struct krait_wall *wall; /* what threads did; NULL: the trace does not say, or nobody has asked yet */
    bool has_wall;           /* somebody has asked */
    struct krait_gil_holders *gil; /* who had the GIL; NULL: nobody has asked yet */
    const char *const *paths;      /* of the trace, as it was opened; notes are kept in the first */
    size_t path_count;
    const char *analyses;       /* the user's folder of declared analyses; NULL: none */
    void (*changed)(void *ctx); /* what is declared beside the recording, or there, is another; or NULL */
    void *changed_ctx;
    struct krait_listing *listing; /* all events; NULL: nobody has asked yet */
    pthread_mutex_t one;           /* who makes the wall or the listing, or writes notes */
};

/* Makes one, of an open trace that outlives it or is closed with it. Returns 0 or -ENOMEM. */
int krait_serving_new(struct krait_serving **out, struct krait_view *view, struct krait_trace *trace);
void krait_serving_free(struct krait_serving *serving);

/* The range that a request names, in the trace's time. */
struct krait_range krait_serving_range(const struct krait_serving *serving,
                                       const struct krait_request *request);

/* A krait_profile_options.take_thread: whether the request, `request`, means the thread. */
bool krait_serving_takes(void *request, const struct krait_trace *trace, uint32_t thread);

/* Whether the request means a track: by `tracks`, or by `own`. */
bool krait_serving_takes_track(const struct krait_serving *serving, const struct krait_request *request,
                               uint32_t track);

/* Begins a table in an answer: an object with `columns`, their names, and the array `rows`, or what it is called, which the
 * caller fills and closes. */
void krait_serving_columns(struct krait_buf *out, const char *const *names, size_t count, const char *rows);

/* An entry of krait_view_each's, for sums. */
static inline struct krait_entry krait_serving_entry(const struct krait_tile_call *entry)
{
    return (struct krait_entry){ entry->begin_ns, entry->end_ns, entry->value, entry->func };
}

/* A cursor for all events, with the filter that the request names, if it names one. Returns 0, or a negative errno with err
 * set. */
int krait_serving_events(struct krait_serving *serving, const struct krait_request *request,
                         struct krait_listing_cursor **cursor, struct krait_err *err);

/* Who had the GIL while others waited, made once. Returns 0 or -ENOMEM. */
int krait_serving_holders(struct krait_serving *serving, const struct krait_gil_holders **out);

/* What threads did, made once; NULL where the trace does not say. Under the lock. */
struct krait_wall *krait_serving_wall(struct krait_serving *serving);

#define KRAIT_ENDPOINT(name, type, params, doc)                                                 \
    int krait_answer_##name(struct krait_serving *serving, const struct krait_request *request, \
                            struct krait_buf *out, struct krait_err *err);
#include "serve/endpoints.def"
#undef KRAIT_ENDPOINT

#endif
